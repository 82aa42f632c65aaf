r"""Survival at t, seen through censoring and a working event model: what augmented scores are made of.

With :math:`G(u)=P(C>u)` and :math:`S_W(u)=P_W(T>u)` of the event model, :math:`p_t(u)=S_W(t)/S_W(u)` is the
chance to survive t of a subject still under observation at u, and the augmented indicator of survival is

.. math::
    Z(t)=\frac{1\{y>t\}}{G(t)}+1\{y\le t,\delta=0\}\frac{p_t(y)}{G(y)}-\int p_t(u)\,d\frac1{G(u)}

over the times u at which the subject was at risk of censoring: u <= t while it lives, u <= y if it is
censored at y <= t, and u < y if it has its event at y <= t, since events come first. The measure d(1/G) is
:math:`d\Lambda_C/G`, for continuous C and for atoms alike. All of it follows from one function of time,

.. math::
    D(s)=\frac1{S_W(s)G(s)}-\int_{[0,s]}\frac{1}{S_W(u)}\,d\frac1{G(u)}
    =1+\int_{[0,s]}\frac1{G(u-)}\,d\frac{1}{S_W(u)}.

The first form is a finite sum where C is a step function, the second where W is one.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
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
from censcore._quadrature import (
    ORDER,
    Function,
    at_nodes,
    integrate,
    integrate_steps,
    legendre,
    legendre_antiderivative,
    nodes,
    side_by_side,
    to_legendre,
)
from censcore._validation import name_subjects
from censcore.distributions import Univariate
from censcore.exceptions import PositivityError
from censcore.scores._squares import inverse, times_of_falls
from censcore.scores.inputs import ScoringInputs


def augmented_indicator(inputs: ScoringInputs, W: Univariate, t: Array) -> Array:
    r"""Z(t) at times t (1 or n, q): (n, q). Its mean is P(T > t) if C or W is right.

    .. math::
        Z(t)=S_W(t)\begin{cases}D(t)&t<y\\D(y)&t\ge y,\ \delta=0\\
        D(y-)-1/\{S_W(y-)G(y-)\}&t\ge y,\ \delta=1\end{cases}
    """
    xp, y = inputs.xp, inputs.time
    D = _running(inputs.C, W, xp.minimum(y, t))
    return W._sf(t) * xp.where(y > t, D.at(t), _after_exit(inputs, D))


def augmented_integral(inputs: ScoringInputs, W: Univariate, h: Array) -> Array:
    r""":math:`\int_0^h Z(1-S)^2+(1-Z)S^2\,dt=\int_0^h S^2+Z(1-2S)\,dt` for h (1 or n, 1): (n,)."""
    xp, F = inputs.xp, inputs.F
    start, exit_, end = 0 * inputs.time, xp.minimum(inputs.time, h), h + 0 * inputs.time

    def phi(t: Array) -> Array:
        return 1 - 2 * F._sf(t)

    forecast = integrate(lambda t: F._sf(t) ** 2, panel_edges([F], start, end), _order(F, F))
    D: _Running
    if W._degree == 0:
        D = _ByEventModel.of(inputs.C, W, end)
        S_W, order = W._sf(D.edges), _order(F, interpolate=True)
        living = integrate_steps(phi, panel_edges([F], start, exit_), order, D.edges, S_W * D.after)
        rest = integrate_steps(phi, panel_edges([F], exit_, end), order, D.edges, S_W)
    else:
        living, D = _integral_while_living(inputs, W, phi, exit_)
        rest = integrate(lambda t: W._sf(t) * phi(t), panel_edges([F, W], exit_, end), _order(F, W))
    gone = _after_exit(inputs, D)[:, 0] * rest
    return forecast + living + xp.where((exit_ < end)[:, 0], gone, 0.0)


def _integral_while_living(
    inputs: ScoringInputs, W: Univariate, phi: Function, exit_: Array
) -> tuple[Array, _ByCensoring]:
    r""":math:`\int_0^{exit}\{1/G-S_WB\}\varphi\,dt` for a smooth W, (n,), and the integral B within it."""
    xp, F, C = inputs.xp, inputs.F, inputs.C
    if C._degree == 0:
        D = _ByCensoring.of(C, W, exit_)
        edges, order = panel_edges([F, W], 0 * exit_, exit_), _order(F, W, interpolate=True)

        def weighted_phi(t: Array) -> Array:
            return W._sf(t) * phi(t)

        by_weights = integrate_steps(phi, edges, order, D.edges, inverse(C._sf(D.edges)))
        by_model = integrate_steps(weighted_phi, edges, order, D.edges, D.after)
        return by_weights - by_model, D
    edges = panel_edges([F, C, W], 0 * exit_, exit_)
    edges = _within(side_by_side([edges, *_cuts(C, W, exit_)]), 0 * exit_, exit_)
    D = _ByCensoring.on(C, W, edges)
    t, speed = nodes(edges[:, :-1], edges[:, 1:], ORDER)
    G, S_W, value = (at_nodes(f, t) for f in (C._sf, W._sf, phi))
    Z = inverse(G) - S_W * D.at_nodes
    weights = convert(legendre(ORDER)[1], edges)
    return xp.sum(xp.vecdot(Z * value * speed, weights, axis=-1), axis=-1), D


def _after_exit(inputs: ScoringInputs, D: _Running) -> Array:
    """Z(t) / S_W(t) for t from y on, (n, 1): subjects with an event, and those censored at y."""
    return inputs.xp.where(inputs.event, D.after_event(inputs.time), D.at(inputs.time))


# ---- D(s), in the form that is a finite sum where there is one -------------------------------------


@dataclass(frozen=True)
class _Running(ABC):
    """An integral over [0, s] at ascending edges, constant or smooth between them."""

    C: Univariate
    W: Univariate
    edges: Array  #: (1 or n, p)
    left: Array  #: without a jump at the edge, (1 or n, p)
    after: Array  #: with it, (1 or n, p)
    at_nodes: Any = None  #: at the nodes of every panel, (n, p - 1, ORDER), where it is smooth

    @abstractmethod
    def at(self, s: Array) -> Array:
        """D(s) at times (1 or n, q)."""

    @abstractmethod
    def after_event(self, s: Array) -> Array:
        """D(s-) - 1/{S_W(s-) G(s-)}."""

    def integral(self, s: Array) -> Array:
        """The integral over [0, s]."""
        return self._read(self.after, searchsorted(self.edges, detach(s), "right") - 1)

    def integral_before(self, s: Array) -> Array:
        """The integral over [0, s)."""
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


class _ByEventModel(_Running):
    r""":math:`D(s)=1+\int_{[0,s]}G(u-)^{-1}\,d(1/S_W)`, a finite sum for a step function W."""

    @classmethod
    def of(cls, C: Univariate, W: Univariate, needed: Array) -> _ByEventModel:
        """D at all times up to the last of ``needed``."""
        edges = _until(W._breaks(), needed)
        jump = (inverse(W._sf(edges)) - inverse(W._sf_left(edges))) * inverse(C._sf_left(edges))
        jump, jumps = _once(jump, edges)
        return cls(C, W, edges, 1 + jumps - jump, 1 + jumps)

    def at(self, s: Array) -> Array:
        return self.integral(s)

    def after_event(self, s: Array) -> Array:
        return self.integral_before(s) - inverse(self.W._sf_left(s)) * inverse(self.C._sf_left(s))


class _ByCensoring(_Running):
    r""":math:`D(s)=1/\{S_W(s)G(s)\}-B(s)` with :math:`B(s)=\int_{[0,s]}S_W^{-1}\,d(1/G)`."""

    @classmethod
    def of(cls, C: Univariate, W: Univariate, needed: Array) -> _ByCensoring:
        """B at all times of ``needed`` (n, q); for a step function C at all times up to the last of them."""
        xp = namespace(needed)
        if C._degree == 0:
            return cls.on(C, W, _until(C._breaks(), needed), smooth=False)
        end = xp.max(needed, axis=1, keepdims=True)
        edges = [distribution._panel_edges() for distribution in (C, W)]
        return cls.on(C, W, _within(side_by_side([needed, *edges, *_cuts(C, W, end)]), 0 * end, end))

    @classmethod
    def on(cls, C: Univariate, W: Univariate, edges: Array, *, smooth: bool = True) -> _ByCensoring:
        """B at the given edges, among which are all atoms of C and all bends of both distributions."""
        xp = namespace(edges)
        jump = (inverse(C._sf(edges)) - inverse(C._sf_left(edges))) * inverse(W._sf(edges))
        jump, jumps = _once(jump, edges)
        if not smooth:
            return cls(C, W, edges, jumps - jump, jumps)
        panel, inside = _stieltjes(C, W, edges)
        areas = xp.cumulative_sum(xp.concat([0 * panel[:, :1], panel], axis=1), axis=1)
        after = areas + jumps
        return cls(C, W, edges, after - jump, after, after[:, :-1, None] + inside)

    def at(self, s: Array) -> Array:
        return inverse(self.W._sf(s)) * inverse(self.C._sf(s)) - self.integral(s)

    def after_event(self, s: Array) -> Array:
        return -self.integral_before(s)


def _running(C: Univariate, W: Univariate, needed: Array) -> _Running:
    return (_ByEventModel if W._degree == 0 else _ByCensoring).of(C, W, needed)


def _once(jump: Array, edges: Array) -> tuple[Array, Array]:
    """Jumps at edges (1 or n, p), those at a repeated edge counted once, and their running sums."""
    xp = namespace(edges)
    repeated = xp.concat([edges[:, :1] < 0, edges[:, 1:] == edges[:, :-1]], axis=1)
    jump = xp.where(repeated, xp.zeros_like(jump), jump)
    return jump, xp.cumulative_sum(jump, axis=1)


def _until(breaks: Array, needed: Array) -> Array:
    """Zero, the breaks (1 or n, J) up to the last time needed by anyone, and that time."""
    last = namespace(needed).max(needed).reshape(1, 1)
    return _within(breaks, 0 * last, last)


def _stieltjes(C: Univariate, W: Univariate, edges: Array) -> tuple[Array, Array]:
    r""":math:`\int S_W^{-1}d(1/G)` over every panel without its ends, and from its start to every node.

    1/G is read as a polynomial through the nodes and differentiated as such, so that no density of C is
    needed; the integral does not depend on the scale of time within the panel.
    """
    xp = namespace(edges)
    t, _ = nodes(edges[:, :-1], edges[:, 1:], ORDER)
    g = inverse(at_nodes(C._sf, t))
    slope = (g - g[:, :, :1]) @ convert(_differentiation(), edges)
    integrand = inverse(at_nodes(W._sf, t)) * slope
    whole = xp.vecdot(integrand, convert(legendre(ORDER)[1], edges), axis=-1)
    return whole, integrand @ convert(_integration(), edges)


@cache
def _differentiation() -> np.ndarray:
    """Takes the values of a polynomial at the nodes of [0, 1] to its derivative there."""
    basis = [np.polynomial.legendre.Legendre.basis(degree) for degree in range(ORDER)]
    return 2 * to_legendre(ORDER) @ np.stack([P.deriv()(2 * legendre(ORDER)[0] - 1) for P in basis])


@cache
def _integration() -> np.ndarray:
    """Takes the values of a polynomial at the nodes of [0, 1] to its integral from 0 to each node."""
    x = 2 * legendre(ORDER)[0] - 1
    return legendre_antiderivative(ORDER) @ np.polynomial.legendre.legvander(x, ORDER).T


# ---- panels ----------------------------------------------------------------------------------------


def _order(*distributions: Univariate, interpolate: bool = False) -> int:
    """Nodes that integrate or interpolate a product of piecewise polynomials exactly; many elsewhere."""
    degrees = [distribution._degree for distribution in distributions]
    if None in degrees:
        return ORDER
    degree = int(sum(degrees))  # type: ignore[arg-type]
    return degree + 1 if interpolate else degree // 2 + 1


def panel_edges(distributions: list[Univariate], start: Array, end: Array) -> Array:
    """Panel edges (n, p) from start to end, both (n, 1), between which all distributions are smooth."""
    parts = [
        distribution._breaks() if distribution._degree is not None else distribution._panel_edges()
        for distribution in distributions
    ]
    return _within(side_by_side([part for part in parts if part is not None]), start, end)


def _cuts(C: Univariate, W: Univariate, end: Array) -> list[Array]:
    """Panel edges for 1/G and 1/S_W where G or S_W is linear."""
    lines = [distribution for distribution in (C, W) if distribution._degree == 1]
    return [times_of_falls(distribution, end, 0.5**0.5) for distribution in lines]


def _within(edges: Array, start: Array, end: Array) -> Array:
    """Edges (1 or n, p) cut to [start, end] and sorted, with both ends among them."""
    xp = namespace(edges)
    edges = side_by_side([start, edges, end])
    return xp.sort(xp.minimum(xp.maximum(edges, start), end), axis=1)


def numbers_per_subject(*distributions: Univariate) -> int:
    """How many numbers one subject needs at a time, for chunking."""
    smooth = any(distribution._degree is None for distribution in distributions)
    breaks = [distribution.take(slice(0, 1))._breaks() for distribution in distributions]
    edges = sum(60 if part is None else int(part.shape[1]) for part in breaks)
    return edges * (4 * ORDER if smooth else 4)


# ---- checks ----------------------------------------------------------------------------------------


def check_event_model_support(
    inputs: ScoringInputs, W: Univariate, t: Array, *, before: bool = False
) -> None:
    """The event model must give a chance of survival to every time at which a subject was seen alive.

    ``t`` (1 or n, q) are the evaluation times; with ``before`` only survival before them matters.
    """
    xp, y = inputs.xp, inputs.time
    last = xp.max(t, axis=1, keepdims=True)
    at_exit = xp.where(inputs.event, W._sf_left(y), W._sf(y))
    left = (y <= last) & (at_exit <= 0)
    alive = (y > t) & ((W._sf_left(t) if before else W._sf(t)) <= 0)
    bad = np.nonzero(to_numpy(xp.any(left | alive, axis=1)))[0]
    if bad.size:
        ends = to_numpy(W.take(bad).isf(0.0)).reshape(-1)
        end = float(np.nextafter(ends.min(), 0))
        raise PositivityError(
            f"The event model gives no chance of survival to times at which {name_subjects(bad)} were still "
            f"under observation, so what they can expect is undefined. Evaluate before {end:g} (smaller "
            "times, a smaller horizon), or pass an event model with a longer support.",
            rows=bad.tolist(),
            horizon=end if end > 0 else None,
        )
