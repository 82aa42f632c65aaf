"""One model, fitted to the training subjects of one fold and asked for the others, whatever kind it is."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
from sklearn.base import clone

from censcore._arrays import is_torch, to_numpy
from censcore.distributions import Distribution
from censcore.estimators import Adapted, as_competing_forecast, as_forecast
from censcore.estimators.competing_risks_adapters import predicts_times_apart
from censcore.estimators.covariates import check_rows, fit_weighted, take_rows
from censcore.evaluation.subjects import Subjects
from censcore.exceptions import InvalidInputError, InvalidTypeError
from censcore.outcomes import is_competing

__all__ = ["check_model", "forecast_fold"]


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


def forecast_fold(model: Any, subjects: Subjects, train: np.ndarray, test: np.ndarray) -> Distribution:
    """Forecasts of the test subjects by a copy of the model that is fitted to the training subjects.

    Parameters
    ----------
    model : estimator, function, distribution, or pair (model, X)
        Anything that :func:`as_forecast` can ask once it is fitted. A function is called as ``f(X_train,
        y_train, X_test)``, and with ``sample_weight=`` where there are weights and it takes them. A
        distribution was made before, and is taken as it is.
    subjects : Subjects
        All subjects.
    train, test : arrays of int
        The two parts.
    """
    model, X = _with_covariates(model, subjects.X)
    X_test = take_rows(X, test)
    fold = Subjects(X, subjects.y, subjects.weight).take(train)
    if isinstance(model, Distribution):
        found = model.take(test)
    elif hasattr(model, "fit"):
        found = _predicted(_fitted(model, fold), X_test, len(test), fold.y)
    else:
        found = _as_forecast(_called(model, fold, X_test), X_test, len(test), fold.y)
    return found.like(np.zeros(1)) if is_torch(found._reference) else found


def _with_covariates(model: Any, X: Any) -> tuple[Any, Any]:
    """A model and its covariates: those of all models, or its part of a pair (model, X)."""
    if isinstance(model, tuple):
        if len(model) != 2:
            raise InvalidTypeError(f"A model with covariates is a pair (model, X); got {len(model)} entries.")
        return model
    return model, X


def _called(function: Callable[..., Any], fold: Subjects, X_test: Any) -> Any:
    if fold.weight is None:
        return function(fold.X, fold.y, X_test)
    if "sample_weight" not in inspect.signature(function).parameters:
        raise InvalidInputError(
            f"{getattr(function, '__name__', 'The function')} takes no sample_weight, and the subjects have "
            "weights. Write it as f(X_train, y_train, X_test, sample_weight=None)."
        )
    return function(fold.X, fold.y, X_test, sample_weight=fold.weight)


# ---- estimators ------------------------------------------------------------------------------------


def _last_step(model: Any) -> Any:
    """What finally forecasts: the last step of a pipeline, the estimator inside a search."""
    if hasattr(model, "steps"):
        return _last_step(model.steps[-1][1])
    return _last_step(model.estimator) if _is_search(model) else model


def _is_search(model: Any) -> bool:
    """Whether it is a search over parameters, such as GridSearchCV."""
    return hasattr(model, "refit") and hasattr(model, "estimator")


def _fitted(model: Any, fold: Subjects) -> Any:
    """A copy, fitted. Estimators of other libraries receive the outcome in the form they know."""
    last = _last_step(model)
    ours = hasattr(last, "predict_distribution")
    if is_competing(fold.y) and not ours:
        return clone(model).fit(fold.X, _event_and_duration(fold.y), **_weights(model, fold.weight))
    if ours and last is not model:
        return clone(model).fit(fold.X, fold.y, **_weights(model, fold.weight))
    estimator = Adapted(model) if not ours else clone(model, safe=False)
    return fit_weighted(estimator, fold.X, fold.y, fold.weight)


def _event_and_duration(y: Any) -> Any:
    """Competing risks as hazardous takes them."""
    import pandas as pd

    return pd.DataFrame({"event": to_numpy(y.causes), "duration": to_numpy(y.time)})


def _as_forecast(model: Any, X: Any, n: int, y: Any) -> Distribution:
    """What a model forecasts for n subjects, of the kind of the outcome y."""
    if not is_competing(y):
        return as_forecast(model, X, n=n)
    return as_competing_forecast(model, X, repair=predicts_times_apart(model))


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


def _predicted(model: Any, X: Any, n: int, y: Any) -> Distribution:
    """What a fitted model forecasts; pipelines and searches are asked step by step."""
    if not hasattr(model, "predict_distribution"):
        if hasattr(model, "best_estimator_"):
            return _predicted(model.best_estimator_, X, n, y)
        if hasattr(model, "steps"):
            earlier = model[:-1]
            return _predicted(model.steps[-1][1], earlier.transform(X) if len(earlier) else X, n, y)
    return _as_forecast(model, X, n, y)
