"""Survival curves that are linear between given times."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from censcore._arrays import Array, to_numpy
from censcore._validation import name_subjects
from censcore.distributions._curve import Curve
from censcore.exceptions import InvalidInputError

__all__ = ["PiecewiseLinear", "Polyline"]


class Polyline(Curve):
    """Linear from (0, 1) through the knots, flat after the last; equal times make an atom."""

    _degree: ClassVar[int | None] = 1

    def _segment(self, count: Array) -> tuple[Array, Array, Array, Array]:
        """Time and level at the last of ``count`` knots and at the next, which may be at infinity."""
        return (
            self._last_knot(self._times, count, 0.0),
            self._last_knot(self._levels, count, self._start),
            self._next_knot(self._times, count, np.inf),
            self._next_knot(self._levels, count, 1 - self._start),
        )

    def _level(self, t: Array, count: Array) -> Array:
        """The level at t, which lies between the knot number ``count`` and the next."""
        xp = self._xp
        t0, level0, t1, level1 = self._segment(count)
        inside = (t1 > t0) & xp.isfinite(t1)
        way, width = xp.where(inside, t - t0, xp.zeros_like(t0)), xp.where(inside, t1 - t0, xp.ones_like(t0))
        share = way / width
        return level0 * (1 - share) + level1 * share

    def _sf(self, t: Array) -> Array:
        return self._as_sf(self._never(t, self._level(t, self._knots_passed(t, "right"))))

    def _cdf(self, t: Array) -> Array:
        return self._as_cdf(self._never(t, self._level(t, self._knots_passed(t, "right"))))

    def _sf_left(self, t: Array) -> Array:
        return self._as_sf(self._level(t, self._knots_passed(t, "left")))

    def _logpdf(self, t: Array) -> Array:
        """The log slope of the segment that ends at or after t: the density is left-continuous."""
        xp = self._xp
        count = xp.where(t > 0, self._knots_passed(t, "left"), self._knots_passed(xp.zeros_like(t), "right"))
        t0, level0, t1, level1 = self._segment(count)
        drop = abs(level1 - level0)
        rising = xp.isfinite(t1) & (drop > 0)
        width = xp.where(rising, t1 - t0, xp.ones_like(t0))
        slope = xp.where(rising, drop, xp.ones_like(drop)) / width
        return xp.where(rising, xp.log(slope), xp.full_like(slope, -np.inf))

    def _isf(self, p: Array) -> Array:
        count = self._knots_above(self._level_of_sf(p))
        t0, level0, t1, level1 = self._segment(count)
        t = self._crossing(t0, t1, self._as_sf(level0) - p, abs(level1 - level0))
        return self._xp.where(p < 1, t, self._xp.zeros_like(t))

    def _icdf(self, p: Array) -> Array:
        count = self._knots_above(self._level_of_cdf(p))
        t0, level0, t1, level1 = self._segment(count)
        t = self._crossing(t0, t1, p - self._as_cdf(level0), abs(level1 - level0))
        return self._xp.where(p > 0, t, self._xp.zeros_like(t))

    def _crossing(self, t0: Array, t1: Array, ahead: Array, drop: Array) -> Array:
        """Where a segment from t0 to t1 that falls by ``drop`` has fallen by ``ahead``."""
        xp = self._xp
        inside = xp.isfinite(t1) & (drop > 0)
        share = xp.where(inside, ahead, xp.zeros_like(ahead)) / xp.where(inside, drop, xp.ones_like(drop))
        share = xp.clip(share, min=0.0, max=1.0)
        end = xp.where(inside, t1, t0)
        return xp.where(xp.isfinite(t1), t0 * (1 - share) + end * share, t1)

    def _area_before(self, t: Array) -> tuple[Array, Array]:
        xp = self._xp
        count = self._knots_passed(t, "left")
        begin = self._as_sf(self._last_knot(self._levels, count, self._start))
        width = t - self._last_knot(self._times, count, 0.0)
        height = (begin + self._as_sf(self._level(t, count))) / 2
        part = height * xp.where(begin > 0, width, xp.zeros_like(width))
        return self._last_knot(self._remember("areas", self._areas), count, 0.0), part

    def _areas(self) -> Array:
        """The area under the survival curve up to each knot."""
        xp = self._xp
        widths = xp.diff(self._padded(self._times, 0.0, front=True), axis=1)
        heights = self._as_sf(self._padded(self._levels, self._start, front=True))
        return xp.cumulative_sum(widths * (heights[:, 1:] + heights[:, :-1]) / 2, axis=1)


class PiecewiseLinear(Polyline):
    r"""The distribution whose survival curve is linear between given times.

    The curve starts at :math:`P(T>0)=1` and goes straight from there to the first time, from time to time,
    and stays flat after the last: what is left there sits at infinity. The density is the slope of the
    segment that ends at or after t, so it is zero, and the log score infinite, where the curve is flat.

    Parameters
    ----------
    times : array, (J,) or (n, J)
        Distinct, finite and non-negative; common to all subjects or one set per subject. In any
        order: columns are sorted together with their times. At time 0 the survival must be 1.
    sf, cdf : array, (J,) or (n, J)
        Exactly one of P(T > time) and P(T <= time), one row per subject or one for all.

    Notes
    -----
    Levels outside [0, 1] or turning back are errors, except by rounding, as in :class:`Step`. Where the
    curve is flat the quantile is the lower end, inf{t: F(t) >= p}.

    Examples
    --------
    >>> import censcore as cs
    >>> distribution = cs.PiecewiseLinear(times=[1.0, 2.0, 4.0], sf=[[0.8, 0.4, 0.4], [0.9, 0.6, 0.0]])
    >>> distribution.sf(1.5).round(3), distribution.icdf(0.5).round(3)
    (array([0.6 , 0.75]), array([1.75 , 2.333]))
    >>> distribution.mass_at_infinity()
    array([0.4, 0. ])
    """

    def __init__(self, times: Array, *, sf: Array = None, cdf: Array = None) -> None:
        self._set_curve(times, sf, cdf)
        at_zero = to_numpy((self._times[:, :1] == 0) & (self._levels[:, :1] != self._start))
        if at_zero.any():
            raise InvalidInputError(
                "PiecewiseLinear starts at P(T > 0) = 1; got mass at time 0 in "
                f"{name_subjects(np.nonzero(at_zero)[0])}. Use Step for atoms."
            )
