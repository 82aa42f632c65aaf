"""Interval-censored event times: forecasts are sent through the visits, and judged by the detection time.

The first visit at or after T is right-censored data. The comparison of forecasts of it is the comparison of
the forecasts. The log score is that of the intervals themselves.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, ClassVar, NoReturn, Self

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Distribution, Step
from censcore.distributions.derived.dropout import LastVisit
from censcore.estimators import Censoring, KaplanMeier, Turnbull
from censcore.estimators.censoring.censoring_choice import CensoringChoice
from censcore.evaluation.decisions.asked import Asked, check_one_time
from censcore.evaluation.decisions.horizon import given_horizon
from censcore.evaluation.kinds.kind import Named
from censcore.evaluation.kinds.one_time import OneTime
from censcore.evaluation.measures.case import Case, as_losses
from censcore.evaluation.measures.case_scores import CaseScore, WithoutCensoring
from censcore.evaluation.sample import Sample, in_numpy
from censcore.exceptions import UnsupportedOutcomeError
from censcore.outcomes import IntervalCensored, RightCensored
from censcore.outcomes.detection_times import DetectionTimes
from censcore.scores import SCORES
from censcore.scores.rules.interval import detection_forecast, interval_log_score, on_own_visits

TURNBULL = "turnbull"


@dataclass(frozen=True)
class IntervalLog(WithoutCensoring):
    """The log score of the intervals, by the forecast of T, up to the horizon that was asked for."""

    whole: ClassVar[bool] = True

    until: float | None = None

    def losses(self, case: Case) -> np.ndarray:
        """One loss per subject, (n, 1)."""
        assert case.source is not None
        y, F = case.source
        return as_losses(interval_log_score(y, F, horizon=self.until if y.visits is not None else None))


@dataclass(frozen=True, eq=False)
class Intervals(OneTime):
    """Intervals in which the event times are, with the visits that found them."""

    #: The detection times; with drop-out, censored before the first visit that a subject misses.
    detected: RightCensored | None = None
    until: float | None = None  #: the horizon that was asked for, or the last visit where nobody drops out

    reference: ClassVar[str] = TURNBULL
    described: ClassVar[str] = "an interval-censored outcome"
    called: ClassVar[str] = "intervals"
    has_batches: ClassVar[bool] = False  # drop-out is estimated by the number of the visit
    default_scores: ClassVar[tuple[str, ...]] = (
        "log_score", "crps", "brier_score", "binomial_log_score", "pinball_score",
    )  # fmt: skip

    @classmethod
    def settle(cls, asked: Asked) -> tuple[Self, Asked]:
        """The detection times, and the horizon where nobody drops out: the last visit, if none is given."""
        check_one_time(asked, "names", "events")
        y = cls.read_outcome(asked.sample.y)
        horizon = given_horizon(asked.horizon)
        censoring = drop_out_estimator(y, horizon) if asked.censoring is None else asked.censoring
        detected, tau = detection_times(y, censoring is not None, horizon)
        in_time = isinstance(censoring, Distribution) and not isinstance(censoring, LastVisit)
        if y.visits is not None and in_time:
            censoring = on_own_visits(y, censoring, np.inf if tau is None else tau)
        asked = replace(
            asked, censoring=censoring, horizon=asked.horizon if tau is None else tau, discrimination=False
        )
        return cls(y, detected, tau), asked

    @classmethod
    def read_outcome(cls, y: Any) -> Any:
        """The intervals."""
        return in_numpy(y)

    def read_training(self, train: Sample, notes: list[str]) -> Sample:
        """Whatever the reference takes; drop-out is estimated from intervals with visits."""
        return train.checked(
            lambda y: in_numpy(y) if isinstance(y, IntervalCensored) else OneTime.read_outcome(y)
        )

    def events_of(self, y: Any) -> Any:
        """Detection times. Subjects are followed to the first visit that they miss, or to the last."""
        if y is self.y and self.detected is not None:
            return self.detected
        if not isinstance(y, IntervalCensored):
            return y
        if y.visits is None or self.y.visits is None:
            return detection_times(y, False, None)[0]
        until = float(to_numpy(self.y.last_visit).max()) if self.until is None else self.until
        return y.detection(until, dropout=True)

    def strata(self) -> np.ndarray:
        """Whether the event was found."""
        return to_numpy(self.y.found)

    def censoring_estimator(self) -> Any:
        """The estimator of drop-out, where subjects drop out."""
        return drop_out_estimator(self.y, self.until)

    def choose_censoring(self, pooled: Any, subjects: Sample, seed: int) -> CensoringChoice:
        """Drop-out by the number of the visit, without covariates."""
        why = (
            "nobody drops out" if pooled is None else "drop-out by the number of the visit, the same for all"
        )
        return CensoringChoice(pooled, why)

    def event_times(self) -> np.ndarray:
        """None: visits find the events later."""
        return np.zeros(0)

    # ---- forecasts -------------------------------------------------------------------------------------

    def as_forecast(self, forecast: Any, X: Any, n: int, train: Any = None) -> Distribution:
        """A forecast of T, for any observations of the training subjects."""
        return super().as_forecast(forecast, X, n)

    def settled(self, forecasts: Named, train: Sample | None, horizon: float, notes: list[str]) -> Named:
        """Forecasts of T in the precision of the intervals."""
        return {name: F.like(self.y.lower) for name, F in forecasts.items()}

    def given_entry(self, name: str, F: Any, horizon: float) -> Any:
        """The same, since T is given survival to the entry before it is sent through the visits."""
        return F

    def reference_model(self, train: Any) -> Any:
        """Turnbull's estimate: mass is spread over the intervals, unless some times are exact."""
        spread = isinstance(train, IntervalCensored) and not bool(train.exact.any())
        return Turnbull("uniform" if spread else "right")

    # ---- what is scored --------------------------------------------------------------------------------

    def possible_scores(self, base: str, named: bool) -> list[CaseScore]:
        """A score of detection times, or of the intervals for the log score, which alone needs no visits."""
        if base == "log_score":
            return [IntervalLog(SCORES[base], self.until)]
        return [] if self.y.visits is None else super().possible_scores(base, named)

    def raise_no_score(self, name: str) -> NoReturn:
        """Raise an error that says what the other scores need."""
        if self.y.visits is None:
            self.y.detection()
            raise UnsupportedOutcomeError(
                f"{name}: got exact and right-censored times as IntervalCensored without visits, which "
                "only the log score takes. Pass y.detection(), the same data as RightCensored."
            )
        super().raise_no_score(name)

    def case(self, F: Any, C: Distribution, *where: Any, **beside: Any) -> Case:
        """The forecast of the detection time, with that of T beside it."""
        return super().case(self.timed(F), C, *where, source=(self.y, F), **beside)

    def timed(self, F: Any) -> Step:
        """The forecast sent through the visits."""
        if self.y.visits is not None:
            return detection_forecast(self.y, F)
        # only the log score is taken, and of this curve only the shape is used
        ends = np.concatenate([to_numpy(self.y.lower), to_numpy(self.y.upper)])
        times = np.unique(np.quantile(ends[np.isfinite(ends) & (ends > 0)], np.linspace(0, 1, 21)))
        return Step(times, sf=to_numpy(F.marginal(0).sf(times[None, :])))

    # ---- reporting -------------------------------------------------------------------------------------

    @property
    def notes(self) -> list[str]:
        """How intervals are compared."""
        if self.y.visits is None:
            return ["Intervals without examination times: the log score of the intervals."]
        left = isinstance(self.detected, DetectionTimes)
        return [
            "Interval-censored data: forecasts of T are judged by the detection time, the first visit at or "
            "after T, and by the log score of the intervals."
            + (" Who drops out is followed to the first planned visit that it misses." if left else "")
            + " Concordance and AUC, which order event times, are left out."
        ]


def drop_out_estimator(y: IntervalCensored, horizon: float | None) -> Any:
    """The estimator of drop-out where subjects drop out before the horizon; else None."""
    if y.visits is None:
        return None
    gone = y.dropped_out(np.inf if horizon is None else horizon)
    return Censoring(KaplanMeier()) if bool(gone.any()) else None


def detection_times(
    y: IntervalCensored, dropout: bool, horizon: float | None
) -> tuple[RightCensored, float | None]:
    """The detection times, and the horizon where nobody drops out: the last visit, if none is given.

    With ``dropout`` subjects are censored before the first visit that they miss; the distribution of C is
    known or estimated. Otherwise all planned visits took place, and C is the horizon. Without visits all
    that is scored is the log score, of the intervals themselves.
    """
    if y.visits is None:
        event = to_numpy(y.found)
        time = np.where(event, to_numpy(y.upper), to_numpy(y.lower))
        return RightCensored(time, event, np.where(event, time.max(), time)), horizon
    y.check_planned_visits("A comparison")
    tau = float(to_numpy(y.last_visit).max()) if horizon is None else horizon
    if dropout:
        return y.detection(tau, dropout=True), horizon
    return y.detection(until=tau).with_entry(None), tau  # F is given T > entry
