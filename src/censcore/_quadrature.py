r"""Quadrature over panels: of smooth functions, of piecewise polynomials, and under a weight of many steps.

Composite Gauss-Legendre. A panel [a, b] of a smooth integrand with b > 2a > 0 is integrated on the log scale,
since heavy tails are smooth there. A weight with many steps costs no more than one: the antiderivative is
computed once as a polynomial on every panel and read at the jumps.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from censcore._arrays import (
    Array,
    broadcast_to,
    convert,
    detach,
    namespace,
    searchsorted,
    take_along,
    to_numpy,
)

ORDER = 12  # nodes per panel of a smooth integrand; fewer are for piecewise polynomials
FAR = (0.1, 1e-3, 1e-6, 1e-10)  # cuts of a panel that begins many decades below its end
NEAR = 8.0  # a panel whose antiderivative is read inside spans no more than this factor

Function = Callable[[Array], Array]


@cache
def legendre(order: int) -> tuple[np.ndarray, np.ndarray]:
    """Gauss-Legendre nodes and weights on [0, 1]."""
    x, weights = np.polynomial.legendre.leggauss(order)
    return (x + 1) / 2, weights / 2


@cache
def to_legendre(order: int) -> np.ndarray:
    """Takes values at the nodes to the coefficients of Legendre polynomials in x = 2u - 1, (order, order)."""
    u, weights = legendre(order)
    return (
        weights[:, None] * np.polynomial.legendre.legvander(2 * u - 1, order - 1) * (2 * np.arange(order) + 1)
    )


def nodes(a: Array, b: Array, order: int) -> tuple[Array, Array]:
    """Nodes (n, p, order) of the panels from a to b, (n, p), and dt/du there, u from 0 to 1 along a panel."""
    u, xp = convert(legendre(order)[0], a), namespace(a)
    logarithmic = _logarithmic(a, b, order)[..., None]
    a, b = a[..., None], b[..., None]
    low, high = (xp.log(xp.where(logarithmic, t, 1.0)) for t in (a, b))
    growing = xp.exp(low + u * (high - low))
    t = xp.where(logarithmic, growing, a + (b - a) * u)
    most = xp.finfo(growing.dtype).max  # dt/du may overflow where nothing is left to integrate
    with np.errstate(over="ignore"):
        fast = xp.clip(growing * (high - low), max=most)
    return t, xp.where(logarithmic, fast, b - a)


def _logarithmic(a: Array, b: Array, order: int) -> Array:
    return (a > 0) & (a < b / 2) & (order >= ORDER)


def at_nodes(f: Function, t: Array) -> Array:
    """Values of f, which maps times (n, q) to values, at nodes (n, p, order)."""
    xp = namespace(t)
    values = f(xp.reshape(t, (t.shape[0], -1)))
    return xp.reshape(values, (values.shape[0], *t.shape[1:]))


def integrate(f: Function, edges: Array, order: int = 16) -> Array:
    r""":math:`\int f` over the panels of each row, (n,): exact for polynomials of degree below 2 ``order``.

    ``f`` maps times (n, q) to values (n, q). Edges (n, p + 1) are finite and do not decrease along the row;
    empty panels cost nothing but time. Orders below ``ORDER`` are for piecewise polynomials alone.

    >>> float(integrate(np.exp, np.array([[0.0, 0.5, 1.0]]))[0] - np.expm1(1.0)) < 1e-14
    True
    """
    return namespace(edges).sum(integrate_panels(f, edges[:, :-1], edges[:, 1:], order), axis=1)


def integrate_panels(f: Function, a: Array, b: Array, order: int = 16) -> Array:
    r""":math:`\int_a^b f` for every entry of a and b (n, p), each as one panel of :func:`integrate`."""
    t, speed = nodes(a, b, order)
    return namespace(a).vecdot(at_nodes(f, t) * speed, convert(legendre(order)[1], a), axis=-1)


# ---- an antiderivative, read at many times ---------------------------------------------------------


def integrate_steps(f: Function, edges: Array, order: int, times: Array, values: Array) -> Array:
    r""":math:`\int wf=\sum_jw_j\int_{c_j}^{c_{j+1}}f` over the panels for a step function w: (n,).

    w is 1 before the first of the ascending ``times``, then ``values``, both (1 or n, J). f is read as a
    polynomial of degree ``order - 1`` on every panel.
    """
    edges = _cut_at(times, edges)
    before, coefficients = _polynomials(f, edges, order)
    xp = namespace(edges)
    low, high = edges[:, :1], edges[:, -1:]
    stops = xp.where(times > low, xp.where(times < high, times, high), low)
    Q = _read(xp.concat([low, stops, high], axis=1), edges, order, before, coefficients)
    weights = xp.concat([xp.ones_like(values[:, :1]), values], axis=1)
    return xp.vecdot(Q[:, 1:] - Q[:, :-1], weights, axis=-1)


def antiderivative(f: Function, edges: Array, order: int, t: Array) -> Array:
    """The integral of f from the first edge to times t (n, q) between the edges, (n, q)."""
    xp = namespace(t)
    edges = _cut_at(xp.sort(detach(t), axis=1), edges)
    edges = xp.broadcast_to(edges, (t.shape[0], edges.shape[1]))
    return Antiderivative.of(f, edges, order)(t)


@dataclass(frozen=True)
class Antiderivative:
    """The integral of a function from the first edge, to be read at many times (n, q) between the edges.

    The panels are not cut further, so they must be short where times are read: see :func:`_cut_at`.
    """

    edges: Array
    order: int
    before: Array
    coefficients: Array

    @classmethod
    def of(cls, f: Function, edges: Array, order: int) -> Antiderivative:
        """Of f, which is smooth between the edges (n, p)."""
        return cls(edges, order, *_polynomials(f, edges, order))

    def __call__(self, t: Array) -> Array:
        return _read(t, self.edges, self.order, self.before, self.coefficients)

    @property
    def shape(self) -> tuple[int, ...]:
        """(n, p), that of the edges."""
        return tuple(self.edges.shape)

    def __getitem__(self, rows: Any) -> Antiderivative:
        return Antiderivative(self.edges[rows], self.order, self.before[rows], self.coefficients[rows])


def _cut_at(times: Array, edges: Array) -> Array:
    """The edges (n, p), and between them enough of the ascending ``times`` (1 or n, J).

    The polynomial of a panel is accurate relative to its value at the far end, which may be larger by many
    powers of ten than what is read inside. So the times lie in panels that span a factor of ``NEAR`` at most:
    the first and the last time in every interval [8^k, 8^(k+1)) become edges, and no time lies between two
    of them elsewhere. Wide gaps are cut as ``FAR`` says.
    """
    t = to_numpy(times)
    cuts = np.concatenate([_first_and_last(t), _below_gaps(t)], axis=1)
    xp, low, high = namespace(edges), edges[:, :1], edges[:, -1:]
    joined = side_by_side([edges, convert(cuts, edges)])
    return xp.sort(xp.where(joined > low, xp.where(joined < high, joined, high), low), axis=1)


def cuts_below_gaps(times: Array) -> Array:
    """Cuts of wide gaps below ascending times (1 or n, J), as ``FAR`` says; one lies below the first time."""
    return convert(_below_gaps(to_numpy(times)), times)


def _below_gaps(t: np.ndarray) -> np.ndarray:
    positive = (t > 0) & np.isfinite(t)
    before = np.concatenate([np.zeros_like(t[:, :1]), np.where(positive, t, 0.0)[:, :-1]], axis=1)
    above = _gathered(t, positive & (before < t / NEAR**2))
    return np.concatenate([above * share for share in FAR], axis=1)


def _first_and_last(t: np.ndarray) -> np.ndarray:
    """Of ascending times (n, J) the first and last in every interval, zeros added."""
    positive = (t > 0) & np.isfinite(t)
    interval = np.floor(np.log(np.where(positive, t, 1.0)) / np.log(NEAR))
    interval[~positive] = np.inf
    edge = np.full_like(interval[:, :1], np.inf)
    changes = interval != np.concatenate([edge, interval[:, :-1]], axis=1)
    last = interval != np.concatenate([interval[:, 1:], edge], axis=1)
    return _gathered(t, positive & (changes | last))


def _gathered(t: np.ndarray, mask: np.ndarray) -> np.ndarray:
    """The entries of t under the mask, row by row from the left, filled by zeros."""
    place = np.cumsum(mask, axis=1)
    out = np.zeros((t.shape[0], int(place[:, -1].max())), dtype=t.dtype)
    rows, columns = np.nonzero(mask)
    out[rows, place[rows, columns] - 1] = t[rows, columns]
    return out


def _polynomials(f: Function, edges: Array, order: int) -> tuple[Array, Array]:
    """The integral of f before every panel, (n, p), and the Legendre coefficients of its course inside."""
    xp = namespace(edges)
    t, speed = nodes(edges[:, :-1], edges[:, 1:], order)
    values = at_nodes(f, t) * speed
    whole = xp.vecdot(values, convert(legendre(order)[1], edges), axis=-1)
    before = xp.cumulative_sum(whole, axis=1) - whole
    return before, values @ convert(legendre_antiderivative(order), edges)


def _read(at: Array, edges: Array, order: int, before: Array, coefficients: Array) -> Array:
    """The antiderivative at times (n, J)."""
    xp = namespace(edges)
    panel = searchsorted(edges[:, 1:-1], detach(at), "left")
    x = 2 * _position(edges, panel, at, order) - 1
    # one place for subject and panel, so that a degree is read from few numbers side by side
    of_degree = xp.reshape(xp.permute_dims(coefficients, (2, 0, 1)), (order + 1, -1))
    first = xp.arange(coefficients.shape[0], device=panel.device)[:, None] * coefficients.shape[1]
    place = xp.reshape(panel + first, (-1,))
    b, b_next = xp.zeros_like(x), xp.zeros_like(x)
    for k in range(order, -1, -1):  # Clenshaw's sum of Legendre polynomials
        c = xp.reshape(xp.take(of_degree[k], place), x.shape)
        b, b_next = c + (2 * k + 1) / (k + 1) * (x * b) - (k + 1) / (k + 2) * b_next, b
    return take_along(before, panel) + b


def _position(edges: Array, panel: Array, at: Array, order: int) -> Array:
    """Where in its panel a time lies, from 0 to 1: the inverse of :func:`nodes`."""
    xp = namespace(edges)
    a, b = take_along(edges, panel), take_along(edges, panel + 1)
    logarithmic = _logarithmic(a, b, order)
    one = xp.ones_like(a)
    a_log, at_log, b_log = (xp.log(xp.where(logarithmic, t, 1 + i * one)) for i, t in enumerate((a, at, b)))
    along_log = (at_log - a_log) / (b_log - a_log)
    width = xp.where(b > a, b - a, one)
    return xp.where(logarithmic, along_log, (at - a) / width)


@cache
def legendre_antiderivative(order: int) -> np.ndarray:
    """Takes values at the nodes to the Legendre coefficients, in x = 2u - 1, of the integral from 0 to u."""
    integral = np.zeros((order, order + 1))
    for degree, unit in enumerate(np.eye(order)):
        integral[degree, : degree + 2] = np.polynomial.legendre.legint(unit, lbnd=-1)[: degree + 2] / 2
    return to_legendre(order) @ integral


# ---- edges, and what lies beyond the last of them --------------------------------------------------


def side_by_side(parts: Sequence[Array]) -> Array:
    """Arrays (1 or n, p) as the columns of one."""
    n = max(part.shape[0] for part in parts)
    return namespace(parts[0]).concat([broadcast_to(part, (n, part.shape[1])) for part in parts], axis=1)


def tail(f: Function, end: Array) -> Array:
    r"""The integral of f beyond ``end``, where it falls like a power :math:`t^{-p}`; infinite for p <= 1."""
    xp = namespace(end)
    end = xp.where(end > 0, end, 1.0)
    here, there = f(end), f(2 * end)
    falls = (detach(here) > 0) & (detach(there) > 0)
    one = xp.ones_like(here)
    p = xp.log(xp.where(falls, here, one) / xp.where(falls, there, one)) / np.log(2)
    endless = falls & (detach(p) - 1 < float(xp.finfo(end.dtype).eps) ** 0.5)
    rest = end * here / (xp.where(falls & ~endless, p, 2 * one) - 1)
    rest = xp.where(falls, rest, 0.0)
    return xp.where(endless, np.inf, rest)[:, 0]


def area(C: Any, a: Array, b: Array) -> Array:
    r""":math:`\int_a^b G(s)\,ds` for a <= b, never below zero: differences of areas may be, by rounding."""
    between = C.integrated_sf_at(a, b)
    xp = namespace(between)
    return xp.where(between > 0, between, 0.0)


def times_area(height: Array, width: Array) -> Array:
    """Their product, zero where the height is, however wide."""
    xp = namespace(height)
    return height * xp.where(height > 0, width, 0.0)
