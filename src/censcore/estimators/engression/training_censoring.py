"""The censoring distribution that censored engression is trained with, and where it came from."""

from __future__ import annotations

import logging
import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from censcore.distributions import Distribution, PointMass
from censcore.estimators.censoring import Censoring
from censcore.estimators.censoring_choice import choose_censoring
from censcore.estimators.covariate_test import covariates_predict
from censcore.estimators.covariates import take_rows
from censcore.estimators.kaplan_meier import KaplanMeier
from censcore.exceptions import CensoringWarning, InvalidInputError
from censcore.outcomes import RightCensored
from censcore.scores.inputs import known_censoring

__all__ = ["OBJECTIVES", "TrainingCensoring"]

OBJECTIVES = ("censored", "naive", "latent")

ALARM = 0.01  # p-value of the test of covariates below which there is a warning
_TESTED = 20_000  # subjects, at most, that the test looks at

_log = logging.getLogger("censcore")


@dataclass(frozen=True)
class TrainingCensoring:
    """A censoring distribution and its origin.

    Attributes
    ----------
    words : str
        Where the distribution came from.
    distribution : Distribution or None
        The distribution for the training subjects; None in a model read from a file.
    estimator : Censoring or None
        The estimator, ready for other subjects.
    """

    words: str
    distribution: Distribution | None = None
    estimator: Censoring | None = None

    @classmethod
    def choose(
        cls, objective: str, X: Any, y: RightCensored, censoring: Any, groups: np.ndarray | None = None
    ) -> Self:
        """Choose it: as given; else what is known; else a Kaplan-Meier estimate."""
        chosen = cls._choose(objective, X, y, censoring, groups)
        _log.info("censoring distribution for censored engression: %s", chosen.words)
        return chosen

    @classmethod
    def _choose(
        cls, objective: str, X: Any, y: RightCensored, censoring: Any, groups: np.ndarray | None
    ) -> Self:
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
        automatic = isinstance(censoring, str)
        if automatic and censoring != "auto":
            raise InvalidInputError(
                f"censoring: got {censoring!r}, expected 'auto', a distribution or an estimator such as "
                "CoxRegression()."
            )
        if (censoring is None or automatic) and (known := known_censoring(y)) is not None:
            return cls("known: the outcome has all censoring times, or nothing is censored", known)
        why = ""
        if automatic and _has_covariates(X):
            choice = choose_censoring(X, y, groups=groups)
            estimator, why = choice.censoring, f", chosen {choice.words}"
        else:
            estimator = KaplanMeier() if censoring is None or automatic else censoring
            estimator = estimator if isinstance(estimator, Censoring) else Censoring(estimator)
        distribution = estimator.fit(X, y).predict_distribution(X)
        if not automatic and len(distribution) == 1 and _has_covariates(X):
            _warn_if_covariates_predict(X, y, groups)
        return cls(f"estimated from the training subjects by {estimator!r}{why}", distribution, estimator)

    def followed(self, X: Any, y: RightCensored, given: Any = None) -> tuple[RightCensored, Distribution]:
        """Other subjects and their censoring distribution, up to the end of follow-up of an estimate."""
        distribution = self.for_rows(X, y, given)
        end = np.min(
            [np.broadcast_to(distribution.marginal(j).isf(0.0), len(y)) for j in range(distribution.k)],
            axis=0,
        )
        late = (y.time.reshape(len(y), -1) > end[:, None]).any()
        if given is not None or self.estimator is None or not late:
            return y, distribution
        return y.censor_at(end), distribution.censor_at(end)

    def for_rows(self, X: Any, y: RightCensored, given: Any = None) -> Distribution:
        """The censoring distribution of other subjects: given, known, or as in training if possible."""
        if isinstance(given, Distribution):
            return given
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
    some = y.take(rows)
    parts = [some] if some.shares_censoring else [some.marginal(j) for j in range(y.k)]
    for part in parts:
        test = covariates_predict(X, part, groups=groups)
        if isinstance(test, str) or test.p_value >= ALARM:
            continue
        warnings.warn(
            f"The covariates predict censoring: {test.told}. CensoredEngression.fit trains with a pooled "
            "Kaplan-Meier estimate, which is biased then. Pass censoring='auto', which chooses between "
            "Kaplan-Meier and Cox regression, or censoring=Censoring(CoxRegression()).",
            CensoringWarning,
            stacklevel=6,
        )
        return


def _has_covariates(X: Any) -> bool:
    return X is not None and np.ndim(X) == 2 and np.shape(X)[1] > 0
