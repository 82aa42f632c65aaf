"""All losses of a comparison, and their means with influences."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from time import perf_counter
from typing import TypeVar

import numpy as np

from censcore._validation import as_count
from censcore.distributions import Distribution
from censcore.evaluation.inference.estimates import Estimate, separate_stream
from censcore.evaluation.inference.pooling import ScoredPart, facts, join
from censcore.evaluation.inference.resolved_censoring import ResolvedCensoring
from censcore.evaluation.inference.units import Units
from censcore.evaluation.measures.case import Case
from censcore.evaluation.measures.case_scores import CaseScore, losses_of
from censcore.exceptions import (
    CenscoreError,
    InvalidInputError,
    NoDensityError,
    PositivityError,
    UnknownCurveError,
)
from censcore.progress import track


@dataclass(frozen=True, eq=False)
class Subset:
    """Subjects that are averaged over: weights (n,) that sum to one, zero for the others."""

    by: str
    label: str
    weight: np.ndarray
    counted: tuple[int, bool] | None = None  #: where no more is known: their number, whether weights differ

    @property
    def count(self) -> int:
        """How many subjects there are."""
        return int((self.weight > 0).sum()) if self.counted is None else self.counted[0]

    @property
    def weighted(self) -> bool:
        """Whether their weights differ."""
        if self.counted is not None:
            return self.counted[1]
        used = self.weight[self.weight > 0]
        return bool(np.ptp(used) > 1e-9 * used.max()) if len(used) else False


@dataclass(frozen=True, eq=False)
class Scope:
    """What means are taken over, and what their errors account for."""

    weight: np.ndarray  #: of the subjects in each subset, (n, m); the first is the whole sample
    censoring: ResolvedCensoring
    units: Units
    seed: int = 0
    progress: bool | None = None


@dataclass(frozen=True, eq=False)
class Losses:
    """Losses (n, q) by model and score name; missing where a score is not available."""

    values: dict[tuple[str, str], np.ndarray]
    unavailable: dict[tuple[str, str], str]
    scores: list[CaseScore]

    @property
    def notes(self) -> list[str]:
        """Why scores are not available, once each."""
        models: dict[tuple[str, str], list[str]] = {}
        for (model, score), reason in self.unavailable.items():
            models.setdefault((score, reason), []).append(model)
        scores: dict[tuple[str, str], list[str]] = {}
        for (score, reason), of in models.items():
            scores.setdefault((reason, ", ".join(of)), []).append(score)
        return [f"{', '.join(names)}: {why} Not available for {of}." for (why, of), names in scores.items()]


@dataclass(frozen=True, eq=False)
class Means:
    """Means with their influences, by subset number, model and score name."""

    values: dict[tuple[int, str, str], Estimate]
    method: str
    notes: list[str] = field(default_factory=list)


def score_all(cases: dict[str, Case], scores: list[CaseScore]) -> Losses:
    """Every score of every forecast."""
    return score_parts(cases, scores)[0]


def score_parts(
    cases: dict[str, Case], scores: list[CaseScore]
) -> tuple[Losses, dict[str, list[ScoredPart]]]:
    """Score every forecast; also by the parts whose subjects share their curves, for derivatives."""
    losses, parts = Losses({}, {}, scores), dict[str, list[ScoredPart]]()
    for model, case in cases.items():
        pieces = case.parts()
        parts[model] = [ScoredPart(piece, {}, rows) for rows, piece in pieces]
        for score in scores:
            try:
                values = losses_of(score, case, pieces)
            except NoDensityError:
                title = score.title.removesuffix(f", {score.outcome}")
                why = f"a forecast distribution without a density has no {title}."
                losses.unavailable[model, score.name] = why
                continue
            except (PositivityError, UnknownCurveError) as error:
                if isinstance(error, PositivityError) and not score.ipcw:
                    raise
                at_times = _losses_at_times(score, case, losses, model) if score.axis == "time" else None
                if at_times is None:
                    losses.unavailable[model, score.name] = why_unavailable(error)
                    continue
                values = at_times
            losses.values[model, score.name] = values
            for part in parts[model]:
                part.losses[score.name] = values[part.rows]
    return losses, parts


def why_unavailable(error: PositivityError | UnknownCurveError) -> str:
    """Why there is no number: the forecast is known at another time alone, or follow-up is too short."""
    if isinstance(error, UnknownCurveError):
        return f"the forecast is known at t = {error.time:g} alone."
    return str(error)


def _losses_at_times(score: CaseScore, case: Case, losses: Losses, model: str) -> np.ndarray | None:
    """Losses (n, q), NaN at times that are unknown or not reached by all; None where those are all times."""
    columns, unreached = [], {}
    for t in case.times:
        try:
            columns.append(score.losses(replace(case, times=np.array([t]))))
        except (PositivityError, UnknownCurveError) as error:
            columns.append(np.full((len(case.y), 1), np.nan))
            unreached[model, f"{score.name} at {t:g}"] = why_unavailable(error)
    if len(unreached) == len(columns):
        return None
    losses.unavailable.update(unreached)
    return np.concatenate(columns, axis=1)


def estimate_means(
    losses: Losses, parts: dict[str, list[ScoredPart]], cases: dict[str, Case], scope: Scope
) -> Means:
    """Means of all losses in all subsets, with the influence of whatever was estimated."""
    censoring, values = scope.censoring, dict[tuple[int, str, str], Estimate]()
    for model in cases:
        scores = {score.name: score for score in losses.scores if (model, score.name) in losses.values}
        joined = join(parts[model], scores, scope.weight, censoring.parts, scope.units)
        values |= {(s, model, name): mean for (s, name), mean in joined.items()}
    if censoring.refit is None:
        return Means(values, method_of(censoring))
    keys = [(s, *key) for key, s in product(losses.values, range(scope.weight.shape[1]))]
    means_under = partial(_means_under, losses, cases)
    values, notes = with_refits({key: values[key] for key in keys}, means_under, scope)
    count, whom = censoring.refit.count, "all subjects" if scope.units.overlap else "the training subjects"
    method = f"bootstrap: the censoring distribution fitted again to {count} samples of {whom}"
    return Means(values, method, notes)


def shares_of(weight: np.ndarray, counted: np.ndarray | None) -> np.ndarray:
    """Weights (n, m) of the subjects that count, each column with the sum one; zero where nobody does."""
    if counted is None:
        return weight
    weight = np.where(counted[:, None], weight, 0.0)
    total = weight.sum(axis=0)
    return weight / np.where(total > 0, total, 1.0)


def method_of(censoring: ResolvedCensoring) -> str:
    """How standard errors account for the censoring distribution, in words."""
    if censoring.parts:
        return "influence function, with the term of the estimated censoring distribution"
    if censoring.estimated:
        return "per subject, the censoring distribution being taken as known"
    return "per subject, the censoring distribution being known"


# ---- by refitting --------------------------------------------------------------------------------------


def _means_under(losses: Losses, cases: dict[str, Case], C: Distribution, weight: np.ndarray) -> np.ndarray:
    """All means, one after the other, under a censoring distribution."""
    means = []
    for model, case in cases.items():
        again = replace(case, C=C)
        for score in losses.scores:
            if (key := (model, score.name)) in losses.values:
                refitted = score_all({model: again}, [score])
                values = refitted.values.get(key, np.full_like(losses.values[key], np.nan))
                if (np.isnan(values) > np.isnan(losses.values[key])).any():
                    raise PositivityError(next(iter(refitted.unavailable.values())))
                part = ScoredPart(case, {score.name: values}, slice(None))
                means.append(facts(part, {score.name: score}, part.weight(score, weight)).mean.ravel())
    return np.concatenate(means)


LONG = 10.0  # seconds of refits that are announced
FAR = 5.0  # robust standard deviations from the median, beyond which a refit is pulled in
Key = TypeVar("Key")


def with_refits(
    estimates: dict[Key, Estimate],
    values_under: Callable[[Distribution, np.ndarray], np.ndarray],
    scope: Scope,
) -> tuple[dict[Key, Estimate], list[str]]:
    """Give estimates the error of a censoring distribution that is fitted to bootstrap samples; and notes.

    ``values_under`` gives all values, one after the other, under a refitted censoring distribution and the
    weights (n, m) of the drawn subjects.

    Clusters of training subjects are drawn with replacement. Where some training subjects are scored, all
    clusters are drawn, and the spread of the values over the samples is the whole error. Where none is, the
    scored subjects stay as they are, and their influences are added.

    References
    ----------
    .. [1] Efron, B. and Tibshirani, R. J. (1993). An Introduction to the Bootstrap. Chapman and Hall.
    """
    censoring, units, weight = scope.censoring, scope.units, scope.weight
    refit, train = censoring.refit, censoring.train
    assert refit is not None
    assert train is not None
    refits = as_count(refit.count, "refits", least=2, most=10**6)
    first = 0 if units.overlap else units.count_scored
    count = units.count - first
    rng = separate_stream(scope.seed)
    drawn: list[np.ndarray] = []
    failures = 0
    started = perf_counter()
    for _ in track(range(refits), "refitting the censoring distribution", refits, show=scope.progress):
        while True:
            times = np.bincount(rng.integers(count, size=count), minlength=count)
            training = np.repeat(np.arange(censoring.n_train), times[units.trained - first])
            w = weight * times[units.scored][:, None] if units.overlap else weight
            try:
                drawn.append(values_under(refit(train.take(training), censoring.scored_X), w))
                if len(drawn) == 1 and not scope.progress:
                    _announce((refits - 1) * (perf_counter() - started), refits)
                break
            except CenscoreError as error:
                failures += 1
                if failures > refits:
                    raise InvalidInputError(
                        f"The censoring distribution could not be fitted to bootstrap samples: {error} Pass "
                        "a smaller horizon, a penalty to the estimator, or a distribution taken as known."
                    ) from error
    spread, pulled = _spread(np.stack(drawn))
    notes = []
    if failures:
        notes.append(
            f"{failures} bootstrap samples were drawn again, since no censoring distribution could be fitted."
        )
    if pulled:
        notes.append(
            f"{pulled} of {refits} bootstrap samples gave mean scores more than {FAR:g} robust standard "
            "deviations from the others and were pulled in to that distance: the censoring distribution is "
            "hard to estimate here, and its standard errors are rough."
        )
    alone = {key: each.without_contributions() if units.overlap else each for key, each in estimates.items()}
    columns = np.split(spread, np.cumsum([len(each.value) for each in estimates.values()])[:-1], axis=1)
    added = zip(alone.items(), columns, strict=True)
    return {key: each.with_contributions(of, "refits of C") for (key, each), of in added}, notes


def _announce(seconds: float, refits: int) -> None:
    """Say what the refits will cost, where that is long, once the first of them is known."""
    if seconds >= LONG:
        logging.getLogger("censcore").warning(
            "Standard errors: the censoring distribution is fitted to %d bootstrap samples, about %.0f "
            "seconds. progress=True shows a bar, Censoring(..., refits=) takes fewer samples, and "
            "Censoring(KaplanMeier()) and Censoring(CoxRegression()), also at the end of a pipeline, need "
            "none.",
            refits,
            seconds,
        )


def _spread(means: np.ndarray) -> tuple[np.ndarray, int]:
    r"""Entries whose sum of squares is the variance over refits (B, columns), and how many were pulled in.

    A refit whose deviation from the median exceeds :math:`c\,\mathrm{IQR}/1.349` in some column is scaled
    as a whole, and deviations are then taken from one weighted mean, so that sums of means stay sums.
    """
    with np.errstate(invalid="ignore"):
        low, middle, high = np.quantile(means, [0.25, 0.5, 0.75], axis=0)
        deviation = means - middle
        scale = (high - low) / 1.349
        known = np.isfinite(scale) & (scale > 0)
        far = np.max(np.abs(deviation[:, known]) / scale[known], axis=1, initial=0.0)
    shrink = np.where(np.isfinite(far) & (far > FAR), FAR / np.maximum(far, FAR), 1.0)
    with np.errstate(invalid="ignore"):
        pulled = (means - shrink @ means / shrink.sum()) * shrink[:, None]
        return pulled / np.sqrt(len(means) - 1), int((shrink < 1).sum())
