"""Means over landmarks, with errors that know which subjects are at risk at several of them."""

from __future__ import annotations

from collections.abc import Hashable, Iterator
from dataclasses import dataclass
from itertools import combinations
from typing import TYPE_CHECKING, Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.evaluation.inference.estimates import Estimate, adjust
from censcore.evaluation.lines import Line
from censcore.exceptions import InvalidInputError

if TYPE_CHECKING:
    from censcore.evaluation.comparison import Comparison

__all__ = ["Averages", "AtRisk"]


@dataclass(frozen=True, eq=False)
class AtRisk:
    """Whom the comparisons at the landmarks are about."""

    at_risk: list[np.ndarray]  #: numbers of the subjects at risk at each landmark
    groups: Any = None  #: labels of all subjects
    train_groups: Any = None  #: and of the training subjects


class Averages:
    r"""Estimates :math:`\frac1L\sum_s\bar\ell_s` over L landmarks, each landmark with the same weight.

    A subject at risk at several landmarks contributes to several means. Its influence on the average is the
    sum of its influences on them, so that the sum of squares over subjects (or groups) is the variance of
    the average, whatever the dependence of the means.
    """

    def __init__(self, comparisons: list[Comparison], sample: AtRisk) -> None:
        self.comparisons, self.sample = comparisons, sample
        labels = (None if each is None else to_numpy(each) for each in (sample.groups, sample.train_groups))
        self.groups, self.train_groups = labels
        if any(comparison.resolved_censoring.refit is not None for comparison in comparisons):
            raise InvalidInputError(
                "A mean over landmarks needs a censoring distribution whose estimator has an influence "
                "function: got one whose error comes from refits. Pass Censoring(KaplanMeier()) or "
                "Censoring(CoxRegression())."
            )
        scored_as = self._training_numbers()
        self._number: dict[Hashable, int] = {}
        self.rows = [
            np.array([self._number.setdefault(label, len(self._number)) for label in who], dtype=np.intp)
            for who in (self._labels(i, scored_as) for i in range(len(comparisons)))
        ]

    def lines(self) -> list[Line]:
        """One line per score with a number at every landmark, and model."""
        confidence = self.comparisons[0].confidence
        return [
            about | {"model": model, "mean": float(estimate.value[0])} | _spread(estimate, confidence)
            for about, estimates in self._estimates()
            for model, estimate in estimates.items()
        ]

    def difference_lines(self, adjustment: str) -> list[Line]:
        """One line per score and pair of models, adjusted over the pairs of a score."""
        first, lines = self.comparisons[0], []
        for about, estimates in self._estimates():
            pairs = {(a, b): estimates[a] - estimates[b] for a, b in combinations(estimates, 2)}
            if not pairs:
                continue
            together = adjust(list(pairs.values()), adjustment, first.confidence, first.seed)
            for ((a, b), estimate), p in zip(pairs.items(), together.p_value, strict=True):
                difference = {"model": a, "versus": b, "difference": float(estimate.value[0])}
                tests = {"p_value": float(estimate.p_value[0]), "p_adjusted": float(p)}
                lines.append(about | difference | _spread(estimate, together.confidence, tests))
        return lines

    def _estimates(self) -> Iterator[tuple[Line, dict[str, Estimate]]]:
        """What a line is about, and the averages of the models that have one."""
        first = self.comparisons[0]
        for score in first.scores:
            of_models = {m: self._average(m, score.name) for m in first.models}
            known = {m: estimate for m, estimate in of_models.items() if estimate is not None}
            if known:
                about = {"score": score.name, "outcome": score.outcome}
                yield about | {"landmarks": len(self.comparisons)}, known

    def _average(self, model: str, score: str) -> Estimate | None:
        """The mean over landmarks; None where one of them has no number, or several times or levels."""
        parts = [comparison.estimate(model, score) for comparison in self.comparisons]
        L, influence = len(parts), np.zeros(len(self._number))
        for part, rows in zip(parts, self.rows, strict=True):
            if part is None or len(part.value) != 1:
                return None
            np.add.at(influence, rows, part.influence[:, 0] / L)
        value = np.mean([part.value[0] for part in parts if part is not None])
        return Estimate(np.array([value]), influence[:, None])

    def _training_numbers(self) -> dict[int, int]:
        """Scored subjects that are known to be training subjects, at any landmark."""
        numbers: dict[int, int] = {}
        for comparison, subjects in zip(self.comparisons, self.sample.at_risk, strict=True):
            if not comparison.resolved_censoring.in_sample:
                for scored, training in comparison.resolved_censoring.shared.pairs.tolist():
                    numbers[int(subjects[scored])] = training
        return numbers

    def _labels(self, i: int, scored_as: dict[int, int]) -> list[Hashable]:
        """Who each entry of an influence at landmark i stands for, under a name that all landmarks share."""
        of, subjects = self.comparisons[i], self.sample.at_risk[i]
        groups, train_groups = self.groups, self.train_groups

        def scored(r: int) -> Hashable:
            subject = int(subjects[r])
            if groups is not None:
                return "group", groups[subject]
            return ("training", scored_as[subject]) if subject in scored_as else ("scored", subject)

        def training(t: int) -> Hashable:
            return ("training", t) if train_groups is None else ("group", train_groups[t])

        first_scored, first_training = of.scope.clusters.representatives(of.subsets[0].weight > 0)
        return [*map(scored, first_scored), *map(training, first_training)]


def _spread(estimate: Estimate, confidence: float, tests: Line | None = None) -> Line:
    """The columns of an estimate that come last; tests are between its error and its interval."""
    low, high = (float(end[0]) for end in estimate.interval(confidence))
    return {"standard_error": float(estimate.standard_error[0])} | (tests or {}) | {"low": low, "high": high}
