"""The losses of forecasts, and their means with influences."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from time import perf_counter
from typing import NamedTuple, TypeVar

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

Means = dict[tuple[int, str, str], Estimate]
"""Means with their influences, by number of the subset, forecast and name of the score."""


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


class Scored(NamedTuple):
    """The losses of one forecast."""

    losses: dict[str, np.ndarray]  #: (n, q), by name of the score
    unavailable: dict[str, str]  #: why there are none, by name of the score
    parts: list[ScoredPart]  #: subjects who share their curves, for derivatives


def score_case(case: Case, scores: Sequence[CaseScore]) -> Scored:
    """Score a forecast: part by part, so that a curve that the subjects of a fold share stays shared."""
    pieces, scored = case.parts(), Scored({}, {}, [])
    for score in scores:
        try:
            scored.losses[score.name] = losses_of(score, case, pieces)
        except NoDensityError:
            title = score.title.removesuffix(f", {score.outcome}")
            scored.unavailable[score.name] = f"a forecast distribution without a density has no {title}."
        except (PositivityError, UnknownCurveError) as error:
            if isinstance(error, PositivityError) and not score.ipcw:
                raise
            known = score.axis == "time" and _losses_at_times(score, case, scored)
            if not known:
                scored.unavailable[score.name] = why_unavailable(error)
    for rows, piece in pieces:
        own = {name: values[rows] for name, values in scored.losses.items()}
        scored.parts.append(ScoredPart(piece, own, rows))
    return scored


def notes_on_unavailable(unavailable: Mapping[tuple[str, str], str]) -> list[str]:
    """Say why scores are not available, by forecast and score; once each."""
    models: dict[tuple[str, str], list[str]] = {}
    for (model, score), reason in unavailable.items():
        models.setdefault((score, reason), []).append(model)
    scores: dict[tuple[str, str], list[str]] = {}
    for (score, reason), of in models.items():
        scores.setdefault((reason, ", ".join(of)), []).append(score)
    return [f"{', '.join(names)}: {why} Not available for {of}." for (why, of), names in scores.items()]


def why_unavailable(error: PositivityError | UnknownCurveError) -> str:
    """Why there is no number: the forecast is known at another time alone, or follow-up is too short."""
    if isinstance(error, UnknownCurveError):
        return f"the forecast is known at t = {error.time:g} alone."
    return str(error)


def _losses_at_times(score: CaseScore, case: Case, scored: Scored) -> bool:
    """Take losses, NaN at times that are unknown or not reached by all, if there are any others."""
    columns, unreached = [], {}
    for t in case.times:
        try:
            columns.append(score.losses(replace(case, times=np.array([t]))))
        except (PositivityError, UnknownCurveError) as error:
            columns.append(np.full((len(case.y), 1), np.nan))
            unreached[f"{score.name} at {t:g}"] = why_unavailable(error)
    if len(unreached) == len(columns):
        return False
    scored.losses[score.name] = np.concatenate(columns, axis=1)
    scored.unavailable.update(unreached)
    return True


def estimate_means(
    scored: Mapping[str, Scored], cases: Mapping[str, Case], scores: Sequence[CaseScore], scope: Scope
) -> tuple[Means, list[str]]:
    """Means of all losses in all subsets, with the influence of whatever was estimated; and notes."""
    censoring, values = scope.censoring, Means()
    for model, each in scored.items():
        known = {score.name: score for score in scores if score.name in each.losses}
        joined = join(each.parts, known, scope.weight, censoring.parts, scope.units)
        values |= {(s, model, name): mean for (s, name), mean in joined.items()}
    if censoring.refit is None:
        return values, []
    keys = [(s, m, k) for m, of in scored.items() for k in of.losses for s in range(scope.weight.shape[1])]
    means_under = partial(_means_under, scored, cases, scores)
    return with_refits({key: values[key] for key in keys}, means_under, scope)


def shares_of(weight: np.ndarray, counted: np.ndarray | None) -> np.ndarray:
    """Weights (n, m) of the subjects that count, each column with the sum one; zero where nobody does."""
    if counted is None:
        return weight
    weight = np.where(counted[:, None], weight, 0.0)
    total = weight.sum(axis=0)
    return weight / np.where(total > 0, total, 1.0)


def method_of(censoring: ResolvedCensoring, overlap: bool = False) -> str:
    """How standard errors account for the censoring distribution, in words.

    ``overlap`` says whether scored subjects are among those that it was fitted to.
    """
    if censoring.refit is not None:
        whom = "all subjects" if overlap else "the training subjects"
        return (
            f"bootstrap: the censoring distribution fitted again to {censoring.refit.count} samples of {whom}"
        )
    if censoring.parts:
        return "influence function, with the term of the estimated censoring distribution"
    if censoring.estimated:
        return "per subject, the censoring distribution being taken as known"
    return "per subject, the censoring distribution being known"


# ---- by refitting --------------------------------------------------------------------------------------


def _means_under(
    scored: Mapping[str, Scored],
    cases: Mapping[str, Case],
    scores: Sequence[CaseScore],
    C: Distribution,
    weight: np.ndarray,
) -> np.ndarray:
    """All means, one after the other, under a censoring distribution."""
    means = []
    for model, case in cases.items():
        again = replace(case, C=C)
        for score in scores:
            if (losses := scored[model].losses.get(score.name)) is not None:
                refitted = score_case(again, [score])
                values = refitted.losses.get(score.name, np.full_like(losses, np.nan))
                if (np.isnan(values) > np.isnan(losses)).any():
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
