"""Survival curves that are linear between given times."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from censcore._arrays import Array, ArrayLike, to_numpy
from censcore._numerics import log1p, safe_log
from censcore._validation import check_option, name_subjects
from censcore.distributions._special import decaying_area
from censcore.distributions.contract import Form
from censcore.distributions.univariate.curve import Curve
from censcore.distributions.univariate.monotone import ROUNDING
from censcore.exceptions import NoDensityError

#: Rules for the mass that is left after the last knot: see :class:`PiecewiseLinear`.
TAILS = ("exponential", "infinity", "last")


class Polyline(Curve):
    """Linear from (0, 1) through the knots, with a rule for what comes after; equal times make an atom."""

    _kept: ClassVar[frozenset[str]] = frozenset({"panel edges", "rate"})
    tail: str

    def _set_tail(self, tail: str) -> None:
        """Keep the rule; ``"last"`` is one more knot."""
        check_option(tail, "tail", TAILS)
        self.tail = tail
        if tail == "last":
            self._times = self.xp.concat([self._times, self._times[:, -1:]], axis=1)
            self._levels = self._padded(self._levels, 1 - self._start, front=False)

    @property
    def form(self) -> Form:  # type: ignore[override]
        """Lines, unless the tail is a curve."""
        return "smooth" if self.tail == "exponential" else "lines"

    @property
    def has_density(self) -> bool:  # type: ignore[override]
        """Whether no subject has an atom."""
        return self.remember("has density", lambda: not self._atoms().size)

    def _atoms(self) -> np.ndarray:
        """Subjects with an atom: at time 0, or where times with different levels are equal."""
        t, level = self._from_zero()
        jumps = (t[:, 1:] == t[:, :-1]) & (level[:, 1:] != level[:, :-1])
        return np.nonzero(to_numpy(self.xp.any(jumps, axis=1)))[0]

    def knots(self, *, cdf: bool = False) -> tuple[Array, Array]:
        """Return the knots, and P(T > t) there, or P(T <= t): (1 or n, J) each."""
        return self._times, self._as_cdf(self._levels) if cdf else self._as_sf(self._levels)

    def _from_zero(self) -> tuple[Array, Array]:
        """Times and levels of the knots, with (0, 1) in front."""
        return self._padded(self._times, 0.0, front=True), self._padded(self._levels, self._start, front=True)

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
        xp = self.xp
        t0, level0, t1, level1 = self._segment(count)
        inside = (t1 > t0) & xp.isfinite(t1)
        way, width = xp.where(inside, t - t0, xp.zeros_like(t0)), xp.where(inside, t1 - t0, xp.ones_like(t0))
        share = way / width
        mixed, flat = level0 * (1 - share) + level1 * share, level0 + (level1 - level0) * share
        return xp.where(level0 == level1, flat, mixed)  # a flat piece is flat to the last digit

    def sf_at(self, t: Array) -> Array:
        s = self._as_sf(self._never(t, self._level(t, self._knots_passed(t, "right"))))
        return s if self.tail != "exponential" else self.xp.where(t > self._last, self._far(t), s)

    def cdf_at(self, t: Array) -> Array:
        F = self._as_cdf(self._never(t, self._level(t, self._knots_passed(t, "right"))))
        return F if self.tail != "exponential" else self.xp.where(t > self._last, 1 - self._far(t), F)

    def sf_left_at(self, t: Array) -> Array:
        s = self._as_sf(self._level(t, self._knots_passed(t, "left")))
        if self.tail != "exponential":
            return s
        xp = self.xp
        s = xp.where(t > self._last, self._far(t), s)
        return xp.where(xp.isinf(t), self.prob_never()[:, None], s)

    def logpdf_at(self, t: Array) -> Array:
        """The log slope of the segment that ends at or after t: the density is left-continuous."""
        if not self.has_density:
            raise NoDensityError(
                f"{type(self).__name__} has atoms (mass at time 0, equal times or tail='last') in "
                f"{name_subjects(self._atoms())}, so there is no density and no log score. Score it by crps, "
                "brier_score or pinball_score."
            )
        xp = self.xp
        count = xp.where(t > 0, self._knots_passed(t, "left"), self._knots_passed(xp.zeros_like(t), "right"))
        t0, level0, t1, level1 = self._segment(count)
        drop = abs(level1 - level0)
        rising = xp.isfinite(t1) & (drop > 0)
        width = xp.where(rising, t1 - t0, xp.ones_like(t0))
        slope = xp.where(rising, drop, 1.0) / width
        density = xp.where(rising, xp.log(slope), xp.full_like(slope, -np.inf))
        if self.tail != "exponential":
            return density
        rate, excess = self.rate(), self._excess(t)
        finite = xp.isfinite(excess)
        beyond = safe_log(self._left) + safe_log(rate) - rate * xp.where(finite, excess, 0.0)
        beyond = xp.where(finite, beyond, -np.inf)
        return xp.where(t > self._last, beyond, density)

    def isf_at(self, p: Array) -> Array:
        count = self._knots_above(self._level_of_sf(p))
        t0, level0, t1, level1 = self._segment(count)
        t = self._crossing(t0, t1, self._as_sf(level0) - p, abs(level1 - level0))
        if self.tail == "exponential":
            t = self._beyond(p < self._left, safe_log(p), t)
        return self.xp.where(p < 1, t, 0.0)

    def icdf_at(self, p: Array) -> Array:
        count = self._knots_above(self._level_of_cdf(p))
        t0, level0, t1, level1 = self._segment(count)
        t = self._crossing(t0, t1, p - self._as_cdf(level0), abs(level1 - level0))
        if self.tail == "exponential":
            t = self._beyond(p > self._as_cdf(self._levels[:, -1:]), log1p(-p), t)
        return self.xp.where(p > 0, t, 0.0)

    def _crossing(self, t0: Array, t1: Array, ahead: Array, drop: Array) -> Array:
        """Where a segment from t0 to t1 that falls by ``drop`` has fallen by ``ahead``."""
        xp = self.xp
        inside = xp.isfinite(t1) & (drop > 0)
        share = xp.where(inside, ahead, 0.0) / xp.where(inside, drop, 1.0)
        share = xp.clip(share, min=0.0, max=1.0)
        end = xp.where(inside, t1, t0)
        return xp.where(xp.isfinite(t1), t0 * (1 - share) + end * share, t1)

    def _area_before(self, t: Array) -> tuple[Array, Array]:
        if self.tail != "exponential":
            return self._area_within(t)
        xp = self.xp
        whole, part = self._area_within(xp.where(t < self._last, t, self._last))
        rate, left = self.rate(), self._left
        falls, beyond = rate > 0, t > self._last
        # a falling tail counts back from infinity, so that far areas keep their digits
        tail = xp.where(falls, left / xp.where(falls, rate, 1.0), xp.zeros_like(left))
        flat = left * xp.where(falls | (left <= 0), xp.zeros_like(t), self._excess(t))
        counted = xp.where(beyond, whole + part + tail, whole)
        return counted, xp.where(beyond, flat - tail * self._decay(self._excess(t)), part)

    def _area_within(self, t: Array) -> tuple[Array, Array]:
        """Up to the last knot before t, and from there to t along the line."""
        xp = self.xp
        count = self._knots_passed(t, "left")
        begin = self._as_sf(self._last_knot(self._levels, count, self._start))
        width = t - self._last_knot(self._times, count, 0.0)
        height = (begin + self._as_sf(self._level(t, count))) / 2
        part = height * xp.where(begin > 0, width, 0.0)
        return self._last_knot(self.areas(), count, 0.0), part

    def _make_areas(self) -> Array:
        """The area under the survival curve up to each knot."""
        xp, (t, level) = self.xp, self._from_zero()
        heights = self._as_sf(level)
        return xp.cumulative_sum(xp.diff(t, axis=1) * (heights[:, 1:] + heights[:, :-1]) / 2, axis=1)

    def integrated_square(self, a: Array, b: Array, *, cdf: bool = False) -> Array:
        r""":math:`\int_a^bP(T>s)^2\,ds`, or with a = 0 :math:`\int_a^bF(s)^2\,ds`, for a <= b, (n, 1): (n,).

        A line from u to v contributes :math:`h(u^2+uv+v^2)/3` over its width h. b may be infinite for the
        survival function.
        """
        xp, (t, level) = self.xp, self._from_zero()
        level = self._as_cdf(level) if cdf else self._as_sf(level)
        start, stop, first = t[:, :-1], t[:, 1:], level[:, :-1]
        width = stop - start
        slope = xp.diff(level, axis=1) / xp.where(width > 0, width, 1.0)
        low, u = start, first
        if not cdf:  # F² is integrated from zero on
            low = xp.minimum(xp.maximum(start, a), stop)
            u = first + slope * (low - start)
        high = xp.minimum(xp.maximum(b, low), stop)
        v = first + slope * (high - start)
        inner = xp.sum((high - low) * (u * u + u * v + v * v), axis=1) / 3
        return inner + self._integrated_square_beyond(a, b, cdf)[:, 0]

    def _integrated_square_beyond(self, a: Array, b: Array, cdf: bool) -> Array:
        """The part after the last knot, (n, 1)."""
        xp = self.xp
        begin = xp.maximum(a, self._last)
        width = xp.maximum(b - begin, xp.zeros_like(begin))
        if self.tail == "exponential":
            left, rate = self._left * self._decay(begin - self._last), self.rate()
        else:
            left, rate = self._left + 0 * begin, xp.zeros_like(begin)
        squares = decaying_area(left**2, 2 * rate, width)
        return width - 2 * decaying_area(left, rate, width) + squares if cdf else squares

    # ---- the exponential tail: P(T > t) = P(T > t_J) exp{-r (t - t_J)} -----------------------------

    @property
    def _last(self) -> Array:
        return self._times[:, -1:]

    @property
    def _left(self) -> Array:
        """P(T > last time)."""
        return self._as_sf(self._levels[:, -1:])

    def rate(self) -> Array:
        """r, (1 or n, 1); zero where the mass left never has the event."""
        return self.remember("rate", self._make_rate)

    @abstractmethod
    def _make_rate(self) -> Array: ...

    def _excess(self, t: Array) -> Array:
        xp = self.xp
        return xp.where(t > self._last, t - self._last, 0.0)

    def _decay(self, excess: Array) -> Array:
        """exp(-r excess), zero at infinity in value and gradient."""
        xp = self.xp
        finite = xp.isfinite(excess)
        with np.errstate(over="ignore"):  # a steep tail has ended long before
            power = self.rate() * xp.where(finite, excess, 0.0)
        return xp.where(finite, xp.exp(-power), xp.zeros_like(power))

    def _far(self, t: Array) -> Array:
        return self._left * self._decay(self._excess(t))

    def _beyond(self, there: Array, log_sf: Array, t: Array) -> Array:
        """Quantiles ``t``, replaced ``there``, beyond the last time, by those of the tail."""
        xp = self.xp
        rate = self.rate()
        endless = xp.isinf(log_sf) | (rate <= 0)  # infinity stays out of the gradient
        moved = there & ~endless
        left = xp.where(self._left > 0, self._left, 1.0)
        fall = xp.where(moved, xp.log(left) - xp.where(moved, log_sf, 0.0), xp.zeros_like(t))
        t = xp.where(there, self._last + fall / xp.where(rate > 0, rate, 1.0), t)
        return xp.where(there & endless, np.inf, t)

    def prob_never(self) -> Array:
        xp = self.xp
        if self.tail != "exponential":
            return super().prob_never()
        return xp.where(self.rate() > 0, 0.0, self._left)[:, 0]


class PiecewiseLinear(Polyline):
    r"""The distribution whose survival curve is linear between given times.

    The curve starts at :math:`P(T>0)=1`, unless a first time of 0 says otherwise, and goes straight from time
    to time. After the last time :math:`t_J` nothing is given, and ``tail`` says what holds:

    - ``"infinity"``: the event never comes, all mass left sits at infinity;
    - ``"exponential"``: :math:`P(T>t)=P(T>t_J)e^{-r(t-t_J)}` with the mean hazard of the second half of the
      time covered, :math:`r=\{\log P(T>t_J/2)-\log P(T>t_J)\}/(t_J/2)`;
    - ``"last"``: all mass left sits at the last time.

    The density is the slope of the segment that ends at or after t, so it is zero, and the log score
    infinite, where the curve is flat.

    Parameters
    ----------
    times : array, (J,) or (n, J)
        Distinct, finite and non-negative; common to all subjects or one set per subject. In any
        order: columns are sorted together with their times. Survival below 1 at time 0 is an atom there, and
        a distribution with atoms has no log score.
    sf, cdf : array, (J,) or (n, J)
        Exactly one of P(T > time) and P(T <= time), one row per subject or one for all.
    tail : {"infinity", "exponential", "last"}
        The rule beyond the last time.

    Notes
    -----
    Levels outside [0, 1] or turning back are errors, except by rounding, as in :class:`Step`. Where the
    curve is flat the quantile is the lower end, inf{t: F(t) >= p}.

    See Also
    --------
    as_forecast : Chooses between this class and :class:`Step` for a matrix of survival probabilities.

    Examples
    --------
    >>> import censcore as cs
    >>> distribution = cs.PiecewiseLinear(times=[1.0, 2.0, 4.0], sf=[[0.8, 0.4, 0.4], [0.9, 0.6, 0.0]])
    >>> distribution.sf(1.5).round(3), distribution.icdf(0.5).round(3)
    (array([0.6 , 0.75]), array([1.75 , 2.333]))
    >>> distribution.mass_at_infinity()
    array([0.4, 0. ])
    >>> cs.PiecewiseLinear([1.0, 2.0], sf=[0.8, 0.4], tail="exponential").sf(3.0).round(3)
    array([0.2])
    """

    def __init__(
        self,
        times: ArrayLike,
        *,
        sf: ArrayLike | None = None,
        cdf: ArrayLike | None = None,
        tail: str = "infinity",
    ) -> None:
        self._set_curve(times, sf, cdf)
        xp = self.xp
        # a curve that starts at 1 up to rounding has no atom at time 0
        first = self._levels[:, :1]
        whole = (self._times[:, :1] == 0) & (first != self._start) & (abs(first - self._start) <= ROUNDING)
        if bool(xp.any(whole)):
            first = xp.where(whole, xp.full_like(first, self._start), first)
            self._levels = xp.concat([first, self._levels[:, 1:]], axis=1)
        self._set_tail(tail)

    def _make_rate(self) -> Array:
        """The mean hazard between half the last time and the last time."""
        xp, half = self.xp, self._last / 2
        before = self._as_sf(self._level(half, self._knots_passed(half, "right")))
        goes_on = (self._left > 0) & (half > 0)
        fall = safe_log(before) - safe_log(xp.where(goes_on, self._left, 1.0))
        rate = xp.where(goes_on, fall, 0.0) / xp.where(half > 0, half, 1.0)
        return xp.where(rate > 0, rate, 0.0)

    def __repr__(self) -> str:
        shape = f"({len(self)},), times={self._times.shape[1] - (self.tail == 'last')}"
        return f"PiecewiseLinear(shape={shape}, tail={self.tail!r})"
