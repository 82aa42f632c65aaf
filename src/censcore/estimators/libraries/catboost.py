"""Models of CatBoost: ``SurvivalAft`` and ``Cox``."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore.distributions import Distribution
from censcore.estimators.libraries.curves import completed, needs_covariates
from censcore.estimators.libraries.xgboost import accelerated
from censcore.exceptions import InvalidTypeError

__all__ = ["read"]


def read(model: Any, X: Any, train: tuple[Any, Any] | None) -> Distribution | None:
    """CatBoost and CatBoostRegressor.

    Parameters
    ----------
    model : catboost.CatBoost
        Trained with the loss ``SurvivalAft`` or ``Cox``.
    X : array, frame or Pool
        Covariates.
    train : pair (X_train, y_train), optional
        For ``Cox``, which has no baseline hazard.

    Returns
    -------
    Distribution or None
        None for other objects of the library.
    """
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
        "y_train, "
        "test_risk, slope='estimate')."
    )
