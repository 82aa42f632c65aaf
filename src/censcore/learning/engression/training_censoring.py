"""The censoring distribution that censored engression is trained with, and where it came from."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from censcore.distributions import Distribution, PointMass
from censcore.estimators.censoring.censoring import Censoring
from censcore.estimators.censoring.censoring_choice import (
    ALARM,
    censoring_test,
    choose_censoring,
    is_automatic,
)
from censcore.estimators.covariates import take_rows
from censcore.estimators.nonparametric.kaplan_meier import KaplanMeier
from censcore.exceptions import CensoringWarning, InvalidInputError
from censcore.outcomes import RightCensored, SemiCompetingRisks, as_followed
from censcore.scores.inputs.scoring_inputs import known_censoring

_TESTED = 20_000  # subjects, at most, that the test looks at


@dataclass(frozen=True)
class TrainingCensoring:
    """A censoring distribution, where it came from in words, and whether it is an estimate.

    The distribution is that of the training subjects; None in a model read from a file. An ``estimator`` has
    been fitted to them and is ready for other subjects.
    """

    words: str
    distribution: Distribution | None = None
    estimator: Censoring | None = None
    estimated: bool = False

    @classmethod
    def choose(
        cls,
        objective: str,
        X: Any,
        y: RightCensored,
        censoring: Any,
        groups: np.ndarray | None = None,
        weight: np.ndarray | None = None,
    ) -> Self:
        """Choose the distribution: as given; else what is known; else a Kaplan-Meier estimate."""
        chosen = cls._without_estimate(objective, y, censoring)
        if chosen is not None:
            return chosen
        automatic = is_automatic(censoring)
        covariates = X is not None and np.ndim(X) == 2 and np.shape(X)[1] > 0
        estimator, why = censoring, ""
        if automatic and covariates:
            choice = choose_censoring(X, y, sample_weight=weight, groups=groups)
            estimator, why = choice.censoring, f" ({choice.words})"
        elif automatic or censoring is None:
            estimator = KaplanMeier()
        fitted = estimator if isinstance(estimator, Censoring) else Censoring(estimator)
        fitted = fitted.fit(X, y, weight, groups=groups)
        distribution = fitted.predict_distribution(X)
        if len(distribution) == 1 and covariates and not automatic:
            _warn_if_covariates_predict(X, y, groups)
        return cls(f"estimated from the training subjects by {fitted!r}{why}", distribution, fitted, True)

    @classmethod
    def _without_estimate(cls, objective: str, y: RightCensored, censoring: Any) -> Self | None:
        """Return what the objective, the user or the data decide."""
        never = PointMass(np.array([np.inf]))
        if objective == "naive":
            return cls("ignored: objective='naive' treats censored times as event times", never)
        if objective == "latent":
            if not y.event.all():
                raise InvalidInputError(
                    "objective='latent' needs event times without censoring; got censored subjects."
                )
            return cls("none: objective='latent' expects uncensored times", never)
        if isinstance(censoring, Distribution):
            return cls("the distribution passed to fit", censoring)
        if censoring is not None and not is_automatic(censoring):
            return None
        known = known_censoring(y)
        words = "known: the outcome has all censoring times, or nothing is censored"
        return None if known is None else cls(words, known)

    def followed(self, X: Any, y: Any, censoring: Any = None) -> tuple[Any, Distribution]:
        """Other subjects and their censoring distribution, up to the end of follow-up of an estimate."""
        outcome = as_followed(y)
        C = self.for_rows(X, outcome, censoring)
        end = np.min([np.broadcast_to(C.marginal(j).isf(0.0), len(y)) for j in range(C.k)], axis=0)
        late = (outcome.time.reshape(len(y), -1) > end[:, None]).any()
        if censoring is None and self.estimated and late:
            outcome, C = outcome.censor_at(end), C.censor_at(end)
        if isinstance(y, SemiCompetingRisks):
            return y.censor_at(np.where(outcome.event, np.inf, outcome.time)), C
        return outcome, C

    def for_rows(self, X: Any, y: RightCensored, censoring: Any = None) -> Distribution:
        """The censoring distribution of other subjects: given, known, or as in training if possible."""
        if isinstance(censoring, Distribution):
            return censoring
        known = known_censoring(y)
        if y.censoring_time is not None and known is not None:
            return known
        if self.estimator is not None:
            return self.estimator.predict_distribution(X)
        if self.distribution is not None and len(self.distribution) == 1:
            return self.distribution
        if known is not None:
            return known
        raise InvalidInputError(
            "The censoring distribution of these subjects is not known: fit got one distribution per "
            "training subject, or the model comes from a file. Pass it: score(X, y, censoring=...), or "
            "eval_set=(X, y, censoring)."
        )


def _warn_if_covariates_predict(X: Any, y: RightCensored, groups: np.ndarray | None) -> None:
    """Warn where the covariates predict C, which a pooled curve ignores."""
    rows = np.arange(len(y))
    if len(y) > _TESTED:
        rows = np.sort(np.random.default_rng(0).choice(len(y), _TESTED, replace=False))
        X, groups = take_rows(X, rows), None if groups is None else groups[rows]
    test = censoring_test(X, y.take(rows), groups=groups)
    if not isinstance(test, str) and test.p_value < ALARM:
        warnings.warn(
            f"The covariates predict censoring: {test.told}. CensoredEngression.fit trains with a pooled "
            "Kaplan-Meier estimate, which is biased then. Pass censoring='auto', which chooses between "
            "Kaplan-Meier and Cox regression, or censoring=Censoring(CoxRegression()).",
            CensoringWarning,
            stacklevel=6,
        )
