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

__all__ = ["as_distributions", "as_named", "check_forecasts", "with_covariates"]


def check_forecasts(forecasts: Any) -> None:
    """Check that forecasts are named, and that there is one."""
    if not isinstance(forecasts, Mapping) or not forecasts:
        raise InvalidTypeError(
            "forecasts must be a dictionary of at least one forecast, {'cox': distribution, ...}; got "
            f"{type(forecasts).__name__}."
        )


def as_named(forecasts: Any) -> dict[str, Any]:
    """Forecasts or models by name; of a list, or of one alone, by their class.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.evaluation.plan.forecast_distributions import as_named
    >>> list(as_named([cs.CoxRegression(), cs.KaplanMeier(), cs.CoxRegression(alpha=1.0)]))
    ['CoxRegression', 'KaplanMeier', 'CoxRegression 2']
    """
    single = isinstance(forecasts, Distribution) or hasattr(forecasts, "fit")
    several = isinstance(forecasts, list) and not any(isinstance(F, str) for F in forecasts)
    if not (single or several) or not forecasts:
        check_forecasts(forecasts)
        return {str(name): forecast for name, forecast in forecasts.items()}
    named: dict[str, Any] = {}
    for forecast in [forecasts] if single else forecasts:
        name = kind = type(forecast).__name__
        count = 1
        while name in named:
            count += 1
            name = f"{kind} {count}"
        named[name] = forecast
    return named


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
