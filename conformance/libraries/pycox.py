"""The cases by pycox."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.case import Case
from conformance.libraries.needs import grid, need_estimated_censoring, need_plain, risk_of

__all__ = ["ADAPTER"]


def _evaluator(case: Case, curves: Any = None) -> Any:
    """Its evaluator of survival curves, with the Kaplan-Meier curve of C from the training data."""
    import pandas as pd
    from pycox.evaluation import EvalSurv
    from pycox.utils import kaplan_meier

    seen, train = case.outcome, case.train
    if curves is None:
        assert case.forecast is not None
        index = np.r_[0.0, np.asarray(case.forecast["times"], dtype=np.float64)]
        curves = pd.DataFrame(np.ascontiguousarray(case.survival(index).T), index=index)
    G = kaplan_meier(train.time, 1 - train.event.astype(float))
    G = pd.DataFrame(np.repeat(G.to_numpy()[:, None], len(seen), axis=1), index=G.index)
    return EvalSurv(curves, seen.time, seen.event.astype(float), censor_surv=G)


def _brier(case: Case) -> Any:
    need_estimated_censoring(case)
    return _evaluator(case).brier_score(case.times).to_numpy()


def _binomial_log(case: Case) -> Any:
    need_estimated_censoring(case)
    return _evaluator(case).nbll(case.times).to_numpy()


def _integrated_brier(case: Case) -> Any:
    need_estimated_censoring(case)
    return _evaluator(case).integrated_brier_score(grid(case))


def _concordance(case: Case) -> Any:
    """Its time-dependent index, which is Harrell's where no survival curves cross."""
    import pandas as pd

    need_plain(case)
    index = np.unique(np.r_[0.0, case.outcome.time])
    curves = pd.DataFrame(np.exp(-index[:, None] * risk_of(case)[None, :]), index=index)
    return _evaluator(case, curves).concordance_td("adj_antolini")


def _curve(case: Case, event: np.ndarray) -> Any:
    from pycox.utils import idx_at_times, kaplan_meier

    need_plain(case)
    curve = kaplan_meier(case.outcome.time, event.astype(float))
    return curve.to_numpy()[idx_at_times(curve.index.to_numpy(), case.times, "post")]


ADAPTER = {
    "kaplan_meier": lambda case: _curve(case, case.outcome.event),
    "censoring_kaplan_meier": lambda case: _curve(case, ~case.outcome.event),
    "brier_score_ipcw": _brier,
    "integrated_brier_score_ipcw": _integrated_brier,
    "binomial_log_score_ipcw": _binomial_log,
    "concordance": _concordance,
}
