"""Survival estimators of other libraries as estimators of this one."""

from __future__ import annotations

import copy
import inspect
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError as SklearnNotFittedError

from censcore._arrays import Array, is_torch, to_numpy
from censcore.distributions import Distribution
from censcore.estimators.adapters import as_forecast
from censcore.estimators.base import NotFitted, SurvivalEstimator, one_event_time
from censcore.estimators.covariates import check_rows, check_weights
from censcore.exceptions import InvalidInputError, InvalidTypeError
from censcore.outcomes import OutcomeLike, RightCensored

__all__ = ["Adapted"]

#: Models of lifelines and scikit-survival whose curves are product-limit estimates, or averages of them.
_PRODUCT_LIMIT = {"KaplanMeierFitter", "SurvivalTree", "RandomSurvivalForest", "ExtraSurvivalTrees"}


class Adapted(SurvivalEstimator):
    """A survival estimator of scikit-survival, lifelines or another library, with ``predict_distribution``.

    It can then be compared and cross-validated, and it can estimate the censoring distribution:
    ``Censoring(Adapted(model))``.

    Parameters
    ----------
    model : estimator
        A scikit-survival estimator; a lifelines fitter, with or without covariates; or anything with
        ``fit(X, y)``, which receives y as a structured array of ``event`` and ``time``, and
        ``predict_survival_function(X)`` in one of the forms of :func:`as_forecast`. ``fit`` works on a copy;
        a model that is fitted already may be used without ``fit``.
    interpolation : "step" or "linear"
        Survival between the times that the model gives. Linear suits continuous models on a time grid,
        such as the parametric ones of lifelines.

    Attributes
    ----------
    model_ : estimator
        The fitted copy.

    See Also
    --------
    as_forecast : Forecasts of other libraries without their estimator.

    Examples
    --------
    >>> import lifelines, numpy as np, censcore as cs
    >>> y = cs.RightCensored(time=[1.0, 2.0, 3.0, 4.0], event=[1, 0, 1, 1])
    >>> cs.Adapted(lifelines.KaplanMeierFitter()).fit(None, y).predict_distribution().sf(3.5)
    array([0.375])
    """

    def __init__(self, model: Any, interpolation: str = "step") -> None:
        self.model = model
        self.interpolation = interpolation

    @property
    def represents_atoms(self) -> bool:
        """Whether the model is consistent where the time has atoms: as it says, or by its kind.

        Kaplan-Meier curves and forests of them are. Cox models of other libraries, exp(-r Lambda), are not.
        """
        return bool(getattr(self.model, "represents_atoms", type(self.model).__name__ in _PRODUCT_LIMIT))

    def fit(self, X: Array | None, y: OutcomeLike, sample_weight: Array | None = None) -> Self:
        """Fit a copy of the model.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates.
        y : RightCensored, structured array or frame
            The outcome, one event time per subject.
        sample_weight : array, (n,), optional
            Weights of the subjects; an error is raised if the model takes none.

        Returns
        -------
        self
        """
        name = f"Adapted({type(self.model).__name__})"
        y = one_event_time(y, name, entry=_entry_argument(self.model) is not None)
        check_rows(X, len(y))
        weight = None if sample_weight is None else check_weights(sample_weight, len(y))
        model = clone(self.model) if isinstance(self.model, BaseEstimator) else copy.deepcopy(self.model)
        if _comes_from(model, "lifelines"):
            _fit_lifelines(model, X, y, weight)
        else:
            _fit_structured(model, X, y, weight)
        self.model_ = model
        self._reference = y.time[:0]
        return self

    def predict_distribution(self, X: Array | None = None) -> Distribution:
        """Predict the distribution of the event time.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates.

        Returns
        -------
        Distribution
            What the model forecasts for each subject of X, or for all subjects where X plays no part.
        """
        fitted_here = hasattr(self, "model_")
        model = self.model_ if fitted_here else self.model
        if _comes_from(model, "lifelines") and X is not None and hasattr(model, "predict_survival_function"):
            X = _frame(X)
        try:
            distribution = as_forecast(model, X, interpolation=self.interpolation)
        except (SklearnNotFittedError, AttributeError, InvalidTypeError) as error:
            if fitted_here:
                raise
            raise NotFitted(
                f"This Adapted({type(model).__name__}) is not fitted yet, nor is its model ({error}). "
                "Call fit(X, y)."
            ) from error
        reference = getattr(self, "_reference", None)
        return distribution.like(reference) if is_torch(reference) else distribution


def _comes_from(model: Any, library: str) -> bool:
    return any(base.__module__.split(".")[0] == library for base in type(model).__mro__)


def _entry_argument(model: Any) -> str | None:
    """What ``fit`` of a lifelines model calls delayed entry; None where the model does not know it."""
    if not _comes_from(model, "lifelines") or type(model).__name__ == "CoxPHFitter":
        return None  # the baseline hazard of that Cox model is computed as if all had entered at zero
    parameters = inspect.signature(model.fit).parameters
    return next((name for name in ("entry", "entry_col") if name in parameters), None)


def _fit_structured(model: Any, X: Any, y: RightCensored, weight: np.ndarray | None) -> None:
    """The convention of scikit-survival: y is a structured array."""
    outcome = np.empty(len(y), dtype=[("event", bool), ("time", np.float64)])
    outcome["event"], outcome["time"] = to_numpy(y.event), to_numpy(y.time)
    if weight is None:
        model.fit(X, outcome)
    elif "sample_weight" in inspect.signature(model.fit).parameters:
        model.fit(X, outcome, sample_weight=weight)
    else:
        raise InvalidTypeError(f"{type(model).__name__}.fit takes no sample_weight; got one.")


def _fit_lifelines(model: Any, X: Any, y: RightCensored, weight: np.ndarray | None) -> None:
    time, event = to_numpy(y.time), to_numpy(y.event)
    entry = to_numpy(y.entry) if y.has_delayed_entry else None
    if "durations" in inspect.signature(model.fit).parameters:
        arrays = {} if weight is None else {"weights": weight}
        model.fit(time, event, **arrays, **({} if entry is None else {"entry": entry}))
        return
    if X is None:
        raise InvalidInputError(f"lifelines' {type(model).__name__} is a regression and needs X; got None.")
    frame = _frame(X)
    columns = {"time": time, "event": event.astype(int)}
    columns |= {} if weight is None else {"weight": weight}
    columns |= {} if entry is None else {"entry": entry}
    names = {part: _free_name(part, frame.columns) for part in columns}
    frame = frame.assign(**{names[part]: values for part, values in columns.items()})
    given = {} if weight is None else {"weights_col": names["weight"]}
    given |= {} if entry is None else {"entry_col": names["entry"]}
    model.fit(frame, duration_col=names["time"], event_col=names["event"], **given)


def _frame(X: Any) -> Any:
    """X as the pandas frame that lifelines asks for."""
    import pandas as pd

    if isinstance(X, pd.DataFrame):
        return X.reset_index(drop=True)
    if hasattr(X, "to_pandas"):
        return X.to_pandas()
    array = to_numpy(X)
    return pd.DataFrame(array, columns=[f"x{j}" for j in range(array.shape[1])])


def _free_name(name: str, taken: Any) -> str:
    while name in taken:
        name += "_"
    return name
