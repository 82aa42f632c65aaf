r"""Sums over the subjects in cells of the observed times; of Brier losses, without the losses where it can be.

The Brier loss at s is :math:`F(s)^2` before the observed time y, and :math:`\delta\,G(s)\{1-F(s)\}^2/G(y-)` from
it on. Where G is the same for all subjects, sums of :math:`F^2` and :math:`(1-F)^2` are all that is needed of
those with y between the same two edges or middles of cells. They are quadratic in the levels of curves with
common times, and jump where step functions do.
"""

from __future__ import annotations

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Step, Univariate
from censcore.distributions.piecewise_linear import Polyline
from censcore.distributions.step import ByStep
from censcore.scores.inputs import ScoringInputs


def sums_at(first: np.ndarray, weight: np.ndarray, values: np.ndarray, J: int) -> np.ndarray:
    """Sums of ``values`` (n, q) under weights (n, m) over subjects with the same ``first``, (m, J + 1, q).

    ``first`` is the first of J ascending times that a subject counts for, J for none. Infinite values, whose
    mean has no error, are left out.
    """
    from scipy.sparse import csc_array

    n, m = weight.shape
    sums = np.empty((m, J + 1, values.shape[1]))
    for j, column in enumerate(weight.T):
        sums[j] = csc_array((column, first, np.arange(n + 1)), shape=(J + 1, n)) @ values
    if np.isfinite(sums).all():
        return sums
    return sums_at(first, weight, np.where(np.isfinite(values), values, 0.0), J)


def brier_sums(
    inputs: ScoringInputs, weight: np.ndarray, edges: np.ndarray, middle: np.ndarray
) -> np.ndarray | None:
    """Localized Brier losses summed by the edge that reaches y, (m, cells + 2, cells).

    None where there are many curves for few sums.
    """
    squares = None if len(inputs.C) > 1 or inputs.y.entry is not None else _squares_of(inputs.F, middle)
    if squares is None:
        return None
    known = inputs.known_at(inputs.xp.asarray(middle[None, :], dtype=inputs.time.dtype))
    grid = np.sort(np.concatenate([edges, middle]))  # in turns
    place, G = np.searchsorted(grid, to_numpy(inputs.y.time)), to_numpy(known.factors()[2])
    seen, never = weight * to_numpy(known.seen)[:, None], to_numpy(inputs.never)
    after = squares.sums(place, np.where(never, 0.0, seen), len(grid), cdf=False)
    if inputs.has_never:
        after += squares.sums(place, np.where(never, seen, 0.0), len(grid), cdf=True)
    followed = np.arange(len(grid) + 1)[:, None] > np.searchsorted(grid, middle)
    losses = np.where(followed, squares.sums(place, weight, len(grid), cdf=True), G * after)
    return np.add.reduceat(losses, [0, *range(1, len(grid) + 1, 2)], axis=1)


def _squares_of(F: Univariate, s: np.ndarray) -> _OfLevels | _OfJumps | None:
    if len(F) == 1:
        return _OfLevels(to_numpy(F._sf(F._xp.asarray(s[None, :], dtype=F._reference.dtype))), np.eye(len(s)))
    F = F._step() if isinstance(F, ByStep) else F
    if isinstance(F, Step) and F._times.shape[0] > 1:
        times, sf = map(to_numpy, F._steps())
        return _OfJumps(np.searchsorted(s, times), sf, len(s)) if times.shape[1] <= len(s) else None
    if not isinstance(F, Step | Polyline) or F._times.shape[0] > 1:
        return None
    times = np.concatenate([[0.0], to_numpy(F._times)[0], [np.inf]])
    if isinstance(F, Polyline) and F._degree is None and s[-1] > times[-2]:
        return None
    at, which = np.searchsorted(times[1:], s, side="right"), np.arange(len(s))
    share = np.zeros(len(s))
    if isinstance(F, Polyline):
        share = (s - times[at]) / (times[at + 1] - times[at])
    mix = np.zeros((len(times), len(s)))
    mix[at, which], mix[at + 1, which] = 1 - share, share
    used = mix.any(axis=1)
    if used.sum() > len(s):
        return None
    return _OfLevels(to_numpy(F._as_sf(F._padded(F._levels, F._start, front=True)))[:, used[:-1]], mix[used])


class _OfLevels:
    """Of curves S = L M with levels L (1 or n, K), of which a column of M (K, q) mixes one or two in a row."""

    def __init__(self, levels: np.ndarray, mix: np.ndarray) -> None:
        self.levels, self.squares, self.products = levels, mix**2, 2 * mix[:-1] * mix[1:]

    def sums(self, place: np.ndarray, weight: np.ndarray, J: int, cdf: bool) -> np.ndarray:
        """Sums of F² or S² under weights (n, m) by place, (m, J + 1, q)."""
        L = 1 - self.levels if cdf else self.levels
        if len(L) == 1:
            return sums_at(place, weight, np.ones((len(place), 1)), J) @ (L**2 @ self.squares)
        sums = sums_at(place, weight, L * L, J) @ self.squares
        if self.products.any():
            sums += sums_at(place, weight, L[:, :-1] * L[:, 1:], J) @ self.products
        return sums


class _OfJumps:
    """Of step functions with jumps of their own, at the places ``at`` (n, K) among q times."""

    def __init__(self, at: np.ndarray, sf: np.ndarray, q: int) -> None:
        self.at, self.sf, self.q = at, sf, q

    def sums(self, place: np.ndarray, weight: np.ndarray, J: int, cdf: bool) -> np.ndarray:
        """Sums of F² or S² under weights (n, m) by place, (m, J + 1, q)."""
        shape, start = (J + 1, self.q + 1), 0.0 if cdf else 1.0
        jumps = np.diff((1 - self.sf if cdf else self.sf) ** 2, axis=1, prepend=start)
        cell = (shape[1] * place[:, None] + self.at).ravel()
        sums = np.empty((weight.shape[1], J + 1, self.q))
        for j, w in enumerate(weight.T):
            by_cell = np.bincount(cell, (w[:, None] * jumps).ravel(), minlength=shape[0] * shape[1])
            by_cell = by_cell.reshape(shape)
            by_cell[:, 0] += start * np.bincount(place, w, minlength=J + 1)
            sums[j] = np.cumsum(by_cell[:, :-1], axis=1)
        return sums
