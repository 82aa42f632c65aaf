r"""Integrals of F² below y and of S² beyond it: what the CRPS and its relatives are made of.

Three routes, each exact where exactness exists:

- a step forecast makes the integral a finite sum of :math:`\int G`, whatever the law of C;
- a step law of C makes it a finite sum of :math:`\int F^2` or :math:`\int S^2`, read from one antiderivative
  per row, so that thousands of jumps need no more quadrature than one;
- all else is Gauss-Legendre quadrature between the quantiles and break points of both laws, with as many
  nodes as the polynomials ask for where both are piecewise polynomials.

Gradients: a smooth forecast is differentiated at fixed nodes, break points take their panels along.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from censcore._arrays import (
    Array,
    common_rows,
    convert,
    detach,
    namespace,
    requires_grad,
    searchsorted,
    take_along,
)
from censcore._numerics import legendre
from censcore.distributions import Step, Univariate

__all__ = ["area", "as_steps", "clock_of", "numbers_per_row", "square_below", "square_beyond"]

ORDER = 12  # nodes per panel of a smooth integrand
FEW_JUMPS = 32  # up to here the jumps of a step law are panel edges like any other
CLOSE = (0.6, 0.3, 0.1, 1e-2, 1e-3, 1e-4, 1e-6)  # shares of what a law has left on the far side of y
FAR = (0.1, 1e-3, 1e-6, 1e-10)  # cuts of a panel that begins many decades below its end

Function = Callable[[Array], Array]


def square_below(F: Univariate, y: Array, C: Univariate | None = None) -> Array:
    r""":math:`\int_0^y F(s)^2/G(s)\,ds` for y (n, 1), with G = 1 where no C is given: (n,)."""
    if C is None:
        if F._degree == 0:
            return _step_below(F, y)
        return _by_panels(lambda t: F._cdf(t) ** 2, _edges_below([F], y), _order(F))
    if F._degree == 0 and C._degree == 0:
        return _step_below(F, y, clock_of(C))
    edges = _edges_below([F] if _is_long(C) else [F, C], y)
    if _is_long(C):
        times, G = C._steps()
        return _by_jumps(lambda t: F._cdf(t) ** 2, edges, F, times, _inverse(G))
    return _by_panels(lambda t: F._cdf(t) ** 2 * _inverse(C._sf(t)), edges, _order(F, C, inverse=True))


def square_beyond(F: Univariate, y: Array, C: Univariate) -> Array:
    r""":math:`\int_y^\infty P(T>s)^2\,G(s)\,ds` for y (n, 1): (n,); infinite where the tail is too heavy."""
    if F._degree == 0:
        return _step_beyond(F, y, C)
    if _is_long(C):
        times, G = C._steps()
        edges = _edges_beyond([F], y, until=_last_finite(times))
        inner = _by_jumps(lambda t: F._sf(t) ** 2, edges, F, times, G)
    else:
        edges = _edges_beyond([F, C], y)
        inner = _by_panels(lambda t: F._sf(t) ** 2 * C._sf(t), edges, _order(F, C))
    return inner + _tail(lambda t: F._sf(t) ** 2 * C._sf(t), edges[:, -1:])


def numbers_per_row(F: Univariate, C: Univariate) -> int:
    """How many numbers one row needs at a time, for chunking."""
    if F._degree == 0:
        return 4 * _jumps(F)
    smooth = [law for law in (F, C) if law._degree is None]
    return (60 * len(smooth) + _jumps(F) + _jumps(C)) * (ORDER if smooth and not _is_long(C) else 4)


def _jumps(law: Univariate) -> int:
    """How many break points one row has."""
    breaks = law.take(slice(0, 1))._breaks()
    return 0 if breaks is None else int(breaks.shape[1])


def _is_long(C: Univariate) -> bool:
    return C._degree == 0 and _jumps(C) > FEW_JUMPS


def as_steps(law: Univariate) -> Step:
    """A law of degree 0 as its jumps, found (and sorted) once."""
    return law if isinstance(law, Step) else Step._trusted(*law._steps(), falls=True)


def _inverse(G: Array) -> Array:
    """1/G, and zero where follow-up has ended: callers have made sure that no row is followed there."""
    xp = namespace(G)
    positive = G > 0
    return xp.where(positive, 1 / xp.where(positive, G, xp.ones_like(G)), xp.zeros_like(G))


def area(C: Univariate, a: Array, b: Array) -> Array:
    r""":math:`\int_a^b G(s)\,ds` for a <= b, never below zero: differences of areas may be, by rounding."""
    between = C._integrated_sf(a, b)
    xp = namespace(between)
    return xp.where(between > 0, between, xp.zeros_like(between))


# ---- step forecasts: finite sums -------------------------------------------------------------------


def _step_below(F: Univariate, y: Array, clock: Function | None = None) -> Array:
    r""":math:`\sum_j (F_j^2-F_{j-1}^2)(y-t_j)_+`, a sum of positive terms; a clock stretches the times."""
    times, sf = F._steps()
    xp = namespace(times)
    after = 1 - sf
    before = xp.concat([xp.zeros_like(after[:, :1]), after[:, :-1]], axis=1)
    if clock is not None:
        y, times = clock(y), clock(times)
    way = xp.where(y > times, y - times, xp.zeros_like(y))
    return xp.vecdot(way, (after - before) * (after + before), axis=-1)


def clock_of(C: Univariate) -> Function:
    r""":math:`t\mapsto\int_0^t ds/G(s)` of a step law; it stands still where follow-up has ended."""
    jumps, G = C._steps()
    xp = namespace(jumps)
    finite = xp.isfinite(jumps)
    times = xp.where(finite, jumps, xp.zeros_like(jumps))
    starts = xp.concat([xp.zeros_like(times[:, :1]), times], axis=1)
    speeds = _inverse(xp.concat([xp.ones_like(G[:, :1]), xp.where(finite, G, xp.zeros_like(G))], axis=1))
    steps = xp.where(finite, xp.diff(starts, axis=1), xp.zeros_like(times)) * speeds[:, :-1]
    passed = xp.concat([xp.zeros_like(steps[:, :1]), xp.cumulative_sum(steps, axis=1)], axis=1)

    def clock(t: Array) -> Array:
        jump = searchsorted(jumps, detach(t), "left")
        inside = xp.where(xp.isfinite(t), t, take_along(starts, jump))
        return take_along(passed, jump) + (inside - take_along(starts, jump)) * take_along(speeds, jump)

    return clock


def _step_beyond(F: Univariate, y: Array, C: Univariate) -> Array:
    r""":math:`\sum_j (S_{j-1}^2-S_j^2)\int_y^{t_j\vee y}G`, where mass at infinity is one more jump there."""
    times, sf = F._steps()
    xp = namespace(times)
    if bool(xp.any(sf[:, -1] > 0)):
        sf = xp.concat([sf, xp.zeros_like(sf[:, :1])], axis=1)
        times = xp.concat([times, xp.full_like(times[:, :1], np.inf)], axis=1)
    before = xp.concat([xp.ones_like(sf[:, :1]), sf[:, :-1]], axis=1)
    fall = (before - sf) * (before + sf)
    reach = area(C, y, xp.where(times > y, times, y))
    if bool(xp.any(xp.isinf(reach))):
        reach = xp.where(fall > 0, reach, xp.zeros_like(reach))
    return xp.vecdot(reach, fall, axis=-1)


# ---- panels ----------------------------------------------------------------------------------------


def _order(*laws: Univariate, inverse: bool = False) -> int:
    """Nodes that integrate F² G exactly where both are piecewise polynomials, many nodes elsewhere."""
    degrees = [law._degree for law in laws]
    if None in degrees or (inverse and degrees[1] == 1):
        return ORDER
    return (2 * degrees[0] + sum(degrees[1:])) // 2 + 1  # type: ignore[operator, arg-type]


def _edges_below(laws: list[Univariate], y: Array) -> Array:
    """Panel edges (n, p) from 0 to y."""
    xp = namespace(y)
    parts = [part for law in laws for part in _edges_of(law, y, _close_below)]
    edges = _side_by_side([xp.zeros_like(y), y, *parts, *_far(laws, y)])
    return xp.sort(xp.where(edges < y, edges, y), axis=1)


def _edges_beyond(laws: list[Univariate], y: Array, until: Array | None = None) -> Array:
    """Panel edges (n, p) from y to where the laws have all but vanished, and to ``until`` (1 or n, 1)."""
    xp = namespace(y)
    parts = [part for law in laws for part in _edges_of(law, y, _close_beyond)]
    edges = _side_by_side([y, *parts] if until is None else [y, until, *parts])
    edges = xp.where((edges > y) & xp.isfinite(edges), edges, y)
    seen = detach(edges)
    first = xp.min(xp.where(seen > y, seen, xp.max(seen, axis=1, keepdims=True)), axis=1, keepdims=True)
    edges = _side_by_side([edges, *_far(laws, first)])
    return xp.sort(xp.where(edges > y, edges, y), axis=1)


def _last_finite(times: Array) -> Array:
    xp = namespace(times)
    return xp.max(xp.where(xp.isfinite(times), times, xp.zeros_like(times)), axis=1, keepdims=True)


def _far(laws: list[Univariate], end: Array) -> list[Array]:
    smooth = any(law._degree is None for law in laws)
    return [end * convert(np.array([FAR]), end)] if smooth else []


def _side_by_side(parts: list[Array]) -> Array:
    xp = namespace(parts[0])
    n = common_rows(**{f"part {i}": part.shape[0] for i, part in enumerate(parts)})
    return xp.concat([xp.broadcast_to(part, (n, part.shape[1])) for part in parts], axis=1)


def _edges_of(law: Univariate, y: Array, close: Callable[[Univariate, Array], Array]) -> list[Array]:
    """Break points, which move with the parameters, and for smooth laws quantiles, which are fixed."""
    breaks = law._breaks()
    if law._degree is not None:
        return [breaks]
    quantiles = _side_by_side([law._panel_edges(), close(law.detach(), y)])
    if breaks is None or not requires_grad(breaks):
        return [quantiles]  # they hold the break points
    xp = namespace(quantiles)
    at_break = xp.any(quantiles[:, :, None] == detach(breaks)[:, None, :], axis=2)
    return [xp.where(at_break, xp.zeros_like(quantiles), quantiles), breaks]


def _close_below(law: Univariate, y: Array) -> Array:
    """Quantiles given T <= y, so that y may lie anywhere in the lower tail."""
    return law._icdf(law._cdf(y) * convert(np.array([CLOSE]), y))


def _close_beyond(law: Univariate, y: Array) -> Array:
    """Quantiles given y <= T < inf, so that y may lie anywhere in the upper tail."""
    never = law._mass_at_infinity()[:, None]
    return law._isf(never + (law._sf_left(y) - never) * convert(np.array([CLOSE]), y))


def _nodes(edges: Array, order: int) -> tuple[Array, Array]:
    """Nodes of every panel (n, p, order) and dt/du there, where u runs from 0 to 1 along the panel.

    Panels of a smooth integrand that span more than a factor two are cut on the log scale, since heavy tails
    are smooth there.
    """
    xp = namespace(edges)
    u = convert(legendre(order)[0], edges)
    a, b = edges[:, :-1, None], edges[:, 1:, None]
    logarithmic = _logarithmic(a, b, order)
    low, high = (xp.log(xp.where(logarithmic, t, xp.ones_like(t))) for t in (a, b))
    growing = xp.exp(low + u * (high - low))
    t = xp.where(logarithmic, growing, a + (b - a) * u)
    return t, xp.where(logarithmic, growing * (high - low), b - a)


def _logarithmic(a: Array, b: Array, order: int) -> Array:
    return (a > 0) & (b > 2 * a) & (order == ORDER)


def _at_nodes(f: Function, t: Array) -> Array:
    xp = namespace(t)
    values = f(xp.reshape(t, (t.shape[0], -1)))
    return xp.reshape(values, (values.shape[0], *t.shape[1:]))


def _by_panels(f: Function, edges: Array, order: int) -> Array:
    xp = namespace(edges)
    t, speed = _nodes(edges, order)
    weights = convert(legendre(order)[1], edges)
    return xp.sum(xp.vecdot(_at_nodes(f, t) * speed, weights, axis=-1), axis=-1)


# ---- step laws of C: an antiderivative, read at the jumps ------------------------------------------


def _by_jumps(f: Function, edges: Array, F: Univariate, times: Array, values: Array) -> Array:
    r""":math:`\sum_j w_j\int_{c_j}^{c_{j+1}}f` for a weight of steps, 1 before the first jump."""
    xp = namespace(edges)
    low, high = edges[:, :1], edges[:, -1:]
    stops = xp.where(times > low, xp.where(times < high, times, high), low)
    stops = xp.concat([low, stops, high], axis=1)
    Q = _antiderivative(f, edges, ORDER if F._degree is None else 2 * F._degree + 1, stops)
    weights = xp.concat([xp.ones_like(values[:, :1]), values], axis=1)
    return xp.vecdot(Q[:, 1:] - Q[:, :-1], weights, axis=-1)


def _antiderivative(f: Function, edges: Array, order: int, at: Array) -> Array:
    """The integral of f from the first edge to ``at`` (n, J): f is a polynomial in u on every panel."""
    xp = namespace(edges)
    t, speed = _nodes(edges, order)
    values = _at_nodes(f, t) * speed
    whole = xp.vecdot(values, convert(legendre(order)[1], edges), axis=-1)
    before = xp.cumulative_sum(whole, axis=1) - whole
    panel = searchsorted(edges[:, 1:-1], detach(at), "left")
    x = 2 * _position(edges, panel, at, order) - 1
    coefficients = values @ convert(_legendre_antiderivative(order), edges)
    P, P_next = xp.ones_like(x), x
    total = take_along(before, panel)
    for degree in range(order + 1):
        total = total + take_along(coefficients[:, :, degree], panel) * P
        P, P_next = P_next, ((2 * degree + 3) * x * P_next - (degree + 1) * P) / (degree + 2)
    return total


def _position(edges: Array, panel: Array, at: Array, order: int) -> Array:
    """Where in its panel a time lies, from 0 to 1: the inverse of :func:`_nodes`."""
    xp = namespace(edges)
    a, b = take_along(edges, panel), take_along(edges, panel + 1)
    logarithmic = _logarithmic(a, b, order)
    one = xp.ones_like(a)
    a_log, at_log, b_log = (xp.log(xp.where(logarithmic, t, 1 + i * one)) for i, t in enumerate((a, at, b)))
    along_log = (at_log - a_log) / (b_log - a_log)
    width = xp.where(b > a, b - a, one)
    return xp.where(logarithmic, along_log, (at - a) / width)


@cache
def _legendre_antiderivative(order: int) -> np.ndarray:
    """Takes values at the nodes to the Legendre coefficients, in x = 2u - 1, of the integral from 0 to u."""
    u, w = legendre(order)
    degrees = np.arange(order)
    to_coefficients = (w[:, None] * np.polynomial.legendre.legvander(2 * u - 1, order - 1)) * (
        2 * degrees + 1
    )
    integral = np.zeros((order, order + 1))
    for degree, unit in enumerate(np.eye(order)):
        integral[degree, : degree + 2] = np.polynomial.legendre.legint(unit, lbnd=-1)[: degree + 2] / 2
    return to_coefficients @ integral


# ---- what lies beyond the last panel ---------------------------------------------------------------


def _tail(f: Function, end: Array) -> Array:
    r"""The integral of f beyond ``end``, where it falls like a power :math:`t^{-p}`; infinite for p <= 1."""
    xp = namespace(end)
    end = xp.where(end > 0, end, xp.ones_like(end))
    here, there = f(end), f(2 * end)
    some = detach(here) > 0
    falls = some & (detach(there) > 0)
    one = xp.ones_like(here)
    p = xp.log(xp.where(falls, here, one) / xp.where(falls, there, one)) / np.log(2)
    endless = falls & (detach(p) - 1 < float(xp.finfo(end.dtype).eps) ** 0.5)
    rest = end * here / (xp.where(falls & ~endless, p, 2 * one) - 1)
    rest = xp.where(falls, rest, xp.zeros_like(rest))
    return xp.where(endless, xp.full_like(rest, np.inf), rest)[:, 0]
