"""All estimates of one forecast on one sample, from the parts that its losses were taken in."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from censcore._kept_values import KeepsValues
from censcore._validation import as_index, check_kind
from censcore.evaluation.decisions.decide import Cases, Decided
from censcore.evaluation.inference.estimates import Estimate
from censcore.evaluation.inference.mean_losses import (
    Losses,
    Means,
    estimate_means,
    score_parts,
    shares_of,
)
from censcore.evaluation.inference.pooling import average
from censcore.evaluation.inference.resolved_censoring import ResolvedCensoring
from censcore.evaluation.measures.case import Case
from censcore.evaluation.measures.case_scores import CaseScore
from censcore.evaluation.measures.joint_scores import View

Key = tuple[int, str, str]  # number of a subset, forecast and score
REFITS = "refits of models"  # the block of their contributions
Refits = Callable[[np.ndarray, np.ndarray], np.ndarray]
"""Contributions (m, q) of the refits of models, from losses (B, n, q) of B repeats and weights (n,)."""


class Repeat(NamedTuple):
    """One pass over the scored subjects: a case of each forecast, and the C that all of them have."""

    cases: Cases
    censoring: ResolvedCensoring

    def at(self, **places: Any) -> Repeat:
        """Take the same subjects at other times or levels."""
        return self._replace(cases={model: replace(case, **places) for model, case in self.cases.items()})


class Taken(NamedTuple):
    """What was taken of one forecast in a repeat."""

    case: Case
    censoring: ResolvedCensoring
    losses: dict[str, np.ndarray]  #: (n, q), by name of the score


@dataclass(frozen=True, eq=False)
class Evaluation(KeepsValues):
    """The mean losses of one forecast, with their influences."""

    name: str
    decided: Decided
    #: By number of the subset and name of the score.
    means: dict[tuple[int, str], Estimate] = field(default_factory=dict)
    unavailable: dict[str, str] = field(default_factory=dict)  #: why, by name of the score
    repeats: list[Taken] = field(default_factory=list)  #: none where the subjects are not in memory
    method: str = ""  #: how errors account for what was estimated
    notes: list[str] = field(default_factory=list)

    @cached_property
    def losses(self) -> dict[str, np.ndarray]:
        """Losses (n, q) by name of the score, averaged over repeats."""
        if len(self.repeats) < 2:
            return self.repeats[0].losses if self.repeats else {}
        known = [name for name in self.repeats[0].losses if name not in self.unavailable]
        return {name: np.mean([taken.losses[name] for taken in self.repeats], axis=0) for name in known}

    def of(self, view: View, names: dict[str, CaseScore], decided: Decided) -> Evaluation:
        """Return what is of one view of the outcome, by the new names of its scores."""

        def renamed(values: dict[str, Any]) -> dict[str, Any]:
            return {names[name].name: value for name, value in values.items() if name in names}

        means = {(s, names[name].name): mean for (s, name), mean in self.means.items() if name in names}
        repeats = [
            Taken(case.of(view), view.censoring(C), renamed(losses)) for case, C, losses in self.repeats
        ]
        missing = renamed(self.unavailable)
        return replace(self, decided=decided, means=means, unavailable=missing, repeats=repeats)

    def estimate(self, score: str, subset: int = 0) -> Estimate | None:
        """A mean with its influence; None where the score is not available."""
        check_kind(score, "score", str, "the name of a score")
        return self.means.get((as_index(subset, "subset"), score))


def evaluate_all(
    decided: Decided, repeats: Sequence[Repeat], refits: Refits | None = None
) -> dict[str, Evaluation]:
    """Estimate the mean losses of every forecast: side by side, since refits of C serve all of them.

    Every repeat scores the same subjects; means are averaged over repeats, and ``refits`` adds what models
    that are fitted to other subjects contribute.
    """
    each = [_of_repeat(decided, repeat) for repeat in repeats]
    means, made = _averaged(decided, repeats, each, refits), dict[str, Evaluation]()
    for model in repeats[0].cases:
        taken = [
            Taken(repeat.cases[model], repeat.censoring, _of_model(losses.values, model))
            for repeat, (losses, _) in zip(repeats, each, strict=True)
        ]
        missing = {s: why for losses, _ in each for s, why in _of_model(losses.unavailable, model).items()}
        made[model] = Evaluation(model, decided, {}, missing, taken, means.method, means.notes)
    for (s, model, score), mean in means.values.items():
        made[model].means[s, score] = mean
    return made


def _of_model(values: dict[tuple[str, str], Any], model: str) -> dict[str, Any]:
    """What is of one forecast, by score."""
    return {score: value for (m, score), value in values.items() if m == model}


def _of_repeat(decided: Decided, repeat: Repeat) -> tuple[Losses, Means]:
    losses, parts = score_parts(repeat.cases, decided.scores)
    scope = replace(decided.scope, censoring=repeat.censoring)
    return losses, estimate_means(losses, parts, repeat.cases, scope)


def _averaged(
    decided: Decided, repeats: Sequence[Repeat], each: list[tuple[Losses, Means]], refits: Refits | None
) -> Means:
    """Average means over repeats, where all repeats have them."""
    (first, means), B = each[0], len(each)
    if B == 1 and refits is None:
        return means
    missing, values = {key for losses, _ in each for key in losses.unavailable}, dict[Key, Estimate]()
    every = {
        key: np.stack([losses.values[key] for losses, _ in each])
        for key in first.values
        if key not in missing
    }
    for key in means.values:
        s, model, name = key
        if (model, name) in every:
            values[key] = average([of.values[key] for _, of in each], [1 / B] * B)
            if refits is not None:
                score = next(score for score in decided.scores if score.name == name)
                counted = score.counted(repeats[0].cases[model])
                weight = shares_of(decided.subsets[s].weight[:, None], counted)[:, 0]
                values[key] = values[key].with_contributions(refits(every[model, name], weight), REFITS)
    return replace(means, values=values)
