"""Forecasts of competing risks that are samples of time and cause."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from censcore._arrays import Array, as_float, convert, to_numpy
from censcore._validation import MOST_CAUSES, as_cause_codes, as_count, as_names, name_subjects
from censcore.distributions.competing_risks import TimeAndCause, TimesAndCauses
from censcore.distributions.ensemble import Ensemble
from censcore.exceptions import InvalidInputError

__all__ = ["CauseEnsemble"]


class CauseEnsemble(TimeAndCause):
    r"""The empirical distribution of samples of the time and the cause of an event.

    .. math:: F_j(t)=\frac1M\sum_{i=1}^M\mathbb 1\{t_i\le t,\,d_i=j\}

    Parameters
    ----------
    times : array, (n, M)
        Non-negative; infinity means that the event never comes. n = 1 serves all subjects.
    causes : array of whole numbers, (n, M)
        From 1 to m; 0 exactly where the time is infinite.
    names : sequence of str, optional
        Names of the causes 1 to m.
    n_causes : int, optional
        m. By default the number of names, or the largest cause.

    See Also
    --------
    CumulativeIncidence : From matrices.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> F = cs.CauseEnsemble([[1.0, 2.0, 3.0, np.inf]], [[1, 2, 1, 0]])
    >>> F.cif([2.0, 5.0])
    array([[[0.25, 0.5 ],
            [0.25, 0.25]]])
    """

    has_density: ClassVar[bool] = False
    _distributions: ClassVar[tuple[str, ...]] = ("_members",)
    _arrays: ClassVar[tuple[str, ...]] = ("_causes",)

    def __init__(
        self,
        times: Array,
        causes: Array,
        *,
        names: Sequence[str] | None = None,
        n_causes: int | None = None,
    ) -> None:
        self._members = [Ensemble(times)]
        samples = self._members[0].samples
        codes = to_numpy(as_float(causes, "causes"))
        if samples.ndim != 2 or codes.shape != tuple(samples.shape):
            raise InvalidInputError(
                f"times and causes must both have shape (n, M); got {tuple(samples.shape)} and {codes.shape}."
            )
        codes = as_cause_codes(codes, "causes", "never")
        _check_never(codes, to_numpy(samples))
        if names is not None:
            names = as_names(names, n_causes)
        if n_causes is not None:
            n_causes = as_count(n_causes, "n_causes", most=MOST_CAUSES)
        self._m = n_causes or (len(names) if names is not None else max(1, int(codes.max())))
        if codes.max() > self._m:
            raise InvalidInputError(
                f"causes go up to {int(codes.max())}; expected numbers from 0 to {self._m}."
            )
        self._causes = convert(codes, samples)
        self._name(names)

    @property
    def _reference(self) -> Array:
        return self._members[0].samples

    @property
    def _is_neutral(self) -> bool:
        return self._members[0]._is_neutral

    @property
    def n_causes(self) -> int:
        """The number m of causes."""
        return self._m

    @property
    def samples(self) -> TimesAndCauses:
        """The members, in the order given."""
        return TimesAndCauses(self._members[0].samples, self._causes)

    @property
    def weights(self) -> Array | None:
        """Weights of the members, summing to one; None where all are equal."""
        return self._members[0].weights

    def _of_cause(self, number: int) -> Ensemble:
        times = self._members[0].samples
        never = self._xp.full_like(times, np.inf)
        return self._members[0]._with(self._xp.where(self._causes == number, times, never))

    def given_survival(self, a: Array) -> CauseEnsemble:
        """The members with T > a, for every subject."""
        self._alive(a)
        other = self._map(lambda array: array)
        other._members = [self._members[0].given_survival(a)]
        return other

    def _of_any_cause(self) -> Ensemble:
        return self._members[0]


def _check_never(codes: np.ndarray, times: np.ndarray) -> None:
    odd = (codes == 0) != np.isinf(times)
    if odd.any():
        raise InvalidInputError(
            "A cause must be 0 exactly where the time is infinite; it is not in "
            f"{name_subjects(np.unique(np.nonzero(odd)[0]))}."
        )
