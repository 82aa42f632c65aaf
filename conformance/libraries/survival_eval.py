"""The cases by SurvivalEVAL."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.case import Case
from conformance.libraries.needs import need_estimated_censoring, need_plain, risk_of

__all__ = ["ADAPTER"]


def _brier(case: Case) -> Any:
    from SurvivalEVAL import brier_multiple_points

    need_estimated_censoring(case)
    seen, train = case.outcome, case.train
    return brier_multiple_points(
        case.survival(), seen.time, seen.event, train.time, train.event, case.times, ipcw=True
    )


def _cause_brier(case: Case) -> Any:
    from SurvivalEVAL import brier_multiple_points_cr_per_event

    need_estimated_censoring(case)
    seen, train, cause = case.outcome, case.train, case.arguments["cause"]
    return brier_multiple_points_cr_per_event(
        case.incidence()[cause - 1],
        seen.time,
        seen.cause,
        train.time,
        train.cause,
        case.times,
        event_of_interest=cause,
    )


def _harrell(case: Case) -> Any:
    from SurvivalEVAL import concordance

    need_plain(case)
    return concordance(-risk_of(case) + 10.0, case.outcome.time, case.outcome.event)[0]


def _uno(case: Case) -> Any:
    from SurvivalEVAL import concordance

    need_estimated_censoring(case)
    seen, train = case.outcome, case.train
    times = -risk_of(case) + 10.0
    return concordance(
        times,
        seen.time,
        seen.event,
        train.time,
        train.event,
        method="Uno",
        tau=case.arguments.get("horizon"),
    )[0]


def _auc(case: Case) -> Any:
    from SurvivalEVAL import auc

    need_estimated_censoring(case)
    seen, train = case.outcome, case.train
    survival = 1 - risk_of(case)
    return [
        auc(survival, seen.time, seen.event, float(t), train.time, train.event, method="IPCW")
        for t in case.times
    ]


def _shares(case: Case) -> Any:
    from SurvivalEVAL import d_calibration

    need_plain(case)
    at_time = np.diagonal(case.survival(case.outcome.time))
    counts = d_calibration(at_time, case.outcome.event, num_bins=case.arguments["bins"])[2]
    shares = np.asarray(counts) / len(case.outcome)
    return shares[::-1]


def _curve(case: Case, reverse: bool) -> Any:
    from SurvivalEVAL.nonparametric_estimator.single_event import KaplanMeier

    need_plain(case)
    return KaplanMeier(case.outcome.time, case.outcome.event, reverse=reverse).predict(case.times)


def _incidence(case: Case) -> Any:
    from SurvivalEVAL.nonparametric_estimator.competing_risks import AalenJohansenCompetingRisks

    need_plain(case)
    assert case.outcome.cause is not None
    fitted = AalenJohansenCompetingRisks().fit(case.outcome.time, case.outcome.cause)
    return np.asarray(fitted.predict_cif(case.times))[:, case.arguments["cause"] - 1]


ADAPTER = {
    "kaplan_meier": lambda case: _curve(case, False),
    "censoring_kaplan_meier": lambda case: _curve(case, True),
    "cumulative_incidence": _incidence,
    "brier_score_ipcw": _brier,
    "cause_brier_score_ipcw": _cause_brier,
    "concordance": _harrell,
    "concordance_ipcw": _uno,
    "dynamic_auc": _auc,
    "d_calibration": _shares,
}
