"""Delayed entry in risk sets: a subject is at risk at t if entry < t <= time."""

from __future__ import annotations

import warnings

import numpy as np

from censcore._arrays import to_numpy
from censcore.exceptions import RiskSetWarning
from censcore.outcomes import RightCensored

__all__ = ["entries_of", "sums_from", "warn_of_empty_risk_set"]


def entries_of(y: RightCensored) -> np.ndarray | None:
    """Entries (n,), minus infinity for subjects seen from the start; None where all of them are."""
    if not y.has_delayed_entry:
        return None
    entry = to_numpy(y.entry).astype(np.float64)
    return np.where(entry > 0, entry, -np.inf)


def sums_from(entry: np.ndarray, values: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Sums of values, (n,) or (n, p), over subjects with entry >= t, for each of ``times``.

    What is to be taken off a sum over time >= t, which they are in too, to leave those at risk at t. Long
    doubles, since little may be left.

    >>> sums_from(np.array([-np.inf, 1.0, 2.0]), np.array([1.0, 10.0, 100.0]), np.array([0.5, 1.0, 1.5]))
    array([110., 110., 100.])
    """
    order = np.argsort(entry, kind="stable")
    none = np.zeros((1, *values.shape[1:]), dtype=np.longdouble)
    later = np.concatenate([np.cumsum(values[order][::-1], axis=0, dtype=np.longdouble)[::-1], none])
    return later[np.searchsorted(entry[order], times, side="left")].astype(np.float64)


def warn_of_empty_risk_set(time: float, at_risk: float, later: int) -> None:
    """Warn that nothing is left of the survival function at a time that others outlive."""
    warnings.warn(
        f"The survival function is zero from {time:g} on, where everybody at risk (weight {at_risk:g}) has "
        f"the event, though {later} subjects are followed beyond. With delayed entry early risk sets are "
        "small. "
        "Estimate the distribution given T > s instead, fit(X, y.after(s)), for a time s at which enough "
        "subjects are at risk.",
        RiskSetWarning,
        stacklevel=4,
    )
