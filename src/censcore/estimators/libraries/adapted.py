"""Survival estimators of other libraries as estimators of this one."""

from __future__ import annotations

import copy
from typing import Any, Self

from sklearn.base import BaseEstimator, clone
from sklearn.exceptions import NotFittedError as SklearnNotFittedError

from censcore._arrays import ArrayLike, Covariates, is_torch
from censcore._validation import check_instance, check_method
from censcore.distributions import Distribution
from censcore.estimators.covariates import check_rows, check_weights
from censcore.estimators.libraries import fit_model, takes_entry
from censcore.estimators.libraries.adapters import as_forecast
from censcore.estimators.libraries.lifelines import TIME_VARYING
from censcore.estimators.libraries.pipelines import last_estimator
from censcore.estimators.survival_estimator import NotFitted, SurvivalEstimator, one_event_time
from censcore.exceptions import InvalidTypeError
from censcore.outcomes import OutcomeLike, RightCensored, StartStop
from censcore.outcomes.outcome import Outcome

#: Models of lifelines and scikit-survival whose curves are product-limit estimates, or averages of them.
_PRODUCT_LIMIT = {"KaplanMeierFitter", "SurvivalTree", "RandomSurvivalForest", "ExtraSurvivalTrees"}


class Adapted(SurvivalEstimator):
    """A survival estimator of another library, with ``predict_distribution``.

    It can then be compared and cross-validated, and it can estimate the censoring distribution:
    ``Censoring(Adapted(model))``.

    Parameters
    ----------
    model : estimator
        A scikit-survival estimator; a lifelines fitter, with or without covariates; an XGBRegressor with the
        objective ``survival:cox`` or ``survival:aft``; a CatBoostRegressor with the loss ``Cox`` or
        ``SurvivalAft``; SurvivalBoost of hazardous; or anything with ``fit(X, y)``, which receives y as a
        structured array of ``event`` and ``time``, and ``predict_survival_function(X)`` in one of the forms
        of :func:`as_forecast`. It may be the last step of a scikit-learn ``Pipeline``. ``fit`` works on a
        copy; a model that is fitted already may be used without ``fit``.
    interpolation : {"auto", "step", "linear"}
        Survival between the times that the model gives, as in :func:`as_forecast`: steps for models that are
        step functions, lines for continuous models on a time grid.

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

    _of_subjects = ("_train",)

    def __init__(self, model: Any, interpolation: str = "auto") -> None:
        self.model = model
        self.interpolation = interpolation

    @property
    def takes_intervals(self) -> bool:  # type: ignore[override]
        """Whether the model learns from intervals of subjects whose covariates change."""
        model = last_estimator(self.model)
        return bool(getattr(model, "takes_intervals", type(model).__name__ == TIME_VARYING))

    @property
    def represents_atoms(self) -> bool:
        """Whether the model is consistent where the time has atoms: as it says, or by its kind.

        Kaplan-Meier curves and forests of them are. Cox models of other libraries, exp(-r Lambda), are not.
        """
        model = last_estimator(self.model)
        return bool(getattr(model, "represents_atoms", type(model).__name__ in _PRODUCT_LIMIT))

    def fit(
        self,
        X: Covariates | None,
        y: OutcomeLike,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit a copy of the model to one event time per subject; weights that it does not take are an error.

        A pipeline or a search that ends in an estimator with ``predict_distribution`` receives the outcome as
        it is: also entries, intervals, several times.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`SurvivalEstimator.fit`.
        groups : array, (n,), optional
            For the model, where it takes labels of subjects that stay together.

        Returns
        -------
        self
        """
        check_method(self.model, "model", "fit", "a model with fit(X, y)")
        outcome = self._outcome(y)
        check_rows(X, len(outcome))
        weight = None if sample_weight is None else check_weights(sample_weight, len(outcome))
        model = clone(self.model) if isinstance(self.model, BaseEstimator) else copy.deepcopy(self.model)
        self.model_ = fit_model(model, X, outcome, weight, groups)
        self._train = (X, outcome) if isinstance(outcome, RightCensored) else None
        self._reference = outcome.reference[:0]
        return self

    def _outcome(self, y: OutcomeLike) -> Any:
        """One event time per subject, or whatever an estimator at the end of a pipeline takes and checks."""
        last = last_estimator(self.model)
        if isinstance(y, StartStop) or (isinstance(y, Outcome) and hasattr(last, "predict_distribution")):
            return y
        return one_event_time(y, f"Adapted({type(self.model).__name__})", entry=takes_entry(last))

    def predict_distribution(self, X: Covariates | None = None) -> Distribution:
        """Predict what the model forecasts.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates, as in ``fit``.

        Returns
        -------
        Distribution
            One distribution per subject of X, or one for all subjects where covariates play no part.
        """
        fitted_here = hasattr(self, "model_")
        model = self.model_ if fitted_here else self.model
        train = getattr(self, "_train", None)
        try:
            distribution = as_forecast(model, X, interpolation=self.interpolation, train=train)
        except (SklearnNotFittedError, AttributeError, InvalidTypeError) as error:
            if fitted_here:
                raise
            raise NotFitted(
                f"This Adapted({type(model).__name__}) is not fitted yet, nor is its model ({error}). "
                "Call fit(X, y)."
            ) from error
        reference: Any = getattr(self, "_reference", None)
        return distribution.like(reference) if is_torch(reference) else distribution


def as_estimator(model: Any) -> Any:
    """A fresh copy of a model with ``fit`` and ``predict_distribution``, adapted where it has none."""
    check_instance(model, "model")
    return clone(model, safe=False) if hasattr(model, "predict_distribution") else Adapted(model)
