"""Forecasts of a comparison as distributions, whatever they are given as."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from censcore._arrays import is_torch
from censcore.distributions import Distribution
from censcore.estimators import NotFitted, as_forecast
from censcore.evaluation.sample import Sample
from censcore.exceptions import InvalidInputError, InvalidTypeError
from censcore.outcomes import RightCensored

__all__ = ["as_distributions", "check_forecasts", "with_covariates"]


def check_forecasts(forecasts: Any) -> None:
    """Check that forecasts are named, and that there is one."""
    if not isinstance(forecasts, Mapping) or not forecasts:
        raise InvalidTypeError(
            "forecasts must be a dictionary of at least one forecast, {'cox': distribution, ...}; got "
            f"{type(forecasts).__name__}."
        )


def as_distributions(
    forecasts: Mapping[str, Any], X: Any, y: RightCensored, train: Sample | None = None
) -> dict[str, Distribution]:
    """All forecasts as distributions in NumPy; the training subjects serve models that lack a baseline."""
    check_forecasts(forecasts)
    distributions = {}
    for name, forecast in forecasts.items():
        try:
            model, covariates, X_train = with_covariates(forecast, X, train)
            pair = None if train is None else (X_train, train.y)
            distribution = as_forecast(model, covariates, n=len(y), train=pair)
        except (InvalidInputError, InvalidTypeError, NotFitted) as error:
            raise type(error)(f"Forecast {name!r}: {error}") from error
        distributions[str(name)] = (
            distribution.like(y.time) if is_torch(distribution._reference) else distribution
        )
    return distributions


def with_covariates(forecast: Any, X: Any, train: Sample | None) -> tuple[Any, Any, Any]:
    """A forecast, the covariates it is asked for, and those of the training subjects."""
    X_train = None if train is None else train.X
    if not isinstance(forecast, tuple) or len(forecast) not in (2, 3) or hasattr(forecast[0], "x"):
        return forecast, X, X_train
    return forecast[0], forecast[1], forecast[2] if len(forecast) == 3 else None
