"""Forecasts of competing risks by matrices of cumulative incidence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from censcore._arrays import Array, ArrayLike, detach, namespace, to_numpy
from censcore._validation import check_flag, check_option, check_positive, name_subjects
from censcore.distributions.causes.time_and_cause import TimeAndCause
from censcore.distributions.univariate.at_one_time import AtOneTime
from censcore.distributions.univariate.curve import in_time_order
from censcore.distributions.univariate.monotone import ROUNDING, Repair, monotone
from censcore.distributions.univariate.piecewise_linear import PiecewiseLinear
from censcore.distributions.univariate.step import Step
from censcore.distributions.univariate.univariate import Univariate
from censcore.exceptions import InvalidInputError
from censcore.plain_text import some_of


class CumulativeIncidence(TimeAndCause):
    r"""Time and cause of an event by the cumulative incidences :math:`F_j(t)=P(T\le t,\,D=j)` on a grid.

    Parameters
    ----------
    times : array, (q,)
        Distinct, finite and non-negative; in any order, columns are sorted with them.
    cif : array, (n or 1, m, q)
        Cumulative incidence of every subject, cause and time; one matrix (1, m, q), or (m, q), serves all
        subjects. Not decreasing with time, and with a sum over the causes of at most 1.
    interpolation : {"step", "linear", "none"}
        Between the times. Step functions have no density and so no log score. Linear ones start at zero at
        time zero. Beyond the last time nothing happens: the rest of the mass is at infinity. "none" is for
        one time, beside which nothing is known.
    names : sequence of str, optional
        Names of the causes 1 to m.
    repair : bool
        Make impossible curves possible, instead of raising an error: a curve that decreases becomes the
        nearest one that does not, and where the sum of the causes exceeds 1 all are divided by the largest
        sum of the subject. :attr:`repaired` says what was changed, and by how much.

    Attributes
    ----------
    repaired : Repair or None
        What ``repair`` changed by more than rounding (1e-6).

    See Also
    --------
    CauseSpecificHazards : From one hazard per cause.
    censcore.AalenJohansen : The estimate without covariates.

    Examples
    --------
    >>> import censcore as cs
    >>> F = cs.CumulativeIncidence([1.0, 2.0, 4.0], [[[0.1, 0.3, 0.4], [0.2, 0.2, 0.5]]])
    >>> F.sf([1.0, 4.0]).round(3), F.cause(2).icdf(0.3)
    (array([[0.7, 0.1]]), array([4.]))
    >>> bad = [[[0.3, 0.2], [0.5, 0.9]]]
    >>> cs.CumulativeIncidence([1.0, 2.0], bad, repair=True).repaired.largest.__round__(3)
    0.117
    """

    array_names: ClassVar[tuple[str, ...]] = ("_grid", "_cif")
    _grid: Array
    _cif: Array

    def __init__(
        self,
        times: ArrayLike,
        cif: ArrayLike,
        *,
        interpolation: str = "step",
        names: Sequence[str] | None = None,
        repair: bool = False,
    ) -> None:
        check_option(interpolation, "interpolation", ("step", "linear", "none"))
        check_flag(repair, "repair")
        self.store(grid=times, cif=cif)
        self._linear, self._alone = interpolation == "linear", interpolation == "none"
        self._cif = self._cif[None] if self._cif.ndim == 2 else self._cif
        _check_shapes(self._grid, self._cif)
        check_positive(detach(self._grid), "times", zero=True)
        self._grid, self._cif = in_time_order(self._grid, self._cif)
        if self._alone and self._grid.shape[0] > 1:
            raise InvalidInputError(
                f"interpolation='none' is for one time; got {self._grid.shape[0]} times, which are curves: "
                "pass 'step' or 'linear'."
            )
        self._cif, self.repaired = _possible(self._cif, to_numpy(self._grid), repair)
        self._grid = self._grid[None, :]
        early = to_numpy((self._grid[:, None, :1] == 0) & (self._cif[:, :, :1] > 0)).any(axis=(1, 2))
        if self._linear and early.any():
            raise InvalidInputError(
                "Linear cumulative incidences are zero at time 0; got events there in "
                f"{name_subjects(np.nonzero(early)[0])}. Use interpolation='step'."
            )
        self._name(names, self._cif.shape[1])

    @property
    def times(self) -> Array:
        """The times of the grid, (q,)."""
        return self._grid[0]

    @property
    def has_density(self) -> bool:
        """Whether there are densities: for linear interpolation."""
        return self._linear

    @property
    def only_time(self) -> float | None:
        """The one time at which the incidences are known; None where there are curves."""
        return float(to_numpy(self._grid)[0, 0]) if self._alone else None

    def _curve(self, cdf: Array) -> Univariate:
        if self._alone:
            return AtOneTime(self._grid[0, 0], cdf=cdf)
        if not self._linear:
            return Step.trusted(self._grid, cdf, falls=False)
        return PiecewiseLinear.trusted(self._grid, cdf, falls=False, tail="infinity")

    def of_cause(self, number: int) -> Univariate:
        return self._curve(self._cif[:, number - 1])

    def of_any_cause(self) -> Univariate:
        total = self.xp.sum(self._cif, axis=1)
        return self._curve(self.xp.where(total < 1, total, 1.0))

    def given_survival(self, a: ArrayLike) -> CumulativeIncidence:
        """Given T > a: what the curves rise by from a on, over P(T > a)."""
        xp = self.xp
        column, alive = self._alive(a)
        grid, at_a = self._grid, self.cif(column)
        if self._linear:  # the curves bend at a
            n = max(self._grid.shape[0], column.shape[0])
            knots = [xp.broadcast_to(part, (n, part.shape[1])) for part in (self._grid, column)]
            grid = xp.sort(xp.clip(xp.concat(knots, axis=1), min=0.0), axis=1)
        cif = self.cif(grid) if self._linear else self._cif
        rise = cif - at_a
        return self.replaced(_grid=grid, _cif=xp.where(rise > 0, rise, 0.0) / alive[:, :, None])

    def __repr__(self) -> str:
        n, m, q = self._cif.shape
        kind = "linear" if self._linear else "at one time" if self._alone else "step"
        causes = some_of(self.names)
        return f"CumulativeIncidence(shape=({n}, {m}), times={q}, {kind}, causes: {causes})"


def _check_shapes(times: Array, cif: Array) -> None:
    if times.ndim != 1 or cif.ndim != 3 or 0 in cif.shape or cif.shape[2] != times.shape[0]:
        hint = ""
        if cif.ndim == 3 and times.ndim == 1 and times.shape[0] in cif.shape[:2]:
            hint = " Move the axis of times to the end."
        raise InvalidInputError(
            "times must have shape (q,) and cif (n or 1, m, q), subjects, causes and times; got "
            f"{tuple(times.shape)} and {tuple(cif.shape)}.{hint}"
        )


def _possible(cif: Array, times: np.ndarray, repair: bool) -> tuple[Array, Repair | None]:
    """Curves that do not decrease, in [0, 1], with a sum of at most 1; and what was changed."""
    remedy = "Correct the forecast, or pass repair=True and look at .repaired."
    rising, turned = monotone(cif, falls=False, name="cif", times=times, repair=repair, remedy=remedy)
    xp = namespace(rising)
    last = xp.sum(rising[:, :, -1], axis=1)  # the largest, since the curves rise
    above = to_numpy(last) - 1
    wrong = np.nonzero(above > ROUNDING)[0]
    if wrong.size and not repair:
        worst = wrong[above[wrong].argmax()]
        sums = to_numpy(rising[worst]).sum(axis=0)
        first = int(np.nonzero(sums > 1 + ROUNDING)[0][0])
        raise InvalidInputError(
            "The cumulative incidences of all causes must sum to at most 1; they sum to "
            f"{sums[first]:.6g} at time {times[first]:g} and to {sums[-1]:.6g} at the end in subject "
            f"{worst}, and exceed 1 in {name_subjects(wrong)}. Is the survival function among them? {remedy}"
        )
    if (above > 0).any():
        rising = rising / xp.where(last > 1, last, xp.ones_like(last))[:, None, None]
    if not wrong.size and turned is None:
        return rising, None
    moved = np.abs(to_numpy(rising) - to_numpy(cif)).reshape(len(above), -1).max(axis=1)
    changed = np.nonzero(moved > ROUNDING)[0]
    return rising, Repair(tuple(map(int, changed)), float(moved.max()), float(moved[changed].mean()))
