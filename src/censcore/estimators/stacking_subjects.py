"""The subjects that a stack is fitted to: who is held out, and models that have not seen them."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Distribution
from censcore.estimators.adapted import as_estimator
from censcore.estimators.cause_times import CauseTimes
from censcore.estimators.censoring import Censoring
from censcore.estimators.covariates import fit_weighted, take_rows
from censcore.estimators.folds import Fold
from censcore.estimators.kaplan_meier import KaplanMeier
from censcore.estimators.tails import end_of_follow_up
from censcore.outcomes import CompetingRisks, IntervalCensored, SemiCompetingRisks
from censcore.scores.inputs import known_censoring

__all__ = ["StackSubjects", "censoring_of"]

_HELD_OUT = 5000  # subjects of a fold, at most, that the weights are fitted to


@dataclass(frozen=True, eq=False)
class StackSubjects:
    """Covariates, outcome, weights, censoring distribution and groups; training and held-out subjects."""

    X: Any
    y: Any
    weight: np.ndarray | None
    C: Any
    groups: Any
    folds: list[Fold]
    seed: int

    def fit(self, model: Any, rows: np.ndarray | None = None) -> Any:
        """Fit a model to all subjects or some."""
        if rows is None:
            return fit_weighted(model, self.X, self.y, self.weight, **self._accepted(model.fit))
        X, weight = self._covariates(rows), None if self.weight is None else self.weight[rows]
        more = {
            name: taken(value, rows) if isinstance(value, Distribution) else np.asarray(value)[rows]
            for name, value in self._accepted(model.fit).items()
        }
        return fit_weighted(model, X, self.y.take(rows), weight, **more)

    def cross_fit(self, model: Any) -> list[tuple[Any, ...]]:
        """For every fold, a fitted model that has not seen the held-out subjects, and others of its pool."""
        if not self.folds:
            return []
        if hasattr(model, "cross_fit"):
            more = self._accepted(model.cross_fit)
            return list(model.cross_fit(self.X, self.y, self.folds, self.weight, **more))
        return [(self.fit(as_estimator(model), train),) for train, _ in self.folds]

    def _accepted(self, function: Any) -> dict[str, Any]:
        """What a method takes of censoring distribution and groups."""
        names, options = inspect.signature(function).parameters, {"censoring": self.C, "groups": self.groups}
        return {name: value for name, value in options.items() if name in names and value is not None}

    def _covariates(self, rows: np.ndarray) -> Any:
        return None if self.X is None else take_rows(self.X, rows)

    def held_out(self) -> Iterator[tuple[Any, Any, Any, np.ndarray]]:
        """The held-out subjects of every fold: covariates, outcome, censoring distribution, weights."""
        for _, test in self.folds:
            rows = np.sort(np.random.default_rng(self.seed).permutation(test)[:_HELD_OUT])
            C = None if self.C is None else taken(self.C, rows)
            weight = np.ones(len(rows)) if self.weight is None else self.weight[rows]
            yield self._covariates(rows), self.y.take(rows), C, weight

    @property
    def follow_up(self) -> np.ndarray:
        """The end of follow-up, of every event time."""
        if isinstance(self.y, IntervalCensored):
            ends: Any = np.where(self.y.found, self.y.upper, self.y.lower)
            return np.array([ends.max()])
        return end_of_follow_up(CauseTimes(self.y) if isinstance(self.y, CompetingRisks) else self.y, self.C)

    @property
    def events(self) -> float:
        """Events per event time, or per cause."""
        if isinstance(self.y, CompetingRisks):
            return float((to_numpy(self.y.causes) > 0).sum()) / self.y.n_causes
        event = self.y.found if isinstance(self.y, IntervalCensored) else self.y.event
        return float(to_numpy(event).reshape(len(self.y), -1).sum(axis=0).mean())


def taken(C: Distribution, rows: np.ndarray) -> Distribution:
    """The distributions of some subjects."""
    return C if len(C) == 1 else C.take(rows)


def censoring_of(X: Any, y: Any, censoring: Any) -> Any:
    """The censoring distribution: given, known, or estimated; None where intervals need none."""
    if isinstance(censoring, Distribution) or isinstance(y, IntervalCensored):
        return censoring
    followed = y.terminal_event() if isinstance(y, SemiCompetingRisks) else y
    followed = followed.any_cause() if isinstance(followed, CompetingRisks) else followed
    if censoring is None and (known := known_censoring(followed)) is not None:
        return known
    estimator = KaplanMeier() if censoring is None else censoring
    estimator = estimator if isinstance(estimator, Censoring) else Censoring(estimator)
    return estimator.fit(X, followed).predict_distribution(X)
