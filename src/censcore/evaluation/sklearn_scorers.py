"""A model with the censoring distribution, fitted together, and scores of it as scikit-learn scorers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, clone

from censcore._arrays import Array
from censcore._validation import as_numbers, check_levels, check_method, check_same_order
from censcore.distributions import Distribution
from censcore.distributions.univariate.survival_matrix import settled, up_to
from censcore.estimators import Censoring, NotFitted
from censcore.estimators.covariates import check_weights
from censcore.estimators.libraries.adapted import as_estimator
from censcore.estimators.libraries.pipelines import last_step
from censcore.estimators.survival_estimator import all_or_nothing
from censcore.evaluation.decisions.asked import Asked
from censcore.evaluation.decisions.horizon import (
    default_times,
    follow_up,
    follow_up_end,
    given_horizon,
    of_censoring_time,
)
from censcore.evaluation.decisions.matrix_interpretation import on_grid
from censcore.evaluation.inference.resolved_censoring import as_censoring
from censcore.evaluation.kinds import Kind, kind_of, one_score
from censcore.evaluation.measures.case import Case, in_time
from censcore.evaluation.measures.case_scores import CASE_SCORES, DEFAULT_SCORES, by_name, raise_no_case_score
from censcore.evaluation.sample import Sample
from censcore.exceptions import InvalidInputError, InvalidTypeError, MissingCensoringError
from censcore.outcomes import OutcomeLike, RightCensored
from censcore.scores import SCORES
from censcore.scores.inputs.scoring_inputs import known_censoring


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

    @all_or_nothing
    def fit(
        self,
        X: Array | None,
        y: OutcomeLike,
        sample_weight: Array | None = None,
        *,
        groups: Array | None = None,
    ) -> Self:
        """Fit the model and the censoring distribution to the same subjects, with the same weights.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates.
        y : RightCensored, another outcome that the model takes, structured array or frame
            The outcome.
        sample_weight : array, (n,), optional
            Weights of the subjects.
        groups : array, (n,), optional
            For a model or estimator of C that takes labels of subjects that stay together.

        Returns
        -------
        self
        """
        check_method(self.model, "model", "fit", "a model with fit(X, y)")
        if self.censoring is not None:
            check_method(self.censoring, "censoring", "fit", "an estimator, such as Censoring(KaplanMeier())")
        check_same_order(y=y, X=X, sample_weight=sample_weight)
        kind, asked = _settled(X, y, self.censoring, self.horizon)
        outcome, followed = kind.y, kind.followed(kind.y)
        weight = None if sample_weight is None else check_weights(sample_weight, len(kind.y))
        train = Sample(X, followed, weight, groups)
        estimator = kind.censoring_estimator() if asked.censoring is None else clone(asked.censoring)
        if estimator is not None:  # all planned visits took place where there is none
            estimator = train.fit(as_censoring(estimator).set_params(cv=None))
        self.censoring_: Censoring | None = estimator
        self.model_ = replace(train, y=outcome).fit(as_estimator(self.model))
        self.n_features_in_ = 0 if X is None else int(np.shape(X)[1])
        self._followed = replace(train, X=None)
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
        times = [of_censoring_time(self._followed, C, j) for j in range(C.k)]
        return min(follow_up_end(C.marginal(j), *follow_up(each)) for j, each in enumerate(times))

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
        name = "energy_score" if "energy_score" in kind_of(y).default_scores else "crps"
        return scorer(name)(self, X, y, sample_weight)

    def _check_fitted(self) -> None:
        if not hasattr(self, "model_"):
            raise NotFitted("This WithCensoring is not fitted yet. Call fit(X, y) first.")


def _settled(X: Any, y: Any, censoring: Any, horizon: float | str) -> tuple[Kind, Asked]:
    """The outcome of subjects, settled as in a comparison."""
    return kind_of(y).settle(Asked({}, Sample(X, y), censoring, horizon=horizon))


def scorer(
    score: str | Mapping[str, Any] = "crps", *, times: Array | None = None, levels: Array = (0.1, 0.25, 0.5)
) -> Scorer:
    """A scorer for ``cross_val_score``, ``cross_validate`` and ``GridSearchCV``.

    The estimator must be a :class:`WithCensoring`, which fits the censoring distribution on the training
    fold, or a ``Pipeline`` that ends in one. Of interval-censored data, forecasts are scored by the detection
    time, and by the log score of the intervals, as in :func:`compare`.

    Parameters
    ----------
    score : str, or dict of one function
        A name as in :func:`compare`, such as "crps", "brier_score" or "log_score"; "energy_score" for several
        event times, joint.
    times, levels : array, optional
        For scores of single times or levels, over which the mean is taken; times are by default the
        quartiles of the training event times before the horizon.

    Returns
    -------
    callable
        ``(estimator, X, y, sample_weight=None) -> float``, minus the weighted mean loss, since scikit-learn
        maximises.

    See Also
    --------
    censcore.WithCensoring : The estimator that this scorer needs.
    censcore.compare : Comparisons with standard errors.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> from sklearn.model_selection import GridSearchCV
    >>> rng = np.random.default_rng(0)
    >>> x = rng.normal(size=(200, 3))
    >>> T, C = rng.exponential(np.exp(x[:, 0])), rng.uniform(0, 3, 200)
    >>> y = cs.RightCensored(np.minimum(T, C), T <= C)
    >>> model = cs.WithCensoring(cs.CoxRegression())
    >>> search = GridSearchCV(model, {"model__alpha": [0.1, 100.0]}, scoring=cs.scorer("crps"), cv=3)
    >>> search.fit(x, y).best_params_
    {'model__alpha': 0.1}
    """
    named = _named(score)
    if len(named) != 1:
        raise InvalidTypeError(f"scorer() makes one scorer; got {len(named)} scores. Use scorers([...]).")
    return Scorer(*next(iter(named.items())), times, levels)


def scorers(
    scores: Iterable[str] | Mapping[str, Any] = DEFAULT_SCORES,
    *,
    times: Array | None = None,
    levels: Array = (0.1, 0.25, 0.5),
) -> dict[str, Any]:
    """Several scorers for ``cross_validate``, and with them the horizon that each fold used.

    Parameters
    ----------
    scores : names, or dict of functions
        As in :func:`compare`, with the same default.
    times, levels : array, optional
        As in :func:`scorer`.

    Returns
    -------
    dict
        Name -> scorer, and ``"horizon"``, which is no score.

    See Also
    --------
    censcore.WithCensoring : The estimator that these scorers need.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> from sklearn.model_selection import cross_validate
    >>> rng = np.random.default_rng(0)
    >>> T, C = rng.exponential(2.0, 90), rng.uniform(0, 5, 90)
    >>> y = cs.RightCensored(np.minimum(T, C), T <= C)
    >>> model = cs.WithCensoring(cs.KaplanMeier())
    >>> results = cross_validate(model, np.zeros((90, 1)), y, cv=3, scoring=cs.scorers(["crps"]))
    >>> results["test_crps"].round(3), results["test_horizon"].round(1)
    (array([-0.437, -0.407, -0.469]), array([2.8, 3.3, 2.9]))
    """
    made = {name: Scorer(name, function, times, levels) for name, function in _named(scores).items()}
    return {**made, "horizon": horizon_of}


def _named(scores: str | Iterable[str] | Mapping[str, Any]) -> dict[str, Any]:
    """Functions by the names of scores, None for scores of the library, in the order asked for."""
    functions = by_name(scores, DEFAULT_SCORES, CASE_SCORES)
    for name, function in functions.items():
        if not callable(function) and name.partition("[")[0] not in SCORES:
            raise_no_case_score(name)
    return functions


def horizon_of(
    estimator: WithCensoring, X: Array | None, y: OutcomeLike, sample_weight: Array | None = None
) -> float:
    """The horizon that the scores of this fold used; not a score."""
    model, X = _checked(estimator, X)
    return model.case(X, y).horizon


@dataclass(frozen=True, eq=False)
class Scorer:
    """Minus the mean of one score under the censoring distribution of the training fold."""

    name: str
    function: Any = None
    times: Array | None = None
    levels: Array = (0.1, 0.25, 0.5)

    def __post_init__(self) -> None:
        if self.times is not None:
            as_numbers(self.times, "times")
        check_levels(as_numbers(self.levels, "levels"))

    def __call__(
        self, estimator: WithCensoring, X: Array | None, y: OutcomeLike, sample_weight: Array | None = None
    ) -> float:
        """Minus the mean loss of the subjects (X, y), weighted where weights are given."""
        model, X = _checked(estimator, X)
        kind, case = model.kind_and_case(X, y, self.times, self.levels)
        score = one_score(kind, self.name, self.function)
        weight = check_weights(sample_weight, len(case.y))
        losses = score.losses(case)[weight > 0]  # an infinite loss of weight zero does not count
        return -float(np.mean(weight[weight > 0] @ losses) / weight.sum())

    def __repr__(self) -> str:
        return f"scorer({self.name!r})"


def _checked(estimator: Any, X: Any) -> tuple[WithCensoring, Any]:
    """The fitted ``WithCensoring`` at the end of pipelines and searches, and the covariates that reach it."""
    model, X = last_step(estimator, X)
    if not isinstance(model, WithCensoring):
        raise InvalidTypeError(
            f"A scorer needs the censoring distribution of the training fold; {type(estimator).__name__} has "
            "none. Wrap the model: WithCensoring(model, censoring=Censoring(KaplanMeier()))."
        )
    return model, X
