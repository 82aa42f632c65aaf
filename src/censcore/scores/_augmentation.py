r"""Survival at t, seen through censoring and a working event model: what augmented scores are made of.

With :math:`G(u)=P(C>u)` and :math:`S_W(u)=P_W(T>u)` of the event model, :math:`p_t(u)=S_W(t)/S_W(u)` is the
chance to survive t of a subject still under observation at u, and the augmented indicator of survival is

.. math::
    Z(t)=\frac{1\{y>t\}}{G(t)}+1\{y\le t,\delta=0\}\frac{p_t(y)}{G(y)}-\int p_t(u)\,d\frac1{G(u)}

over the times u at which the subject was at risk of censoring: u <= t while it lives, u <= y if it is
censored at y <= t, and u < y if it has its event at y <= t, since events come first. The measure d(1/G) is
:math:`d\Lambda_C/G`, for continuous C and for atoms alike. All of it rests on one function of time,

.. math:: B(s)=\int_{[0,s]}\frac{1}{S_W(u)}\,d\frac1{G(u)}.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from censcore._arrays import (
    Array,
    common_rows,
    convert,
    detach,
    namespace,
    searchsorted,
    take_along,
    to_numpy,
)
from censcore._numerics import legendre
from censcore._validation import name_rows
from censcore.distributions import Univariate
from censcore.exceptions import PositivityError
from censcore.scores._problem import Problem
from censcore.scores._quadrature import ORDER, _at_nodes, _nodes, by_jumps, by_panels

__all__ = ["augmented_indicator", "augmented_integral", "check_event_model_support", "numbers_per_subject"]


def augmented_indicator(problem: Problem, W: Univariate, t: Array) -> Array:
    r"""Z(t) at times t (1 or n, q): (n, q). Its mean is P(T > t) if C or W is right.

    .. math::
        Z(t)=\begin{cases}1/G(t)-S_W(t)B(t)&t<y\\-S_W(t)B(y-)&t\ge y,\ \delta=1\\
        S_W(t)\{1/(S_W(y)G(y))-B(y)\}&t\ge y,\ \delta=0\end{cases}
    """
    xp, y = problem.xp, problem.time
    alive = y > t
    B = _Compensator.of(problem.C, W, xp.minimum(y, t))
    S_W = W._sf(t)
    living = _inverse(problem.C._sf(t)) - S_W * B.at(t)
    return xp.where(alive, living, S_W * _after_exit(problem, W, B))


def augmented_integral(problem: Problem, W: Univariate, h: Array) -> Array:
    r""":math:`\int_0^h Z(1-S)^2+(1-Z)S^2\,dt=\int_0^h S^2+Z(1-2S)\,dt` for h (1 or n, 1): (n,)."""
    xp, F, C = problem.xp, problem.F, problem.C
    exit_ = xp.minimum(problem.time, h)

    def phi(t: Array) -> Array:
        return 1 - 2 * F._sf(t)

    def weighted_phi(t: Array) -> Array:
        return W._sf(t) * phi(t)

    forecast = by_panels(
        lambda t: F._sf(t) ** 2, _edges([F], xp.zeros_like(exit_), h + 0 * exit_), _order(F, F)
    )
    if C._degree == 0:
        B = _Compensator.of(C, W, exit_)
        below = _edges([F, W], xp.zeros_like(exit_), exit_)
        exact = _order(F, W, interpolate=True)
        living = by_jumps(phi, below, exact, B.edges, _inverse(C._sf(B.edges)))
        # a weight that starts from zero would be taken for one that has ended, hence 1 + B
        living = living - by_jumps(weighted_phi, below, exact, B.edges, 1 + B.after)
        living = living + by_panels(weighted_phi, below, _order(F, W))
    else:
        edges = _edges([F, C, W], xp.zeros_like(exit_), exit_)
        B = _Compensator.on(C, W, edges)
        t, speed = _nodes(edges, ORDER)
        G, S_W, value = (_at_nodes(f, t) for f in (C._sf, W._sf, phi))
        Z = _inverse(G) - S_W * B.at_nodes
        weights = convert(legendre(ORDER)[1], edges)
        living = xp.sum(xp.vecdot(Z * value * speed, weights, axis=-1), axis=-1)
    gone = _after_exit(problem, W, B)[:, 0]
    rest = by_panels(weighted_phi, _edges([F, W], exit_, h + 0 * exit_), _order(F, W))
    return forecast + living + xp.where(exit_[:, 0] < (h + 0 * exit_)[:, 0], gone * rest, xp.zeros_like(rest))


def _after_exit(problem: Problem, W: Univariate, B: _Compensator) -> Array:
    """Z(t) / S_W(t) for t from y on, (n, 1): subjects with an event, and those censored at y."""
    xp, y, event = problem.xp, problem.time, problem.event
    censored = _inverse(W._sf(y)) * _inverse(problem.C._sf(y)) - B.at(y)
    return xp.where(event, -B.before(y), censored)


# ---- the integral against d(1/G) -------------------------------------------------------------------


@dataclass(frozen=True)
class _Compensator:
    r""":math:`B(s)=\int_{[0,s]}S_W^{-1}\,d(1/G)` at ascending edges, constant or smooth between them."""

    edges: Array  #: (1 or n, p)
    left: Array  #: B(edge-), (1 or n, p)
    after: Array  #: B(edge), (1 or n, p)
    at_nodes: Any = None  #: B at the nodes of every panel, (n, p - 1, ORDER)

    @classmethod
    def of(cls, C: Univariate, W: Univariate, needed: Array) -> _Compensator:
        """B at all times of ``needed`` (n, q); for a step function C at all times up to the last of them."""
        xp = namespace(needed)
        end = xp.max(needed, axis=1, keepdims=True)
        if C._degree == 0:
            last = xp.max(end, axis=0, keepdims=True)
            return cls.on(C, W, _within(C._breaks(), 0 * last, last), smooth=False)
        edges = [law._panel_edges() for law in (C, W)]
        return cls.on(C, W, _within(_side_by_side([needed, *edges]), 0 * end, end))

    @classmethod
    def on(cls, C: Univariate, W: Univariate, edges: Array, *, smooth: bool = True) -> _Compensator:
        """B at the given edges, among which are all atoms of C and all bends of both distributions."""
        xp = namespace(edges)
        jump = (_inverse(C._sf(edges)) - _inverse(C._sf_left(edges))) * _inverse(W._sf(edges))
        repeated = xp.concat([edges[:, :1] < 0, edges[:, 1:] == edges[:, :-1]], axis=1)
        jump = xp.where(repeated, xp.zeros_like(jump), jump)
        jumps = xp.cumulative_sum(jump, axis=1)
        if not smooth:
            return cls(edges, jumps - jump, jumps)
        panel, inside = _stieltjes(C, W, edges)
        areas = xp.cumulative_sum(xp.concat([0 * panel[:, :1], panel], axis=1), axis=1)
        after = areas + jumps
        return cls(edges, after - jump, after, after[:, :-1, None] + inside)

    def at(self, s: Array) -> Array:
        """B(s), which counts an atom of C at s."""
        return self._read(self.after, searchsorted(self.edges, detach(s), "right") - 1)

    def before(self, s: Array) -> Array:
        """B(s-), which does not."""
        last = self.edges.shape[1] - 1
        index = searchsorted(self.edges, detach(s), "left")
        beyond = index > last
        xp = namespace(self.edges)
        left = self._read(self.left, xp.where(beyond, xp.full_like(index, last), index))
        return xp.where(beyond, self._read(self.after, xp.full_like(index, last)), left)

    @staticmethod
    def _read(values: Array, index: Array) -> Array:
        n = common_rows(values=values.shape[0], index=index.shape[0])
        xp = namespace(values)
        return take_along(values, xp.broadcast_to(index, (n, index.shape[1])))


def _stieltjes(C: Univariate, W: Univariate, edges: Array) -> tuple[Array, Array]:
    r""":math:`\int S_W^{-1}d(1/G)` over every panel without its ends, and from its start to every node.

    1/G is read as a polynomial through the nodes and differentiated as such, so that no density of C is
    needed; the integral does not depend on the scale of time within the panel.
    """
    xp = namespace(edges)
    t, _ = _nodes(edges, ORDER)
    g = _inverse(_at_nodes(C._sf, t))
    slope = (g - g[:, :, :1]) @ convert(_differentiation().T, edges)
    integrand = _inverse(_at_nodes(W._sf, t)) * slope
    whole = xp.vecdot(integrand, convert(legendre(ORDER)[1], edges), axis=-1)
    return whole, integrand @ convert(_integration().T, edges)


@cache
def _differentiation() -> np.ndarray:
    """Takes the values of a polynomial at the nodes of [0, 1] to its derivative there."""
    x, _ = legendre(ORDER)
    V = np.polynomial.legendre.legvander(2 * x - 1, ORDER - 1)
    dV = np.stack([_legendre_derivative(degree, 2 * x - 1) for degree in range(ORDER)], axis=1)
    return np.linalg.solve(V.T, 2 * dV.T).T


def _legendre_derivative(degree: int, x: np.ndarray) -> np.ndarray:
    return np.polynomial.legendre.Legendre.basis(degree).deriv()(x)


@cache
def _integration() -> np.ndarray:
    """Takes the values of a polynomial at the nodes of [0, 1] to its integral from 0 to each node."""
    x, _ = legendre(ORDER)
    V = np.polynomial.legendre.legvander(2 * x - 1, ORDER - 1)
    basis = [np.polynomial.legendre.Legendre.basis(degree).integ(lbnd=-1) for degree in range(ORDER)]
    integrals = np.stack([P(2 * x - 1) / 2 for P in basis], axis=1)
    return np.linalg.solve(V.T, integrals.T).T


# ---- panels ----------------------------------------------------------------------------------------


def _order(*laws: Univariate, interpolate: bool = False) -> int:
    """Nodes that integrate or interpolate a product of piecewise polynomials exactly; many elsewhere."""
    degrees = [law._degree for law in laws]
    if None in degrees:
        return ORDER
    degree = int(sum(degrees))  # type: ignore[arg-type]
    return degree + 1 if interpolate else degree // 2 + 1


def _edges(laws: list[Univariate], start: Array, end: Array) -> Array:
    """Panel edges (n, p) from start to end, both (n, 1), between which all of ``laws`` are smooth."""
    parts = [law._breaks() if law._degree is not None else law._panel_edges() for law in laws]
    return _within(_side_by_side([part for part in parts if part is not None]), start, end)


def _within(edges: Array, start: Array, end: Array) -> Array:
    """Edges (1 or n, p) cut to [start, end] and sorted, with both ends among them."""
    xp = namespace(edges)
    edges = _side_by_side([start, edges, end])
    return xp.sort(xp.minimum(xp.maximum(edges, start), end), axis=1)


def _side_by_side(parts: list[Array]) -> Array:
    xp = namespace(parts[0])
    n = common_rows(**{f"part {i}": part.shape[0] for i, part in enumerate(parts)})
    return xp.concat([xp.broadcast_to(part, (n, part.shape[1])) for part in parts], axis=1)


def _inverse(S: Array) -> Array:
    """1/S, and zero where S is zero: the checks make sure that nobody is at risk there."""
    xp = namespace(S)
    some = S > 0
    return xp.where(some, 1 / xp.where(some, S, xp.ones_like(S)), xp.zeros_like(S))


def numbers_per_subject(*laws: Univariate) -> int:
    """How many numbers one subject needs at a time, for chunking."""
    smooth = any(law._degree is None for law in laws)
    breaks = [law.take(slice(0, 1))._breaks() for law in laws]
    edges = sum(60 if part is None else int(part.shape[1]) for part in breaks)
    return edges * (4 * ORDER if smooth else 4)


# ---- checks ----------------------------------------------------------------------------------------


def check_event_model_support(problem: Problem, W: Univariate, t: Array, *, before: bool = False) -> None:
    """The event model must give a chance of survival to every time at which a subject was seen alive.

    ``t`` (1 or n, q) are the evaluation times; with ``before`` only survival before them matters.
    """
    xp, y = problem.xp, problem.time
    last = xp.max(t, axis=1, keepdims=True)
    at_exit = xp.where(problem.event, W._sf_left(y), W._sf(y))
    left = (y <= last) & (at_exit <= 0)
    alive = (y > t) & ((W._sf_left(t) if before else W._sf(t)) <= 0)
    bad = np.nonzero(to_numpy(xp.any(left | alive, axis=1)))[0]
    if bad.size:
        ends = to_numpy((W if len(W) == 1 else W.take(bad)).isf(0.0)).reshape(-1)
        end = float(np.nextafter(ends.min(), 0))
        raise PositivityError(
            f"The event model gives no chance of survival to times at which {name_rows(bad)} were still "
            f"under observation, so what they can expect is undefined. Evaluate before {end:g} (smaller "
            "times, a smaller horizon), or pass an event model with a longer support.",
            rows=bad.tolist(),
            horizon=end if end > 0 else None,
        )
