"""Fitted models of other libraries as distributions: one file per library.

Each file has ``read(model, X, train)``, which gives the distribution of every subject of X: parametric models
as parametric distributions, Cox models as baseline and risk, forests as shared steps. It gives
:class:`Curves` where the library knows survival at a grid of times only, and None for models that it does not
know. None of the libraries is imported unless the caller has a model of it.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from censcore.distributions import Distribution
from censcore.estimators.libraries.curves import Curves

__all__ = ["Curves", "read_model"]

#: Packages that define models (or draws), and the file here that reads them.
_READERS = {
    "arviz": "draws",
    "arviz_base": "draws",
    "catboost": "catboost",
    "hazardous": "hazardous",
    "lifelines": "lifelines",
    "pycox": "pycox",
    "sksurv": "scikit_survival",
    "xarray": "draws",
    "xgboost": "xgboost",
}


def read_model(
    model: Any, X: Any = None, train: tuple[Any, Any] | None = None
) -> Distribution | Curves | None:
    """Read what a fitted model of another library forecasts.

    Parameters
    ----------
    model : object
        A fitted model, or posterior predictive draws.
    X : array or frame, optional
        Covariates of the subjects to forecast.
    train : pair (X_train, y_train), optional
        Subjects that the baseline hazard is estimated from, where the model gives risk scores only.

    Returns
    -------
    Distribution, Curves or None
        None if no library here knows the model.

    Examples
    --------
    >>> import lifelines
    >>> read_model(lifelines.ExponentialFitter().fit([1.0, 2.0, 3.0]))
    Exponential(shape=(1,))
    >>> read_model(3.0) is None
    True
    """
    for kind in type(model).__mro__:
        library = _READERS.get(kind.__module__.split(".")[0])
        if library is not None:
            return import_module(f"{__name__}.{library}").read(model, X, train)
    return None
