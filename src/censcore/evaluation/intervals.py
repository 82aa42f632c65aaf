"""Comparisons on interval-censored data: forecasts and outcomes of the detection time, compared as usual.

Every forecast is sent through the visits, and the first visit at or after T is right-censored data. The
comparison of these is the comparison of the forecasts. The log score is that of the intervals themselves.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import wraps
from inspect import signature
from typing import Any, ClassVar, ParamSpec

import numpy as np
from sklearn.base import clone

from censcore._arrays import Array, is_torch, to_numpy
from censcore.distributions import Distribution, Step
from censcore.distributions.last_visit import LastVisit
from censcore.estimators import Censoring, KaplanMeier, Turnbull, as_forecast
from censcore.estimators.covariates import fit_weighted
from censcore.evaluation.case_scores import CASE_SCORES, DEFAULT_SCORES, CaseScore, Custom
from censcore.evaluation.comparison import Comparison
from censcore.evaluation.horizon import given_horizon
from censcore.evaluation.joint_scores import JOINT
from censcore.evaluation.reference import KAPLAN_MEIER
from censcore.exceptions import InvalidInputError, NoDensityError, UnsupportedOutcomeError
from censcore.outcomes import IntervalCensored, RightCensored, as_followed
from censcore.outcomes.detection_times import DetectionTimes
from censcore.scores import SCORES
from censcore.scores.interval import detection_forecast, interval_log_score, on_own_visits

__all__ = [
    "TURNBULL",
    "detected",
    "drop_out_estimator",
    "followed",
    "score_of_intervals",
    "sent_through",
    "taking_intervals",
    "turnbull_for",
]

P = ParamSpec("P")
TURNBULL = "turnbull"
NAMES = ("log_score", "crps", "brier_score", "binomial_log_score", "pinball_score")


class Detection(Step):
    """A forecast of the detection time that remembers its losses by the log score of the intervals."""

    _arrays: ClassVar[tuple[str, ...]] = ("_times", "_levels", "_losses")

    @classmethod
    def of(cls, step: Step, losses: np.ndarray) -> Detection:
        """A step distribution, and losses (n,)."""
        times, sf = step._steps()
        made = cls._trusted(times, sf, falls=True)
        made._losses = losses[:, None]
        return made

    _losses: np.ndarray

    def given_survival(self, a: Array) -> Detection:
        """The same, since T was given survival to the entry before it was sent through the visits."""
        return self


def log_score_of_intervals(
    y: RightCensored, forecast: Distribution, censoring: Distribution | None = None, *, horizon: Any = None
) -> np.ndarray:
    """The losses that were computed from the intervals."""
    if not isinstance(forecast, Detection):
        raise NoDensityError("The log score of intervals is known for forecasts sent through visits only.")
    if np.isnan(forecast._losses).any():
        raise NoDensityError("There is no density at times that are known exactly.")
    return np.broadcast_to(forecast._losses[:, 0], (len(y),))


def taking_intervals(compare: Callable[P, Comparison]) -> Callable[P, Comparison]:
    """``compare`` that also takes an :class:`~censcore.IntervalCensored` outcome."""

    @wraps(compare)
    def either(*args: P.args, **options: P.kwargs) -> Comparison:
        bound = signature(compare).bind(*args, **options)
        y = bound.arguments.get("y")
        if not isinstance(y, IntervalCensored):
            return compare(*args, **options)
        of_detection: Callable[..., Comparison] = compare
        comparison = of_detection(**_of_detection(dict(bound.arguments), y))
        comparison.notes.insert(0, _note(y, isinstance(comparison.outcome, DetectionTimes)))
        return comparison

    return either


def _of_detection(given: dict[str, Any], y: IntervalCensored) -> dict[str, Any]:
    """The arguments of a comparison of detection times."""
    y = y.like(np.zeros(1)) if is_torch(y.lower) else y
    given |= {"scores": _scores(given.get("scores", DEFAULT_SCORES), y), "discrimination": False}
    horizon = given_horizon(given.get("horizon", "auto"))
    censoring = given["censoring"] = drop_out_estimator(given.get("censoring"), y, horizon)
    outcome, tau = detected(y, censoring is not None, horizon)
    if tau is not None:
        given["horizon"] = tau
    if y.visits is not None and isinstance(censoring, Distribution) and not isinstance(censoring, LastVisit):
        given["censoring"] = on_own_visits(y, censoring, np.inf if tau is None else tau)

    def sent(forecast: Any) -> Detection:
        F = as_forecast(forecast, given.get("X"), n=len(y))
        return sent_through(y, F.like(y.lower), tau)

    _add_reference(given)
    given["forecasts"] = {str(name): sent(forecast) for name, forecast in given["forecasts"].items()}
    if given.get("train") is not None:
        X_train, y_train = given["train"]
        if _has_visits(y_train):
            given["train"] = (X_train, y_train.detection(_until(y, tau), dropout=True))
        else:
            del given["train"]
    return given | {"y": outcome}


def drop_out_estimator(censoring: Any, y: IntervalCensored, horizon: float | None) -> Any:
    """The estimator of drop-out where none is given and subjects drop out before the horizon; else None."""
    if censoring is not None or y.visits is None:
        return censoring
    gone = y.dropped_out(np.inf if horizon is None else horizon)
    return Censoring(KaplanMeier()) if bool(gone.any()) else None


def followed(y: Any) -> RightCensored:
    """How long subjects were followed: of intervals with visits, who attended all of them, to the last."""
    return y.detection(_until(y, None), dropout=True) if _has_visits(y) else as_followed(y)


def _until(y: IntervalCensored, horizon: float | None) -> float:
    """The end of the score as far as it is known: the horizon, or the last of all visits."""
    return float(to_numpy(y.last_visit).max()) if horizon is None else horizon


def detected(y: IntervalCensored, dropout: bool, horizon: float | None) -> tuple[RightCensored, float | None]:
    """The detection times, and the horizon where nobody drops out: the last visit, if none is given.

    With ``dropout`` subjects are censored before the first visit that they miss; the distribution of C is
    known or estimated. Otherwise all planned visits took place, and C is the horizon. Without visits all
    that is scored is the log score, of the intervals themselves.
    """
    if y.visits is None:
        found = to_numpy(y.found)
        seen = np.where(found, to_numpy(y.upper), to_numpy(y.lower))
        return RightCensored(seen, found, np.where(found, seen.max(), seen)), horizon
    y.check_planned_visits("A comparison")
    tau = _until(y, horizon)
    if dropout:
        return y.detection(tau, dropout=True), horizon
    outcome = y.detection(until=tau)
    return RightCensored(outcome.time, outcome.event, outcome.censoring_time), tau  # F is given T > entry


def _has_visits(y: Any) -> bool:
    return isinstance(y, IntervalCensored) and y.visits is not None


def sent_through(y: IntervalCensored, F: Distribution, tau: float | None) -> Detection:
    """The forecast of the detection time, with the losses by the log score of the intervals.

    They are unknown (NaN) where times are exact and the forecast has no density.
    """
    try:
        losses = to_numpy(interval_log_score(y, F, horizon=tau if y.visits is not None else None))
    except NoDensityError:
        losses = np.full(len(y), np.nan)
    if y.visits is None:  # the log score alone, so that the curve serves for nothing but its shape
        ends = np.concatenate([to_numpy(y.lower), to_numpy(y.upper)])
        times = np.unique(np.quantile(ends[np.isfinite(ends) & (ends > 0)], np.linspace(0, 1, 21)))
        return Detection.of(Step(times, sf=to_numpy(F.marginal(0).sf(times[None, :]))), losses)
    return Detection.of(detection_forecast(y, F), losses)


def _scores(scores: Any, y: IntervalCensored) -> dict[str, Any]:
    """The scores asked for, with the log score of intervals in place of that of right-censored data."""
    default = scores is DEFAULT_SCORES
    if isinstance(scores, str):
        scores = list(CASE_SCORES) if scores == "all" and y.visits is not None else [scores]
    names = NAMES if default else scores
    if y.visits is None:
        if not default:
            for name in names:
                check_visits(y, name)
        names = ["log_score"]
    chosen: dict[str, Any] = dict(names) if isinstance(names, Mapping) else dict.fromkeys(names)
    if "log_score" in chosen:
        chosen["log_score"] = LOG_SCORE
    return chosen


LOG_SCORE = replace(SCORES["log_score"], function=log_score_of_intervals)


def check_visits(y: IntervalCensored, score: str) -> None:
    """An error where a score needs the visits, which are missing."""
    if y.visits is None and score not in ("log_score", "all"):
        y.detection()  # an error that says what the other scores need
        raise UnsupportedOutcomeError(
            f"{score}: got exact and right-censored times as IntervalCensored without visits, of which the "
            "log score alone is taken. Pass y.detection(), the same data as RightCensored."
        )


def score_of_intervals(score: CaseScore, y: IntervalCensored) -> CaseScore:
    """A score of detection times, or of the intervals themselves for the log score."""
    check_visits(y, score.name)
    if score.outcome == JOINT:
        raise InvalidInputError(
            f"{score.name}: got an interval-censored outcome of one event time, expected several of them, "
            f"(n, k). Its energy score is the CRPS: use scorer('crps'), or one of {', '.join(NAMES)}."
        )
    return Custom.of(score.name, LOG_SCORE) if score.name == "log_score" else score


def _add_reference(given: dict[str, Any]) -> None:
    """Fit the reference to the intervals of the training subjects; Turnbull's estimate is the default."""
    reference, train = given.get("reference", KAPLAN_MEIER), given.get("train")
    forecasts = given["forecasts"] = dict(given["forecasts"])
    if reference is None or (isinstance(reference, str) and reference in forecasts):
        return
    if isinstance(reference, Distribution):
        forecasts["reference"], given["reference"] = reference, "reference"
        return
    if train is None:
        return
    X_train, y_train = train
    if isinstance(reference, str):
        if reference not in (KAPLAN_MEIER, TURNBULL):
            raise InvalidInputError(
                f"reference {reference!r} is none of the forecasts: {', '.join(forecasts)}."
            )
        reference, name = turnbull_for(y_train), TURNBULL
    else:
        reference, name = clone(reference), "reference"
    forecasts[name] = fit_weighted(reference, X_train, y_train, given.get("train_weight"))
    given["reference"] = name


def turnbull_for(y: Any) -> Turnbull:
    """The reference: mass is spread over the intervals, unless some times are exact."""
    return Turnbull("uniform" if isinstance(y, IntervalCensored) and not bool(y.exact.any()) else "right")


def _note(y: IntervalCensored, dropout: bool) -> str:
    if y.visits is None:
        return "Intervals without examination times: the log score of the intervals."
    return (
        "Interval-censored data: forecasts of T are judged by the detection time, the first visit at or "
        "after T, and by the log score of the intervals."
        + (" Who drops out is followed to the first planned visit that it misses." if dropout else "")
        + " Concordance and AUC, which order event times, are left out."
    )
