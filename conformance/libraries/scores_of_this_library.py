"""The cases by the scores, estimators and metrics of this library, with their defaults."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore.distributions import (
    CumulativeIncidence,
    Distribution,
    Ensemble,
    Exponential,
    PointMass,
    Step,
    Uniform,
)
from censcore.estimators import AalenJohansen, Censoring, KaplanMeier
from censcore.evaluation import concordance, dynamic_auc
from censcore.outcomes import CompetingRisks, RightCensored
from censcore.published import d_calibration, ipcw_binomial_log
from censcore.scores import (
    binomial_log_score,
    brier_score,
    crps,
    energy_score,
    integrated_brier_score,
    log_score,
    pinball_score,
)
from conformance.case import Case, Observed, numbers
from conformance.libraries.needs import risk_of

__all__ = ["ADAPTER"]


def _outcome(seen: Observed) -> Any:
    if seen.cause is not None:
        return CompetingRisks(seen.time, seen.cause, entry=seen.entry)
    return RightCensored(seen.time, seen.event, entry=seen.entry)


def _forecast(case: Case) -> Any:
    given = case.forecast
    assert given is not None
    kind = given["kind"]
    if kind == "steps":
        return Step(numbers(given["times"]), sf=np.atleast_2d(numbers(given["sf"])))
    if kind == "ensemble":
        return Ensemble(numbers(given["members"]))
    if kind == "exponential":
        return Exponential(float(numbers(given["rate"])))
    if kind == "uniform":
        return Uniform(0.0, float(numbers(given["high"])))
    return CumulativeIncidence(numbers(given["times"]), numbers(given["cif"]))


def _censoring(case: Case) -> Distribution | None:
    given = case.censoring
    if given is None:
        return None
    kind = given["kind"]
    if kind == "kaplan-meier":
        return _censoring_curve(case.train)
    if kind == "known":
        return PointMass(numbers(given["time"]))
    if kind == "steps":
        return Step(numbers(given["times"]), sf=numbers(given["sf"]))
    if kind == "uniform":
        return Uniform(0.0, float(numbers(given["high"])))
    return PointMass(np.inf)


def _censoring_curve(seen: Observed) -> Any:
    y = _outcome(seen)
    y = y.any_cause() if seen.cause is not None else y
    fitted = Censoring(KaplanMeier()).fit(None, y, sample_weight=seen.weight)
    return fitted.predict_distribution()


def _mean(case: Case, losses: Any) -> np.ndarray:
    return np.atleast_1d(np.average(losses, axis=0, weights=case.outcome.weight))


def _score(score: Any, *arguments: str, **options: Any) -> Any:
    """A function of a case that calls the score with those arguments of the case that it has."""

    def of(case: Case) -> np.ndarray:
        given = {name: case.arguments[name] for name in arguments if name in case.arguments}
        y, F, C = _outcome(case.outcome), _forecast(case), _censoring(case)
        return _mean(case, score(y, F, C, **given, **options))

    return of


def _of_cause(case: Case) -> np.ndarray:
    j = case.arguments["cause"]
    y, F = _outcome(case.outcome).cause(j), _forecast(case).cause(j)
    return _mean(case, brier_score(y, F, _censoring(case), case.times, scale="ipcw"))


def _concordance(case: Case) -> float:
    return concordance(
        _outcome(case.outcome),
        risk_of(case),
        _censoring(case),
        horizon=case.arguments.get("horizon"),
        sample_weight=case.outcome.weight,
    )


def _auc(case: Case) -> np.ndarray:
    C = _censoring(case)
    assert C is not None
    return dynamic_auc(
        _outcome(case.outcome), risk_of(case), C, case.times, sample_weight=case.outcome.weight
    )


def _shares(case: Case) -> np.ndarray:
    y, F = _outcome(case.outcome), _forecast(case)
    return d_calibration(y, F, bins=case.arguments["bins"], sample_weight=case.outcome.weight).shares


def _kaplan_meier(case: Case) -> np.ndarray:
    fitted = KaplanMeier().fit(None, _outcome(case.outcome), sample_weight=case.outcome.weight)
    return np.asarray(fitted.predict_distribution().sf(case.times[None, :]))[0]


def _censoring_kaplan_meier(case: Case) -> np.ndarray:
    return np.asarray(_censoring_curve(case.outcome).sf(case.times[None, :]))[0]


def _incidence(case: Case) -> np.ndarray:
    fitted = AalenJohansen().fit(None, _outcome(case.outcome), sample_weight=case.outcome.weight)
    return np.asarray(fitted.predict_distribution().cif(case.times))[0, case.arguments["cause"] - 1]


ADAPTER = {
    "kaplan_meier": _kaplan_meier,
    "censoring_kaplan_meier": _censoring_kaplan_meier,
    "cumulative_incidence": _incidence,
    "brier_score": _score(brier_score, "times", "horizon"),
    "brier_score_ipcw": _score(brier_score, "times", scale="ipcw"),
    "cause_brier_score_ipcw": _of_cause,
    "integrated_brier_score_ipcw": _score(integrated_brier_score, "horizon", scale="ipcw", normalize=True),
    "crps": _score(crps, "horizon"),
    "log_score": _score(log_score, "horizon"),
    "binomial_log_score": _score(binomial_log_score, "times"),
    "binomial_log_score_ipcw": _score(ipcw_binomial_log, "times"),
    "pinball_score": _score(pinball_score, "levels"),
    "energy_score": _score(energy_score),
    "concordance": _concordance,
    "concordance_ipcw": _concordance,
    "dynamic_auc": _auc,
    "d_calibration": _shares,
}
