"""Models of CatBoost: ``SurvivalAft`` and ``Cox``."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Distribution
from censcore.estimators.libraries.curves import completed, needs_covariates
from censcore.estimators.libraries.xgboost import accelerated, signed_times
from censcore.exceptions import InvalidTypeError
from censcore.outcomes import RightCensored

__all__ = ["fit", "read"]


def read(model: Any, X: Any, train: tuple[Any, Any] | None) -> Distribution | None:
    """CatBoost and CatBoostRegressor, trained with the loss ``SurvivalAft`` or ``Cox``."""
    if not hasattr(model, "get_all_params"):
        return None

    def raw(X: Any) -> np.ndarray:
        return np.asarray(model.predict(X, prediction_type="RawFormulaVal"), dtype=np.float64)

    name, _, options = str(model.get_all_params().get("loss_function", "")).partition(":")
    if name == "Cox":
        return completed(model, X, train, raw)
    if name == "SurvivalAft":
        needs_covariates(model, X)
        given = dict(option.split("=") for option in options.split(";") if option)
        return accelerated(given.get("dist", "Normal").lower(), raw(X), float(given.get("scale", 1.0)))
    raise InvalidTypeError(
        f"{type(model).__name__}: got the loss {name!r}, which forecasts no distribution of an event time; "
        "expected 'SurvivalAft' or 'Cox'. For a risk score of another loss use from_risk(train_risk, "
        "y_train, test_risk, slope='estimate')."
    )


def fit(model: Any, X: Any, y: RightCensored, weight: np.ndarray | None) -> Any:
    """Fit to signed times (``Cox``) or to lower and upper bounds (``SurvivalAft``)."""
    loss = str(model.get_params().get("loss_function"))
    if loss == "Cox":
        return model.fit(X, signed_times(y), sample_weight=weight)
    if not loss.startswith("SurvivalAft"):
        raise InvalidTypeError(
            f"{type(model).__name__}: got the loss {loss!r}, expected 'Cox' or 'SurvivalAft'."
        )
    time, event = to_numpy(y.time), to_numpy(y.event).astype(bool)
    return model.fit(X, np.stack([time, np.where(event, time, -1.0)], axis=1), sample_weight=weight)
