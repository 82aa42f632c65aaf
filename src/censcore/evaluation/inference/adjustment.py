"""p-values and intervals that hold for all differences of a family together."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from censcore._validation import check_option
from censcore.evaluation.inference.estimates import Differences, Estimate, beside

DRAWS = 20_000  # of the joint distribution of test statistics
MANY = 300  # pairs, from which on the means of models are drawn in place of their differences
BLOCK = 256  # draws that stay in the cache


@dataclass(frozen=True, eq=False)
class Adjusted:
    """p-values of a family, and the confidence of each interval with which all hold together."""

    p_value: np.ndarray
    confidence: float


def adjust(estimates: Sequence[Estimate], method: str, confidence: float, seed: int = 0) -> Adjusted:
    """p-values of "the value is zero" that hold for all columns of all estimates together.

    ``"max-t"`` uses the joint distribution of the test statistics, whose correlations follow from the
    influences: every p-value is turned into the normal quantile that belongs to it, so that statistics with
    different degrees of freedom are comparable, and is compared with the largest of jointly normal ones, of
    which 20,000 are drawn: the standard error of an adjusted p-value of 0.05 is 0.0015.
    ``"holm"`` needs no joint distribution and is a little more cautious; ``"none"`` leaves each alone.

    References
    ----------
    .. [1] Hothorn, T., Bretz, F. and Westfall, P. (2008). Simultaneous inference in general parametric
       models. Biometrical Journal 50, 346-363.
    .. [2] Holm, S. (1979). A simple sequentially rejective multiple test procedure. Scandinavian Journal of
       Statistics 6, 65-70.
    """
    check_option(method, "adjustment", ("max-t", "holm", "none"))
    every = estimates[0] if len(estimates) == 1 else beside(estimates)
    p = every.p_value
    family = int((~np.isnan(p)).sum())
    if method == "none":
        return Adjusted(p, confidence)
    if method == "holm":
        return Adjusted(_holm(p), 1 - (1 - confidence) / max(family, 1))
    if family < 2:
        return Adjusted(p, confidence)
    return _max_t(every, p, confidence, seed)


def _max_t(every: Estimate, p: np.ndarray, confidence: float, seed: int) -> Adjusted:
    from scipy.special import ndtr, ndtri

    known = ~np.isnan(p)
    which = np.nonzero(known)[0]
    if isinstance(every, Differences) and len(which) > MANY:
        largest = np.sort(_largest_gaps(every, which, seed))
    else:
        largest = np.sort(_largest(every.unit(which), seed))
    z = -ndtri(np.where(known, p, 1.0) / 2)
    exceeded = (len(largest) - np.searchsorted(largest, z, side="left") + 1) / (len(largest) + 1)
    # the simulation cannot resolve what is rarer than its draws; the sum over the family bounds it
    bounded = np.minimum(exceeded, np.minimum(known.sum() * p, 1.0))
    together = np.where(known, np.maximum(bounded, p), np.nan)
    each = 1 - 2 * ndtr(-np.quantile(largest, confidence))
    return Adjusted(together, float(max(each, confidence)))


def _largest(unit: np.ndarray, seed: int) -> np.ndarray:
    """Draws of the largest absolute value of statistics whose correlations are products of columns."""
    statistics = square_root(unit.T @ unit) @ _normal_draws(unit.shape[1], seed).T
    return np.abs(statistics, out=statistics).max(axis=0)


def _largest_gaps(every: Differences, which: np.ndarray, seed: int) -> np.ndarray:
    """The same for all pairs of k models in k^2 operations a draw, from draws of the k means."""
    k = every.root.shape[1]
    precision = np.zeros((k, k, 1))  # of each difference; zero for one without a test
    precision[tuple(every.pairs[:, which])] = 1 / every.standard_error[which, None]
    means = _normal_draws(k, seed) @ square_root(every.root.T @ every.root)
    largest = np.zeros(DRAWS)
    for start in range(0, DRAWS, BLOCK):
        of_draw, most = means[start : start + BLOCK].T.copy(), largest[start : start + BLOCK]
        for a in range(k - 1):
            gaps = np.abs(of_draw[a + 1 :] - of_draw[a]) * precision[a, a + 1 :]
            np.maximum(most, gaps.max(axis=0), out=most)
    return largest


def square_root(covariance: np.ndarray) -> np.ndarray:
    """Return the symmetric root of a covariance matrix, which moves little where the matrix moves little.

    So draws, and p-values, are the same on every processor, though eigenvectors are not. Eigenvalues that are
    zero up to rounding, as those of linear dependence, have the root zero and not that of the rounding.
    """
    values, vectors = np.linalg.eigh(covariance)
    varies = values > 1e-10 * values.max(initial=0.0)
    root: np.ndarray = vectors * np.sqrt(np.where(varies, values, 0.0)) @ vectors.T
    return root


@lru_cache(maxsize=8)
def _normal_draws(columns: int, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((DRAWS, columns))


def _holm(p: np.ndarray) -> np.ndarray:
    adjusted = np.full_like(p, np.nan)
    known = np.nonzero(~np.isnan(p))[0]
    order = known[np.argsort(p[known])]
    steps = p[order] * (len(order) - np.arange(len(order)))
    adjusted[order] = np.minimum(np.maximum.accumulate(steps), 1.0) if len(order) else steps
    return adjusted
