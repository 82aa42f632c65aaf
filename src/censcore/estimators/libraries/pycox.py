"""Models of pycox."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore.distributions import Distribution, PiecewiseExponential, Step
from censcore.estimators.libraries.curves import Curves, completed, monotone, needs_covariates, with_baseline
from censcore.exceptions import InvalidInputError


def read(model: Any, X: Any, train: tuple[Any, Any] | None) -> Distribution | Curves | None:
    """CoxPH and CoxCC as baseline and risk, CoxTime as steps, PCHazard as piecewise constant hazards.

    The other models (LogisticHazard, PMF, MTLR, DeepHitSingle, BCESurv) know survival at the cuts of their
    time grid. After its last cut the hazard of PCHazard stays what it was. NumPy arrays are converted to
    single precision, as the networks need. CoxPH and CoxCC without ``compute_baseline_hazards()`` need
    ``train``.
    """
    if not hasattr(model, "predict_surv_df"):
        return None
    needs_covariates(model, X)
    kinds = {kind.__name__ for kind in type(model).__mro__}
    if "_CoxPHBase" in kinds:
        return _cox(model, X, train)
    if "_CoxBase" in kinds and not hasattr(model, "baseline_hazards_"):
        raise InvalidInputError(
            f"{type(model).__name__} has no baseline hazard yet: call model.compute_baseline_hazards()."
        )
    if "PCHazard" in kinds:
        return _piecewise_constant(model, X)
    frame = model.predict_surv_df(_input(X))
    times, sf = np.asarray(frame.index, dtype=np.float64), frame.to_numpy(dtype=np.float64).T
    if "_CoxBase" in kinds:
        return Step(times, sf=sf)
    return Curves(times, monotone(sf, model) if "BCESurv" in kinds else sf)


def _input(X: Any) -> Any:
    if isinstance(X, tuple | list):
        return tuple(_input(part) for part in X)
    values = X.to_numpy() if hasattr(X, "to_numpy") else X
    float64 = isinstance(values, np.ndarray) and values.dtype != np.float32
    return values.astype(np.float32) if float64 else values


def _cox(model: Any, X: Any, train: tuple[Any, Any] | None) -> Distribution:
    def log_risk(X: Any) -> np.ndarray:
        return np.asarray(model.predict(_input(X), numpy=True), dtype=np.float64).reshape(-1)

    baseline = getattr(model, "baseline_cumulative_hazards_", None)
    if baseline is None:
        return completed(model, X, train, log_risk)
    return with_baseline(model, X, train, log_risk, baseline.index, baseline.to_numpy())


def _piecewise_constant(model: Any, X: Any) -> Distribution:
    cuts = np.asarray(model.duration_index, dtype=np.float64)
    spent = np.asarray(model.predict_hazard(_input(X), numpy=True), dtype=np.float64)[:, 1:]
    spent = spent.reshape(len(spent), len(cuts) - 1, -1).sum(axis=2)  # of the parts of each interval
    rates = spent / np.diff(cuts)
    start = np.zeros((len(rates), 1 if cuts[0] > 0 else 0))  # before the first cut nothing happens
    times = cuts[:-1] if cuts[0] > 0 else cuts[1:-1]
    return PiecewiseExponential(times, np.concatenate([start, rates], axis=1))
