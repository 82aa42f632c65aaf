"""Probabilities of bins, spread evenly within each, with an exponential tail."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from censcore._arrays import Array, namespace, searchsorted, take_along
from censcore.distributions.joint import log_or_never
from censcore.distributions.univariate import Univariate


class Binned(Univariate):
    r"""One coordinate of a :class:`~censcore.distributions.JointGrid`.

    :math:`P(T>t)` is linear within the bins :math:`(b_i,b_{i+1}]` and
    :math:`p_B\exp\{-r(t-b_B)\}` beyond the last edge; r = 0 puts the mass :math:`p_B` at infinity. Edges are
    (1, B + 1), the log probabilities of the bins and of the tail (n, B + 1), rates (1, 1) or (n, 1).
    """

    _arrays: ClassVar[tuple[str, ...]] = ("_edges", "_log_p", "_rate")

    def __init__(self, edges: Array, log_p: Array, rate: Array) -> None:
        self._edges, self._log_p, self._rate = edges, log_p, rate

    @property
    def _p(self) -> Array:
        return self._remember("p", lambda: self._xp.exp(self._log_p))

    @property
    def _upper(self) -> Array:
        """P(T > b_i) for every edge, (n, B + 1)."""
        xp = self._xp
        return self._remember("upper", lambda: xp.flip(xp.cumsum(xp.flip(self._p, axis=1), axis=1), axis=1))

    @property
    def _lower(self) -> Array:
        """P(T <= b_i) for every edge, (n, B + 1)."""
        xp = self._xp

        def make() -> Array:
            total = xp.cumsum(self._p, axis=1)
            return xp.concat([xp.zeros_like(total[:, :1]), total[:, :-1]], axis=1)

        return self._remember("lower", make)

    def _tail(self, excess: Array) -> Array:
        return self._xp.exp(-decay(self._rate, excess))

    def _inside_sf(self, t: Array) -> Array:
        bin_, width, rest = place(self._edges, t)
        return take_along(self._upper, bin_ + 1) + take_along(self._p, bin_) * (rest / width)

    def _sf(self, t: Array) -> Array:
        beyond, excess = tail_excess(self._edges, t)
        return self._xp.where(beyond, self._p[:, -1:] * self._tail(excess), self._inside_sf(t))

    def _cdf(self, t: Array) -> Array:
        xp = self._xp
        bin_, width, _ = place(self._edges, t)
        beyond, excess = tail_excess(self._edges, t)
        passed = xp.where(beyond, width, t) - xp.where(
            beyond, xp.zeros_like(t), take_along(self._edges, bin_)
        )
        inside = take_along(self._lower, bin_) + take_along(self._p, bin_) * (passed / width)
        tail = self._lower[:, -1:] - self._p[:, -1:] * xp.expm1(-decay(self._rate, excess))
        return xp.where(xp.isinf(t), xp.ones_like(tail), xp.where(beyond, tail, inside))

    def _logsf(self, t: Array) -> Array:
        beyond, excess = tail_excess(self._edges, t)
        log_tail = self._log_p[:, -1:] - decay(self._rate, excess)
        return self._xp.where(beyond, log_tail, log_or_never(self._inside_sf(t)))

    def _logpdf(self, t: Array) -> Array:
        xp = self._xp
        bin_, width, _ = place(self._edges, t)
        beyond, excess = tail_excess(self._edges, t)
        tail = self._log_p[:, -1:] + log_or_never(self._rate) - decay(self._rate, excess)
        return xp.where(beyond, tail, take_along(self._log_p, bin_) - xp.log(width))

    def _isf(self, p: Array) -> Array:
        """First edge whose survival is at most p, then back into the bin before it."""
        xp = self._xp
        upper = self._upper
        index = searchsorted(-upper, -p, side="left")
        inside = self._inside(index, lambda i: p - take_along(upper, i), backwards=True)
        return xp.where(p < upper[:, -1:], self._in_tail(p), inside)

    def _icdf(self, p: Array) -> Array:
        xp = self._xp
        lower = self._lower
        index = searchsorted(lower, p, side="left")
        inside = self._inside(index, lambda i: p - take_along(lower, i - 1), backwards=False)
        tail_mass = self._p[:, -1:]
        in_tail = (p > lower[:, -1:]) & (tail_mass > 0)
        left = xp.where(in_tail, tail_mass - (p - lower[:, -1:]), tail_mass)
        left = xp.where(left > 0, left, xp.zeros_like(left))
        t = xp.where(in_tail, self._in_tail(left), inside)
        return xp.where(p < 1, t, self._isf(xp.zeros_like(p)))

    def _inside(self, index: Array, mass: Callable[[Array], Array], backwards: bool) -> Array:
        """The time in the bin that ends at edge ``index`` which leaves ``mass`` on one side of it."""
        xp = self._xp
        n_edges = self._edges.shape[1]
        clipped = xp.clip(index, 1, n_edges - 1)
        low, high = take_along(self._edges, clipped - 1), take_along(self._edges, clipped)
        p = take_along(self._p, clipped - 1)
        share = mass(clipped) / xp.where(p > 0, p, xp.ones_like(p))
        t = high - (high - low) * share if backwards else low + (high - low) * share
        return xp.where(index < 1, xp.zeros_like(t), xp.minimum(xp.maximum(t, low + 0 * t), high + 0 * t))

    def _in_tail(self, survival: Array) -> Array:
        """b_B + log(p_B / survival) / r; infinity for r = 0 or no survival left."""
        xp = self._xp
        mass = self._p[:, -1:]
        possible = (survival > 0) & (survival < mass) & (self._rate > 0)
        one = xp.ones_like(survival + mass + self._rate)
        ratio = xp.where(possible, mass / xp.where(possible, survival * one, one), one)
        t = self._edges[:, -1:] + xp.log(ratio) / xp.where(possible, self._rate * one, one)
        return xp.where(possible, t, xp.full_like(t, np.inf))

    def _integrated_sf(self, a: Array, b: Array) -> Array:
        """Trapezia within the bins, an exponential integral beyond them."""
        xp = self._xp
        last = self._edges[:, -1:]
        low, high = xp.minimum(a, last + 0 * a), xp.minimum(b, xp.zeros_like(b) + last)
        bin_a, bin_b = place(self._edges, low)[0], place(self._edges, high)[0]
        sf_a, sf_b = self._sf(low), self._sf(high)
        together = (high - low) * (sf_a + sf_b) / 2
        end_a, start_b = take_along(self._edges, bin_a + 1), take_along(self._edges, bin_b)
        apart = (
            (end_a - low) * (sf_a + take_along(self._upper, bin_a + 1)) / 2
            + take_along(self._area_beyond, bin_a + 1)
            - take_along(self._area_beyond, bin_b)
            + (high - start_b) * (sf_b + take_along(self._upper, bin_b)) / 2
        )
        return xp.where(bin_a == bin_b, together, apart) + self._integrated_tail(a, b)

    @property
    def _area_beyond(self) -> Array:
        """The integral of the survival function from every edge to the last one."""
        xp = self._xp

        def make() -> Array:
            area = (self._edges[:, 1:] - self._edges[:, :-1]) * (self._upper[:, 1:] + self._upper[:, :-1]) / 2
            total = xp.flip(xp.cumsum(xp.flip(area, axis=1), axis=1), axis=1)
            return xp.concat([total, xp.zeros_like(total[:, :1])], axis=1)

        return self._remember("area", make)

    def _integrated_tail(self, a: Array, b: Array) -> Array:
        xp = self._xp
        (_, low), (_, high) = tail_excess(self._edges, a), tail_excess(self._edges, b)
        length = xp.where(high > low, high - low, xp.zeros_like(high))
        mass = self._p[:, -1:]
        decays = self._rate > 0
        rate = xp.where(decays, self._rate, xp.ones_like(self._rate))
        decaying = -xp.expm1(-decay(rate, length)) / rate
        constant = xp.where(mass > 0, length, xp.zeros_like(length))
        return mass * self._tail(low) * xp.where(decays, decaying, constant)

    def _mass_at_infinity(self) -> Array:
        xp = self._xp
        mass = self._p[:, -1]
        return xp.where(self._rate[:, 0] > 0, xp.zeros_like(mass), mass)

    def _breaks(self) -> Array:
        return self._edges


def place(edges: Array, t: Array) -> tuple[Array, Array, Array]:
    """The bin (b_i, b_{i+1}] of every time, its width and how much of it lies beyond the time.

    Bins are closed on the right, so that an event at the last edge (the end of follow-up) lies in the
    last bin and not in the tail. Times beyond the last edge are placed in the last bin.
    """
    xp = namespace(t)
    bin_ = xp.clip(searchsorted(edges, t, side="left") - 1, 0, edges.shape[1] - 2)
    low, high = take_along(edges, bin_), take_along(edges, bin_ + 1)
    rest = xp.where(t < high, high - t, xp.zeros_like(high))
    return bin_, high - low, rest


def tail_excess(edges: Array, t: Array) -> tuple[Array, Array]:
    """Whether every time lies beyond the last edge, and by how much."""
    xp = namespace(t)
    beyond = t > edges[:, -1:]
    return beyond, xp.where(beyond, t - edges[:, -1:], xp.zeros_like(t))


def decay(rate: Array, excess: Array, left: bool = False) -> Array:
    """The exponent r x of the tail; with r = 0 all mass stays until infinity, or from the left at it."""
    xp = namespace(excess)
    endless = xp.isinf(excess)
    with np.errstate(over="ignore"):  # beyond the largest float nothing is left of the tail
        product = rate * xp.where(endless, xp.zeros_like(excess), excess)
    gone = endless & ((rate > 0) | (not left))
    return xp.where(gone, xp.full_like(product, np.inf), product)
