"""Distributions of an event that may never happen, by the density of its time."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from censcore._arrays import Array, convert, detach, to_numpy
from censcore._quadrature import ORDER, Antiderivative
from censcore.distributions._panels import merge_edges
from censcore.distributions.univariate import Univariate

__all__ = ["BySubdensity"]

_FACTOR = 4.0  # a panel in which cumulative incidences are read spans no more than this factor


class BySubdensity(Univariate):
    r"""A distribution with mass at infinity by its density, :math:`F(t)=\int_0^tf(s)\,ds`, by quadrature.

    A subclass writes ``_logpdf``, and ``_make_panel_edges``: times between which the density is smooth, up to
    where it is over.
    """

    _dense_edges: ClassVar[bool] = True  # quantiles, which take a search, add nothing to the edges
    _kept: ClassVar[frozenset[str]] = frozenset({"panel edges", "antiderivative"})

    def _density(self, t: Array) -> Array:
        """Zero at time zero, where a rate may be infinite: only empty panels have a node there."""
        xp = self._xp
        later = t > 0
        return xp.where(later, xp.exp(self._logpdf(xp.where(later, t, 1.0))), xp.zeros_like(t))

    def _edges(self) -> Array:
        """From 0 to where T is over, in panels that are short on the log scale."""
        edges = self._panel_edges()
        zero = self._xp.zeros_like(edges[:, :1])
        return merge_edges(zero, edges, convert(_between(to_numpy(edges)), edges))

    def _antiderivative(self) -> Antiderivative:
        def make() -> Antiderivative:
            edges = self._edges()
            n = len(self)
            edges = edges if edges.shape[0] == n else self._xp.broadcast_to(edges, (n, edges.shape[1]))
            return Antiderivative.of(self._density, edges, ORDER)

        return self._remember("antiderivative", make)

    def _incidence(self, t: Array) -> Array:
        """The cumulative incidence, whose limit at infinity is below one."""
        xp, integral = self._xp, self._antiderivative()
        last = integral.edges[:, -1:]
        t = xp.where(t < last, t, last)
        return xp.clip(integral(t), 0.0, 1.0)

    def _cdf(self, t: Array) -> Array:
        F = self._incidence(t)
        return self._xp.where(self._xp.isinf(t), 1.0, F)

    def _sf(self, t: Array) -> Array:
        return 1 - self._cdf(t)

    def _never(self) -> Array:
        return self._xp.full_like(self._reference.reshape(-1)[:1].reshape(1, 1), np.inf)

    def _mass_at_infinity(self) -> Array:
        return 1 - self._incidence(self._never())[:, 0]

    def _end(self) -> Array:
        """Infinite, since the event may never come."""
        return detach(self._never())


def _between(edges: np.ndarray) -> np.ndarray:
    """Times that cut the gaps between positive edges (n, p) to a factor of at most ``_FACTOR``."""
    positive = np.where(edges > 0, edges, np.inf)
    low = max(float(positive.min()), float(np.finfo(edges.dtype).tiny) * 1e4)
    high = float(edges.max())
    if not low < high:
        return np.zeros((edges.shape[0], 0), dtype=edges.dtype)
    count = int(np.ceil(np.log(high / low) / np.log(_FACTOR))) + 1
    grid = np.geomspace(low, high, min(count, 200))
    return np.broadcast_to(np.minimum(grid, edges.max(axis=1, keepdims=True)), (edges.shape[0], len(grid)))
