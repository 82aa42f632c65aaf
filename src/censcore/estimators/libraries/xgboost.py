"""Models of XGBoost: ``survival:aft`` and ``survival:cox``."""

from __future__ import annotations

import json
from typing import Any

import numpy as np

from censcore.distributions import Distribution, LogLogistic, LogNormal, Weibull
from censcore.estimators.libraries.curves import completed, needs_covariates
from censcore.exceptions import InvalidTypeError

__all__ = ["accelerated", "read"]


def accelerated(distribution: str, mu: np.ndarray, sigma: float) -> Distribution:
    r"""The distribution of :math:`\log T=\mu+\sigma Z`.

    Parameters
    ----------
    distribution : "normal", "logistic" or "extreme"
        Distribution of Z; "extreme" is that of the logarithm of a unit exponential.
    mu : array, (n,)
        Location of log T.
    sigma : float
        Scale of log T.

    Returns
    -------
    LogNormal, LogLogistic or Weibull
        One distribution per subject.

    Examples
    --------
    >>> accelerated("extreme", np.zeros(2), 0.5).parameters["shape"]
    array([2.])
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
    """Booster, or an estimator of its scikit-learn interface.

    Parameters
    ----------
    model : xgboost.Booster or xgboost.XGBModel
        Trained with ``survival:aft`` or ``survival:cox``.
    X : array, frame or DMatrix
        Covariates.
    train : pair (X_train, y_train), optional
        For ``survival:cox``, which has no baseline hazard.

    Returns
    -------
    Distribution or None
        None for other objects of the library.
    """
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
        "of an "
        "event time; expected 'survival:aft' or 'survival:cox'. For a risk score of another objective use "
        "from_risk(train_risk, y_train, test_risk, slope='estimate')."
    )


def _margin(model: Any, X: Any) -> np.ndarray:
    """What the trees add up to: log T or the log hazard ratio."""
    import xgboost

    if hasattr(model, "get_booster"):
        return np.asarray(model.predict(X, output_margin=True), dtype=np.float64)
    data = X if isinstance(X, xgboost.DMatrix) else xgboost.DMatrix(X)
    return np.asarray(model.predict(data, output_margin=True), dtype=np.float64)
