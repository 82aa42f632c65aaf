"""Competing risks by one model per cause."""

from __future__ import annotations

from typing import Any, Self

from sklearn.base import BaseEstimator, clone

from censcore._arrays import ArrayLike, Covariates
from censcore.distributions import CauseSpecificHazards
from censcore.estimators.covariates import check_rows, check_weights
from censcore.estimators.libraries.pipelines import fit_weighted
from censcore.estimators.nonparametric.aalen_johansen import check_every_cause
from censcore.estimators.survival_estimator import SurvivalEstimator
from censcore.exceptions import InvalidInputError
from censcore.outcomes import OutcomeLike, RightCensored, SemiCompetingRisks, as_competing_risks


class CauseSpecific(SurvivalEstimator):
    r"""Competing risks by one model of the hazard of each cause.

    The hazard of cause j among those who are free of any event is estimated by a model of one event time, for
    which events of other causes are censored: this is valid for hazards only. The
    cumulative incidences follow from the hazards of all causes,

    .. math:: F_j(t\mid x)=\int_0^tP(T\ge s\mid x)\,d\Lambda_j(s\mid x).

    ``CauseSpecific(CoxRegression())`` is the cause-specific Cox model, ``CauseSpecific(WeibullRegression())``
    the one with Weibull hazards.

    Parameters
    ----------
    estimator : estimator or list of estimators
        Anything with ``fit(X, y)`` and ``predict_distribution(X)``: one that is cloned for every cause, or
        one for each cause.

    Attributes
    ----------
    estimators_ : list of estimators
        The fitted model of each cause.
    names_ : tuple of str
        Names of the causes.

    See Also
    --------
    AalenJohansen : The estimate without covariates.
    censcore.CauseSpecificHazards : What is predicted.

    References
    ----------
    .. [1] Prentice, R. L., Kalbfleisch, J. D., Peterson, A. V., Flournoy, N., Farewell, V. T. and Breslow,
       N. E. (1978). The analysis of failure times in the presence of competing risks. Biometrics 34, 541-554.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 1))
    >>> F = cs.CauseSpecificHazards([cs.Exponential(np.exp(X[:, 0])), cs.Exponential(0.5)])
    >>> time, cause = F.sample(1, seed=1)
    >>> y = cs.CompetingRisks(time[:, 0], cause[:, 0]).censor_at(2.0)
    >>> model = cs.CauseSpecific(cs.CoxRegression()).fit(X, y)
    >>> model.predict_distribution(np.array([[0.0], [1.0]])).cif(1.0).shape
    (2, 2)
    """

    def __init__(self, estimator: BaseEstimator) -> None:
        self.estimator = estimator

    @property
    def represents_atoms(self) -> bool:
        """Whether the models do."""
        models = self.estimator if isinstance(self.estimator, list) else [self.estimator]
        return all(getattr(model, "represents_atoms", False) for model in models)

    def fit(
        self,
        X: Covariates | None,
        y: OutcomeLike | SemiCompetingRisks,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit one model per cause of CompetingRisks.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`SurvivalEstimator.fit`.
        groups : array, (n,), optional
            For the models that take labels of subjects that stay together.

        Returns
        -------
        self
        """
        outcome = as_competing_risks(y)
        check_every_cause(outcome, "CauseSpecific")
        check_rows(X, len(outcome))
        weight = None if sample_weight is None else check_weights(sample_weight, len(outcome))
        models = self._models(outcome.n_causes)
        self.estimators_ = []
        for j, model in enumerate(models, start=1):
            of_cause = RightCensored(outcome.time, outcome.causes == j, entry=outcome.entry)
            self.estimators_.append(fit_weighted(model, X, of_cause, weight, groups))
        self.names_ = outcome.names
        return self

    def _models(self, m: int) -> list[Any]:
        models = self.estimator if isinstance(self.estimator, list) else [self.estimator] * m
        if len(models) != m or not all(hasattr(model, "fit") for model in models):
            raise InvalidInputError(
                f"estimator: got {self.estimator!r}, expected an estimator such as CoxRegression(), or a "
                f"list of {m} of them, one per cause."
            )
        return [clone(model) for model in models]

    def predict_distribution(self, X: Covariates | None = None) -> CauseSpecificHazards:
        """Predict the distribution of time and cause.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates, as in ``fit``.

        Returns
        -------
        CauseSpecificHazards
            One distribution per subject of X, or one for all subjects where covariates play no part.
        """
        self.check_fitted()
        parts = [model.predict_distribution(X) for model in self.estimators_]
        return CauseSpecificHazards(parts, names=self.names_)
