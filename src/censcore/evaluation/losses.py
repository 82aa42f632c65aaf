"""All losses of a comparison, and their means with influences."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import TypeVar

import numpy as np

from censcore.estimators._covariates import take_rows
from censcore.evaluation.catalogue import Case, Score
from censcore.evaluation.inference import Estimate, row_influence, sum_by_group
from censcore.evaluation.law_of_c import KaplanMeierPart, LawOfC
from censcore.exceptions import (
    CenscoreError,
    InvalidInputError,
    MissingDependencyError,
    NoDensityError,
    PositivityError,
)

KNOTS = 400  # jumps of the law of C at which derivatives are taken

__all__ = ["Design", "Losses", "Means", "Subset", "estimate_means", "refitted", "score_all", "with_refits"]

Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Subset:
    """Rows that are averaged over: weights (n,) that sum to one, zero for the others."""

    by: str
    label: str
    weight: np.ndarray


@dataclass(frozen=True)
class Losses:
    """Losses (n, q) by model and score name; missing where a score is not available."""

    values: dict[tuple[str, str], np.ndarray]
    unavailable: dict[tuple[str, str], str]
    scores: list[Score]

    @property
    def notes(self) -> list[str]:
        """Why scores are not available, once each."""
        by_reason: dict[str, list[str]] = {}
        for (model, score), reason in self.unavailable.items():
            by_reason.setdefault(f"{score}: {reason}", []).append(model)
        return [f"{reason} Not available for {', '.join(models)}." for reason, models in by_reason.items()]


@dataclass(frozen=True)
class Means:
    """Means with their influences, by subset number, model and score name."""

    values: dict[tuple[int, str, str], Estimate]
    method: str
    notes: list[str] = field(default_factory=list)


def score_all(cases: dict[str, Case], scores: list[Score]) -> Losses:
    """Every score of every forecast."""
    losses = Losses({}, {}, scores)
    for model, case in cases.items():
        for score in scores:
            try:
                losses.values[model, score.name] = score.losses(case)
            except NoDensityError:
                losses.unavailable[model, score.name] = "a law without a density has no log score."
            except PositivityError as error:
                if "ipcw" not in score.name:
                    raise
                losses.unavailable[model, score.name] = str(error)
    return losses


def estimate_means(
    losses: Losses,
    cases: dict[str, Case],
    subsets: list[Subset],
    law: LawOfC,
    groups: np.ndarray | None = None,
    train_groups: np.ndarray | None = None,
    refits: int = 60,
    seed: int = 0,
    progress: bool = False,
) -> Means:
    """Means of all losses in all subsets, with the influence of whatever was estimated."""
    design = Design(subsets, law, groups, train_groups)
    if law.refit is not None:
        return _by_refitting(losses, cases, design, refits, seed, progress)
    values = {}
    for model, case in cases.items():
        parts = design.cases_of_parts(case)
        for score in losses.scores:
            if (model, score.name) in losses.values:
                rows = losses.values[model, score.name]
                for s, subset in enumerate(subsets):
                    values[s, model, score.name] = design.mean(score, parts, rows, subset.weight)
    method = "per row, the law of C being known"
    if law.parts:
        method = "influence function, with the term of the Kaplan-Meier law of C"
    elif law.estimated:
        method = "per row, the law of C being taken as known"
    return Means(values, method)


@dataclass(frozen=True)
class Design:
    """Which rows are averaged over, which depend on each other, and what the law of C came from."""

    subsets: list[Subset]
    law: LawOfC
    groups: np.ndarray | None
    train_groups: np.ndarray | None

    def cases_of_parts(self, case: Case) -> list[Case]:
        """The rows of each part of the law of C."""
        return [
            case
            if len(part.rows) == len(case.y)
            else replace(case.take(part.rows), C=part.law)
            if len(part.rows)
            else case
            for part in self.law.parts
        ]

    def mean(self, score: Score, parts: list[Case], losses: np.ndarray, weight: np.ndarray) -> Estimate:
        """A mean and its influence, with what the estimation of the law of C adds."""
        derivatives = [
            self._derivative(score, case, part, losses, weight)
            for case, part in zip(parts, self.law.parts, strict=True)
        ]
        return self.estimate(losses, weight, derivatives)

    def estimate(self, losses: np.ndarray, weight: np.ndarray, derivatives: list[np.ndarray]) -> Estimate:
        """The mean of losses whose derivatives A at the jumps of each part are known."""
        law = self.law
        if not law.parts:
            return row_influence(losses, weight, self.groups)
        if law.in_sample:
            return row_influence(losses, weight, self.groups, self._per_training_row(derivatives))
        mean = row_influence(losses, weight, self.groups)
        if self.train_groups is None:
            entries = [part.influence(A) for part, A in zip(law.parts, derivatives, strict=True)]
        else:
            entries = [sum_by_group(self._per_training_row(derivatives), self.train_groups)]
        return Estimate(mean.value, np.concatenate([mean.influence, *entries]))

    def _derivative(
        self, score: Score, case: Case, part: KaplanMeierPart, losses: np.ndarray, weight: np.ndarray
    ) -> np.ndarray:
        """A at all jumps of the law, zero beyond the horizon; between many jumps it is interpolated."""
        A = np.zeros((len(part.jumps), losses.shape[1]))
        rows, inside = part.rows, int((part.jumps < case.horizon).sum())
        if len(rows) and inside:
            knots = np.unique(np.linspace(0, inside - 1, min(inside, KNOTS)).astype(np.intp))
            found = score.derivative(case, losses[rows], weight[rows], part.law, part.jumps[knots])
            for column, values in zip(A.T, found.T, strict=True):
                column[:inside] = np.interp(np.arange(inside), knots, values)
        return A

    def _per_training_row(self, derivatives: list[np.ndarray]) -> np.ndarray:
        assert self.law.train is not None
        added = np.zeros((len(self.law.train.y), derivatives[0].shape[1]))
        for part, A in zip(self.law.parts, derivatives, strict=True):
            added[part.train_rows] += part.per_training_row(A)
        return added


# ---- laws of C without an influence function ---------------------------------------------------------


def _by_refitting(
    losses: Losses, cases: dict[str, Case], design: Design, refits: int, seed: int, progress: bool
) -> Means:
    """The law of C is fitted to bootstrap samples of its training rows, and all means are taken again."""
    if refits < 2:
        raise InvalidInputError(
            f"refits, the number of bootstrap samples, must be at least 2; {refits} came."
        )
    law = design.law
    means = {
        (s, model, name): row_influence(rows, subset.weight, design.groups)
        for (model, name), rows in losses.values.items()
        for s, subset in enumerate(design.subsets)
    }
    notes: list[str] = []

    def redrawn(rows: np.ndarray) -> dict[tuple[int, str, str], np.ndarray]:
        return _redrawn(design, rows, losses, cases)

    values = with_refits(means, design, redrawn, refits, seed, progress, notes)
    what = "the rows" if law.in_sample else "the training rows"
    return Means(values, f"bootstrap: the law of C refitted to {refits} samples of {what}", notes)


def with_refits(
    means: dict[Key, Estimate],
    design: Design,
    redrawn: Callable[[np.ndarray], dict[Key, np.ndarray]],
    refits: int,
    seed: int,
    progress: bool,
    notes: list[str],
) -> dict[Key, Estimate]:
    """Estimates with the spread of what ``redrawn`` finds for bootstrap samples of the training subjects."""
    samples = list(_samples(design, refits, seed, progress, notes, redrawn))
    values = {}
    for key, mean in means.items():
        repeated = np.stack([sample[key] for sample in samples])
        with np.errstate(invalid="ignore"):
            spread = (repeated - repeated.mean(axis=0)) / np.sqrt(refits - 1)
        # in sample the bootstrap draws the scored subjects too, and shows all there is
        influence = spread if design.law.in_sample else np.concatenate([mean.influence, spread])
        values[key] = Estimate(mean.value, influence)
    return values


def _samples(
    design: Design,
    refits: int,
    seed: int,
    progress: bool,
    notes: list[str],
    redrawn: Callable[[np.ndarray], dict[Key, np.ndarray]],
) -> Iterator[dict[Key, np.ndarray]]:
    failures = 0
    rng = np.random.default_rng(seed)
    for _ in track(range(refits), "refitting the law of C", progress):
        while True:
            try:
                yield redrawn(_drawn_rows(design, rng))
                break
            except CenscoreError as error:
                failures += 1
                if failures > refits:
                    raise InvalidInputError(
                        f"The law of C could not be refitted on bootstrap samples: {error} Pass a smaller "
                        "horizon, a penalty to the estimator, or a law taken as known."
                    ) from error
    if failures:
        notes.append(f"{failures} bootstrap samples were drawn again, since no law of C could be fitted.")


def _drawn_rows(design: Design, rng: np.random.Generator) -> np.ndarray:
    """Training rows with replacement, or whole groups of them."""
    train = design.law.train
    assert train is not None
    groups = design.groups if design.law.in_sample else design.train_groups
    if groups is None:
        return rng.integers(len(train.y), size=len(train.y))
    count = int(groups.max()) + 1
    order = np.argsort(groups, kind="stable")
    starts = np.searchsorted(groups[order], np.arange(count + 1))
    return np.concatenate([order[starts[g] : starts[g + 1]] for g in rng.integers(count, size=count)])


def refitted(design: Design, rows: np.ndarray, cases: dict[str, Case]) -> tuple[np.ndarray, dict[str, Case]]:
    """Subjects to score, and their cases under the censoring distribution of some training subjects."""
    law = design.law
    assert law.refit is not None
    assert law.train is not None
    scored = rows if law.in_sample else np.arange(len(next(iter(cases.values())).y))
    C = law.refit(law.train.take(rows), take_rows(law.scored_X, scored))
    return scored, {
        model: replace(case.take(scored) if law.in_sample else case, C=C) for model, case in cases.items()
    }


def _redrawn(
    design: Design, rows: np.ndarray, losses: Losses, cases: dict[str, Case]
) -> dict[tuple[int, str, str], np.ndarray]:
    """All means under the law of C fitted to some training rows; in sample these rows are scored."""
    means = {}
    scored, again_by_model = refitted(design, rows, cases)
    for model, again in again_by_model.items():
        for score in losses.scores:
            if (model, score.name) not in losses.values:
                continue
            values = score.losses(again)
            for s, subset in enumerate(design.subsets):
                weight = subset.weight[scored]
                with np.errstate(invalid="ignore"):
                    means[s, model, score.name] = weight[weight > 0] @ values[weight > 0] / weight.sum()
    return means


def track(items: range, what: str, shown: bool) -> Iterable[int]:
    """The items, with a progress bar where one is wanted."""
    if not shown:
        return items
    try:
        from rich.console import Console
        from rich.progress import track as bar
    except ModuleNotFoundError as error:
        raise MissingDependencyError("progress=True needs rich: pip install 'censcore[cli]'.") from error
    return bar(items, description=what, console=Console(stderr=True), transient=True)
