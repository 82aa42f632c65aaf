"""Survival estimators of other libraries as estimators of this one."""

from __future__ import annotations

import copy
import inspect
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError as SklearnNotFittedError
from sklearn.pipeline import Pipeline

from censcore._arrays import Array, is_torch, to_numpy
from censcore._validation import check_instance
from censcore.distributions import Distribution
from censcore.estimators.adapters import as_forecast
from censcore.estimators.base import NotFitted, SurvivalEstimator, one_event_time
from censcore.estimators.covariates import check_rows, check_weights
from censcore.estimators.pipelines import last_estimator, last_step, weight_argument
from censcore.exceptions import InvalidInputError, InvalidTypeError
from censcore.outcomes import OutcomeLike, RightCensored

__all__ = ["Adapted", "as_estimator"]

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
        ``predict_survival_function(X)`` in one of the forms of :func:`as_forecast`. It may be the last step
        of a scikit-learn ``Pipeline``. ``fit`` works on a copy; a model that is fitted already may be used
        without ``fit``.
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
        model = last_estimator(self.model)
        return bool(getattr(model, "represents_atoms", type(model).__name__ in _PRODUCT_LIMIT))

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
        check_instance(self.model, "model")
        y = one_event_time(y, "Adapted")
        check_rows(X, len(y))
        weight = None if sample_weight is None else check_weights(sample_weight, len(y))
        model = clone(self.model) if isinstance(self.model, BaseEstimator) else copy.deepcopy(self.model)
        _fit(model, X, y, weight)
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
        try:
            model, X = last_step(model, X)
            if (
                X is not None
                and _comes_from(model, "lifelines")
                and hasattr(model, "predict_survival_function")
            ):
                X = _frame(X)
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


def as_estimator(model: Any) -> Any:
    """A fresh copy of a model with ``fit(X, y)`` and ``predict_distribution(X)``.

    Parameters
    ----------
    model : estimator
        Of this package, or anything that :class:`Adapted` takes, such as a ``Pipeline``.

    Returns
    -------
    estimator
        A clone, adapted where the model has no ``predict_distribution``.

    Examples
    --------
    >>> import censcore as cs
    >>> from sklearn.pipeline import make_pipeline
    >>> as_estimator(cs.KaplanMeier()), type(as_estimator(make_pipeline(cs.KaplanMeier()))).__name__
    (KaplanMeier(), 'Adapted')
    """
    check_instance(model, "model")
    return clone(model, safe=False) if hasattr(model, "predict_distribution") else Adapted(model)


def _comes_from(model: Any, library: str) -> bool:
    return any(base.__module__.split(".")[0] == library for base in type(model).__mro__)


def _is_regression_of_lifelines(model: Any) -> bool:
    return _comes_from(model, "lifelines") and hasattr(model, "predict_survival_function")


def _fit(model: Any, X: Any, y: RightCensored, weight: np.ndarray | None) -> None:
    """Fit a model in the convention of its library."""
    if _comes_from(model, "lifelines"):
        _fit_lifelines(model, X, y, weight)
    elif isinstance(model, Pipeline) and _comes_from(last_estimator(model), "lifelines"):
        _fit_steps(model, X, y, weight)
    else:
        _fit_structured(model, X, y, weight)


def _fit_structured(model: Any, X: Any, y: RightCensored, weight: np.ndarray | None) -> None:
    """The convention of scikit-survival: y is a structured array."""
    argument = None if weight is None else weight_argument(model)
    if weight is not None and argument is None:
        raise InvalidTypeError(f"{type(last_estimator(model)).__name__}.fit takes no sample_weight; got one.")
    model.fit(X, _structured(y), **({} if argument is None else {argument: weight}))


def _structured(y: RightCensored) -> np.ndarray:
    outcome = np.empty(len(y), dtype=[("event", bool), ("time", np.float64)])
    outcome["event"], outcome["time"] = to_numpy(y.event), to_numpy(y.time)
    return outcome


def _fit_steps(model: Pipeline, X: Any, y: RightCensored, weight: np.ndarray | None) -> None:
    """A pipeline whose last step has another ``fit`` than scikit-learn's: the steps before it, then it."""
    if len(model.steps) > 1:
        before = model[:-1]
        X = before.fit_transform(X, _structured(y))
        model.steps = [*before.steps, model.steps[-1]]
    _fit(model.steps[-1][1], X, y, weight)


def _fit_lifelines(model: Any, X: Any, y: RightCensored, weight: np.ndarray | None) -> None:
    time, event = to_numpy(y.time), to_numpy(y.event)
    if "durations" in inspect.signature(model.fit).parameters:
        model.fit(time, event, **({} if weight is None else {"weights": weight}))
        return
    if X is None:
        raise InvalidInputError(f"lifelines' {type(model).__name__} is a regression and needs X; got None.")
    frame = _frame(X)
    columns = {"time": time, "event": event.astype(int)}
    columns |= {} if weight is None else {"weight": weight}
    names = {part: _free_name(part, frame.columns) for part in columns}
    frame = frame.assign(**{names[part]: values for part, values in columns.items()})
    given = {} if weight is None else {"weights_col": names["weight"]}
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
