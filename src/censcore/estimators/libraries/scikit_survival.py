"""Models of scikit-survival: Cox models as baseline and risk, forests as shared steps."""

from __future__ import annotations

import inspect
from typing import Any

import numpy as np

from censcore.distributions import CompactStep, Distribution, Step
from censcore.estimators.covariates import take_rows
from censcore.estimators.libraries.curves import needs_covariates, with_baseline

# From here on curves are predicted in parts and stored in single precision.
_MANY_NUMBERS = 2**24


def read(model: Any, X: Any, train: tuple[Any, Any] | None) -> Distribution | None:
    """A fitted estimator that has ``predict_survival_function``.

    Cox models are read from their cumulative baseline hazard and linear predictor, not from survival
    probabilities: exp(-H) of the baseline is zero from H = 745 on, which the baseline of covariates far
    from zero easily reaches. Where the baseline of the model itself overflowed, ``train`` is used.
    """
    if not hasattr(model, "predict_survival_function"):
        return None
    needs_covariates(model, X)
    baseline = _baseline(model)
    if baseline is not None:
        return with_baseline(model, X, train, model.predict, baseline.x, baseline.y)
    takes_array = "return_array" in inspect.signature(model.predict_survival_function).parameters
    return _steps(model, X) if takes_array and hasattr(model, "unique_times_") else None


def _baseline(model: Any) -> Any:
    """Breslow's cumulative baseline hazard, a step function; None if the model is no Cox model."""
    if getattr(model, "_baseline_models", None) is not None:  # Coxnet: the last penalty, as in its predict
        return model._get_baseline_model(None).cum_baseline_hazard_
    return getattr(getattr(model, "_baseline_model", None), "cum_baseline_hazard_", None)


def _steps(model: Any, X: Any) -> Distribution:
    """Averages of product-limit curves: they jump at event times only."""
    times = np.asarray(model.unique_times_, dtype=np.float64)
    jumps = np.asarray(getattr(model, "is_event_time_", np.ones(len(times), dtype=bool)), dtype=bool)
    n = X.shape[0] if hasattr(X, "shape") else len(X)
    if n * len(times) <= _MANY_NUMBERS:
        return Step(times[jumps], sf=model.predict_survival_function(X, return_array=True)[:, jumps])
    sf = np.empty((n, int(jumps.sum())), dtype=np.float32)
    step = max(1, _MANY_NUMBERS // len(times))
    for start in range(0, n, step):
        rows = np.arange(start, min(start + step, n))
        sf[rows] = model.predict_survival_function(take_rows(X, rows), return_array=True)[:, jumps]
    return CompactStep(times[jumps], sf)
