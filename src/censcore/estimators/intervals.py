"""Outcomes as intervals, for estimators whose likelihood is made of them."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.estimators.base import one_event_time
from censcore.exceptions import InvalidInputError
from censcore.outcomes import IntervalCensored

__all__ = ["as_intervals", "check_some_event", "ends_of"]


def as_intervals(y: Any, estimator: str) -> IntervalCensored:
    """An outcome of one event time as intervals; entries are kept. Errors name the estimator."""
    if isinstance(y, IntervalCensored):
        return y
    return IntervalCensored.from_right_censored(one_event_time(y, estimator, entry=True))


def ends_of(y: IntervalCensored) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Lower and upper ends in double precision, and the entry, zero where there is none; each (n,).

    T > entry is known, so that no interval starts before it.
    """
    lower, upper = (to_numpy(x).astype(np.float64) for x in (y.lower, y.upper))
    entry = np.zeros(len(y)) if y.entry is None else to_numpy(y.entry).astype(np.float64)
    return np.maximum(lower, entry), upper, entry


def check_some_event(upper: np.ndarray) -> None:
    """Check that some interval ends: without an event a likelihood has no maximum."""
    if np.isinf(upper).all():
        raise InvalidInputError(
            "No subject has an event, so the likelihood has no maximum. If this is the censoring "
            "distribution and nothing is censored, pass PointMass(inf), which is what KaplanMeier gives."
        )
