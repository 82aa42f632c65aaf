r"""Estimates of a sample from its parts: means over the subjects of all parts, and averages of estimates.

A part gives facts that add up: total weights, sums of losses, and the derivatives of these sums by every
estimate of the censoring distribution. Given the mean :math:`\bar\ell` of all parts, so do contributions,

.. math:: \psi_j=\sqrt{\frac g{g-1}}\Bigl\{\sum_{i\in j}\frac{w_i(\ell_i-\bar\ell)}{\sum_kw_k}+\xi_j\Bigr\}

for a unit j, where :math:`\xi` is the influence of those whom the censoring distribution was fitted to and g
the number of units with scored subjects; units of training subjects alone have :math:`\xi_j` without the
factor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import reduce
from itertools import pairwise
from operator import add

import numpy as np

from censcore.evaluation.inference.censoring_influence import Part
from censcore.evaluation.inference.estimates import UNITS, Estimate, Rows
from censcore.evaluation.inference.units import Units, sums_within
from censcore.evaluation.measures.case import Case
from censcore.evaluation.measures.case_scores import CaseScore

Scores = dict[str, CaseScore]


@dataclass(frozen=True, eq=False)
class ScoredPart:
    """Some scored subjects of a forecast."""

    case: Case
    losses: dict[str, np.ndarray]  #: (n, q), by name of the score
    rows: np.ndarray | slice  #: their numbers in the sample; a slice where they are all of them

    def weight(self, score: CaseScore, weight: np.ndarray) -> np.ndarray:
        """Return the weights (n, m) of the subjects who count for a score, from those of the sample."""
        counted, w = score.counted(self.case), weight[self.rows]
        return w if counted is None else np.where(counted[:, None], w, 0.0)

    def beside(self, scores: Iterable[str]) -> np.ndarray:
        """Return the losses of several scores side by side."""
        return np.concatenate([self.losses[name] for name in scores], axis=1)


@dataclass(frozen=True, eq=False)
class Facts:
    """What a part tells of mean losses before any mean is known, of m subsets and q columns of losses."""

    total: np.ndarray  #: weights of the subjects who count, (m,)
    sums: np.ndarray  #: of weighted losses, (m, q)
    derivatives: dict[tuple[int, int], np.ndarray]  #: of these sums, by estimate of C and its curve

    def __add__(self, other: Facts) -> Facts:
        both = self.derivatives | other.derivatives
        for key in self.derivatives.keys() & other.derivatives.keys():
            both[key] = self.derivatives[key] + other.derivatives[key]
        return Facts(self.total + other.total, self.sums + other.sums, both)

    @property
    def mean(self) -> np.ndarray:
        """The means, (m, q); NaN where nobody counts."""
        with np.errstate(invalid="ignore", divide="ignore"):
            return self.sums / self.total[:, None]


def facts(part: ScoredPart, scores: Scores, weight: np.ndarray, estimates: Sequence[Part] = ()) -> Facts:
    """Sum up losses of scores over the same subjects, whose weights are (n, m), and their derivatives."""
    losses, derivatives = [part.losses[name] for name in scores], {}
    for e, of in enumerate(estimates):
        here = of if isinstance(part.rows, slice) else of.among(part.rows)
        if len(here.subjects):
            for curve, A in here.derivatives([*scores.values()], losses, part.case, weight).items():
                derivatives[e, curve] = A
    return Facts(weight.sum(axis=0), weighted_sums(part.beside(scores), weight), derivatives)


def weighted_sums(values: np.ndarray, w: np.ndarray) -> np.ndarray:
    """Sum losses (n, q) under each column of weights (n, m); those of weight zero do not count."""
    if np.isfinite(values).all():
        return w.T @ values
    return np.stack([column[column > 0] @ values[column > 0] for column in w.T])


def moved_by_censoring(of: Facts, estimates: Sequence[Part], units: Units) -> np.ndarray:
    """Return the influence of those whom the censoring distribution was fitted to, by unit, (units, m, q)."""
    m, q = of.sums.shape
    xi, total = np.zeros((units.count, m, q)), np.where(of.total > 0, of.total, 1.0)[:, None]
    for e, estimate in enumerate(estimates):
        if A := {curve: values for (k, curve), values in of.derivatives.items() if k == e}:
            moved = estimate.influence(A, m, q) / total
            xi += sums_within(moved, units.trained[estimate.training], units.count)
    return xi


def estimate_by_unit(
    value: np.ndarray, psi: np.ndarray, units: Units, used: np.ndarray, everyone: np.ndarray, fitted: bool
) -> Estimate:
    """Make an estimate from contributions psi by unit, (units, q), which gain the factor of few units.

    ``used`` are the scored subjects that it is of. Where a censoring distribution was ``fitted``, its
    training subjects contribute; if some of these are scored, so does ``everyone`` with a weight in the
    whole sample.
    """
    scored = np.zeros(units.count if fitted else units.count_scored, dtype=bool)
    scored[units.scored[everyone if fitted and units.overlap else used]] = True
    there = scored.copy()
    if fitted:
        # subjects of weight zero, who train, contribute without the factor
        there[units.count_scored :] = True
        there[units.trained[psi[units.trained].any(axis=1)]] = True
    number, g = np.nonzero(there)[0], int(scored.sum())
    psi = psi.copy() if len(number) == len(psi) else psi[number]
    with np.errstate(over="ignore", invalid="ignore"):
        psi[scored[number]] *= np.sqrt(g / (g - 1)) if g > 1 else np.nan
    return Estimate(value, psi, rows={UNITS: number})


def join(
    parts: Sequence[ScoredPart],
    scores: Scores,
    weight: np.ndarray,
    estimates: Sequence[Part],
    units: Units,
) -> dict[tuple[int, str], Estimate]:
    """Estimate mean losses of a forecast over the subjects of all parts, by number of the subset and score.

    Parameters
    ----------
    parts : sequence of ScoredPart
        Every scored subject is in one of them at most.
    scores : dict of str to CaseScore
        Those that all parts have losses of.
    weight : array, (n, m)
        Weights of all scored subjects in each subset; the first is the whole sample.
    estimates : sequence of Part
        Estimates of the censoring distribution with an influence function.
    units : Units
        Of all scored subjects, and of those whom the estimates were fitted to.
    """
    joined = {}
    for alike in _alike(parts, scores):  # scores over the same subjects, side by side
        first = next(iter(alike.values()))
        made = [(part, part.beside(alike), part.weight(first, weight)) for part in parts]
        pooled = reduce(add, (facts(part, alike, w, estimates) for part, _, w in made))
        psi = moved_by_censoring(pooled, estimates, units)
        ends = np.cumsum([0] + [parts[0].losses[name].shape[1] for name in alike])
        used = np.zeros(weight.shape, dtype=bool)
        for part, losses, w in made:
            used[part.rows], own = w > 0, contributions(losses, w, pooled.total, pooled.mean)
            psi = psi + sums_within(own, units.scored[part.rows], units.count)
        for s, mean in enumerate(pooled.mean):
            every = estimate_by_unit(mean, psi[:, s], units, used[:, s], weight[:, 0] > 0, bool(estimates))
            for name, (a, b) in zip(alike, pairwise(ends), strict=True):
                alone = np.ascontiguousarray(every.influence[:, a:b])  # as a copy has it
                joined[s, name] = Estimate(every.value[a:b], alone, rows=every.rows)
    return joined


def contributions(losses: np.ndarray, weight: np.ndarray, total: np.ndarray, mean: np.ndarray) -> np.ndarray:
    """Return what subjects add to means (m, q) by their losses, (n, m, q); zero for those of weight zero."""
    w = weight[:, :, None]
    with np.errstate(all="ignore"):  # infinity less infinity, beyond all floats, and where nobody counts
        return np.where(w > 0, w / total[:, None] * (losses[:, None] - mean), 0.0)


def _alike(parts: Sequence[ScoredPart], scores: Scores) -> list[Scores]:
    """The scores whose means are over the same subjects."""
    alike: dict[bytes, Scores] = {}
    for name, score in scores.items():
        who = b""
        for part in parts:
            counted = score.counted(part.case)
            who += b"-" if counted is None else counted.tobytes()
        alike.setdefault(who, {})[name] = score
    return list(alike.values())


def average(estimates: Sequence[Estimate], shares: Sequence[float | np.ndarray]) -> Estimate:
    r"""Add up estimates, each times its share: :math:`\sum_pc_p\hat\theta_p`.

    Contributions are added by unit within each block, so that the sum of squares is the variance of the
    result, however the estimates depend on each other. Small-sample factors are in them already.

    Parameters
    ----------
    estimates : sequence of Estimate
        With the numbers of their units, which all of them share.
    shares : sequence of number or array (q,)
        Weights :math:`c_p`, which count as fixed.
    """
    rows: Rows = {}
    blocks = [(each.blocks, each.rows, share) for each, share in zip(estimates, shares, strict=True)]
    for name in dict.fromkeys(name for each in estimates for name in each.rows):
        rows[name] = np.unique(np.concatenate([own[name] for _, own, _ in blocks if name in own]))
    with np.errstate(invalid="ignore"):
        value = sum(share * each.value for each, share in zip(estimates, shares, strict=True))
        influence = [
            sum(
                sums_within(share * psi[name], np.searchsorted(number, own[name]), len(number))
                for psi, own, share in blocks
                if name in own
            )
            for name, number in rows.items()
        ]
    return Estimate(np.asarray(value), np.concatenate(influence), rows=rows)
