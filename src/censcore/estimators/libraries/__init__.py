"""Models of other libraries, fitted and read as distributions.

Each file has ``read(model, X, train)``, which gives the distribution of every subject of X: parametric models
as parametric distributions, Cox models as baseline and risk, forests as shared steps. It gives
:class:`Curves` where the library knows survival at a grid of times only, and None for models that it does not
know. ``train``, a pair (X_train, y_train) or None, are the subjects that a baseline hazard is estimated from
where the model gives risk scores only.

Where the library has its own convention for outcomes, the file has ``fit(model, X, y, weight)`` too, with
weights (n,) or None: it gives the fitted model, the same object or what the library makes of it. None of the
libraries is imported unless the caller has a model of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

import numpy as np
from sklearn.pipeline import Pipeline

from censcore._arrays import to_numpy
from censcore.distributions import Distribution
from censcore.estimators.libraries.curves import Curves
from censcore.estimators.libraries.pipelines import fit_weighted, last_estimator
from censcore.exceptions import CenscoreError, InvalidInputError, InvalidTypeError
from censcore.outcomes import RightCensored

__all__ = ["Curves", "fit_model", "read_model", "takes_entry"]

#: Packages that define models (or draws), and the file here that reads them.
_READERS = {
    "arviz": "draws",
    "arviz_base": "draws",
    "catboost": "boosting",
    "hazardous": "hazardous",
    "lifelines": "lifelines",
    "pycox": "pycox",
    "sksurv": "scikit_survival",
    "xarray": "draws",
    "xgboost": "boosting",
}


#: Methods that only models of event times have.
_SURVIVAL = ("predict_distribution", "predict_survival_function", "predict_cumulative_hazard_function")


def read_model(
    model: Any, X: Any = None, train: tuple[Any, Any] | None = None
) -> Distribution | Curves | None:
    """What a fitted model of another library, or draws, forecast; None if no library here knows it."""
    library = _library_of(model)
    if library is None:
        return None
    try:
        with np.errstate(over="ignore", under="ignore"):  # the distribution says what is wrong with infinity
            return library.read(model, X, train)
    except CenscoreError:
        raise
    except ValueError as error:
        reason = next(iter(str(error).splitlines()), type(error).__name__)
        raise InvalidInputError(
            f"{type(model).__name__} gives no forecast: {reason} {_largest(X)}Check the covariates of the "
            "subjects to forecast."
        ) from error


def _largest(X: Any) -> str:
    """Which covariate is the largest, where they are numbers."""
    try:
        size = np.abs(np.asarray(X, dtype=np.float64))
        row, column = np.unravel_index(np.nanargmax(size), size.shape)
    except (TypeError, ValueError):
        return ""
    return f"The largest covariate is number {column} of subject {row}: {size[row, column]:.6g}. "


def fit_model(
    model: Any, X: Any, y: RightCensored, weight: np.ndarray | None = None, groups: Any = None
) -> Any:
    """Fit a model of another library, in the convention of that library.

    Anything with ``fit(X, y)`` receives a structured array of ``event`` and ``time``. An estimator with
    ``predict_distribution``, also at the end of a pipeline or a search, is fitted to y itself where such an
    array does not hold all of it.
    """
    last = last_estimator(model)
    simple = type(y) is RightCensored and y.time.ndim == 1 and not y.has_delayed_entry
    takes_it = hasattr(last, "predict_distribution") and not simple
    if isinstance(model, Pipeline) and (takes_it or hasattr(_library_of(last), "fit")):
        return _fit_steps(model, X, y, weight, groups)
    if takes_it:
        return fit_weighted(model, X, y, weight, groups)
    fit = getattr(_library_of(model), "fit", None)
    return _fit_structured(model, X, y, weight, groups) if fit is None else fit(model, X, y, weight)


def _fit_structured(model: Any, X: Any, y: RightCensored, weight: np.ndarray | None, groups: Any) -> Any:
    """Fit a model to y as a structured array of ``event`` and ``time``."""
    try:
        fit_weighted(model, X, _as_structured(y), weight, groups)
    except (TypeError, ValueError) as error:
        if isinstance(error, CenscoreError) or any(hasattr(model, word) for word in _SURVIVAL):
            raise
        raise InvalidTypeError(
            f"{type(model).__name__}: expected a model of event times, which is fitted to a structured array "
            f"of event and time; got {type(error).__name__} ({str(error).splitlines()[0]})."
        ) from error
    return model


def _as_structured(y: RightCensored) -> np.ndarray:
    """Outcomes as a structured array of ``event`` and ``time``, (n,)."""
    outcome = np.empty(len(y), dtype=[("event", bool), ("time", np.float64)])
    outcome["event"], outcome["time"] = to_numpy(y.event), to_numpy(y.time)
    return outcome


def takes_entry(model: Any) -> bool:
    """Whether a model respects delayed entry, or raises an error of its own where it does not.

    The second is the contract of estimators with ``predict_distribution``.
    """
    if hasattr(model, "predict_distribution"):
        return True
    knows = getattr(_library_of(model), "takes_entry", None)
    return knows is not None and bool(knows(model))


def _fit_steps(model: Pipeline, X: Any, y: RightCensored, weight: np.ndarray | None, groups: Any) -> Pipeline:
    """A pipeline whose last step takes more than a structured array: the steps before it, then it."""
    name, last = model.steps[-1]
    before = model.steps[:-1]
    if before:
        first = model[:-1]
        outcome = _as_structured(y) if isinstance(y, RightCensored) and y.time.ndim == 1 else y
        X = first.fit_transform(X, outcome)
        before = first.steps
    model.steps = [*before, (name, fit_model(last, X, y, weight, groups))]
    return model


def _library_of(model: Any) -> Any:
    """The file here that knows the models of the library, if there is one."""
    for kind in type(model).__mro__:
        name = _READERS.get(kind.__module__.split(".")[0])
        if name is not None:
            return import_module(f"{__name__}.{name}")
    return None
