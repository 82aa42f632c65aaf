"""Quadrature over panels: of smooth functions, of piecewise polynomials, and under a weight of many steps."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import numpy as np

from censcore._arrays import Array, convert, detach, namespace, searchsorted, take_along
from censcore._numerics import legendre
from censcore.scores._compiled import WORTH_COMPILING, compiled

__all__ = ["ORDER", "Function", "by_jumps", "by_panels", "tail"]

ORDER = 12  # nodes per panel of a smooth integrand

Function = Callable[[Array], Array]


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


def by_panels(f: Function, edges: Array, order: int) -> Array:
    """The integral of f over all panels of each row, (n,): exact for polynomials below degree 2 * order."""
    xp = namespace(edges)
    t, speed = _nodes(edges, order)
    weights = convert(legendre(order)[1], edges)
    return xp.sum(xp.vecdot(_at_nodes(f, t) * speed, weights, axis=-1), axis=-1)


# ---- a weight of steps: an antiderivative, read at the jumps ---------------------------------------


def by_jumps(f: Function, edges: Array, order: int, times: Array, values: Array) -> Array:
    r""":math:`\sum_j w_j\int_{c_j}^{c_{j+1}}f` for a weight that is 1 before the first jump, then ``values``.

    f is read as a polynomial of degree ``order - 1`` on every panel; times and values are (1 or n, J).
    """
    before, coefficients = _antiderivative(f, edges, order)
    kernel = None
    if edges.shape[0] * times.shape[1] >= WORTH_COMPILING // 10:
        kernel = compiled("_jumps_numba", "weighted_gains", edges)
    if kernel is not None:
        return kernel(
            edges, _logarithmic(edges[:, :-1], edges[:, 1:], order), before, coefficients, times, values
        )
    xp = namespace(edges)
    low, high = edges[:, :1], edges[:, -1:]
    stops = xp.where(times > low, xp.where(times < high, times, high), low)
    Q = _read(xp.concat([low, stops, high], axis=1), edges, order, before, coefficients)
    weights = xp.concat([xp.ones_like(values[:, :1]), values], axis=1)
    return xp.vecdot(Q[:, 1:] - Q[:, :-1], weights, axis=-1)


def _antiderivative(f: Function, edges: Array, order: int) -> tuple[Array, Array]:
    """The integral of f before every panel, (n, p), and the Legendre coefficients of its course inside."""
    xp = namespace(edges)
    t, speed = _nodes(edges, order)
    values = _at_nodes(f, t) * speed
    whole = xp.vecdot(values, convert(legendre(order)[1], edges), axis=-1)
    before = xp.cumulative_sum(whole, axis=1) - whole
    return before, values @ convert(_legendre_antiderivative(order), edges)


def _read(at: Array, edges: Array, order: int, before: Array, coefficients: Array) -> Array:
    """The antiderivative at times (n, J)."""
    xp = namespace(edges)
    panel = searchsorted(edges[:, 1:-1], detach(at), "left")
    x = 2 * _position(edges, panel, at, order) - 1
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


def tail(f: Function, end: Array) -> Array:
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
