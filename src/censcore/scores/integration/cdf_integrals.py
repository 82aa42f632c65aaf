r"""Integrals of F² below y and of S² beyond it: what the CRPS and its relatives are made of.

Each exact where exactness exists:

- a step forecast makes the integral a finite sum of :math:`\int G`, whatever the censoring distribution; one
  that serves all subjects makes it one antiderivative, read at each y;
- a step censoring distribution makes it a finite sum of :math:`\int F^2` or :math:`\int S^2`, read from one
  antiderivative per subject, so that thousands of jumps need no more quadrature than one;
- a piecewise-linear forecast has closed forms where C is known, also with an exponential tail; on one grid
  it needs three moments of a step censoring distribution per panel;
- all else is Gauss-Legendre quadrature between the quantiles and break points of both distributions, with as
  many nodes as the polynomials ask for where both are piecewise polynomials.

Gradients: a smooth forecast is differentiated at fixed nodes, break points move their panels.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from censcore._arrays import (
    Array,
    convert,
    detach,
    namespace,
    requires_grad,
    searchsorted,
    take_along,
    to_numpy,
)
from censcore._quadrature import (
    FAR,
    ORDER,
    Function,
    area,
    cuts_below_gaps,
    integrate,
    integrate_steps,
    side_by_side,
    tail,
    times_area,
)
from censcore.distributions import PointMass, Step, Univariate
from censcore.distributions.contract import DEGREES
from censcore.distributions.univariate.piecewise_linear import Polyline
from censcore.scores.integration.piecewise_linear_integrals import are_lines, line_below, line_beyond

FEW_JUMPS = 32  # up to here the jumps of a step distribution are panel edges like any other
CLOSE = (0.6, 0.3, 0.1, 1e-2, 1e-3, 1e-4, 1e-6)  # shares of what a distribution has left on the far side of y


def square_below(F: Univariate, y: Array, C: Univariate | None = None) -> Array:
    r""":math:`\int_0^y F(s)^2/G(s)\,ds` for y (n, 1), with G = 1 where no C is given: (n,)."""
    if are_lines(F, C):
        return line_below(F, y, C)
    if C is None and isinstance(F, Polyline):
        return F.integrated_square(namespace(y).zeros_like(y), y, cdf=True)
    if C is None:
        if F.form == "steps":
            return _shared_below(F, y) if len(F) == 1 else _step_below(F, y)
        return integrate(lambda t: F.cdf_at(t) ** 2, _edges_below([F], y), _order(F))
    if F.form == "steps" and C.form == "steps":
        below = _shared_below if len(F) == len(C) == 1 else _step_below
        return below(F, y, weighted_time_of(C))
    edges = _edges_below([F] if _is_long(C) else [F, C], y)
    if _is_long(C):
        times, G = C.steps()
        return integrate_steps(lambda t: F.cdf_at(t) ** 2, edges, nodes_for_square(F), times, inverse(G))
    if C.form == "lines":
        edges = side_by_side([edges, times_of_falls(C, y)])
        edges = namespace(y).sort(namespace(y).where(edges < y, edges, y), axis=1)
    return integrate(lambda t: F.cdf_at(t) ** 2 * inverse(C.sf_at(t)), edges, _order(F, C, inverse=True))


def square_beyond(F: Univariate, y: Array, C: Univariate) -> Array:
    r""":math:`\int_y^\infty P(T>s)^2\,G(s)\,ds` for y (n, 1): (n,); infinite where the tail is too heavy."""
    if F.form == "steps":
        return _shared_beyond(F, y, C) if is_shared(F, C) else _step_beyond(F, y, C)
    if are_lines(F, C):
        return line_beyond(F, y, C)
    if isinstance(F, Polyline) and isinstance(C, PointMass):
        return F.integrated_square(y, namespace(y).maximum(C.location[:, None], y))
    return weighted_beyond(lambda t: F.sf_at(t) ** 2, F, y, C, nodes_for_square(F), _order(F, C))


def square_of_cdf_beyond(F: Univariate, y: Array, C: Univariate) -> Array:
    r""":math:`\int_y^\infty F(s)^2\,G(s)\,ds` for y (n, 1): (n,); infinite where follow-up never ends."""
    if F.form == "steps":
        return _step_cdf_beyond(F, y, C)
    return weighted_beyond(lambda t: F.cdf_at(t) ** 2, F, y, C, nodes_for_square(F), _order(F, C))


def weighted_beyond(
    f: Function, F: Univariate, y: Array, C: Univariate, nodes: int = ORDER, order: int = ORDER
) -> Array:
    r""":math:`\int_y^\infty f(s)\,G(s)\,ds` of a function f that is smooth where F is; y (n, 1), (n,).

    Fewer ``nodes`` of f, and a lower ``order`` of f G, are for polynomials.
    """
    xp = namespace(y)
    if _is_long(C):
        times, G = C.steps()
        last = xp.max(xp.where(xp.isfinite(times), times, 0.0), axis=1, keepdims=True)
        edges = xp.minimum(_edges_beyond([F], y, until=last), xp.maximum(y, detach(C.support_end())))
        inner = integrate_steps(f, edges, nodes, times, G)
    else:
        edges = _edges_beyond([F, C], y)
        inner = integrate(lambda t: f(t) * C.sf_at(t), edges, order)
    return inner + tail(lambda t: f(t) * C.sf_at(t), edges[:, -1:])


def numbers_per_row(F: Univariate, C: Univariate) -> int:
    """How many numbers one subject needs at a time, for chunking."""
    if F.form == "steps":
        return 4 * jumps_of(F)
    if are_lines(F, C) or (isinstance(F, Polyline) and isinstance(C, PointMass)):
        return 8 * jumps_of(F)
    smooth = [distribution for distribution in (F, C) if distribution.form == "smooth"]
    return (60 * len(smooth) + jumps_of(F) + jumps_of(C)) * (ORDER if smooth and not _is_long(C) else 4)


def jumps_of(distribution: Univariate) -> int:
    """How many break points one subject has."""

    def make() -> int:
        breaks = distribution.take(slice(0, 1)).breaks()
        return 0 if breaks is None else int(breaks.shape[1])

    return distribution.remember("jumps", make)


def _is_long(C: Univariate) -> bool:
    return C.form == "steps" and jumps_of(C) > FEW_JUMPS


def as_steps(distribution: Univariate) -> Step:
    """A distribution of steps as its jumps, found (and sorted) once."""
    return distribution if isinstance(distribution, Step) else Step.trusted(*distribution.steps(), falls=True)


def inverse(G: Array) -> Array:
    """1/G, and zero where follow-up has ended: callers have made sure that nobody is followed there.

    It stays finite for the smallest G: infinity times an interval of length zero would be NaN.
    """
    xp = namespace(G)
    least = float(xp.finfo(G.dtype).smallest_normal)
    return xp.where(G > 0, 1 / xp.where(least < G, G, least), xp.zeros_like(G))


# ---- step forecasts: finite sums -------------------------------------------------------------------


def _step_below(F: Univariate, y: Array, weighted_time: Function | None = None) -> Array:
    r""":math:`\sum_j (F_j^2-F_{j-1}^2)(y-t_j)_+`, positive terms; a weighted time stretches the times."""
    times, sf = F.steps()
    xp = namespace(times)
    after = 1 - sf
    before = xp.concat([xp.zeros_like(after[:, :1]), after[:, :-1]], axis=1)
    if weighted_time is not None:
        y, times = weighted_time(y), weighted_time(times)
    way = xp.where(y > times, y - times, xp.zeros_like(y))
    return xp.vecdot(way, (after - before) * (after + before), axis=-1)


def weighted_time_of(C: Univariate) -> Function:
    r""":math:`t\mapsto\int_0^t ds/G(s)` of a step distribution; it is constant where follow-up has ended."""
    times, G = C.steps()
    weight = Step.trusted(times, inverse(G), falls=True)
    return lambda t: weight.integrated_sf_at(namespace(t).zeros_like(t[:1, :1]), t)


def _step_beyond(F: Univariate, y: Array, C: Univariate) -> Array:
    r""":math:`\sum_j (S_{j-1}^2-S_j^2)\int_y^{t_j\vee y}G`, where mass at infinity is one more jump there."""
    times, sf = F.steps()
    xp = namespace(times)
    if bool(xp.any(sf[:, -1] > 0)):
        sf = xp.concat([sf, xp.zeros_like(sf[:, :1])], axis=1)
        times = xp.concat([times, xp.full_like(times[:, :1], np.inf)], axis=1)
    before = xp.concat([xp.ones_like(sf[:, :1]), sf[:, :-1]], axis=1)
    fall = (before - sf) * (before + sf)
    if has_common_areas(F, C):
        since, until = area_from(C, y.reshape(1, -1)).reshape(-1, 1), area_from(C, times)
        reach = xp.where((times > y) & (since > until), since - until, xp.zeros_like(since))
    else:
        reach = area(C, y, xp.where(times > y, times, y))
    if bool(xp.any(xp.isinf(reach))):
        reach = xp.where(fall > 0, reach, 0.0)
    return xp.vecdot(reach, fall, axis=-1)


def has_common_areas(F: Univariate, C: Univariate) -> bool:
    """Whether curves at common times meet one step distribution of C with an end.

    The areas beyond those times then serve all subjects.
    """
    if not isinstance(F, Step) or F.breaks().shape[0] > 1 or len(C) > 1 or C.form != "steps":
        return False
    return bool(namespace(C.support_end()).isfinite(C.support_end()).all())


def area_from(C: Univariate, t: Array) -> Array:
    r""":math:`\int_t^\infty G` of one step distribution with an end, (1, q).

    Summed from the end, so that differences keep their digits where G is small.
    """
    jumps, G = C.steps()
    xp = namespace(jumps)
    start, finite = xp.zeros_like(jumps[:, :1]), xp.isfinite(jumps)
    until = xp.where(finite, jumps, 0.0)
    heights = xp.concat([xp.ones_like(start), G[:, :-1]], axis=1)
    widths = xp.diff(xp.concat([start, until], axis=1), axis=1)
    pieces = heights * xp.where(finite, widths, 0.0)
    later = xp.concat([xp.flip(xp.cumulative_sum(xp.flip(pieces, axis=1), axis=1), axis=1), start], axis=1)
    k = searchsorted(jumps, detach(t), "right")
    height = take_along(xp.concat([heights, start], axis=1), k)
    way = take_along(xp.concat([until, start], axis=1), k) - xp.where(xp.isfinite(t), t, 0.0)
    rest = xp.concat([later[:, 1:], start], axis=1)
    return take_along(rest, k) + height * xp.where(height > 0, way, 0.0)


def _step_cdf_beyond(F: Univariate, y: Array, C: Univariate) -> Array:
    r""":math:`\sum_j (F_j^2-F_{j-1}^2)\int_{t_j\vee y}^\infty G` over the finite jumps."""
    times, sf = F.steps()
    xp = namespace(times)
    after = 1 - sf
    before = xp.concat([xp.zeros_like(after[:, :1]), after[:, :-1]], axis=1)
    rises = xp.isfinite(times) & (after > before)
    start = xp.where(rises & (times > y), times, y)
    left = area(C, start, xp.where(rises, np.inf, start))
    return xp.vecdot(left, xp.where(rises, (after - before) * (after + before), xp.zeros_like(left)), axis=-1)


# ---- one step forecast for all subjects: one antiderivative, read at each y ---------------------------


def is_shared(F: Univariate, C: Univariate) -> bool:
    """Whether integrals of one step forecast for all subjects are values of one antiderivative.

    They are where one C serves all subjects as well, or every C is known. The cost is then that of sorting:
    O((n + J) log J) for n subjects and J jumps, where sums over the jumps of every subject take O(n J).
    """
    return F.form == "steps" and len(F) == 1 and (len(C) == 1 or isinstance(C, PointMass))


def _shared_below(F: Univariate, y: Array, weighted_time: Function | None = None) -> Array:
    r""":math:`\int_0^yF^2\,dw=\sum_{j<k}F_j^2(w_{j+1}-w_j)+F_k^2\{w(y)-w_k\}`, where k jumps lie before y."""
    jumps, sf = F.steps()
    xp = namespace(jumps)
    k = searchsorted(jumps, detach(y), "left")
    start = xp.zeros_like(jumps[:, :1])
    height = xp.concat([start, 1 - sf], axis=1) ** 2
    finite = xp.isfinite(jumps)  # jumps at infinity are never reached
    at = xp.concat([start, xp.where(finite, jumps, start)], axis=1)
    if weighted_time is not None:
        at, y = weighted_time(at), weighted_time(y)
    pieces = height[:, :-1] * xp.where(finite, xp.diff(at, axis=1), start)
    passed = xp.concat([start, _summed(pieces)], axis=1)
    return (take_along(passed, k) + take_along(height, k) * (y - take_along(at, k)))[:, 0]


def _shared_beyond(F: Univariate, y: Array, C: Univariate) -> Array:
    r""":math:`\int_y^\infty S^2G\,ds`: the piece from y to the next jump, and all pieces after it."""
    jumps, sf = F.steps()
    xp = namespace(jumps)
    if isinstance(C, PointMass) and len(C) > 1:  # the area under S² from y to each c
        return area(Step.trusted(jumps, sf**2, falls=True), y, xp.maximum(y, C.location[:, None]))[:, 0]
    start, end = xp.zeros_like(jumps[:, :1]), xp.full_like(jumps[:, :1], np.inf)
    height = xp.concat([xp.ones_like(start), sf], axis=1) ** 2
    until = xp.concat([jumps, end], axis=1)
    k = searchsorted(jumps, detach(y), "right")
    since = xp.concat([start, jumps], axis=1)
    finite = xp.isfinite(since)  # nothing follows a jump at infinity
    pieces = times_area(height, area(C, xp.where(finite, since, start), xp.where(finite, until, start)))
    later = xp.flip(_summed(xp.flip(pieces, axis=1)), axis=1)
    later = xp.concat([later[:, 1:], start], axis=1)
    piece = times_area(take_along(height, k), area(C, y, take_along(until, k)))
    return (piece + take_along(later, k))[:, 0]


def _summed(values: Array) -> Array:
    """Cumulative sums, in double precision and given in that of the values."""
    xp = namespace(values)
    return xp.astype(xp.cumulative_sum(values, axis=1, dtype=xp.float64), values.dtype)


# ---- panels ----------------------------------------------------------------------------------------


def _order(*distributions: Univariate, inverse: bool = False) -> int:
    """Nodes that integrate F² G exactly where both are piecewise polynomials, many nodes elsewhere."""
    forms = [distribution.form for distribution in distributions]
    if "smooth" in forms or (inverse and forms[1] == "lines"):
        return ORDER
    degrees = [DEGREES[form] for form in forms]
    return (2 * degrees[0] + sum(degrees[1:])) // 2 + 1


def nodes_for_square(F: Univariate) -> int:
    """Nodes through which S² is known on a panel."""
    return ORDER if F.form == "smooth" else 2 * DEGREES[F.form] + 1


def _edges_below(distributions: list[Univariate], y: Array) -> Array:
    """Panel edges (n, p) from 0 to y."""
    xp = namespace(y)
    parts = [part for distribution in distributions for part in _edges_of(distribution, y, _close_below)]
    edges = side_by_side([xp.zeros_like(y), y, *parts, *_far(distributions, y)])
    return xp.sort(xp.where(edges < y, edges, y), axis=1)


def _edges_beyond(distributions: list[Univariate], y: Array, until: Array | None = None) -> Array:
    """Panel edges (n, p) from y to where the distributions have all but vanished, and to ``until``."""
    xp = namespace(y)
    parts = [part for distribution in distributions for part in _edges_of(distribution, y, _close_beyond)]
    edges = side_by_side([y, *parts] if until is None else [y, until, *parts])
    edges = xp.where((edges > y) & xp.isfinite(edges), edges, y)
    fixed = detach(edges)
    first = xp.min(xp.where(fixed > y, fixed, xp.max(fixed, axis=1, keepdims=True)), axis=1, keepdims=True)
    edges = side_by_side([edges, *_far(distributions, first)])
    return xp.sort(xp.where(edges > y, edges, y), axis=1)


def times_of_falls(distribution: Univariate, until: Array, share: float = 0.5) -> Array:
    """Times (1 or n, K) up to ``until`` (n, 1) at which P(T >= t) falls to the next power of ``share``.

    Where it is linear, its inverse has a pole, which may lie just beyond the panel that break points leave.
    """
    distribution = distribution.detach()
    left = to_numpy(distribution.sf_left_at(detach(until)))
    count = np.ceil(np.log(left[left > 0].min(initial=1.0)) / np.log(share))
    return distribution.isf_at(convert(share ** np.arange(1.0, count + 1)[None, :], until))


def _far(distributions: list[Univariate], end: Array) -> list[Array]:
    """Cuts below ``end`` and below break points, where an integrand may span many decades."""
    polynomials = [part for part in distributions if part.form != "smooth"]
    if len(polynomials) == len(distributions):
        return []
    return [end * convert(np.array([FAR]), end), *(cuts_below_gaps(part.breaks()) for part in polynomials)]


def _edges_of(distribution: Univariate, y: Array, close: Callable[[Univariate, Array], Array]) -> list[Array]:
    """Break points, which move with the parameters; of smooth distributions quantiles, which are fixed."""
    breaks = distribution.breaks()
    if distribution.form != "smooth":
        return [breaks]
    quantiles = distribution.panel_edges()
    if not distribution.dense_edges:
        quantiles = side_by_side([quantiles, close(distribution.detach(), y)])
    if breaks is None or not requires_grad(breaks):
        return [quantiles]  # they hold the break points
    xp = namespace(quantiles)
    at_break = xp.any(quantiles[:, :, None] == detach(breaks)[:, None, :], axis=2)
    return [xp.where(at_break, 0.0, quantiles), breaks]


def _close_below(distribution: Univariate, y: Array) -> Array:
    """Quantiles given T <= y, so that y may lie anywhere in the lower tail."""
    return distribution.icdf_at(distribution.cdf_at(y) * convert(np.array([CLOSE]), y))


def _close_beyond(distribution: Univariate, y: Array) -> Array:
    """Quantiles given y <= T < inf, so that y may lie anywhere in the upper tail."""
    never = distribution.prob_never()[:, None]
    return distribution.isf_at(never + (distribution.sf_left_at(y) - never) * convert(np.array([CLOSE]), y))
