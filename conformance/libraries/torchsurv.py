"""The cases by torchsurv."""

from __future__ import annotations

from typing import Any

import numpy as np

from conformance.case import Case, Observed
from conformance.libraries.needs import grid, need_estimated_censoring, need_plain, risk_of

__all__ = ["ADAPTER"]


def _tensor(values: Any) -> Any:
    """Single precision, which its estimators compute in."""
    import torch

    return torch.as_tensor(np.asarray(values, dtype=np.float32))


def _seen(observed: Observed) -> tuple[Any, Any]:
    import torch

    return torch.as_tensor(observed.event), _tensor(observed.time)


def _weights(case: Case, times: np.ndarray) -> tuple[Any, Any]:
    """Its weights at the observed times and at the evaluation times, from the training data."""
    from torchsurv.stats.ipcw import get_ipcw

    train = _seen(case.train)
    return get_ipcw(*train, _tensor(case.outcome.time)), get_ipcw(*train, _tensor(times))


def _brier_metric(case: Case, times: np.ndarray) -> tuple[Any, Any]:
    from torchsurv.metrics.brier_score import BrierScore

    need_estimated_censoring(case)
    weight, weight_new = _weights(case, times)
    metric = BrierScore()
    scores = metric(_tensor(case.survival(times)), *_seen(case.outcome), _tensor(times), weight, weight_new)
    return metric, scores


def _brier(case: Case) -> Any:
    return _brier_metric(case, case.times)[1].numpy()


def _integrated_brier(case: Case) -> Any:
    return _brier_metric(case, grid(case))[0].integral().numpy()


def _harrell(case: Case) -> Any:
    from torchsurv.metrics.cindex import ConcordanceIndex

    need_plain(case)
    return ConcordanceIndex()(_tensor(risk_of(case)), *_seen(case.outcome)).numpy()


def _uno(case: Case) -> Any:
    from torchsurv.metrics.cindex import ConcordanceIndex

    need_estimated_censoring(case)
    weight, _ = _weights(case, case.outcome.time)
    tau = case.arguments.get("horizon")
    tmax = None if tau is None else _tensor(tau)
    return ConcordanceIndex()(_tensor(risk_of(case)), *_seen(case.outcome), weight, tmax).numpy()


def _auc(case: Case) -> Any:
    from torchsurv.metrics.auc import Auc

    need_estimated_censoring(case)
    weight, weight_new = _weights(case, case.times)
    found = Auc()(
        _tensor(risk_of(case)),
        *_seen(case.outcome),
        weight=weight,
        new_time=_tensor(case.times),
        weight_new_time=weight_new,
    )
    return found.numpy()


def _curve(case: Case, censoring: bool) -> Any:
    from torchsurv.stats.kaplan_meier import KaplanMeierEstimator

    need_plain(case)
    curve = KaplanMeierEstimator()
    curve(*_seen(case.outcome), censoring_dist=censoring)
    return curve.predict(_tensor(case.times)).numpy()


ADAPTER = {
    "kaplan_meier": lambda case: _curve(case, False),
    "censoring_kaplan_meier": lambda case: _curve(case, True),
    "brier_score_ipcw": _brier,
    "integrated_brier_score_ipcw": _integrated_brier,
    "concordance": _harrell,
    "concordance_ipcw": _uno,
    "dynamic_auc": _auc,
}
