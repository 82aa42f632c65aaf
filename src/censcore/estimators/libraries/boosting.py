"""Models of XGBoost and CatBoost: Cox's loss, and accelerated failure times."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Distribution, LogLogistic, LogNormal, Weibull
from censcore.estimators.libraries.curves import completed, needs_covariates
from censcore.exceptions import InvalidTypeError
from censcore.outcomes import RightCensored


def read(model: Any, X: Any, train: tuple[Any, Any] | None) -> Distribution | None:
    """A Booster or regressor of ``survival:aft`` or ``survival:cox``, or of ``SurvivalAft`` or ``Cox``."""
    if hasattr(model, "get_all_params"):
        loss, _, options = str(model.get_all_params().get("loss_function", "")).partition(":")
        settings = dict(option.split("=") for option in options.split(";") if option)
        scale = settings.get("dist", "Normal").lower(), float(settings.get("scale", 1.0))

        def raw(X: Any) -> np.ndarray:
            return np.asarray(model.predict(X, prediction_type="RawFormulaVal"), dtype=np.float64)

        return _by_loss(model, X, train, raw, (loss, "SurvivalAft", "Cox"), scale)
    booster = model.get_booster() if hasattr(model, "get_booster") else model
    if not hasattr(booster, "save_config"):
        return None
    objective = json.loads(booster.save_config())["learner"]["objective"]
    aft = objective.get("aft_loss_param", {"aft_loss_distribution": "", "aft_loss_distribution_scale": 1.0})
    scale = aft["aft_loss_distribution"], float(np.float32(aft["aft_loss_distribution_scale"]))
    losses = objective["name"], "survival:aft", "survival:cox"
    return _by_loss(model, X, train, lambda X: _margin(model, X), losses, scale)


def _by_loss(
    model: Any,
    X: Any,
    train: tuple[Any, Any] | None,
    raw: Callable[[Any], np.ndarray],
    losses: tuple[str, str, str],
    scale: tuple[str, float],
) -> Distribution:
    r"""What the sum of trees ``raw`` says: the log hazard ratio, or mu of :math:`\log T=\mu+\sigma Z`.

    ``losses`` are that of the model and the names of both kinds, ``scale`` the distribution of Z and sigma.
    """
    loss, accelerated, cox = losses
    if loss == cox:
        return completed(model, X, train, raw)
    if loss != accelerated:
        raise InvalidTypeError(
            f"{type(model).__name__}: got the loss {loss!r}, which forecasts no distribution of an event "
            f"time; expected {accelerated!r} or {cox!r}. For a risk score of another loss use "
            "from_risk(train_risk, y_train, test_risk, slope='estimate')."
        )
    needs_covariates(model, X)
    mu, (kind, sigma) = raw(X), scale
    if kind == "normal":
        return LogNormal(mu, sigma)
    # an extreme Z is the logarithm of a unit exponential
    return (LogLogistic if kind == "logistic" else Weibull)(1 / sigma, np.exp(mu))


def _margin(model: Any, X: Any) -> np.ndarray:
    """What the trees of XGBoost add up to."""
    import xgboost

    if not hasattr(model, "get_booster") and not isinstance(X, xgboost.DMatrix):
        X = xgboost.DMatrix(X, enable_categorical=True)
    return np.asarray(model.predict(X, output_margin=True), dtype=np.float64)


def fit(model: Any, X: Any, y: RightCensored, weight: np.ndarray | None) -> Any:
    """Fit to signed times, minus where censored (Cox's loss), or to lower and upper bounds.

    XGBoost's own ``fit`` has no place for censored times of ``survival:aft``, so a booster is trained by its
    parameters, and returned. It starts at the median time unless ``base_score`` is set: XGBoost itself would
    start at 0.5, from where it does not learn times of thousands of days.
    """
    settings = model.get_params() if hasattr(model, "get_params") else {}
    loss = str(settings.get("objective") or settings.get("loss_function"))
    time, event = to_numpy(y.time), to_numpy(y.event).astype(bool)
    if loss in ("survival:cox", "Cox"):
        return model.fit(X, np.where(event, time, -time), sample_weight=weight)
    if loss.startswith("SurvivalAft"):
        return model.fit(X, np.stack([time, np.where(event, time, -1.0)], axis=1), sample_weight=weight)
    if loss == "survival:aft":
        return _fit_accelerated(model, X, time, event, weight)
    raise InvalidTypeError(
        f"{type(model).__name__}: got the loss {loss!r}, expected 'survival:cox' or 'survival:aft' of "
        "XGBoost, or 'Cox' or 'SurvivalAft' of CatBoost."
    )


def _fit_accelerated(model: Any, X: Any, time: np.ndarray, event: np.ndarray, weight: Any) -> Any:
    import xgboost

    data = xgboost.DMatrix(
        X, weight=weight, missing=model.missing, enable_categorical=model.enable_categorical
    )
    data.set_float_info("label_lower_bound", time)
    data.set_float_info("label_upper_bound", np.where(event, time, np.inf))
    start = {"base_score": float(np.median(time))}
    settings = start | {name: value for name, value in model.get_xgb_params().items() if value is not None}
    return xgboost.train(settings, data, num_boost_round=model.get_num_boosting_rounds())
