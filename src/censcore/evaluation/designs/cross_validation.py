"""Folds: every model is fitted once per fold, and losses are of the subjects that the fold left out."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from censcore._arrays import to_numpy
from censcore.evaluation.designs.fixed import Design, at_times
from censcore.evaluation.designs.fold_runs import FoldRuns, Split
from censcore.evaluation.inference.estimates import Estimate
from censcore.evaluation.inference.mean_losses import Losses, Means, Scope, Subset, shares_of
from censcore.evaluation.inference.pooling import average
from censcore.evaluation.inference.resolved_censoring import ResolvedCensoring
from censcore.evaluation.inference.units import Units, sums_within
from censcore.evaluation.lines import Line
from censcore.evaluation.measures.case_scores import CaseScore
from censcore.evaluation.measures.discrimination import Discrimination, discriminate
from censcore.evaluation.measures.joint_scores import View

if TYPE_CHECKING:
    from censcore.evaluation.comparison import Comparison

HALF = 0.5  # the origin of sums, so that a forecast without any ranking has exactly this share of pairs
REFITS = "refits of models"  # the block of their contributions
CONDITIONAL = "for the models as fitted in the folds"
CONSERVATIVE = "conservative: the models of the folds were fitted to each other's test subjects"


def averaged(repeats: Sequence[Comparison], splits: Sequence[Split]) -> tuple[Losses, Means]:
    """Losses and means of all repeats, averaged; every repeat scores the same subjects.

    Influences gain those of the refits, where there are repeats to learn them from:
    :func:`refit_influence`.
    """
    first = repeats[0]
    unavailable = {key: why for r in repeats for key, why in r.losses.unavailable.items()}
    known = [key for key in first.losses.values if key not in unavailable]
    every = {key: np.stack([r.losses.values[key] for r in repeats]) for key in known}
    case = first.design.case(first)
    counted = {score.name: score.counted(case) for score in first.losses.scores}
    means = {}
    for s, model, score in first.means.values:
        if (model, score) in every:
            mean = _mean([r.means.values[s, model, score] for r in repeats])
            weight = shares_of(first.subsets[s].weight[:, None], counted[score])[:, 0]
            more = refit_influence(every[model, score], weight, first.groups, splits)
            means[s, model, score] = mean.with_contributions(more, REFITS)
    term = "with" if len(repeats) > 1 else "without"
    method = f"{first.means.method}; {CONDITIONAL}, {term} the term of the refits"
    losses = {key: values.mean(axis=0) for key, values in every.items()}
    return Losses(losses, unavailable, first.losses.scores), replace(first.means, values=means, method=method)


def _mean(estimates: Sequence[Estimate]) -> Estimate:
    return average(estimates, [1 / len(estimates)] * len(estimates))


@dataclass(frozen=True, eq=False)
class CrossValidation(Design):
    """Losses, means and their errors are averages over repeats, subject by subject.

    Concordance and AUC are taken within folds, since forecasts of different fits do not rank subjects on one
    scale, and averaged. Pictures of single forecasts (calibration) show those of the first repeat.
    """

    splits: list[Split]
    repeats: list[Comparison]
    tested: np.ndarray  #: numbers of the subjects that are scored
    runs: FoldRuns
    unit: np.ndarray  #: numbers of the units of all subjects

    calibration_note = CONSERVATIVE

    def settings(self, of: Comparison) -> dict[str, Any]:
        """And the folds."""
        count = len(self.splits) // len(self.repeats)
        folds = f"{count} folds" + (f", {len(self.repeats)} repeats" if len(self.repeats) > 1 else "")
        return {**super().settings(of), "cross-validation": folds}

    def fold_lines(self, of: Comparison) -> list[Line]:
        """The lines of ``comparison.folds()``, without pandas."""
        lines: list[Line] = []
        weight, event = of.subsets[0].weight, to_numpy(of.outcome.event)
        for number, split in enumerate(self.splits):
            rows, losses = self._rows(split), self.repeats[split.repeat].losses.values
            about: Line = {"repeat": split.repeat + 1, "fold": split.fold + 1, "train": len(split.train)}
            about |= {"subjects": len(rows), "events": int(event[rows].sum())}
            w = weight[rows]
            for score in of.scores:
                for j, at in enumerate(self.places(of, score)):
                    for model in of.models:
                        values, mean = losses.get((model, score.name)), np.nan
                        if values is not None and w.any():
                            mean = float(w[w > 0] @ values[rows][w > 0, j] / w.sum())
                        line = {"score": score.name, "at": float(at), "model": model, "mean": mean}
                        lines.append(about | line | {"seconds": self.runs.seconds[model, number]})
        return lines

    def _rows(self, split: Split) -> np.ndarray:
        """The test subjects of a fold among those who are scored."""
        return np.searchsorted(self.tested, split.test)

    def curve(
        self, of: Comparison, score: CaseScore, times: np.ndarray | None, levels: np.ndarray | None
    ) -> dict[str, Estimate]:
        """Averaged over repeats."""
        curves = [repeat.curve(score, times=times, levels=levels) for repeat in self.repeats]
        shared = [model for model in curves[0] if all(model in each for each in curves)]
        return {model: _mean([each[model] for each in curves]) for model in shared}

    def part(self, of: Comparison, view: View) -> Comparison:
        """One view, cross-validated as well: its pairs are ranked within folds."""
        design = replace(self, repeats=[repeat.of(view.name) for repeat in self.repeats])
        return replace(super().part(of, view), design=design)

    # ---- concordance and AUC -----------------------------------------------------------------------

    def pair_measures(self, of: Comparison) -> Discrimination:
        """Concordance and AUC of pairs within folds, averaged over folds by their weight."""
        folds = [self._ranked_in(of, split) for split in self.splits]
        together = Discrimination(folds[0].ranked.measures)
        for key in product(range(len(of.subsets)), of.models, range(len(together.measures))):
            used = [fold for fold in folds if fold.share[key[0]] > 0]
            missing = next((fold for fold in used if key in fold.ranked.unavailable), None)
            if missing is None:
                shares = [fold.share[key[0]] for fold in used]
                together.values[key] = _about_half([fold.ranked.values[key] for fold in used], shares)
            else:
                together.unavailable[key] = f"{missing.split.name}: {missing.ranked.unavailable[key]}"
        return together

    def ranked_at(self, of: Comparison, times: np.ndarray) -> Discrimination:
        """Concordance, and AUC at other times."""
        return replace(self, repeats=[at_times(repeat, times) for repeat in self.repeats]).pair_measures(of)

    def _ranked_in(self, of: Comparison, split: Split) -> _RankedFold:
        """Concordance and AUC of the pairs of one fold."""
        base, rows = self.repeats[split.repeat], self._rows(split)
        cases = {model: case.ungrouped(rows) for model, case in base.cases.items()}
        weights = [subset.weight[rows] for subset in of.subsets]
        shares = [float(w.sum()) / len(self.repeats) for w in weights]
        used = [s for s, w in enumerate(weights) if w.any()]
        of_fold = base.resolved_censoring.parts[split.fold : split.fold + 1]
        parts = [replace(part, subjects=np.arange(len(rows))) for part in of_fold]
        censoring = ResolvedCensoring(next(iter(cases.values())).C, "", bool(parts), parts=parts)
        subsets = [Subset("", "", weights[s] / weights[s].sum()) for s in used]
        own, scored = np.unique(self.unit[split.test], return_inverse=True)
        unit = np.concatenate([own, self.unit])  # a training subject is one by itself, until folds are pooled
        units = Units(scored, np.arange(len(own), len(unit)), len(unit))
        ranked = discriminate(cases, Scope(subsets, censoring, units))
        ranked = replace(
            ranked,
            values={(used[s], m, k): mean.renumbered(unit) for (s, m, k), mean in ranked.values.items()},
            unavailable={(used[s], m, k): why for (s, m, k), why in ranked.unavailable.items()},
        )
        return _RankedFold(split, shares, ranked)


def _about_half(estimates: Sequence[Estimate], shares: Sequence[float]) -> Estimate:
    """Average shares of pairs; a subject contributes as one of a pair, and as a training subject."""
    differences = [replace(estimate, value=estimate.value - HALF) for estimate in estimates]
    pooled = average(differences, shares)
    return replace(pooled, value=pooled.value + HALF)


class _RankedFold(NamedTuple):
    """Measures of one fold, and the share of its subjects in every subset."""

    split: Split
    share: list[float]
    ranked: Discrimination


def refit_influence(
    losses: np.ndarray, weight: np.ndarray, groups: np.ndarray | None, splits: Sequence[Split]
) -> np.ndarray:
    r"""Influences (m, q) of the refits on a mean of losses (B, n, q), none without repeats.

    ``weight`` (n,) has the sum one; ``groups`` (n,) are subjects that stay together in all folds.

    A loss depends on its subject i and, a little, on every training subject j of its fold. With the expected
    loss :math:`R_k` of the model :math:`\hat F_k` that was fitted to :math:`D_k`, up to the second order

    .. math:: \ell_i-R_{k(i)}=g_i+\frac1{|D|}\sum_{j\in D_{k(i)}}\varphi_{ij},\qquad
        \mathrm E(\varphi_{ij}\mid i)=\mathrm E(\varphi_{ij}\mid j)=0.

    Two subjects of different folds train each other's model, so that the error of the mean,
    :math:`\bar\ell-R`, holds :math:`\varphi_{ij}+\varphi_{ji}`. The spread of the losses over subjects holds
    the squares :math:`\varphi_{ij}^2`, not the products :math:`\varphi_{ij}\varphi_{ji}`. These do not matter
    where :math:`g_i` varies, as in means and in differences of unlike models. The losses of two models that
    estimate the same thing differ by :math:`\varphi` alone. Where a model is fitted by a criterion like the
    score, :math:`\varphi` is symmetric, and the spread misses half of the variance.

    In B repeats with other folds, subject i has other training subjects: with the share p of pairs in
    different folds,

    .. math:: W=\frac1{n^2}\sum_i\widehat{\mathrm{var}}_b(\ell_i^{(b)})
        \quad\text{estimates}\quad\frac{p(1-p)}{n^2|D|^2}\sum_{i\ne j}\varphi_{ij}^2,

    and by Cauchy and Schwarz what is missing is at most :math:`\{p/(1-p)+1/B\}\,W`, which is what it is for a
    symmetric :math:`\varphi`. The influences below have this sum of squares. They are linear in the losses,
    so that differences and skills of models have theirs.

    References
    ----------
    .. [1] Bayle, P., Bayle, A., Janson, L. and Mackey, L. (2020). Cross-validation confidence intervals for
       test error. Advances in Neural Information Processing Systems 33.
    .. [2] Efron, B. and Stein, C. (1981). The jackknife estimate of variance. Annals of Statistics 9,
       586-596.
    """
    B, _, q = losses.shape
    together = _in_one_fold(splits, B)
    if B == 1 or together == 0:  # the training subjects are the same in all repeats
        return np.zeros((0, q))
    change = np.einsum("cb,bnq->cnq", _contrasts(B), losses) * weight[:, None]
    if groups is not None:
        change = np.stack([sums_within(each, groups, int(groups.max()) + 1) for each in change])
    factor = (1 - together) / together + 1 / B  # p / (1 - p) + 1 / B
    return np.sqrt(factor / (B - 1)) * change.reshape(-1, q)


def _in_one_fold(splits: Sequence[Split], repeats: int) -> float:
    """The share of pairs of subjects that are in one fold, 1 - p."""
    size = [np.array([len(split.test) for split in splits if split.repeat == b]) for b in range(repeats)]
    return float(np.mean([(m * (m - 1)).sum() / (m.sum() * max(m.sum() - 1, 1)) for m in size]))


def _contrasts(B: int) -> np.ndarray:
    """Orthonormal contrasts of B repeats, (B - 1, B): their squares sum to those of the deviations."""
    i = np.arange(1, B)[:, None]
    j = np.arange(B)[None, :]
    return np.where(j < i, 1.0, np.where(j == i, -i, 0.0)) / np.sqrt(i * (i + 1))
