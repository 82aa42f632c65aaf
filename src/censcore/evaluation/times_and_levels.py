"""Where forecasts are scored: evaluation times and quantile levels that suit the data."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore._validation import check_levels
from censcore.distributions import Distribution
from censcore.estimators import KaplanMeier
from censcore.estimators.covariates import check_weights
from censcore.evaluation.case import Case
from censcore.evaluation.checks import as_numbers
from censcore.evaluation.readings import on_grid
from censcore.evaluation.subjects import Subjects
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored

__all__ = ["LEVELS", "default_levels", "default_times", "make_cases"]

LEVELS = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9])

TIME_LEVELS = np.array([0.25, 0.5, 0.75])


def make_cases(
    distributions: dict[str, Distribution],
    scored: Subjects,
    C: Distribution,
    horizon: float,
    times: Any,
    levels: Any,
    train: Subjects | None,
) -> dict[str, Case]:
    """One case per forecast, with times and levels that suit the data where none are given."""
    sample = scored if train is None else train  # times chosen on scored subjects would fix their events
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
        alpha = default_levels(1 - float(curve.sf_left(horizon)[0]))
    else:
        alpha = as_numbers(levels, "levels")
        check_levels(alpha)
    return {name: Case(scored.y, F, C, horizon, at, alpha) for name, F in distributions.items()}


def default_levels(reached: float) -> np.ndarray:
    """Those of the usual levels that are below the probability of the event by the horizon; one at least."""
    below = LEVELS[reached > LEVELS]
    return below if len(below) else np.array([max(reached / 2, 1e-3)])


def default_times(y: RightCensored, horizon: float, weight: np.ndarray | None = None) -> np.ndarray:
    """Quartiles of the event times before the horizon, each an event time; half the horizon without any."""
    w = check_weights(weight, len(y))
    time = to_numpy(y.time)
    seen = np.nonzero(to_numpy(y.event) & (time < horizon) & (w > 0))[0]
    if not len(seen):
        return np.array([horizon / 2])
    order = seen[np.argsort(time[seen], kind="stable")]
    reached = np.cumsum(w[order])
    return np.unique(time[order][np.searchsorted(reached, TIME_LEVELS * reached[-1] * (1 - 1e-12))])
