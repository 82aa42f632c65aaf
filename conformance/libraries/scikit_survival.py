"""The cases by scikit-survival."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.case import Case, Observed
from conformance.libraries.needs import grid, need_estimated_censoring, need_plain, risk_of
from conformance.runner import NotOffered

__all__ = ["ADAPTER"]


def _structured(seen: Observed) -> Any:
    from sksurv.util import Surv

    return Surv.from_arrays(seen.event, seen.time)


def _brier(case: Case) -> Any:
    from sksurv.metrics import brier_score

    need_estimated_censoring(case)
    return brier_score(_structured(case.train), _structured(case.outcome), case.survival(), case.times)[1]


def _integrated_brier(case: Case) -> Any:
    from sksurv.metrics import integrated_brier_score

    need_estimated_censoring(case)
    times = grid(case)
    return integrated_brier_score(
        _structured(case.train), _structured(case.outcome), case.survival(times), times
    )


def _harrell(case: Case) -> Any:
    from sksurv.metrics import concordance_index_censored

    need_plain(case)
    return concordance_index_censored(case.outcome.event, case.outcome.time, risk_of(case))[0]


def _uno(case: Case) -> Any:
    from sksurv.metrics import concordance_index_ipcw

    need_estimated_censoring(case)
    tau = case.arguments.get("horizon")
    return concordance_index_ipcw(_structured(case.train), _structured(case.outcome), risk_of(case), tau=tau)[
        0
    ]


def _auc(case: Case) -> Any:
    from sksurv.metrics import cumulative_dynamic_auc

    need_estimated_censoring(case)
    return cumulative_dynamic_auc(
        _structured(case.train), _structured(case.outcome), risk_of(case), case.times
    )[0]


def _kaplan_meier(case: Case) -> Any:
    from sksurv.nonparametric import kaplan_meier_estimator

    seen = case.outcome
    if seen.weight is not None:
        raise NotOffered("no weights")
    time, level = kaplan_meier_estimator(seen.event, seen.time, time_enter=seen.entry)
    return _read(time, np.r_[1.0, level], case.times)


def _read(time: Any, level: Any, at: np.ndarray) -> Any:
    """A curve that is given by its times and by its levels before and after them."""
    return level[np.searchsorted(time, at, side="right")]


def _censoring(case: Case) -> Any:
    from sksurv.nonparametric import CensoringDistributionEstimator

    need_plain(case)
    return CensoringDistributionEstimator().fit(_structured(case.outcome)).predict_proba(case.times)


def _incidence(case: Case) -> Any:
    from sksurv.nonparametric import cumulative_incidence_competing_risks

    need_plain(case)
    time, cif = cumulative_incidence_competing_risks(case.outcome.cause, case.outcome.time)
    return _read(time, np.r_[0.0, cif[case.arguments["cause"]]], case.times)


ADAPTER = {
    "kaplan_meier": _kaplan_meier,
    "censoring_kaplan_meier": _censoring,
    "cumulative_incidence": _incidence,
    "brier_score_ipcw": _brier,
    "integrated_brier_score_ipcw": _integrated_brier,
    "concordance": _harrell,
    "concordance_ipcw": _uno,
    "dynamic_auc": _auc,
}
