"""One model, fitted to the training subjects of one fold and asked for the others, whatever kind it is."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
from sklearn.base import clone

from censcore._arrays import is_torch
from censcore.distributions import Distribution
from censcore.estimators import Adapted
from censcore.estimators.covariates import check_rows, fit_weighted, take_rows
from censcore.evaluation.sample import Sample
from censcore.exceptions import InvalidInputError, InvalidTypeError

if TYPE_CHECKING:
    from censcore.evaluation.kinds import Kind

__all__ = ["check_model", "forecast_fold", "forecast_of"]


def check_model(name: str, model: Any, n: int) -> None:
    """Check that something can be fitted fold by fold, before any time is spent on it."""
    model, X = _with_covariates(model, None)
    try:
        check_rows(X, n)
    except InvalidInputError as error:
        raise InvalidInputError(f"Model {name!r}: {error}") from error
    if inspect.isclass(model):
        raise InvalidTypeError(
            f"Model {name!r}: got the class {model.__name__}, expected an estimator: pass "
            f"{model.__name__}(...)."
        )
    if isinstance(model, Distribution):
        if len(model) not in (1, n):
            raise InvalidInputError(
                f"Model {name!r}: got a distribution of {len(model)} subjects, expected {n}, or an estimator."
            )
    elif not (hasattr(model, "fit") or callable(model)):
        raise InvalidTypeError(
            f"Model {name!r}: got {type(model).__name__}, expected an estimator that is fitted in every fold "
            "(of this library, a pipeline, scikit-survival, lifelines), or a function f(X_train, y_train, "
            "X_test) that gives a forecast. Forecasts that were made before are compared without cv=."
        )


def forecast_fold(
    kind: Kind, model: Any, subjects: Sample, train: np.ndarray, test: np.ndarray
) -> Distribution:
    """Forecasts of the test subjects by a copy of the model that is fitted to the training subjects.

    ``model`` may be a pair (model, X) with covariates of its own; a distribution was made before, and is
    taken as it is.
    """
    model, X = _with_covariates(model, subjects.X)
    if isinstance(model, Distribution):
        forecast = model.take(test)
    else:
        fold = replace(subjects, X=X).take(train)
        forecast = forecast_of(kind, model, fold, take_rows(X, test), len(test))
    return forecast.like(np.zeros(1)) if is_torch(forecast._reference) else forecast


def forecast_of(kind: Kind, model: Any, train: Sample, X: Any, n: int) -> Distribution:
    """Forecasts of n subjects with covariates X by a model that is fitted to the training subjects.

    A function is called as ``f(X_train, y_train, X)``, and with ``sample_weight=`` (and ``mask=``) where
    there are weights (not all subjects are followed for all event times) and it takes them.
    """
    if hasattr(model, "fit"):
        return _predicted(kind, _fitted(kind, model, train), X, n)
    return kind.as_forecast(_called(model, train, X), X, n)


def _with_covariates(model: Any, X: Any) -> tuple[Any, Any]:
    """A model and its covariates: those of all models, or its part of a pair (model, X)."""
    if isinstance(model, tuple):
        if len(model) != 2:
            raise InvalidTypeError(f"A model with covariates is a pair (model, X); got {len(model)} entries.")
        return model
    return model, X


def _called(function: Callable[..., Any], train: Sample, X: Any) -> Any:
    takes, options = inspect.signature(function).parameters, {}
    if train.weight is not None:
        if "sample_weight" not in takes:
            raise InvalidInputError(
                f"{getattr(function, '__name__', 'The function')} takes no sample_weight, and the subjects "
                "have weights. Write it as f(X_train, y_train, X_test, sample_weight=None)."
            )
        options["sample_weight"] = train.weight
    if train.mask is not None and "mask" in takes:
        options["mask"] = train.mask
    return function(train.X, train.y, X, **options)


# ---- estimators ------------------------------------------------------------------------------------


def _last_step(model: Any) -> Any:
    """What finally forecasts: the last step of a pipeline, the estimator inside a search."""
    if hasattr(model, "steps"):
        return _last_step(model.steps[-1][1])
    return _last_step(model.estimator) if _is_search(model) else model


def _is_search(model: Any) -> bool:
    """Whether it is a search over parameters, such as GridSearchCV."""
    return hasattr(model, "refit") and hasattr(model, "estimator")


def _fitted(kind: Kind, model: Any, train: Sample) -> Any:
    """A copy, fitted. Estimators of other libraries receive the outcome in the form they know."""
    last = _last_step(model)
    ours = hasattr(last, "predict_distribution")
    for_others = None if ours else kind.for_others(train.y)
    if for_others is not None:
        return clone(model).fit(train.X, for_others, **_weights(model, train.weight))
    if ours and last is not model:
        return clone(model).fit(train.X, train.y, **_weights(model, train.weight))
    estimator = clone(model, safe=False) if ours else Adapted(model)
    return fit_weighted(estimator, train.X, train.y, train.weight)


def _weights(model: Any, weight: np.ndarray | None) -> dict[str, np.ndarray]:
    """Weights under the name by which a pipeline, or a search over one, hands them to its last step."""
    if weight is None:
        return {}
    name = "sample_weight"
    while _is_search(model):
        model = model.estimator
    while hasattr(model, "steps"):
        step, model = model.steps[-1]
        name = name.replace("sample_weight", f"{step}__sample_weight")
    return {name: weight}


def _predicted(kind: Kind, model: Any, X: Any, n: int) -> Distribution:
    """What a fitted model forecasts; pipelines and searches are asked step by step."""
    if not hasattr(model, "predict_distribution"):
        if hasattr(model, "best_estimator_"):
            return _predicted(kind, model.best_estimator_, X, n)
        if hasattr(model, "steps"):
            earlier = model[:-1]
            return _predicted(kind, model.steps[-1][1], earlier.transform(X) if len(earlier) else X, n)
    return kind.as_forecast(model, X, n)
