"""The censoring distribution that censored engression is trained with, and where it came from."""

from __future__ import annotations

import logging
import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Distribution, Independent, PointMass
from censcore.estimators.censoring import Censoring
from censcore.estimators.censoring_choice import ALARM, choose_censoring, is_automatic
from censcore.estimators.covariate_test import covariates_predict
from censcore.estimators.covariates import take_rows
from censcore.estimators.kaplan_meier import KaplanMeier
from censcore.exceptions import CensoringWarning, InvalidInputError
from censcore.learning.data.first_pass import CountedTimes, FollowUp
from censcore.learning.neural_estimator import followed_outcome
from censcore.outcomes import RightCensored, SemiCompetingRisks
from censcore.scores.inputs import known_censoring

__all__ = ["TrainingCensoring"]

_TESTED = 20_000  # subjects, at most, that the test looks at

_log = logging.getLogger("censcore")


@dataclass(frozen=True)
class TrainingCensoring:
    """A censoring distribution, where it came from in words, and whether it is an estimate.

    The distribution is that of the training subjects; None in a model read from a file, and where an
    estimator, ready for other subjects, gives it in batches.
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
        counted: FollowUp | None = None,
    ) -> Self:
        """Choose it: as given; else what is known; else a Kaplan-Meier estimate.

        Where subjects are read in batches, (X, y) is a sample of them. A Kaplan-Meier estimate is that of
        all subjects, from their counts; other estimators are fitted to the sample.
        """
        censored = not y.event.all() if counted is None else counted.censored
        chosen = cls._without_estimate(objective, censored, censoring)
        if chosen is not None and counted is not None and len(chosen.distribution or ()) > 1:
            raise InvalidInputError(
                f"censoring: got distributions for {len(chosen.distribution or ())} subjects; for subjects "
                "read in batches expected one for all, an estimator, or censoring times in the outcome."
            )
        if chosen is None and (is_automatic(censoring) or censoring is None):
            chosen = cls._known(y, counted)
        if chosen is None:
            chosen = cls._estimated(X, y, censoring, groups, counted)
        _log.info("censoring distribution for censored engression: %s", chosen.words)
        return chosen

    @classmethod
    def _without_estimate(cls, objective: str, censored: bool, censoring: Any) -> Self | None:
        """What the objective or the user decides."""
        never = PointMass(np.array([np.inf]))
        if objective == "naive":
            return cls("ignored: objective='naive' treats censored times as event times", never)
        if objective == "latent":
            if censored:
                raise InvalidInputError(
                    "objective='latent' needs event times without censoring; got censored subjects."
                )
            return cls("none: objective='latent' expects uncensored times", never)
        return (
            cls("the distribution passed to fit", censoring) if isinstance(censoring, Distribution) else None
        )

    @classmethod
    def _known(cls, y: RightCensored, counted: FollowUp | None) -> Self | None:
        """What needs no estimate."""
        if counted is not None and counted.known:
            return cls("known: the outcome has all censoring times")
        if counted is not None:
            never = PointMass(np.array([np.inf]))
            return None if counted.censored else cls("known: nothing is censored", never)
        known = known_censoring(y)
        words = "known: the outcome has all censoring times, or nothing is censored"
        return None if known is None else cls(words, known)

    @classmethod
    def _estimated(
        cls, X: Any, y: RightCensored, censoring: Any, groups: np.ndarray | None, counted: FollowUp | None
    ) -> Self:
        automatic, covariates = is_automatic(censoring), _has_covariates(X)
        source, why = "the training subjects", ""
        sampled = source if counted is None else f"a sample of {len(y):,} training subjects"
        estimator = KaplanMeier() if censoring is None or automatic else censoring
        if automatic and covariates:
            choice = choose_censoring(X, y, groups=groups)
            told = choice.words if counted is None else f"{sampled}: {choice.words}"
            estimator, why = choice.censoring, f" ({told})"
        estimator = estimator if isinstance(estimator, Censoring) else Censoring(estimator)
        distribution = fitted = None
        if counted is None:
            fitted = estimator.fit(X, y)
            distribution = fitted.predict_distribution(X)
        elif not isinstance(estimator.estimator, KaplanMeier):
            source, fitted = sampled, estimator.fit(X, y)
        elif estimator.estimator.stratify is not None:
            fitted = _fit_strata(estimator, estimator.estimator.stratify, counted, X)
        else:
            distribution = _fit_pooled(estimator, counted)
        if distribution is not None and len(distribution) == 1 and covariates and not automatic:
            _warn_if_covariates_predict(X, y, groups)
        return cls(f"estimated from {source} by {estimator!r}{why}", distribution, fitted, True)

    def widest(self, X: Any, y: RightCensored) -> Distribution:
        """A censoring distribution that reaches as far as any, of a sample of covariates and the latest y."""
        if self.distribution is not None:
            return self.distribution
        known: Any = known_censoring(y)
        return known if self.estimator is None else self.estimator.predict_distribution(X)

    @property
    def known(self) -> bool:
        """Whether one censoring time is possible for every subject."""
        C = self.distribution
        if C is None:
            return self.estimator is None
        return not any(np.isnan(to_numpy(C.marginal(j).known_time())).any() for j in range(C.k))

    def followed(self, X: Any, y: Any, given: Any = None) -> tuple[Any, Distribution]:
        """Other subjects and their censoring distribution, up to the end of follow-up of an estimate."""
        seen = followed_outcome(y)
        C = self.for_rows(X, seen, given)
        end = np.min([np.broadcast_to(C.marginal(j).isf(0.0), len(y)) for j in range(C.k)], axis=0)
        late = (seen.time.reshape(len(y), -1) > end[:, None]).any()
        if given is None and self.estimated and late:
            seen, C = seen.censor_at(end), C.censor_at(end)
        if isinstance(y, SemiCompetingRisks):
            return y.censor_at(np.where(seen.event, np.inf, seen.time)), C
        return seen, C

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
            stacklevel=7,
        )
        return


def _fit_pooled(estimator: Censoring, follow_up: FollowUp) -> Distribution:
    """Kaplan-Meier estimates from counts: one, or one for each event time."""
    shared = follow_up.shared if estimator.shared is None else estimator.shared
    columns = [-1] if shared else sorted({j for _, j in follow_up.counts if j >= 0} or {-1})
    curves: list[Any] = []
    for j in columns:
        y, weight = _outcomes(follow_up.counts[None, j])
        curves.append(Censoring(KaplanMeier()).fit(None, y, weight).predict_distribution())
        curves[-1].estimated_from = None
    return curves[0] if len(curves) == 1 else Independent(curves)


def _fit_strata(estimator: Censoring, stratify: Any, follow_up: FollowUp, X: Any) -> Censoring:
    """A Kaplan-Meier estimate for each stratum from counts."""
    import pandas as pd

    if not (follow_up.shared if estimator.shared is None else estimator.shared):
        raise InvalidInputError(
            "KaplanMeier(stratify=...) with one C per event time is not available for subjects read in "
            "batches; leave out stratify, or fit in memory."
        )
    labels = sorted({label for label, _ in follow_up.counts})
    parts = [_outcomes(follow_up.counts[label, -1]) for label in labels]
    column = np.repeat(np.array(labels), [len(y) for y, _ in parts])
    table: Any = pd.DataFrame({stratify: column})
    if not hasattr(X, "columns"):  # an array, whose columns have numbers
        table = np.zeros((len(column), np.shape(X)[1]))
        table[:, stratify] = column
    y = RightCensored.concat([y for y, _ in parts])
    return Censoring(KaplanMeier(stratify=stratify)).fit(table, y, np.concatenate([w for _, w in parts]))


def _outcomes(counted: CountedTimes) -> tuple[RightCensored, np.ndarray]:
    """Distinct outcomes, and how many subjects had each."""
    time = np.concatenate([counted.time, counted.time])
    weight = np.concatenate([counted.other, counted.censored])
    event = np.repeat([True, False], len(counted.time))
    rows = weight > 0
    return RightCensored(time[rows], event[rows]), weight[rows].astype(np.float64)


def _has_covariates(X: Any) -> bool:
    return X is not None and np.ndim(X) == 2 and np.shape(X)[1] > 0
