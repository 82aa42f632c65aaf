r"""Sums over subjects in cells of the observed times; of Brier losses, without the losses where it can be.

At s the loss is :math:`F(s)^2` before the observed time y, and :math:`\delta\,G(s)S(s)^2/G(y-)` from it on.
If G is the same for all subjects, sums of :math:`F^2` and :math:`S^2` are all that is needed of those with y
between the same edges or middles of cells. They are quadratic in the levels of curves with common times, and
jump where step functions do.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Step, Univariate
from censcore.distributions.univariate.piecewise_linear import Polyline
from censcore.distributions.univariate.step import ByStep
from censcore.scores.inputs.scoring_inputs import ScoringInputs

#: Sums by place of F² (where true) or S² under weights (n, m), (m, J + 1, q).
Squares = Callable[[np.ndarray, bool], np.ndarray]


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
    """Brier losses by the edge that reaches y, (m, cells + 2, cells); None where there is no short way."""
    grid = np.sort(np.concatenate([edges, middle]))  # in turns
    place = np.searchsorted(grid, to_numpy(inputs.y.time))
    squares = _squares_of(inputs.F, middle, place, len(grid))
    if squares is None or len(inputs.C) > 1 or inputs.y.entry is not None:
        return None
    known = inputs.known_at(inputs.xp.asarray(middle[None, :], dtype=inputs.time.dtype))
    seen, never = weight * to_numpy(known.seen)[:, None], to_numpy(inputs.never)
    after = squares(np.where(never, 0.0, seen), False)
    if inputs.has_never:
        after += squares(np.where(never, seen, 0.0), True)
    followed = np.arange(len(grid) + 1)[:, None] > np.searchsorted(grid, middle)
    losses = np.where(followed, squares(weight, True), to_numpy(known.factors()[2]) * after)
    return np.add.reduceat(losses, [0, *range(1, len(grid) + 1, 2)], axis=1)


def _squares_of(F: Univariate, s: np.ndarray, place: np.ndarray, J: int) -> Squares | None:
    """At times s, (q,); None where that takes more than half the numbers of the losses."""
    q = len(s)
    if len(F) == 1:
        at = F.xp.asarray(s[None, :], dtype=F.reference.dtype)
        return _of_levels(to_numpy(F.sf_at(at)), np.eye(q), place, J)
    F = F.as_step() if isinstance(F, ByStep) else F
    if isinstance(F, Step) and F.breaks().shape[0] > 1:
        times, sf = map(to_numpy, F.steps())
        return _of_jumps(np.searchsorted(s, times), sf, q, place, J) if times.shape[1] <= q else None
    if not isinstance(F, Step | Polyline) or F.breaks().shape[0] > 1:
        return None
    times = np.concatenate([[0.0], to_numpy(F.breaks())[0], [np.inf]])
    begin, mix = np.searchsorted(times[1:], s, side="right"), np.zeros((len(times), q))
    share = np.zeros(q) if isinstance(F, Step) else (s - times[begin]) / (times[begin + 1] - times[begin])
    mix[begin, np.arange(q)], mix[begin + 1, np.arange(q)] = 1 - share, share
    used: np.ndarray = np.any(mix, axis=1)
    if 2 * used.sum() > q or (s[-1] > times[-2] and F.form == "smooth"):
        return None
    levels = to_numpy((F.steps() if isinstance(F, Step) else F.knots())[1])
    levels = np.concatenate([np.ones_like(levels[:, :1]), levels], axis=1)
    return _of_levels(levels[:, used[:-1]], mix[used], place, J)


def _of_levels(levels: np.ndarray, mix: np.ndarray, place: np.ndarray, J: int) -> Squares:
    """Of curves S = L M with levels L (1 or n, K), of which a column of M (K, q) mixes two neighbours."""
    squares, products = mix**2, 2 * mix[:-1] * mix[1:]

    def sums(weight: np.ndarray, cdf: bool) -> np.ndarray:
        L = 1 - levels if cdf else levels
        if len(L) == 1:
            return sums_at(place, weight, np.ones((len(place), 1)), J) @ (L**2 @ squares)
        alone = sums_at(place, weight, L * L, J) @ squares
        return alone + sums_at(place, weight, L[:, :-1] * L[:, 1:], J) @ products if products.any() else alone

    return sums


def _of_jumps(at: np.ndarray, sf: np.ndarray, q: int, place: np.ndarray, J: int) -> Squares:
    """Of step functions with jumps of their own, at the places ``at`` (n, K) among q times."""
    cell, cells = ((q + 1) * place[:, None] + at).ravel(), (J + 1) * (q + 1)

    def sums(weight: np.ndarray, cdf: bool) -> np.ndarray:
        first = sums_at(place, weight, np.full((len(place), 1), 1.0 - cdf), J)
        jumps = np.diff((1 - sf if cdf else sf) ** 2, axis=1, prepend=1.0 - cdf)
        later = [np.bincount(cell, (w[:, None] * jumps).ravel(), cells) for w in weight.T]
        return first + np.cumsum(np.reshape(later, (-1, J + 1, q + 1))[:, :, :-1], axis=2)

    return sums
