"""Regressions by the likelihood of intervals, and outcomes as intervals."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any, ClassVar, NamedTuple, Self

import numpy as np

from censcore._arrays import Array, ArrayLike, Covariates, to_numpy
from censcore.estimators.encoding import as_matrix
from censcore.estimators.regression.base import CoefficientInference
from censcore.estimators.risk_sets import at_risk_weights
from censcore.estimators.survival_estimator import one_event_time
from censcore.exceptions import InvalidInputError
from censcore.outcomes import IntervalCensored, OutcomeLike


class Ends(NamedTuple):
    """Lower and upper ends of intervals, and entries; each (n,)."""

    lower: np.ndarray
    upper: np.ndarray
    entry: np.ndarray

    def each(self, change: Callable[[np.ndarray], np.ndarray]) -> Ends:
        """The same change of all three."""
        return Ends(*map(change, self))


class IntervalRegression(CoefficientInference):
    """Base class of regressions of exact, right-censored and interval-censored times.

    A subclass writes :meth:`_maximise`, which sets the estimates, ``_center``, ``_start`` and each subject's
    influence ``_parts``, and :meth:`predict_distribution`.
    """

    _center: np.ndarray
    _start: float = 0.0
    _parts: np.ndarray
    _of_subjects: ClassVar[tuple[str, ...]] = ("_parts",)

    @abstractmethod
    def _maximise(self, X: np.ndarray, ends: Ends, weight: np.ndarray) -> None: ...

    def fit(self, X: Covariates | None, y: OutcomeLike, sample_weight: ArrayLike | None = None) -> Self:
        """Maximise the (penalised) likelihood of IntervalCensored or RightCensored times.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates.
        y : RightCensored or IntervalCensored, structured array or frame
            The outcome.
        sample_weight : array, (n,), optional
            Weights of the subjects; ones if omitted.

        Returns
        -------
        self
        """
        outcome = as_intervals(y, type(self).__name__)
        covariates, weight = self._check_inputs(X, len(outcome), sample_weight)
        self._maximise(covariates, ends_of(outcome), at_risk_weights(outcome, weight))
        self._reference = outcome.lower[:0]
        return self

    def coefficient_influence(self) -> np.ndarray:
        """Each subject's influence on the estimates, (n, estimates)."""
        return self._per_subject(self._parts)

    def _eta(self, X: Array | None) -> np.ndarray:
        """Linear predictors: ``_start`` plus (x - ``_center``)' ``coef_``, (n,) or (1,)."""
        X = as_matrix(self, X, reset=False)
        return np.array([self._start]) if X is None else self._linear_predictor(X, self._center, self._start)


def as_intervals(y: Any, estimator: str) -> IntervalCensored:
    """An outcome of one event time as intervals; entries are kept. Errors name the estimator."""
    if isinstance(y, IntervalCensored):
        return y
    return IntervalCensored.from_right_censored(one_event_time(y, estimator, entry=True))


def ends_of(y: IntervalCensored) -> Ends:
    """Lower and upper ends in double precision, and the entry, zero where there is none; each (n,).

    T > entry is known, so that no interval starts before it.
    """
    lower, upper = (to_numpy(x).astype(np.float64) for x in (y.lower, y.upper))
    entry = np.zeros(len(y)) if y.entry is None else to_numpy(y.entry).astype(np.float64)
    return Ends(np.maximum(lower, entry), upper, entry)


def check_some_event(upper: np.ndarray) -> None:
    """Check that some interval ends: without an event a likelihood has no maximum."""
    if np.isinf(upper).all():
        raise InvalidInputError(
            "No subject has an event, so the likelihood has no maximum. If this is the censoring "
            "distribution and nothing is censored, pass PointMass(inf), which is what KaplanMeier gives."
        )
