"""Joint models from models of one event time, joined by a copula."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from copy import copy
from functools import partial
from typing import Any, Self

import numpy as np
from scipy.optimize import minimize_scalar
from sklearn.base import BaseEstimator
from sklearn.utils.metaestimators import available_if

from censcore._arrays import ArrayLike, Covariates, to_numpy
from censcore._validation import check_option
from censcore.distributions import CauseSpecificHazards, Copula, Distribution, Exponential, Independent
from censcore.distributions.derived.semi_competing import before_terminal
from censcore.estimators.covariates import check_rows, check_weights
from censcore.estimators.folds import Fold
from censcore.estimators.libraries.adapted import as_estimator
from censcore.estimators.libraries.pipelines import accepted, fit_weighted
from censcore.estimators.regression.cause_times import cause_times
from censcore.estimators.survival_estimator import SurvivalEstimator
from censcore.outcomes import (
    CompetingRisks,
    IntervalCensored,
    OutcomeLike,
    RightCensored,
    SemiCompetingRisks,
    as_outcome,
)

_LARGEST_HAZARD = 12.0  # in the likelihood of the dependence
_DEPENDENCE = (np.log(1e-3), np.log(20.0))  # what is searched: log theta, or log(theta - 1) for Gumbel's


class JointFromMargins(SurvivalEstimator):
    r"""One model for each event time, joined by a copula that is fitted to their ranks.

    The margins are fitted one by one. Then the dependence :math:`\theta`, the same for all subjects,
    maximises the censored likelihood of the cumulative hazards :math:`H_j(y_j\mid x)` at the observed times,
    which are unit exponential where the margins are right (inference functions for margins [1]_).

    Parameters
    ----------
    estimator : estimator
        Of one event time; it is cloned for each. Anything with ``predict_distribution`` or that
        :class:`Adapted` takes.
    copula : {"clayton", "gumbel", "independent"}
        Of :class:`~censcore.Copula`.

    Attributes
    ----------
    estimators_ : list of estimators
        The fitted margins.
    theta_ : float or None
        The dependence; None where there is none to fit.

    Notes
    -----
    One event time needs no copula, and the forecast is that of the estimator, which may take delayed entry
    and intervals. Where one event prevents
    another, in competing and semi-competing risks, the dependence cannot be learned: the estimators describe
    the hazard of each event among those who are free of it, and hazards act independently.

    See Also
    --------
    censcore.CopulaWeibull : Weibull margins and copula in one likelihood.
    Stacking : Can have it as a member.

    References
    ----------
    .. [1] H. Joe (1997). Multivariate Models and Dependence Concepts. Chapman and Hall, London.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.simulation import LogNormalScenario
    >>> data = LogNormalScenario(k=2, censoring="uniform").sample(300, seed=0)
    >>> model = cs.JointFromMargins(cs.CoxRegression(alpha=1.0)).fit(data.X, data.y)
    >>> model.predict_distribution(data.X)
    Copula(shape=(300, 2))
    """

    def __init__(self, estimator: BaseEstimator, copula: str = "clayton") -> None:
        self.estimator = estimator
        self.copula = copula

    @property
    def represents_atoms(self) -> bool:
        """Whether the estimator does."""
        return bool(getattr(self.estimator, "represents_atoms", False))

    def fit(
        self,
        X: Covariates | None,
        y: OutcomeLike | SemiCompetingRisks,
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> Self:
        """Fit the margins, then the dependence.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`SurvivalEstimator.fit`.
        groups : array, (n,), optional
            For the estimators that take labels of subjects that stay together.

        Returns
        -------
        self
        """
        self._fit_margins(X, y, sample_weight, partial(fit_weighted, groups=groups))
        return self

    @available_if(lambda self: hasattr(self.estimator, "cross_fit"))  # type: ignore[untyped-decorator]
    def cross_fit(
        self,
        X: Covariates | None,
        y: OutcomeLike | SemiCompetingRisks,
        folds: Sequence[Fold],
        sample_weight: ArrayLike | None = None,
        *,
        groups: ArrayLike | None = None,
    ) -> list[tuple[Self, ...]]:
        """Fit to all subjects, with models that have not seen given ones; for use by :class:`Stacking`.

        Where the estimator has such a method; ``groups`` are as in :meth:`fit`.

        Parameters
        ----------
        X, y, sample_weight
            As in :meth:`fit`.
        folds : sequence of (array of int, array of int)
            Training and held-out subjects.

        Returns
        -------
        list of tuples of estimators
            For every fold the model of it alone, which has not seen the held-out subjects, and those that it
            is pooled or averaged with, if any.
        """
        parts: list[list[tuple[Any, ...]]] = []

        def fit(model: Any, X: Any, y: RightCensored, weight: np.ndarray | None) -> Any:
            parts.append(model.cross_fit(X, y, folds, weight, **accepted(model.cross_fit, groups=groups)))
            return model

        def with_margins(margins: Sequence[Any]) -> Any:
            model = copy(self)
            model.estimators_ = list(margins)
            return model

        self._fit_margins(X, y, sample_weight, fit)
        return [tuple(map(with_margins, zip(*of_fold, strict=True))) for of_fold in zip(*parts, strict=True)]

    def _fit_margins(self, X: Any, y: Any, sample_weight: Any, fit: Callable[..., Any]) -> None:
        """Fit the margins by a function, then the dependence."""
        check_option(self.copula, "copula", ("clayton", "gumbel", "independent"))
        name, self._names, self._terminal = type(self).__name__, None, None
        if isinstance(y, CompetingRisks):
            self._names, y = y.names, cause_times(y, name, training=True)
        elif isinstance(y, SemiCompetingRisks):
            self._terminal, y = y.terminal, y.like(np.empty(0))
        else:
            y = (y if isinstance(y, IntervalCensored) else as_outcome(y)).like(np.empty(0))
        check_rows(X, len(y))
        weight = None if sample_weight is None else check_weights(sample_weight, len(y))
        self._one_time = isinstance(y, IntervalCensored) or y.time.ndim == 1
        if self._one_time:
            margins = [y]
        else:
            margins = [RightCensored(y.time[:, j], y.event[:, j]) for j in range(y.k)]
            if isinstance(y, RightCensored):
                y.require_no_entry(name)
        self.estimators_ = [fit(as_estimator(self.estimator), X, margin, weight) for margin in margins]
        self.theta_ = None
        if self._names is None and self._terminal is None and len(margins) > 1:
            self.theta_ = self._dependence(X, y.time, y.event, weight)

    def _dependence(
        self, X: Any, time: np.ndarray, event: np.ndarray, weight: np.ndarray | None
    ) -> float | None:
        """Theta that maximises the likelihood of the cumulative hazards, as if they were known."""
        if self.copula == "independent":
            return None
        H = np.column_stack([_hazard(model, X, time[:, j]) for j, model in enumerate(self.estimators_)])
        least = 0.0 if self.copula == "clayton" else 1.0
        margins = [Exponential(1.0)] * time.shape[1]

        def loss(log_strength: float) -> float:
            joint = Copula(self.copula, margins, least + np.exp(log_strength))
            return -float(np.average(joint.log_likelihood(H, event), weights=weight))

        best = minimize_scalar(loss, bounds=_DEPENDENCE, method="bounded", options={"xatol": 1e-3}).x
        return least if best < _DEPENDENCE[0] + 0.1 else least + float(np.exp(best))

    def predict_distribution(self, X: Covariates | None = None) -> Distribution:
        """Predict the joint distribution: a copula, or hazards of the causes of competing risks.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates, as in ``fit``.

        Returns
        -------
        Distribution
            One distribution per subject of X, or one for all subjects where covariates play no part.
        """
        self.check_fitted()
        margins = [model.predict_distribution(X) for model in self.estimators_]
        if self._names is not None:
            return CauseSpecificHazards(margins, names=self._names)
        if self._terminal is not None:
            return before_terminal(Independent(margins), self._terminal)
        if self._one_time:
            return margins[0]
        return Independent(margins) if self.theta_ is None else Copula(self.copula, margins, self.theta_)


def _hazard(model: Any, X: Any, time: np.ndarray) -> np.ndarray:
    """Cumulative hazards at the observed times, the mean of both limits at a step.

    For flexible models they are those of held-out subjects, where known: those of training subjects vary too
    little.
    """
    if hasattr(model, "held_out_hazard_"):
        return np.minimum(model.held_out_hazard_, _LARGEST_HAZARD)
    F = model.predict_distribution(X)
    limits = [to_numpy(value(time[:, None])).reshape(-1) for value in (F.sf_left, F.sf)]
    with np.errstate(divide="ignore"):
        return sum(np.minimum(-np.log(value), _LARGEST_HAZARD) for value in limits) / 2
