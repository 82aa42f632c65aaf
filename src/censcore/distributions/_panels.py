"""Where a survival function is smooth, and its integral by quadrature between such times."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TYPE_CHECKING

import numpy as np

from censcore._arrays import Array, broadcast_to, common_rows, convert, namespace, searchsorted, take_along
from censcore._numerics import CHUNK_NUMBERS
from censcore._quadrature import integrate_panels, side_by_side
from censcore.distributions._special import exp, relative_expm1

if TYPE_CHECKING:
    from censcore.distributions.contract import Formulas

# Levels whose quantiles split a smooth distribution into panels on which it is nearly a polynomial.
_CDF_LEVELS = (1e-14, 1e-11, 1e-8, 1e-6, 1e-4, 1e-3, 1e-2, 0.05, 0.15, 0.3, 0.5, 0.7, 0.85)
_DEEP = (1e-100, 1e-200, 1e-300)
_SF_LEVELS = (0.05, 1e-2, 1e-3, 1e-4, 1e-6, 1e-8, 1e-10, 1e-13, 1e-16, 1e-20, 1e-30, 1e-50, *_DEEP)

_ORDER = 16


def merge_edges(*parts: Array) -> Array:
    """All times of ``parts``, each (1 or n, p), ascending per subject; infinity becomes the largest finite.

    >>> merge_edges(np.array([[1.0, np.inf]]), np.array([[0.5], [2.0]]))
    array([[0.5, 1. , 1. ],
           [1. , 2. , 2. ]])
    """
    xp, edges = namespace(parts[0]), side_by_side(parts)
    finite = xp.isfinite(edges)
    if not bool(finite.all()):
        largest = xp.max(xp.where(finite, edges, 0.0), axis=1, keepdims=True)
        edges = xp.where(finite, edges, largest)
    return xp.sort(edges, axis=1)


def common_breaks(distributions: Iterable[Formulas], *more: Array) -> Array | None:
    """The break points of all distributions, and ``more`` times (1 or n, p); None where there are none."""
    breaks = [points for distribution in distributions if (points := distribution.breaks()) is not None]
    return merge_edges(*breaks, *more) if breaks or more else None


class RunningSums:
    """Sums of consecutive panels (1 or n, p), from either end, to keep the rounding error small."""

    def __init__(self, panels: Array) -> None:
        xp = namespace(panels)
        none = xp.sum(panels[:, :0], axis=1, keepdims=True)
        self._before = xp.concat([none, xp.cumulative_sum(panels, axis=1)], axis=1)
        reversed_ = xp.cumulative_sum(xp.flip(panels, axis=1), axis=1)
        self._after = xp.flip(xp.concat([none, reversed_], axis=1), axis=1)

    def between(self, first: Array, last: Array) -> Array:
        """The sum of panels first, ..., last - 1, for index arrays (n, q)."""
        left, right = take_along(self._before, last), take_along(self._after, first)
        from_left = left - take_along(self._before, first)
        from_right = right - take_along(self._after, last)
        return namespace(left).where(left < right, from_left, from_right)


def quantile_edges(distribution: Formulas) -> Array:
    """Quantiles of the finite part of a distribution, from far in its lower tail to far in its upper one."""
    xp, reference = distribution.xp, distribution.reference
    limits = xp.finfo(reference.dtype)
    low = convert(np.array([_CDF_LEVELS]), reference)
    # a level that float32 cannot tell from zero has no finite quantile
    high = convert(np.array([[level for level in _SF_LEVELS if level > float(limits.tiny)]]), reference)
    mass = distribution.prob_never()[:, None]
    last = distribution.isf_at(mass + high * (1 - mass))
    # areas up to the last edge must not overflow
    last = xp.where(last < float(limits.max) ** 0.9, last, xp.full_like(last, np.inf))
    return merge_edges(distribution.icdf_at(low * (1 - mass)), last)


def integrated_survival(distribution: Formulas, a: Array, b: Array) -> Array:
    r""":math:`\int_a^b P(T>s)\,ds` for a, b (1 or n, q): whole panels once per subject, two parts per entry.

    Beyond the last panel edge the finite part goes on as a power of time, which tells whether its mean is
    finite; mass at infinity contributes its share of b - a.
    """
    xp = distribution.xp
    edges = distribution.panel_edges()
    n = common_rows(distribution=len(distribution), a=a.shape[0], b=b.shape[0], edges=edges.shape[0])
    edges = edges if len(distribution) == 1 else broadcast_to(edges, (n, edges.shape[1]))
    sums = RunningSums(integrate_panels(distribution.sf_at, edges[:, :-1], edges[:, 1:], _ORDER))
    columns = max(1, CHUNK_NUMBERS // (n * _ORDER))
    q = max(a.shape[1], b.shape[1])
    a, b = broadcast_to(a, (n, q)), broadcast_to(b, (n, q))
    parts = [
        _between(distribution, a[:, j : j + columns], b[:, j : j + columns], edges, sums)
        for j in range(0, a.shape[1], columns)
    ]
    return parts[0] if len(parts) == 1 else xp.concat(parts, axis=1)


def _between(distribution: Formulas, a: Array, b: Array, edges: Array, sums: RunningSums) -> Array:
    xp = distribution.xp
    top = edges[:, -1:]
    lower, upper = xp.minimum(a, top), xp.minimum(b, top)
    first = searchsorted(edges, lower, side="left")
    last = searchsorted(edges, upper, side="right") - 1
    apart = first <= last  # else both lie inside one panel
    last_edge = xp.where(last < 0, xp.zeros_like(last), last)
    start, stop = take_along(edges, first), take_along(edges, last_edge)
    whole = sums.between(first, last_edge)
    head = integrate_panels(distribution.sf_at, lower, xp.where(apart, start, upper), _ORDER)
    end = integrate_panels(distribution.sf_at, xp.where(apart, stop, upper), upper, _ORDER)
    inner = head + end + xp.where(apart, whole, 0.0)
    return inner + _beyond(distribution, a, b, top) if bool(xp.any(b > top)) else inner


def _beyond(distribution: Formulas, a: Array, b: Array, top: Array) -> Array:
    r"""The part of the integral above ``top``, where :math:`P(t<T<\infty)` falls like :math:`t^{-1-c}`."""
    xp = distribution.xp
    mass = distribution.prob_never()[:, None]
    start, stop = xp.maximum(a, top), xp.maximum(b, top)
    endless = xp.isinf(stop)
    width = xp.where(endless, 0.0, stop) - xp.where(endless, xp.zeros_like(stop), start)
    never = mass * xp.where(endless & (mass > 0), np.inf, width)

    left, left_half = distribution.sf_at(top) - mass, distribution.sf_at(top / 2) - mass
    falls = (left > 0) & (left_half > 0)
    one = xp.ones_like(left)
    c = (xp.log(xp.where(falls, left_half, one)) - xp.log(xp.where(falls, left, one))) / float(np.log(2)) - 1
    finite_mean = c > float(xp.finfo(top.dtype).eps) ** 0.5
    begin = xp.where(falls, start, 1.0)
    height = left * top * exp(-c * xp.log(begin / xp.where(falls, top, one)))
    far = width / 1e3 > begin  # where width / begin may be too large for a float
    log_ratio = xp.log(xp.where(far, stop, one)) - xp.log(xp.where(far, begin, one))
    way = xp.where(far, log_ratio, xp.log1p(xp.where(far, 0.0, width) / begin))
    forever = xp.where(finite_mean, 1 / xp.where(finite_mean, c, one), xp.full_like(c, np.inf))
    rest = xp.where(endless, forever, way * relative_expm1(c * way))
    return never + xp.where(falls & (stop > start), xp.where(falls, height, one) * rest, xp.zeros_like(rest))
