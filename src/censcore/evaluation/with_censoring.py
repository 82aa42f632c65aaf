"""A model and the censoring distribution, fitted together, so that scorers find both."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from censcore._arrays import Array, to_numpy
from censcore._validation import as_numbers, check_method
from censcore.distributions import Distribution
from censcore.distributions.survival_matrix import settled, up_to
from censcore.estimators import Censoring, NotFitted
from censcore.estimators.adapted import as_estimator
from censcore.estimators.covariates import check_weights, fit_weighted
from censcore.evaluation.kinds import Kind, kind_of
from censcore.evaluation.measures.case import Case, in_time
from censcore.evaluation.plan.horizon import follow_up_end, given_horizon
from censcore.evaluation.plan.readings import on_grid
from censcore.evaluation.plan.request import Request
from censcore.evaluation.plan.times_and_levels import default_times
from censcore.evaluation.sample import Sample
from censcore.exceptions import InvalidInputError, MissingCensoringError
from censcore.outcomes import OutcomeLike, RightCensored
from censcore.scores.inputs import known_censoring

__all__ = ["WithCensoring"]


class WithCensoring(BaseEstimator):
    r"""A survival model together with the censoring distribution of its training subjects.

    A score needs the censoring distribution, which must come from the training fold; scikit-learn's scorers
    see only the fitted estimator and the test fold. So both are fitted here, and :func:`scorer` reads them.

    Parameters
    ----------
    model : estimator
        Of this package, of scikit-survival, a ``Pipeline`` that ends in one, or anything that
        :class:`Adapted` takes.
    censoring : estimator, optional
        Of the censoring distribution, ``Censoring(KaplanMeier())`` by default. For
        :class:`~censcore.IntervalCensored` data it is that of the last visit which a subject attends; none
        is needed where all training subjects attended all planned visits.
    horizon : "auto" or number
        End of the scores. "auto" is chosen by follow-up, fold by fold: the largest time h with
        P(C >= h) >= 0.1 for every subject and at least ten training subjects at risk (a fifth of them where
        they are fewer than fifty). For intervals where nobody drops out it is the last visit of the training
        subjects.

    Attributes
    ----------
    model_, censoring_ : estimators
        The fitted ones.
    horizon_ : float
        The horizon of this fit.
    times_ : array
        Quartiles of the training event times before the horizon (weighted, and each an event time): where
        scores of single times are taken by default.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> from sklearn.model_selection import cross_val_score
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 1))
    >>> T, C = rng.exponential(np.exp(x[:, 0])), rng.uniform(0, 3, 200)
    >>> y = cs.RightCensored(np.minimum(T, C), T <= C)
    >>> model = cs.WithCensoring(cs.CoxRegression())
    >>> cross_val_score(model, x, y, cv=3, scoring=cs.scorer("crps")).round(3)
    array([-0.196, -0.213, -0.221])

    Several event times are scored by their energy score:

    >>> T = rng.exponential(np.exp(x), size=(200, 2))
    >>> y = cs.RightCensored(np.minimum(T, C[:, None]), T <= C[:, None])
    >>> joint = cs.WithCensoring(cs.CopulaWeibull())
    >>> cross_val_score(joint, x, y, cv=3, scoring=cs.scorer("energy_score")).shape
    (3,)
    """

    def __init__(
        self, model: Any, censoring: BaseEstimator | None = None, horizon: float | str = "auto"
    ) -> None:
        self.model = model
        self.censoring = censoring
        self.horizon = horizon

    def fit(self, X: Array | None, y: OutcomeLike, sample_weight: Array | None = None) -> Self:
        """Fit the model and the censoring distribution to the same subjects, with the same weights."""
        check_method(self.model, "model", "fit", "a model with fit(X, y)")
        if self.censoring is not None:
            check_method(self.censoring, "censoring", "fit", "an estimator, such as Censoring(KaplanMeier())")
        kind, asked = _settled(X, y, self.censoring, self.horizon)
        outcome, followed = kind.y, kind.followed(kind.y)
        weight = None if sample_weight is None else check_weights(sample_weight, len(kind))
        estimator = kind.censoring_estimator() if asked.censoring is None else clone(asked.censoring)
        if estimator is not None:  # all planned visits took place where there is none
            estimator = estimator if isinstance(estimator, Censoring) else Censoring(estimator)
            estimator = estimator.set_params(cv=None).fit(X, followed, weight)
        self.censoring_: Censoring | None = estimator
        self.model_ = fit_weighted(as_estimator(self.model), X, outcome, weight)
        self.n_features_in_ = 0 if X is None else int(np.shape(X)[1])
        self._train_times = _times_of(followed, weight)
        end = given_horizon(asked.horizon)
        self.horizon_ = self._supported(self._censoring_of(X, followed)) if end is None else end
        each = kind.pooled(Sample(None, outcome, weight))
        self.times_ = default_times(each.y, self.horizon_, each.weight)
        self._train_events = kind.event_times()
        return self

    def _censoring_of(self, X: Any, followed: RightCensored) -> Distribution:
        """The censoring distribution; the censoring times of subjects with all planned visits are known."""
        if self.censoring_ is not None:
            return in_time(self.censoring_.predict_distribution(X), followed)
        known = known_censoring(followed)
        if known is None:
            raise MissingCensoringError(
                "Subjects dropped out, and none of the training subjects did: there is no estimate of "
                "drop-out. Pass censoring=, or other folds."
            )
        return known

    def _supported(self, C: Distribution) -> float:
        """The horizon that follow-up supports, for every C where each event time has one."""
        return min(
            follow_up_end(C.marginal(j), *(self._train_times if C.k == 1 else self._train_times[j : j + 1]))
            for j in range(C.k)
        )

    def predict_distribution(self, X: Array | None = None) -> Distribution:
        """The forecast of the model."""
        self._check_fitted()
        return settled(self.model_.predict_distribution(X), self._train_events, "training events")

    def predict_censoring(self, X: Array | None = None) -> Distribution:
        """The censoring distribution."""
        self._check_fitted()
        if self.censoring_ is None:
            raise InvalidInputError(
                "This model was fitted to intervals of subjects who attended all planned visits: there is no "
                "censoring distribution."
            )
        return self.censoring_.predict_distribution(X)

    def case(
        self, X: Array | None, y: OutcomeLike, times: Array | None = None, levels: Array = (0.1, 0.25, 0.5)
    ) -> Case:
        """Forecasts, censoring distribution and outcomes of subjects, scored up to a supported horizon."""
        return self.kind_and_case(X, y, times, levels)[1]

    def kind_and_case(
        self, X: Array | None, y: OutcomeLike, times: Array | None, levels: Array
    ) -> tuple[Kind, Case]:
        """The same with the kind of the outcome, which knows its scores."""
        self._check_fitted()
        kind, _ = _settled(X, y, self.censoring_, self.horizon_)
        C = self._censoring_of(X, kind.followed(kind.y))
        kind, horizon = kind.under(C), self.horizon_
        if self.censoring_ is not None and given_horizon(self.horizon) is None:
            horizon = min(self.horizon_, self._supported(C))
        F = self.predict_distribution(X)
        at = self.times_[self.times_ < horizon] if times is None else as_numbers(times, "times")
        at = at if len(at) else np.array([horizon / 2])
        case = kind.case(kind.check("model", F), C, horizon, at, as_numbers(levels, "levels"), seed=0)
        case = replace(case, F=up_to(case.F, horizon))
        return kind, replace(case, times=on_grid(at, {"": case.F}, horizon)) if times is None else case

    def score(self, X: Array | None, y: OutcomeLike, sample_weight: Array | None = None) -> float:
        """Minus the (weighted) mean CRPS, or energy score of several event times, so that more is better."""
        from censcore.evaluation.scorers import scorer

        name = "energy_score" if "energy_score" in kind_of(y).default_scores else "crps"
        return scorer(name)(self, X, y, sample_weight)

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise NotFitted("This WithCensoring is not fitted yet. Call fit(X, y) first.")


def _settled(X: Any, y: Any, censoring: Any, horizon: float | str) -> tuple[Kind, Request]:
    """The outcome of subjects, settled as in a comparison."""
    return kind_of(y).settle(Request({}, Sample(X, y), censoring, horizon=horizon))


def _times_of(y: RightCensored, weight: np.ndarray | None) -> list[np.ndarray]:
    """How long subjects that count were followed: one array for each C of a subject."""
    time = to_numpy(y.time).reshape(len(y), -1)
    time = time if weight is None else time[weight > 0]
    return [time.max(axis=1)] if y.shares_censoring else list(time.T)
