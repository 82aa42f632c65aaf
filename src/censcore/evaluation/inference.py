"""From losses per row to means, intervals and tests.

Every mean of losses is kept together with its *influence*: a vector whose sum of squares is the variance of
the mean. It has one entry per independent row (or group of rows), and further entries for whatever else was
estimated, the law of C. Differences and skills are smooth functions of means, so that their influence is a
linear combination, and one formula gives every standard error.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.exceptions import InvalidInputError

__all__ = ["Estimate", "adjust", "group_codes", "normal_interval", "row_influence", "shares"]

DRAWS = 20_000  # of the joint law of test statistics, for simultaneous inference


@dataclass(frozen=True)
class Estimate:
    """An estimate and the vector whose sum of squares is its variance.

    Parameters
    ----------
    value : array, (q,)
        One number per column.
    influence : array, (m, q)
        Contributions of what is independent of each other.
    """

    value: np.ndarray
    influence: np.ndarray

    @property
    def standard_error(self) -> np.ndarray:
        """Square root of the sum of squares, (q,); NaN where a loss is infinite."""
        return np.sqrt(np.einsum("mq,mq->q", self.influence, self.influence))

    def __sub__(self, other: Estimate) -> Estimate:
        return Estimate(_minus(self.value, other.value), _minus(self.influence, other.influence))

    def skill(self, reference: Estimate) -> Estimate:
        """1 - value / reference, by the delta method."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = self.value / reference.value
            slope = -(self.influence - ratio * reference.influence) / reference.value
        # against itself nothing is uncertain
        return Estimate(1 - ratio, slope)


def _minus(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # infinity minus infinity is unknown, and says so
        return a - b


def shares(sample_weight: Any, n: int) -> np.ndarray:
    """Weights of n rows that sum to one."""
    if sample_weight is None:
        return np.full(n, 1 / n)
    weight = to_numpy(sample_weight).astype(np.float64)
    if weight.shape != (n,) or not (weight >= 0).all() or not np.isfinite(weight).all() or not weight.any():
        raise InvalidInputError(
            f"sample_weight must hold {n} finite, non-negative weights, not all zero; an array of shape "
            f"{weight.shape} came."
        )
    return weight / weight.sum()


def group_codes(groups: Any, n: int) -> np.ndarray | None:
    """Labels of any kind as numbers from 0, one per row."""
    if groups is None:
        return None
    labels = to_numpy(groups)
    if labels.shape != (n,):
        raise InvalidInputError(f"groups must have one label per row, ({n},); {labels.shape} came.")
    return np.unique(labels, return_inverse=True)[1].reshape(-1)


def row_influence(
    losses: np.ndarray, weight: np.ndarray, groups: np.ndarray | None = None, added: np.ndarray | None = None
) -> Estimate:
    r"""The weighted mean of losses (n, q) and what every row contributes to its error.

    .. math:: \bar\ell=\sum_i w_i\ell_i,\qquad
        \psi_i=\sqrt{g/(g-1)}\,\{w_i(\ell_i-\bar\ell)+\xi_i\}

    summed within each of g groups; :math:`\xi` (``added``, (n, q)) is what the row moves by being one of
    those that the law of C was estimated from.
    """
    used = weight > 0
    with np.errstate(invalid="ignore"):
        mean = weight[used] @ losses[used]
        influence = np.where(used[:, None], weight[:, None] * (losses - mean), 0.0)
    if added is not None:
        influence = influence + added
    if groups is None:
        influence = influence[used] if added is None else influence
    else:
        influence = sum_by_group(influence, groups)
        influence = influence[np.bincount(groups, used if added is None else None) > 0]
    g = len(influence)
    inflation = np.sqrt(g / (g - 1)) if g > 1 else np.nan
    return Estimate(mean, inflation * influence)


def sum_by_group(values: np.ndarray, groups: np.ndarray) -> np.ndarray:
    """Sums of the rows (n, q) of each group."""
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(groups.max() + 1))
    return np.add.reduceat(values[order], starts, axis=0)


def normal_interval(value: np.ndarray, error: np.ndarray, confidence: float) -> tuple[np.ndarray, np.ndarray]:
    """Normal interval around each value."""
    from scipy.special import ndtri

    z = ndtri(0.5 + confidence / 2)
    with np.errstate(invalid="ignore"):
        return value - z * error, value + z * error


def two_sided(z: np.ndarray) -> np.ndarray:
    """P(|Z| >= |z|) for a standard normal Z."""
    from scipy.special import ndtr

    return 2 * ndtr(-np.abs(z))


@dataclass(frozen=True)
class Adjusted:
    """p-values of a family of comparisons, and the critical value of simultaneous intervals."""

    p_value: np.ndarray
    critical: float


def adjust(estimates: Sequence[Estimate], method: str, confidence: float, seed: int = 0) -> Adjusted:
    """p-values of "the value is zero" that hold for all estimates (of one column each) together.

    ``"max-t"`` uses the joint normal law of the test statistics, whose correlations follow from the
    influences; ``"holm"`` needs no joint law and is a little more cautious; ``"none"`` leaves each alone.
    """
    from scipy.special import ndtri

    value = np.array([e.value[0] for e in estimates])
    error = np.array([e.standard_error[0] for e in estimates])
    with np.errstate(divide="ignore", invalid="ignore"):
        z = np.where(error > 0, value / error, np.where(value == 0, 0.0, np.inf * np.sign(value)))
    z = np.where(np.isnan(value) | np.isnan(error), np.nan, z)
    known = np.isfinite(value) & (error > 0)
    family = int(known.sum())
    if method == "none":
        return Adjusted(two_sided(z), float(ndtri(0.5 + confidence / 2)))
    if method == "holm":
        return Adjusted(_holm(two_sided(z)), float(ndtri(1 - (1 - confidence) / (2 * max(family, 1)))))
    if method != "max-t":
        raise InvalidInputError(f"adjust must be 'max-t', 'holm' or 'none'; {method!r} came.")
    if not family:
        return Adjusted(two_sided(z), float(ndtri(0.5 + confidence / 2)))
    columns = np.column_stack([e.influence[:, 0] for e, use in zip(estimates, known, strict=True) if use])
    largest = np.sort(_largest_statistics(columns / error[known], seed))
    exceeded = (len(largest) - np.searchsorted(largest, np.abs(z), side="left") + 1) / (len(largest) + 1)
    # the simulation cannot resolve what is rarer than its draws; the sum over the family bounds it
    bounded = np.minimum(exceeded, np.minimum(family * two_sided(z), 1.0))
    p = np.where(np.isnan(z), np.nan, np.maximum(bounded, two_sided(z)))
    return Adjusted(p, float(np.quantile(largest, confidence)))


def _largest_statistics(unit: np.ndarray, seed: int) -> np.ndarray:
    """Draws of the largest absolute test statistic, for columns (m, p) of length one."""
    values, vectors = np.linalg.eigh(unit.T @ unit)
    some = values > 1e-10 * values[-1]  # differences of k models vary in k - 1 directions
    root = vectors[:, some] * np.sqrt(values[some])
    return np.abs(_normal_draws(root.shape[1], seed) @ root.T).max(axis=1)


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
