"""Estimators that are fitted to structured arrays, the convention of scikit-survival."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.estimators.pipelines import last_estimator, weight_argument
from censcore.exceptions import CenscoreError, InvalidTypeError
from censcore.outcomes import RightCensored

__all__ = ["as_structured", "fit", "holds", "takes_weights"]

#: Methods that only models of event times have.
SURVIVAL = ("predict_distribution", "predict_survival_function", "predict_cumulative_hazard_function")


def fit(model: Any, X: Any, y: RightCensored, weight: np.ndarray | None) -> Any:
    """Fit a model to y as a structured array of ``event`` and ``time``.

    Parameters
    ----------
    model : object
        With ``fit(X, y)``.
    X : array or frame, (n, p), or None
        Covariates.
    y : RightCensored
        Outcomes.
    weight : array, (n,), or None
        Weights of the subjects.

    Returns
    -------
    object
        The model.
    """
    try:
        model.fit(X, as_structured(y), **takes_weights(model, weight))
    except (TypeError, ValueError) as error:
        if isinstance(error, CenscoreError) or any(hasattr(model, word) for word in SURVIVAL):
            raise
        raise InvalidTypeError(
            f"{type(model).__name__}: expected a model of event times, which is fitted to a structured array "
            f"of event and time; got {type(error).__name__} ({str(error).splitlines()[0]})."
        ) from error
    return model


def holds(y: Any) -> bool:
    """Whether a structured array holds all of an outcome: one event time, no delayed entry.

    Parameters
    ----------
    y : outcome
        Of any kind.

    Returns
    -------
    bool
    """
    return type(y) is RightCensored and y.time.ndim == 1 and not y.has_delayed_entry


def as_structured(y: RightCensored) -> np.ndarray:
    """Outcomes as a structured array of ``event`` and ``time``.

    Parameters
    ----------
    y : RightCensored
        Outcomes.

    Returns
    -------
    array, (n,)
        Structured.
    """
    outcome = np.empty(len(y), dtype=[("event", bool), ("time", np.float64)])
    outcome["event"], outcome["time"] = to_numpy(y.event), to_numpy(y.time)
    return outcome


def takes_weights(model: Any, weight: np.ndarray | None) -> dict[str, np.ndarray]:
    """Check that the model takes weights if there are any.

    Parameters
    ----------
    model : object
        With ``fit``.
    weight : array or None
        Weights.

    Returns
    -------
    dict
        Arguments for ``fit``.
    """
    if weight is None:
        return {}
    argument = weight_argument(model)
    if argument is None:
        raise InvalidTypeError(f"{type(last_estimator(model)).__name__}.fit takes no sample_weight; got one.")
    return {argument: weight}
