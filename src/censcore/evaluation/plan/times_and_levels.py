"""Where forecasts are scored: evaluation times and quantile levels that suit the data."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore._validation import as_numbers, check_levels
from censcore.distributions import Distribution
from censcore.estimators import KaplanMeier
from censcore.estimators.covariates import check_weights
from censcore.evaluation.plan.readings import on_grid
from censcore.evaluation.sample import Sample
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored

__all__ = ["LEVELS", "default_levels", "default_times", "times_and_levels"]

LEVELS = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9])

TIME_LEVELS = np.array([0.25, 0.5, 0.75])


def times_and_levels(
    distributions: Mapping[str, Distribution], sample: Sample, horizon: float, times: Any, levels: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Times and levels as they were asked for, or such that suit the event times of a sample."""
    if times is None:
        at = on_grid(default_times(sample.y, horizon, sample.weight), distributions, horizon)
    else:
        at = as_numbers(times, "times")
        if not ((at >= 0) & (at < horizon)).all():
            raise InvalidInputError(
                f"times must lie between 0 and the horizon, {horizon:g}; got {np.asarray(times).tolist()}. "
                "Pass smaller times, or a horizon= that the censoring distribution supports."
            )
    if levels is None:
        curve = KaplanMeier().fit(None, sample.y, sample.weight).predict_distribution()
        return at, default_levels(1 - float(curve.sf_left(horizon)[0]))
    alpha = as_numbers(levels, "levels")
    check_levels(alpha)
    return at, alpha


def default_levels(reached: float) -> np.ndarray:
    """Those of the usual levels that are below the probability of the event by the horizon; one at least."""
    below = LEVELS[reached > LEVELS]
    return below if len(below) else np.array([max(reached / 2, 1e-3)])


def default_times(y: RightCensored, horizon: float, weight: np.ndarray | None = None) -> np.ndarray:
    """Quartiles of the event times before the horizon, each an event time; half the horizon without any."""
    w = check_weights(weight, len(y))
    time = to_numpy(y.time)
    events = np.nonzero(to_numpy(y.event) & (time < horizon) & (w > 0))[0]
    if not len(events):
        return np.array([horizon / 2])
    order = events[np.argsort(time[events], kind="stable")]
    reached = np.cumsum(w[order])
    return np.unique(time[order][np.searchsorted(reached, TIME_LEVELS * reached[-1] * (1 - 1e-12))])
