"""Models of XGBoost: ``survival:aft`` and ``survival:cox``."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Distribution, LogLogistic, LogNormal, Weibull
from censcore.estimators.libraries.curves import completed, needs_covariates
from censcore.exceptions import InvalidTypeError
from censcore.outcomes import RightCensored

__all__ = ["accelerated", "fit", "read", "signed_times"]


def accelerated(distribution: str, mu: np.ndarray, sigma: float) -> Distribution:
    r"""The distribution of :math:`\log T=\mu+\sigma Z`, where Z is normal, logistic or extreme.

    The extreme distribution is that of the logarithm of a unit exponential.
    """
    mu = np.asarray(mu, dtype=np.float64)
    if distribution == "normal":
        return LogNormal(mu, sigma)
    if distribution == "logistic":
        return LogLogistic(1 / sigma, np.exp(mu))
    if distribution == "extreme":
        return Weibull(1 / sigma, np.exp(mu))
    raise InvalidTypeError(
        f"Accelerated failure times: got the distribution {distribution!r}, expected 'normal', 'logistic' or "
        "'extreme'."
    )


def read(model: Any, X: Any, train: tuple[Any, Any] | None) -> Distribution | None:
    """Booster, or an estimator of its scikit-learn interface, of ``survival:aft`` or ``survival:cox``."""
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    if not hasattr(booster, "save_config"):
        return None
    objective = json.loads(booster.save_config())["learner"]["objective"]
    if objective["name"] == "survival:cox":
        return completed(model, X, train, lambda X: _margin(model, X))
    if objective["name"] == "survival:aft":
        needs_covariates(model, X)
        loss = objective["aft_loss_param"]
        sigma = float(np.float32(loss["aft_loss_distribution_scale"]))
        return accelerated(loss["aft_loss_distribution"], _margin(model, X), sigma)
    raise InvalidTypeError(
        f"{type(model).__name__}: got the objective {objective['name']!r}, which forecasts no distribution "
        "of an event time; expected 'survival:aft' or 'survival:cox'. For a risk score of another "
        "objective use from_risk(train_risk, y_train, test_risk, slope='estimate')."
    )


def _margin(model: Any, X: Any) -> np.ndarray:
    """What the trees add up to: log T or the log hazard ratio."""
    import xgboost

    if hasattr(model, "get_booster"):
        return np.asarray(model.predict(X, output_margin=True), dtype=np.float64)
    data = X if isinstance(X, xgboost.DMatrix) else xgboost.DMatrix(X, enable_categorical=True)
    return np.asarray(model.predict(data, output_margin=True), dtype=np.float64)


def fit(model: Any, X: Any, y: RightCensored, weight: np.ndarray | None) -> Any:
    """Fit an estimator with the objective ``survival:cox`` or ``survival:aft``.

    Its own ``fit`` has no place for censored times of ``survival:aft``, so a booster is trained by its
    parameters, and returned. It starts at the median time unless ``base_score`` is set: XGBoost itself would
    start at 0.5, from where it does not learn times of thousands of days.
    """
    import xgboost

    objective = model.get_params().get("objective") if hasattr(model, "get_params") else None
    if objective == "survival:cox":
        return model.fit(X, signed_times(y), sample_weight=weight)
    if objective != "survival:aft":
        raise InvalidTypeError(
            f"{type(model).__name__}: got the objective {objective!r}, expected 'survival:cox' or "
            "'survival:aft'."
        )
    time, event = to_numpy(y.time), to_numpy(y.event).astype(bool)
    data = xgboost.DMatrix(
        X, weight=weight, missing=model.missing, enable_categorical=model.enable_categorical
    )
    data.set_float_info("label_lower_bound", time)
    data.set_float_info("label_upper_bound", np.where(event, time, np.inf))
    start = {"base_score": float(np.median(time))}
    settings = start | {name: value for name, value in model.get_xgb_params().items() if value is not None}
    return xgboost.train(settings, data, num_boost_round=model.get_num_boosting_rounds())


def signed_times(y: RightCensored) -> np.ndarray:
    """Times, with a minus sign where they are censored: the labels of Cox's loss."""
    time = to_numpy(y.time)
    return np.where(to_numpy(y.event).astype(bool), time, -time)
