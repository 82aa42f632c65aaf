"""Distributions with a piecewise constant hazard."""

from __future__ import annotations

import numpy as np

from censcore._arrays import Array, ArrayLike, common_rows, searchsorted, take_along, to_numpy
from censcore._numerics import safe_log
from censcore._validation import check_positive, name_subjects
from censcore.distributions._panels import RunningSums
from censcore.distributions._special import decaying_area
from censcore.distributions.univariate.hazard import ByHazard
from censcore.exceptions import InvalidInputError


class PiecewiseExponential(ByHazard):
    r"""Piecewise constant hazard on J intervals, :math:`P(T>t)=\exp\{-\int_0^t h(s)\,ds\}`.

    The hazard is ``rates[:, j]`` on :math:`[b_j,b_{j+1})` with :math:`b_0=0` and :math:`b_J=\infty`.

    Parameters
    ----------
    times : array, (J - 1,) or (n, J - 1)
        Where the hazard changes, :math:`b_1<\dots<b_{J-1}`: positive, finite, ascending; common to all
        subjects or one set per subject. Empty for a constant hazard.
    rates : array, (J,) or (n, J)
        Hazards, non-negative. A last rate of zero leaves mass at infinity.

    Examples
    --------
    >>> import censcore as cs
    >>> distribution = cs.PiecewiseExponential(times=[1.0, 3.0], rates=[[0.5, 0.1, 1.0], [0.2, 0.2, 0.0]])
    >>> distribution.sf(3.0).round(3), distribution.mass_at_infinity().round(3)
    (array([0.497, 0.549]), array([0.   , 0.549]))
    >>> distribution.icdf(0.5).round(3)
    array([2.931,   inf])
    """

    _times: Array
    _rates: Array

    def __init__(self, times: ArrayLike, rates: ArrayLike) -> None:
        self.store(times=times, rates=rates)
        self._times, self._rates = (
            array.reshape(1, -1) if array.ndim < 2 else array for array in (self._times, self._rates)
        )
        times, rates = tuple(self._times.shape), tuple(self._rates.shape)
        if len(times) != 2 or len(rates) != 2 or rates[1] != times[1] + 1:
            raise InvalidInputError(
                "PiecewiseExponential needs one rate more than times, since the first interval starts at 0 "
                f"and the last never ends: times (J - 1,) or (n, J - 1) with rates (J,) or (n, J); got "
                f"{times} and {rates}."
            )
        common_rows(times=times[0], rates=rates[0])
        check_positive(self._times, "times")
        check_positive(self._rates, "rates", zero=True)
        tied = np.nonzero((np.diff(to_numpy(self._times), axis=1) <= 0).any(axis=1))[0]
        if tied.size:
            raise InvalidInputError(
                f"times must ascend without ties; they do not in {name_subjects(tied)}. Sort them "
                "together with the rates."
            )

    @property
    def _starts(self) -> Array:
        """Where the intervals start, (1 or n, J)."""
        zero = self.xp.zeros_like(self._times[:, :1]) if self._times.shape[1] else self._rates[:1, :1] * 0
        return self.xp.concat([zero, self._times], axis=1)

    @property
    def _hazards(self) -> Array:
        """H at the starts of the intervals, (1 or n, J)."""
        xp = self.xp
        spent = self._rates[:, :-1] * xp.diff(self._starts, axis=1)
        nothing = xp.sum(spent[:, :0], axis=1, keepdims=True)
        return xp.concat([nothing, xp.cumulative_sum(spent, axis=1)], axis=1)

    def _interval(self, t: Array) -> Array:
        return searchsorted(self._times, t, side="right")

    def cumulative_hazard_at(self, t: Array) -> Array:
        xp, j = self.xp, self._interval(t)
        endless = xp.isinf(t)
        start = take_along(self._starts, j)
        hazard = take_along(self._hazards, j) + take_along(self._rates, j) * (
            xp.where(endless, start, t) - start
        )
        return xp.where(endless, np.inf, hazard)

    def inverse_hazard_at(self, h: Array) -> Array:
        """In the interval in which H reaches h; infinite if H never reaches it."""
        xp = self.xp
        hazards = self._hazards
        j = searchsorted(hazards[:, 1:], h, side="left")
        rate, missing = take_along(self._rates, j), h - take_along(hazards, j)
        wait = missing / xp.where(rate > 0, rate, 1.0)
        wait = xp.where((rate > 0) | (missing <= 0), wait, np.inf)
        return take_along(self._starts, j) + wait

    def _reachable(self, like: Array) -> Array:
        xp = self.xp
        most = self.detach()._hazards[:, -1:] / 2 + xp.zeros_like(like)
        return xp.where(self._rates[:, -1:] > 0, 1.0, most)

    def log_hazard_at(self, t: Array) -> Array:
        return safe_log(take_along(self._rates, self._interval(t)))

    def integrated_sf_at(self, a: Array, b: Array) -> Array:
        """The rest of the interval of a, the whole ones between, and the part of the interval of b."""
        xp = self.xp
        starts, rates = xp.broadcast_arrays(self._starts, self._rates)
        survival = xp.exp(-self._hazards)
        first, last = self._interval(a), self._interval(b)
        inner = xp.where(first < last, first + 1, last)
        whole = RunningSums(decaying_area(survival[:, :-1], rates[:, :-1], xp.diff(starts, axis=1)))
        stop = xp.where(first < last, take_along(starts, inner), b)
        head = decaying_area(self.sf_at(a), take_along(rates, first), stop - a)
        over = b - take_along(starts, last)
        over = xp.where(first < last, over, 0.0)
        rest = decaying_area(take_along(survival, last), take_along(rates, last), over)
        return head + whole.between(inner, last) + rest

    def prob_never(self) -> Array:
        xp = self.xp
        left = xp.exp(-self._hazards[:, -1])
        return xp.where(self._rates[:, -1] > 0, 0.0, left)

    def breaks(self) -> Array | None:
        return self._times if self._times.shape[1] else None
