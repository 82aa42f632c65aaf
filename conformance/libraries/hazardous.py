"""The cases by hazardous."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.case import Case, Observed
from conformance.libraries.needs import grid, need_estimated_censoring, need_plain, risk_of

__all__ = ["ADAPTER"]


def _frame(seen: Observed) -> Any:
    import pandas as pd

    event = seen.event.astype(int) if seen.cause is None else seen.cause
    return pd.DataFrame({"event": event, "duration": seen.time})


def _brier(case: Case) -> Any:
    from hazardous.metrics import brier_score_survival

    need_estimated_censoring(case)
    return brier_score_survival(_frame(case.train), _frame(case.outcome), case.survival(), case.times)


def _cause_brier(case: Case) -> Any:
    from hazardous.metrics import brier_score_incidence

    need_estimated_censoring(case)
    cause = case.arguments["cause"]
    y_pred = case.incidence()[cause - 1]
    return brier_score_incidence(
        _frame(case.train), _frame(case.outcome), y_pred, case.times, event_of_interest=cause
    )


def _integrated_brier(case: Case) -> Any:
    from hazardous.metrics import integrated_brier_score_survival

    need_estimated_censoring(case)
    times = grid(case)
    return integrated_brier_score_survival(
        _frame(case.train), _frame(case.outcome), case.survival(times), times
    )


def _harrell(case: Case) -> Any:
    from hazardous.metrics import concordance_index_incidence

    need_plain(case)
    y_pred, times = _constant(case)
    return concordance_index_incidence(_frame(case.outcome), y_pred, ipcw_estimator=None, time_grid=times)[0]


def _uno(case: Case) -> Any:
    from hazardous.metrics import concordance_index_incidence

    need_estimated_censoring(case)
    y_pred, times = _constant(case)
    tau = case.arguments.get("horizon")
    return concordance_index_incidence(
        _frame(case.outcome),
        y_pred,
        y_train=_frame(case.train),
        time_grid=times,
        taus=None if tau is None else [tau],
    )[0]


def _constant(case: Case) -> tuple[np.ndarray, np.ndarray]:
    """A risk as an incidence that is the same at all times."""
    times = np.array([0.0, case.outcome.time.max()])
    return np.repeat(risk_of(case)[:, None], 2, axis=1), times


ADAPTER = {
    "brier_score_ipcw": _brier,
    "cause_brier_score_ipcw": _cause_brier,
    "integrated_brier_score_ipcw": _integrated_brier,
    "concordance": _harrell,
    "concordance_ipcw": _uno,
}
