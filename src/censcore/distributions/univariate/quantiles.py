"""Forecasts that are a table of quantiles."""

from __future__ import annotations

import numpy as np

from censcore._arrays import Array, ArrayLike, as_float, is_neutral, to_numpy
from censcore._numerics import log1p, safe_log
from censcore._validation import check_levels, check_positive, name_subjects
from censcore.distributions.univariate.curve import in_time_order
from censcore.distributions.univariate.piecewise_linear import Polyline
from censcore.exceptions import InvalidInputError


class Quantiles(Polyline):
    r"""The distribution with given quantiles: the CDF is linear between them, from (0, 0) on.

    Beyond the last quantile :math:`v_L` of level :math:`p_L` nothing is given, and ``tail`` says what holds:

    - ``"exponential"``: :math:`P(T>t)=(1-p_L)e^{-r(t-v_L)}` with the constant hazard r that leads from the
      last smaller quantile (or from time 0) to this one;
    - ``"infinity"``: the event never comes, all mass left sits at infinity;
    - ``"last"``: all mass left sits at the last quantile.

    Parameters
    ----------
    levels : array, (L,)
        Distinct, in (0, 1). In any order: columns of values are sorted with their levels.
    values : array, (L,) or (n, L)
        The quantiles, finite, non-negative and not decreasing with the level. Equal ones make an atom, and
        a distribution with atoms has no log score.
    tail : {"exponential", "infinity", "last"}
        The rule beyond the last quantile.

    Examples
    --------
    >>> import censcore as cs
    >>> distribution = cs.Quantiles([0.1, 0.5, 0.9], [[1.0, 2.0, 5.0], [2.0, 3.0, 4.0]])
    >>> distribution.icdf([[0.1, 0.3, 0.9, 0.99]]).round(3)
    array([[1.   , 1.5  , 5.   , 9.292],
           [2.   , 2.5  , 4.   , 5.431]])
    """

    def __init__(self, levels: ArrayLike, values: ArrayLike, *, tail: str = "exponential") -> None:
        self._falls = False
        named = {"levels": levels, "values": values}
        named = {name: part if is_neutral(part) else as_float(part, name) for name, part in named.items()}
        self.store(times=named["values"], levels=named["levels"])
        self._check_table()
        self._set_tail(tail)
        never_starts = np.nonzero(to_numpy(self._times[:, -1]) == 0)[0]
        if self.tail == "exponential" and never_starts.size:
            raise InvalidInputError(
                f"All quantiles are zero in {name_subjects(never_starts)}, which leaves no scale for "
                "tail='exponential'. Use tail='last' or tail='infinity'."
            )

    def _check_table(self) -> None:
        values, levels = self._times, self._levels
        L = int(levels.reshape(-1).shape[0])
        if (
            levels.ndim != 1
            or L == 0
            or values.ndim not in (1, 2)
            or values.shape[-1] != L
            or 0 in values.shape
        ):
            hint = " It looks transposed: pass values.T." if values.ndim == 2 and values.shape[0] == L else ""
            raise InvalidInputError(
                f"levels must have shape (L,) and values (n, L) or (L,); got {tuple(levels.shape)} and "
                f"{tuple(values.shape)}.{hint}"
            )
        check_levels(levels)
        check_positive(values, "values", zero=True)
        levels, self._times = in_time_order(levels, values.reshape(-1, L), "levels")
        self._levels = levels[None, :]
        crossing = to_numpy(self._times[:, 1:] < self._times[:, :-1])
        if crossing.any():
            row, column = np.argwhere(crossing)[0]
            raise InvalidInputError(
                "Quantiles must not decrease with the level (they cross); from level "
                f"{float(self._levels[0, column]):g} to {float(self._levels[0, column + 1]):g} they go from "
                f"{float(self._times[row, column]):g} to {float(self._times[row, column + 1]):g}, in "
                f"{name_subjects(np.unique(np.nonzero(crossing)[0]))}. Sort them within each row, or fit "
                "a model whose quantiles cannot cross."
            )

    @property
    def levels(self) -> Array:
        """The levels, ascending, (L,)."""
        return self._levels[0, :-1] if self.tail == "last" else self._levels[0]

    @property
    def values(self) -> Array:
        """The quantiles, (n, L) or (1, L)."""
        return self._times[:, :-1] if self.tail == "last" else self._times

    def _make_rate(self) -> Array:
        """The hazard that leads from the last smaller quantile to the last one."""
        count = self._knots_passed(self._last, "left")
        time = self._last_knot(self._times, count, 0.0)
        level = self._last_knot(self._levels, count, 0.0)
        return (log1p(-level) - safe_log(self._left)) / (self._last - time)

    def __repr__(self) -> str:
        return f"Quantiles(shape=({len(self)},), levels={self.levels.shape[0]}, tail={self.tail!r})"
