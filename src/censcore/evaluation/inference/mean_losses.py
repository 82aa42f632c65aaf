"""All losses of a comparison, and their means with influences."""

from __future__ import annotations

import logging
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import pairwise, product
from time import perf_counter

import numpy as np

from censcore._validation import as_count
from censcore.distributions import Distribution
from censcore.evaluation.inference.estimates import UNITS, Estimate, separate_stream
from censcore.evaluation.inference.resolved_censoring import ResolvedCensoring
from censcore.evaluation.inference.units import Units, sums_within
from censcore.evaluation.measures.case import Case
from censcore.evaluation.measures.case_scores import CaseScore
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

    subsets: list[Subset]
    censoring: ResolvedCensoring
    units: Units
    seed: int = 0
    progress: bool | None = None

    @property
    def weight(self) -> np.ndarray:
        """Weights of the subjects in each subset, (n, m)."""
        return np.column_stack([subset.weight for subset in self.subsets])


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
    losses = Losses({}, {}, scores)
    keys = [(model, score.name) for model in cases for score in scores]
    for key, (case, score) in zip(keys, product(cases.values(), scores), strict=True):
        try:
            losses.values[key] = score.losses(case)
        except NoDensityError:
            title = score.title.removesuffix(f", {score.outcome}")
            losses.unavailable[key] = f"a forecast distribution without a density has no {title}."
        except UnknownCurveError as error:
            at_times = _losses_at_times(score, case, losses, key[0]) if score.axis == "time" else None
            if at_times is None:
                losses.unavailable[key] = why_unavailable(error)
            else:
                losses.values[key] = at_times
        except PositivityError as error:
            if not score.ipcw:
                raise
            at_times = _losses_at_times(score, case, losses, key[0]) if score.axis == "time" else None
            if at_times is None:
                losses.unavailable[key] = str(error)
            else:
                losses.values[key] = at_times
    return losses


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


def estimate_means(losses: Losses, cases: dict[str, Case], scope: Scope) -> Means:
    """Means of all losses in all subsets, with the influence of whatever was estimated."""
    censoring, units, weight = scope.censoring, scope.units, scope.weight
    if censoring.refit is not None:
        return _means_by_refitting(losses, cases, scope)
    values, counted, m = {}, weight[:, 0] > 0, weight.shape[1]
    everyone = np.arange(censoring.n_train)
    names = {score.name: score for score in losses.scores}
    for model, case in cases.items():
        scored = {name: score for name, score in names.items() if (model, name) in losses.values}
        who = {name: score.counted(case) for name, score in scored.items()}
        for alike in _alike(who):  # scores over the same subjects, side by side
            w, every = shares_of(weight, who[alike[0]]), [losses.values[model, name] for name in alike]
            ends = np.cumsum([0, *(each.shape[1] for each in every)])
            xi = np.zeros((censoring.n_train, m, ends[-1]))
            for part in censoring.parts:
                rows = slice(None) if np.array_equal(part.training, everyone) else part.training
                xi[rows] += part.influence_on([scored[name] for name in alike], every, case, w)
            together = np.concatenate(every, axis=1)
            for s in range(m):
                means = mean_with_influence(together, w[:, s], units, xi[:, s], counted)
                for name, (first, end) in zip(alike, pairwise(ends), strict=True):
                    own = np.ascontiguousarray(means.influence[:, first:end])  # as a copy has it
                    values[s, model, name] = Estimate(means.value[first:end], own, rows=means.rows)
    return Means(values, method_of(censoring))


def _alike(counted: dict[str, np.ndarray | None]) -> list[list[str]]:
    """The scores whose means are over the same subjects."""
    alike: dict[bytes | None, list[str]] = {}
    for name, who in counted.items():
        alike.setdefault(None if who is None else who.tobytes(), []).append(name)
    return list(alike.values())


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


def mean_with_influence(
    losses: np.ndarray, weight: np.ndarray, units: Units, xi: np.ndarray, counted: np.ndarray
) -> Estimate:
    r"""Take a weighted mean of losses with its influence by unit, xi (n_train, q) being that of C.

    .. math:: \psi_j=\sqrt{\frac g{g-1}}\sum_{i\in j}\{w_i(\ell_i-\bar\ell)+\xi_i\}

    for the g units with scored subjects, and without the factor for units of training subjects alone. Where
    C was fitted to scored subjects, the g units are those of the subjects ``counted`` in the whole sample.
    """
    used = weight > 0
    if not used.any():  # nobody counts
        return Estimate(np.full(losses.shape[1], np.nan), np.zeros((1, losses.shape[1])), rows={UNITS: FIRST})
    with np.errstate(invalid="ignore", over="ignore"):  # infinity less infinity, and beyond all floats
        mean = weight[used] @ losses[used]
        psi = np.where(used[:, None], weight[:, None] * (losses - mean), 0.0)
    number, g = units.numbers(counted if len(xi) and units.overlap else used, trained=len(xi) > 0)
    psi = sums_within(psi, units.scored, units.count)
    if len(xi):
        psi = psi + sums_within(xi, units.trained, units.count)
    psi = psi if len(number) == len(psi) else psi[number]
    with np.errstate(over="ignore"):
        psi[:g] *= np.sqrt(g / (g - 1)) if g > 1 else np.nan
    return Estimate(mean, psi, rows={UNITS: number})


FIRST = np.zeros(1, dtype=np.intp)


# ---- by refitting --------------------------------------------------------------------------------------


def _means_by_refitting(losses: Losses, cases: dict[str, Case], scope: Scope) -> Means:
    """Fit the censoring distribution to bootstrap samples, and take all means again.

    Clusters of training subjects are drawn with replacement. Where some training subjects are scored, all
    clusters are drawn, and the spread of the means over the samples is the whole error. Where none is, the
    scored subjects stay as they are, and their influences are added.

    References
    ----------
    .. [1] Efron, B. and Tibshirani, R. J. (1993). An Introduction to the Bootstrap. Chapman and Hall.
    """
    weight, units, refit = scope.weight, scope.units, scope.censoring.refit
    spread, notes = spread_over_refits(partial(_means_under, losses, cases), scope)
    values: dict[tuple[int, str, str], Estimate] = {}
    start = 0
    for (model, name), of_score in losses.values.items():
        q = of_score.shape[1]
        score = next(score for score in losses.scores if score.name == name)
        shares = shares_of(weight, score.counted(cases[model]))
        for s in range(weight.shape[1]):
            mean = mean_with_influence(of_score, shares[:, s], units, np.zeros((0, q)), weight[:, 0] > 0)
            of_mean = spread[:, start + s * q : start + (s + 1) * q]
            values[s, model, name] = with_refits(mean, of_mean, units)
        start += q * weight.shape[1]
    assert refit is not None
    count, whom = refit.count, "all subjects" if units.overlap else "the training subjects"
    method = f"bootstrap: the censoring distribution fitted again to {count} samples of {whom}"
    return Means(values, method, notes)


def with_refits(estimate: Estimate, spread: np.ndarray, units: Units) -> Estimate:
    """Put refits in place of the units that are drawn for them, or beside units that are not."""
    drawn = Estimate(estimate.value, spread[:0]) if units.overlap else estimate
    return drawn.with_contributions(spread, "refits of C")


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
                for w in shares_of(weight, score.counted(case)).T:
                    with np.errstate(invalid="ignore", divide="ignore"):
                        means.append(w[w > 0] @ values[w > 0] / w.sum())
    return np.concatenate(means)


LONG = 10.0  # seconds of refits that are announced
FAR = 5.0  # robust standard deviations from the median, beyond which a refit is pulled in


def spread_over_refits(
    values_under: Callable[[Distribution, np.ndarray], np.ndarray], scope: Scope
) -> tuple[np.ndarray, list[str]]:
    """Entries (refits, columns) whose squares sum to the variance over bootstrap samples, and notes.

    ``values_under`` gives all values, one after the other, under a refitted censoring distribution and the
    weights (n, m) of the drawn subjects.
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
    return spread, notes


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
