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
    """Fit a model to y as a structured array of ``event`` and ``time``."""
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
    """Whether a structured array holds all of an outcome: one event time, no delayed entry."""
    return type(y) is RightCensored and y.time.ndim == 1 and not y.has_delayed_entry


def as_structured(y: RightCensored) -> np.ndarray:
    """Outcomes as a structured array of ``event`` and ``time``, (n,)."""
    outcome = np.empty(len(y), dtype=[("event", bool), ("time", np.float64)])
    outcome["event"], outcome["time"] = to_numpy(y.event), to_numpy(y.time)
    return outcome


def takes_weights(model: Any, weight: np.ndarray | None) -> dict[str, np.ndarray]:
    """Weights as an argument of ``fit``; an error where there are some and the model takes none."""
    if weight is None:
        return {}
    argument = weight_argument(model)
    if argument is None:
        raise InvalidTypeError(f"{type(last_estimator(model)).__name__}.fit takes no sample_weight; got one.")
    return {argument: weight}
