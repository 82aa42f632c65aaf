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

from functools import cache
from typing import Any, NamedTuple

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
from censcore.distributions.contract import DEGREES
from censcore.exceptions import PositivityError
from censcore.scores.inputs.scoring_inputs import ScoringInputs
from censcore.scores.integration.cdf_integrals import inverse, times_of_falls


def augmented_indicator(inputs: ScoringInputs, W: Univariate, t: Array) -> Array:
    r"""Return Z(t) at times t (1 or n, q): (n, q). Its mean is P(T > t) if C or W is right.

    .. math::
        Z(t)=S_W(t)\begin{cases}D(t)&t<y\\D(y)&t\ge y,\ \delta=0\\
        D(y-)-1/\{S_W(y-)G(y-)\}&t\ge y,\ \delta=1\end{cases}
    """
    xp, y = inputs.xp, inputs.time
    D = _Running.of(inputs.C, W, xp.minimum(y, t))
    return W.sf_at(t) * xp.where(y > t, D.at(t), _after_exit(inputs, D))


def augmented_integral(inputs: ScoringInputs, W: Univariate, h: Array) -> Array:
    r"""Return :math:`\int_0^h Z(1-S)^2+(1-Z)S^2\,dt=\int_0^h S^2+Z(1-2S)\,dt` for h (1 or n, 1): (n,)."""
    xp, F, C = inputs.xp, inputs.F, inputs.C
    start, exit_, end = 0 * inputs.time, xp.minimum(inputs.time, h), h + 0 * inputs.time

    def phi(t: Array) -> Array:
        return 1 - 2 * F.sf_at(t)

    def expected(t: Array) -> Array:
        return W.sf_at(t) * phi(t)

    def under(f: Function, smooth: list[Univariate], a: Array, b: Array, weight: Array) -> Array:
        return integrate_steps(f, panel_edges(smooth, a, b), _order(*smooth), D.edges, weight)

    forecast = integrate(lambda t: F.sf_at(t) ** 2, panel_edges([F], start, end), _order(F, F))
    D = _Running.of(C, W, end if W.form == "steps" else exit_, F)
    if W.form == "steps":  # and so is Z until the exit, and S_W after it
        S_W = W.sf_at(D.edges)
        living, rest = under(phi, [F], start, exit_, S_W * D.after), under(phi, [F], exit_, end, S_W)
    else:
        rest = integrate(expected, panel_edges([F, W], exit_, end), _order(F, W))
        if C.form == "steps":
            living = under(phi, [F], start, exit_, inverse(C.sf_at(D.edges)))
            living = living + under(expected, [F, W], start, exit_, D.after)
        else:
            t, speed = nodes(D.edges[:, :-1], D.edges[:, 1:], ORDER)
            Z = inverse(at_nodes(C.sf_at, t)) + at_nodes(W.sf_at, t) * D.inside
            panels = xp.vecdot(Z * at_nodes(phi, t) * speed, convert(legendre(ORDER)[1], t), axis=-1)
            living = xp.sum(panels, axis=-1)
    gone = _after_exit(inputs, D)[:, 0] * rest
    return forecast + living + xp.where((exit_ < end)[:, 0], gone, 0.0)


def _after_exit(inputs: ScoringInputs, D: _Running) -> Array:
    """Return Z(t) / S_W(t) for t from y on, (n, 1): of subjects with an event, and of those censored at y."""
    return inputs.xp.where(inputs.event, D.after_event(inputs.time), D.at(inputs.time))


class _Running(NamedTuple):
    """The sum or integral in D(s) at ascending edges (1 or n, p), constant or smooth between them."""

    C: Univariate
    W: Univariate
    edges: Array
    left: Array  #: without a jump at the edge
    after: Array  #: with it
    inside: Any = None  #: at the nodes of every panel, (n, p - 1, ORDER), where it is smooth

    @classmethod
    def of(cls, C: Univariate, W: Univariate, needed: Array, *others: Univariate) -> _Running:
        """Return it where D is needed (n, q), with panels on which the ``others`` are smooth as well."""
        xp = namespace(needed)
        steps = next((part for part in (W, C) if part.form == "steps"), None)
        if steps is not None:  # all subjects share the edges
            last = xp.max(needed).reshape(1, 1)
            edges = _within(steps.breaks(), 0 * last, last)
        else:
            end = xp.max(needed, axis=1, keepdims=True)
            lines = [times_of_falls(part, end, 0.5**0.5) for part in (C, W) if part.form == "lines"]
            edges = side_by_side([panel_edges([C, W, *others], 0 * end, end), needed, *lines])
            edges = _within(edges, 0 * end, end)
        if steps is W:
            jump = (inverse(W.sf_at(edges)) - inverse(W.sf_left_at(edges))) * inverse(C.sf_left_at(edges))
        else:
            jump = (inverse(C.sf_left_at(edges)) - inverse(C.sf_at(edges))) * inverse(W.sf_at(edges))
        first = xp.concat([edges[:, :1] >= 0, edges[:, 1:] > edges[:, :-1]], axis=1)
        jump = xp.where(first, jump, 0.0)  # once, where an edge is repeated
        after = xp.cumulative_sum(jump, axis=1) + (1.0 if steps is W else 0.0)
        if steps is not None:
            return cls(C, W, edges, after - jump, after)
        panel, inside = _stieltjes(C, W, edges)
        after = after - xp.cumulative_sum(xp.concat([0 * panel[:, :1], panel], axis=1), axis=1)
        return cls(C, W, edges, after - jump, after, after[:, :-1, None] - inside)

    def at(self, s: Array) -> Array:
        """Return D(s) at times (1 or n, q)."""
        found = self._read(self.after, searchsorted(self.edges, detach(s), "right") - 1)
        left = 0.0 if self.W.form == "steps" else inverse(self.W.sf_at(s)) * inverse(self.C.sf_at(s))
        return found + left

    def after_event(self, s: Array) -> Array:
        """Return D(s-) - 1/{S_W(s-) G(s-)}, for s up to the last edge."""
        index = namespace(s).clip(searchsorted(self.edges, detach(s), "left"), max=self.edges.shape[1] - 1)
        found = self._read(self.left, index)
        if self.W.form == "steps":
            found = found - inverse(self.W.sf_left_at(s)) * inverse(self.C.sf_left_at(s))
        return found

    @staticmethod
    def _read(values: Array, index: Array) -> Array:
        n = common_rows(values=values.shape[0], index=index.shape[0])
        return take_along(values, namespace(values).broadcast_to(index, (n, index.shape[1])))


def _stieltjes(C: Univariate, W: Univariate, edges: Array) -> tuple[Array, Array]:
    r""":math:`\int S_W^{-1}d(1/G)` over every panel without its ends, and from its start to every node.

    1/G is read as a polynomial through the nodes and differentiated as such, so that no density of C is
    needed; the integral does not depend on the scale of time within the panel.
    """
    xp = namespace(edges)
    t, _ = nodes(edges[:, :-1], edges[:, 1:], ORDER)
    g = inverse(at_nodes(C.sf_at, t))
    slope = (g - g[:, :, :1]) @ convert(_differentiation(), edges)
    integrand = inverse(at_nodes(W.sf_at, t)) * slope
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


def _order(*distributions: Univariate) -> int:
    """Nodes that interpolate and integrate a product of piecewise polynomials exactly; many elsewhere."""
    forms = [distribution.form for distribution in distributions]
    return ORDER if "smooth" in forms else 1 + sum(DEGREES[form] for form in forms)


def panel_edges(distributions: list[Univariate], start: Array, end: Array) -> Array:
    """Panel edges (n, p) from start to end, both (n, 1), between which all distributions are smooth."""
    parts = [
        distribution.breaks() if distribution.form != "smooth" else distribution.panel_edges()
        for distribution in distributions
    ]
    return _within(side_by_side([part for part in parts if part is not None]), start, end)


def _within(edges: Array, start: Array, end: Array) -> Array:
    """Edges (1 or n, p) cut to [start, end] and sorted, with both ends among them."""
    xp = namespace(edges)
    edges = side_by_side([start, edges, end])
    return xp.sort(xp.minimum(xp.maximum(edges, start), end), axis=1)


def numbers_per_subject(*distributions: Univariate) -> int:
    """How many numbers one subject needs at a time, for chunking."""
    smooth = any(distribution.form == "smooth" for distribution in distributions)
    breaks = [distribution.take(slice(0, 1)).breaks() for distribution in distributions]
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
    at_exit = xp.where(inputs.event, W.sf_left_at(y), W.sf_at(y))
    left = (y <= last) & (at_exit <= 0)
    alive = (y > t) & ((W.sf_left_at(t) if before else W.sf_at(t)) <= 0)
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
