"""The subjects that a stack is fitted to: who is held out, and models that have not seen them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore._validation import as_count, is_auto
from censcore.distributions import Distribution
from censcore.estimators.censoring.censoring import Censoring
from censcore.estimators.covariates import take_rows
from censcore.estimators.folds import FOLDS, Fold, held_out_folds
from censcore.estimators.libraries.adapted import as_estimator
from censcore.estimators.libraries.pipelines import accepted, fit_weighted
from censcore.estimators.nonparametric.kaplan_meier import KaplanMeier
from censcore.estimators.tails import end_of_follow_up
from censcore.exceptions import InvalidInputError, UnsupportedOutcomeError
from censcore.outcomes import CompetingRisks, IntervalCensored, as_followed
from censcore.outcomes.semi_competing import CauseTimes
from censcore.scores.inputs.scoring_inputs import known_censoring

_FEW, _SOME = 1000, 4000  # up to so many subjects every fold is held out, or two of five, else one
_HELD_OUT = 5000  # subjects of a fold, at most, that the weights are fitted to
_LAST = 0.05  # of the subjects: what they outlive the others by decides no weights

#: By name, for every fold a model that has not seen its subjects, and others that it is pooled with.
HeldOut = dict[str, list[tuple[Any, ...]]]


@dataclass(frozen=True, eq=False)
class StackSubjects:
    """Covariates, outcome, weights, censoring distribution and groups; training and held-out subjects."""

    X: Any
    y: Any
    weight: np.ndarray | None
    C: Any
    groups: np.ndarray | None
    folds: list[Fold]
    seed: int

    def fit(self, model: Any, rows: np.ndarray | None = None) -> Any:
        """Fit a model to all subjects or some."""
        if rows is None:
            more = accepted(model.fit, censoring=self.C)
            return fit_weighted(model, self.X, self.y, self.weight, self.groups, **more)
        weight, groups = (None if part is None else part[rows] for part in (self.weight, self.groups))
        more = accepted(model.fit, censoring=None if self.C is None else self.C.take(rows))
        return fit_weighted(model, take_rows(self.X, rows), self.y.take(rows), weight, groups, **more)

    def cross_fit(self, model: Any) -> list[tuple[Any, ...]]:
        """For every fold, a fitted model that has not seen the held-out subjects, and others of its pool."""
        if not self.folds:
            return []
        if hasattr(model, "cross_fit"):
            more = accepted(model.cross_fit, censoring=self.C, groups=self.groups)
            return list(model.cross_fit(self.X, self.y, self.folds, self.weight, **more))
        return [(self.fit(as_estimator(model), train),) for train, _ in self.folds]

    def cross_fit_all(
        self, pairs: Sequence[tuple[str, Any]], leave_out: bool
    ) -> tuple[HeldOut, dict[str, str]]:
        """Models of every fold by name, and why others, if these may be left out, cannot be fitted."""
        held: HeldOut = {}
        left_out: dict[str, str] = {}
        for name, model in pairs:
            try:
                held[name] = self.cross_fit(model)
            except (InvalidInputError, UnsupportedOutcomeError) as error:
                if not leave_out:
                    raise
                left_out[name] = str(error)
                last = error
        if not held:
            raise last
        return held, left_out

    def held_out(self) -> Iterator[tuple[Any, Any, Any, np.ndarray]]:
        """The held-out subjects of every fold: covariates, outcome, censoring distribution, weights."""
        for _, test in self.folds:
            rows = np.sort(np.random.default_rng(self.seed).permutation(test)[:_HELD_OUT])
            C = None if self.C is None else self.C.take(rows)
            weight = np.ones(len(rows)) if self.weight is None else self.weight[rows]
            yield take_rows(self.X, rows), self.y.take(rows), C, weight

    @property
    def follow_up(self) -> np.ndarray:
        """The end of follow-up, of every event time."""
        if isinstance(self.y, IntervalCensored):
            ends: Any = np.where(self.y.found, self.y.upper, self.y.lower)
            return np.array([ends.max()])
        return end_of_follow_up(CauseTimes(self.y) if isinstance(self.y, CompetingRisks) else self.y, self.C)

    @property
    def horizon(self) -> float | None:
        """The time up to which forecasts are scored for the weights: few subjects are followed longer.

        Were all time scored, one subject followed for much longer than the others would decide.
        """
        if isinstance(self.y, IntervalCensored):
            return None
        last = to_numpy(self.y.time).reshape(len(self.y), -1).max(axis=1)
        end = np.quantile(last, 1 - _LAST, weights=self.weight, method="inverted_cdf")
        return float(end if end > 0 else last.max())

    @property
    def events(self) -> float:
        """Events per event time, or per cause."""
        if isinstance(self.y, CompetingRisks):
            return float((to_numpy(self.y.causes) > 0).sum()) / self.y.n_causes
        event = self.y.found if isinstance(self.y, IntervalCensored) else self.y.event
        return float(to_numpy(event).reshape(len(self.y), -1).sum(axis=0).mean())


def stack_folds(units: np.ndarray, cv: int | str, seed: int) -> list[Fold]:
    """Training and held-out subjects; a group stays on one side."""
    automatic = is_auto(cv)
    if isinstance(cv, str) and not automatic:
        raise InvalidInputError(f"cv must be a number of folds or 'auto'; got {cv!r}.")
    count = FOLDS if automatic else as_count(cv, "cv", least=2)
    if len(units) < 2 * FOLDS or len(np.unique(units)) < count:
        return []
    folds = held_out_folds(units, count, seed)
    return folds[: 2 if len(units) <= _SOME else 1] if automatic and len(units) > _FEW else folds


def censoring_of(X: Any, y: Any, censoring: Any, weight: Any = None, groups: Any = None) -> Any:
    """The censoring distribution: given, known, or estimated; None where intervals need none."""
    if isinstance(censoring, Distribution) or isinstance(y, IntervalCensored):
        return censoring
    followed = as_followed(y)
    if censoring is None and (known := known_censoring(followed)) is not None:
        return known
    estimator = KaplanMeier() if censoring is None else censoring
    estimator = estimator if isinstance(estimator, Censoring) else Censoring(estimator)
    return fit_weighted(estimator, X, followed, weight, groups).predict_distribution(X)
