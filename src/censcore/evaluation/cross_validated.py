"""The result of a comparison by cross-validation."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields, replace
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.evaluation.case_scores import CaseScore
from censcore.evaluation.comparison import Comparison
from censcore.evaluation.discrimination import Discrimination, discriminate
from censcore.evaluation.fold_runs import FoldRuns
from censcore.evaluation.inference import Estimate
from censcore.evaluation.losses import Losses, Means, Subset, shares_of
from censcore.evaluation.pieces import ungrouped
from censcore.evaluation.refit_influence import refit_influence
from censcore.evaluation.resolved_censoring import ResolvedCensoring
from censcore.evaluation.splits import Split
from censcore.evaluation.tables import Line, data_frame

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.figure import Figure

__all__ = ["CrossValidated", "average"]

HALF = 0.5  # summed from here, the share of pairs of a forecast that ranks nobody is exactly this
CONDITIONAL = "for the models as fitted in the folds"
CONSERVATIVE = "conservative: the models of the folds were fitted to each other's test subjects"


def average(repeats: Sequence[Comparison], splits: Sequence[Split]) -> tuple[Losses, Means]:
    """Losses and means of all repeats, averaged; every repeat scores the same subjects.

    Influences gain those of the refits, where there are repeats to learn them from: see
    :mod:`censcore.evaluation.refit_influence`.
    """
    first = repeats[0]
    unavailable = {key: why for r in repeats for key, why in r.losses.unavailable.items()}
    known = [key for key in first.losses.values if key not in unavailable]
    every = {key: np.stack([r.losses.values[key] for r in repeats]) for key in known}
    counted = {score.name: score.counted(first._case) for score in first.losses.scores}
    means = {}
    for s, model, score in first.means.values:
        if (model, score) in every:
            mean = _mean_estimate([r.means.values[s, model, score] for r in repeats])
            weight = shares_of(first.subsets[s].weight[:, None], counted[score])[:, 0]
            more = refit_influence(every[model, score], weight, first.groups, splits)
            means[s, model, score] = Estimate(mean.value, np.concatenate([mean.influence, more]))
    term = "with" if len(repeats) > 1 else "without"
    method = f"{first.means.method}; {CONDITIONAL}, {term} the term of the refits"
    losses = {key: values.mean(axis=0) for key, values in every.items()}
    return Losses(losses, unavailable, first.losses.scores), replace(first.means, values=means, method=method)


def _mean_estimate(estimates: Sequence[Estimate]) -> Estimate:
    """The mean of estimates whose influences belong to the same subjects."""
    with np.errstate(invalid="ignore"):
        return Estimate(
            np.mean([estimate.value for estimate in estimates], axis=0),
            np.mean([estimate.influence for estimate in estimates], axis=0),
        )


@dataclass(frozen=True, repr=False, eq=False, kw_only=True)
class CrossValidated(Comparison):
    """What :func:`compare` found by cross-validation: a :class:`Comparison` that also knows the folds.

    Losses, means and their errors are averages over repeats, subject by subject. Concordance and AUC are
    taken within folds, since forecasts of different fits do not rank subjects on one scale, and averaged.
    Pictures of single forecasts (calibration) show those of the first repeat.

    Attributes
    ----------
    splits : list of Split
        Training and test subjects of every fold.
    repeats : list of Comparison
        The comparison of each repeat.
    tested : array of int
        The subjects that are scored.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(300, 1))
    >>> T, C = rng.weibull(1.5, 300) * np.exp(x[:, 0]), rng.uniform(0, 4, 300)
    >>> y = cs.RightCensored(np.minimum(T, C), T <= C)
    >>> found = cs.compare({"cox": cs.CoxRegression()}, x, y, cv=3, scores="crps", discrimination=False)
    >>> found.frame()[["model", "mean", "standard_error", "skill"]].round(3)
              model   mean  standard_error  skill
    0           cox  0.205           0.014  0.401
    1  kaplan-meier  0.342           0.018  0.000
    """

    splits: list[Split]
    repeats: list[Comparison]
    tested: np.ndarray
    runs: FoldRuns
    all_groups: np.ndarray | None

    @property
    def settings(self) -> dict[str, Any]:
        """Everything that was decided, by the caller or by default."""
        count = len(self.splits) // len(self.repeats)
        folds = f"{count} folds" + (f", {len(self.repeats)} repeats" if len(self.repeats) > 1 else "")
        return {**super().settings, "cross-validation": folds}

    def folds(self) -> pd.DataFrame:
        """One line per repeat, fold, score, time or level, and model.

        Columns: ``repeat`` and ``fold`` (from 1), ``train`` (training subjects), ``subjects`` and ``events``
        of the fold, ``score``, ``at``, ``model``, ``mean`` and ``seconds`` (to fit the model and forecast).

        The spread of the means over folds is no standard error of their mean: the folds share training
        subjects.
        """
        return data_frame(self.fold_lines())

    def fold_lines(self) -> list[Line]:
        """The lines of :meth:`folds`, without pandas."""
        lines: list[Line] = []
        weight, event = self.subsets[0].weight, to_numpy(self.outcome.event)
        for number, split in enumerate(self.splits):
            rows, losses = self._rows(split), self.repeats[split.repeat].losses.values
            about: Line = {"repeat": split.repeat + 1, "fold": split.fold + 1, "train": len(split.train)}
            about |= {"subjects": len(rows), "events": int(event[rows].sum())}
            w = weight[rows]
            for score in self.scores:
                for j, at in enumerate(self.places(score)):
                    for model in self.models:
                        found = losses.get((model, score.name))
                        mean = np.nan
                        if found is not None and w.any():
                            mean = float(w[w > 0] @ found[rows][w > 0, j] / w.sum())
                        line = {"score": score.name, "at": float(at), "model": model, "mean": mean}
                        lines.append(about | line | {"seconds": self.runs.seconds[model, number]})
        return lines

    def _rows(self, split: Split) -> np.ndarray:
        """The test subjects of a fold among those who are scored."""
        return np.searchsorted(self.tested, split.test)

    def plot(self, kind: str = "brier", **options: Any) -> Figure:
        """A picture: "folds", or one of those of :meth:`Comparison.plot`.

        Parameters
        ----------
        kind : str
            ``"folds"``: mean losses of every fold, and the mean over all subjects with its interval.
        **options
            Of the plot: for folds ``score=`` and ``column=``, the number of its time or level.

        Returns
        -------
        matplotlib.figure.Figure
            ``figure.savefig(path)`` writes it.
        """
        if kind != "folds":
            return super().plot(kind, **options)
        from censcore.evaluation.fold_plot import plot_folds

        return plot_folds(self, **options)

    def curve(self, score: CaseScore, **options: Any) -> dict[str, Estimate]:
        """Means of a score at other times or levels, averaged over repeats; see :meth:`Comparison.curve`."""
        found = [comparison.curve(score, **options) for comparison in self.repeats]
        shared = [model for model in found[0] if all(model in curves for curves in found)]
        return {model: _mean_estimate([curves[model] for curves in found]) for model in shared}

    @property
    def calibration_note(self) -> str:
        """That p-values of calibration are too large: a fold's model has learned from the other folds."""
        return CONSERVATIVE

    def _of(self, outcome: str) -> CrossValidated:
        """One of several outcomes, cross-validated as well: its pairs are ranked within folds."""
        several: Any = super()
        part: Comparison = several._of(outcome)
        known = {field.name: getattr(part, field.name) for field in fields(part) if field.init}
        every: list[Any] = self.repeats
        return CrossValidated(
            **known, splits=self.splits, repeats=[one.of(outcome) for one in every], tested=self.tested,
            runs=self.runs, all_groups=self.all_groups,
        )  # fmt: skip

    # ---- concordance and AUC -----------------------------------------------------------------------

    @cached_property
    def pair_measures(self) -> Discrimination:
        """Concordance and AUC of pairs within folds, averaged over folds by their weight."""
        if len({score.outcome for score in self.scores} - {""}):  # one part per outcome
            return super().pair_measures
        folds = [self._ranked_in(split) for split in self.splits]
        together = Discrimination(folds[0].found.measures)
        for s in range(len(self.subsets)):
            for model in self.models:
                for k in range(len(together.measures)):
                    key = (s, model, k)
                    used = [fold for fold in folds if fold.share[s] > 0]
                    missing = [text for fold in used if (text := fold.missing(key))]
                    if missing:
                        together.unavailable[key] = missing[0]
                    else:
                        together.values[key] = self._pooled(used, key)
        return together

    def _ranked_in(self, split: Split) -> _RankedFold:
        """Concordance and AUC of the pairs of one fold."""
        base, rows = self.repeats[split.repeat], self._rows(split)
        cases = {model: ungrouped(case, rows) for model, case in base.cases.items()}
        weights = [subset.weight[rows] for subset in self.subsets]
        shares = [float(w.sum()) / len(self.repeats) for w in weights]
        of_fold = [Subset("", "", w / w.sum() if w.any() else w) for w in weights]
        C = next(iter(cases.values())).C
        training = np.zeros(0, dtype=np.intp)
        censoring = ResolvedCensoring(C, "", estimated=False)
        if base.resolved_censoring.parts:
            part = base.resolved_censoring.parts[split.fold]
            training = part.training
            alone = replace(part, subjects=np.arange(len(rows)), training=np.arange(len(training)))
            censoring = ResolvedCensoring(C, "", True, parts=[alone], n_train=len(training))
        found = discriminate(cases, [subset for subset in of_fold if subset.weight.any()], censoring)
        number = np.cumsum([w.any() for w in weights]) - 1
        return _RankedFold(split, weights, shares, number, training, found)

    def _pooled(self, folds: list[_RankedFold], key: tuple[int, str, int]) -> Estimate:
        """The mean over folds; a subject contributes as one of a pair, and as a training subject."""
        s = key[0]
        n = 1 + max(int(max(split.train[-1], split.test[-1])) for split in self.splits)
        value, influence = 0.0, np.zeros(n)
        for fold in folds:
            estimate, scored = fold.estimate(key), fold.split.test[fold.weights[s] > 0]
            value += fold.share[s] * (float(estimate.value[0]) - HALF)
            influence[scored] += fold.share[s] * estimate.influence[: len(scored), 0]
            if len(fold.training):
                influence[fold.training] += fold.share[s] * estimate.influence[len(scored) :, 0]
        if self.all_groups is not None:
            return Estimate(np.array([HALF + value]), np.bincount(self.all_groups, influence)[:, None])
        return Estimate(np.array([HALF + value]), influence[:, None])


@dataclass(frozen=True, eq=False)
class _RankedFold:
    """Measures of one fold: weights and share of its subjects in every subset, and the training subjects."""

    split: Split
    weights: list[np.ndarray]
    share: list[float]
    number: np.ndarray
    training: np.ndarray
    found: Discrimination

    def _key(self, key: tuple[int, str, int]) -> tuple[int, str, int]:
        return (int(self.number[key[0]]), *key[1:])

    def estimate(self, key: tuple[int, str, int]) -> Estimate:
        return self.found.values[self._key(key)]

    def missing(self, key: tuple[int, str, int]) -> str:
        """Why there is no value, in words; empty where there is one."""
        mine = self._key(key)
        if mine in self.found.unavailable:
            return f"{self.split.name}: {self.found.unavailable[mine]}"
        if not np.isfinite(self.found.values[mine].value[0]):
            return f"{self.split.name} has no pairs of subjects that can be ranked."
        return ""
