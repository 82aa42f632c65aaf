"""Folds and bootstrap samples in a comparison: what is taken within them, and their lines."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from censcore._arrays import to_numpy
from censcore.evaluation.inference.estimates import Estimate
from censcore.evaluation.inference.mean_losses import Scope
from censcore.evaluation.inference.pooling import average
from censcore.evaluation.inference.resolved_censoring import ResolvedCensoring
from censcore.evaluation.inference.units import Units
from censcore.evaluation.lines import Line
from censcore.evaluation.measures.discrimination import Discrimination, discriminate
from censcore.evaluation.parts.folds import FoldRuns, Split

if TYPE_CHECKING:
    from censcore.evaluation.comparison import Comparison
    from censcore.evaluation.evaluation import Repeat

HALF = 0.5  # the origin of sums, so that a forecast without any ranking has exactly this share of pairs
CONSERVATIVE = "conservative: the models of the folds were fitted to each other's test subjects"


@dataclass(frozen=True, eq=False)
class Folded:
    """The folds or bootstrap samples that subjects are tested in.

    Concordance and AUC are taken within folds, since forecasts of different fits do not rank subjects on one
    scale, and averaged. Pictures of single forecasts (calibration) show those of the first repeat.
    """

    producer: str  #: "folds" or "bootstrap samples"
    splits: list[Split]
    places: list[np.ndarray]  #: of the test subjects of each split among the scored ones
    runs: FoldRuns
    unit: np.ndarray  #: numbers of the units of all subjects
    about: str  #: how many there are, in words
    note: str = CONSERVATIVE  #: how p-values of calibration are to be read
    first: np.ndarray | None = None  #: where each subject is scored first, if it is more than once

    def settings(self, of: Comparison, settings: dict[str, Any]) -> dict[str, Any]:
        """Name the folds, and count every subject once."""
        if self.first is not None:
            events = int(to_numpy(of.outcome.event)[self.first].sum())
            settings |= {"subjects": len(self.first), "events": events}
        return settings | {"cross-validation": self.about}

    def lines(self, of: Comparison) -> list[Line]:
        """Make the lines of ``comparison.folds()``."""
        lines: list[Line] = []
        weight, event = of.subsets[0].weight, to_numpy(of.outcome.event)
        for number, (split, rows) in enumerate(zip(self.splits, self.places, strict=True)):
            about: Line = {"repeat": split.repeat + 1, "fold": split.fold + 1, "train": len(split.train)}
            about |= {"subjects": len(rows), "events": int(event[rows].sum())}
            w = weight[rows]
            for score in of.scores:
                for (j, at), (model, each) in product(enumerate(of.places(score)), of.evaluations.items()):
                    losses, mean = each.repeats[split.repeat].losses.get(score.name), np.nan
                    if losses is not None and w.any():
                        mean = float(w[w > 0] @ losses[rows][w > 0, j] / w.sum())
                    line = {"score": score.name, "at": float(at), "model": model, "mean": mean}
                    lines.append(about | line | {"seconds": self.runs.seconds[model, number]})
        return lines

    def pair_measures(self, of: Comparison, repeats: Sequence[Repeat]) -> Discrimination:
        """Average concordance and AUC of pairs within folds by the weight of the folds."""
        folds = [self._ranked_in(of, repeats, *each) for each in zip(self.splits, self.places, strict=True)]
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

    def _ranked_in(
        self, of: Comparison, repeats: Sequence[Repeat], split: Split, rows: np.ndarray
    ) -> _RankedFold:
        """Concordance and AUC of the pairs of one fold."""
        base = repeats[split.repeat]
        cases = {model: case.ungrouped(rows) for model, case in base.cases.items()}
        weights = [subset.weight[rows] for subset in of.subsets]
        shares = [float(w.sum()) / len(repeats) for w in weights]
        used = [s for s, w in enumerate(weights) if w.any()]
        of_fold = base.censoring.parts[split.fold : split.fold + 1]
        parts = [replace(part, subjects=np.arange(len(rows))) for part in of_fold]
        censoring = ResolvedCensoring(next(iter(cases.values())).C, "", bool(parts), parts=parts)
        own, scored = np.unique(self.unit[split.test], return_inverse=True)
        unit = np.concatenate([own, self.unit])  # a training subject is one by itself, until folds are pooled
        units = Units(scored, np.arange(len(own), len(unit)), len(unit))
        weight = np.column_stack([weights[s] / weights[s].sum() for s in used])
        ranked = discriminate(cases, Scope(weight, censoring, units))
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
