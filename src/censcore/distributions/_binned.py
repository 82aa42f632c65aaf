"""Probabilities of bins, spread evenly within each, with an exponential tail."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from censcore._arrays import Array, namespace, searchsorted, take_along
from censcore._numerics import safe_log
from censcore.distributions.univariate.piecewise_linear import Polyline


class Binned(Polyline):
    r"""One coordinate of a :class:`~censcore.distributions.JointGrid`.

    :math:`P(T>t)` is linear within the bins :math:`(b_i,b_{i+1}]` and
    :math:`p_B\exp\{-r(t-b_B)\}` beyond the last edge; r = 0 puts the mass :math:`p_B` at infinity. Edges are
    (1, B + 1), the log probabilities of the bins and of the tail (n, B + 1), rates (1, 1) or (n, 1).
    """

    array_names: ClassVar[tuple[str, ...]] = ("_levels", "_times", "_log_p", "_tail_rate")
    _falls = True
    tail = "exponential"

    def __init__(self, edges: Array, log_p: Array, rate: Array) -> None:
        xp = namespace(log_p)
        from_the_end = xp.cumulative_sum(xp.flip(xp.exp(log_p), axis=1), axis=1)
        self._levels = xp.concat(
            [xp.flip(from_the_end, axis=1)[:, 1:]], axis=1
        )  # torch reads no flipped view
        self._times, self._log_p, self._tail_rate = edges[:, 1:], log_p, rate

    def _make_rate(self) -> Array:
        return self._tail_rate

    @property
    def _left(self) -> Array:
        return self.xp.exp(self._log_p[:, -1:])

    def _rising(self) -> Binned:
        """The same by P(T <= b_i), which has digits where little has happened yet."""
        xp, last = self.xp, 1 - self._left

        def make() -> Binned:
            before = xp.cumulative_sum(xp.exp(self._log_p), axis=1)[:, :-2]
            return self.replaced(_falls=False, _levels=xp.concat([xp.minimum(before, last), last], axis=1))

        return self.remember("rising", make)

    def cdf_at(self, t: Array) -> Array:
        return Polyline.cdf_at(self._rising(), t)

    def icdf_at(self, p: Array) -> Array:
        return self.xp.where(p < 1, Polyline.icdf_at(self._rising(), p), self.isf_at(0 * p))

    def logsf_at(self, t: Array) -> Array:
        beyond = self._log_p[:, -1:] - decay(self.rate(), self._excess(t))
        return self.xp.where(t > self._last, beyond, safe_log(self.sf_at(t)))

    def logpdf_at(self, t: Array) -> Array:
        xp, rate, bin_, beyond = self.xp, self.rate(), self._knots_passed(t, "left"), t > self._last
        start, _, stop, _ = self._segment(bin_)
        width = xp.where(beyond, xp.ones_like(start), stop - start)
        log_density = xp.where(beyond, safe_log(rate) - decay(rate, self._excess(t)), -xp.log(width))
        return take_along(self._log_p, bin_) + log_density


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
        product = rate * xp.where(endless, 0.0, excess)
    gone = endless & ((rate > 0) | (not left))
    return xp.where(gone, np.inf, product)
