"""How many events the mean of a score is based on, by Kish's effective number."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Univariate
from censcore.evaluation.inference.estimates import effective_number
from censcore.evaluation.measures.case import Case
from censcore.outcomes import RightCensored
from censcore.scores.inputs import without_forecast
from censcore.scores.known_at import weights_of_events

if TYPE_CHECKING:
    from censcore.evaluation.measures.case_scores import CaseScore
    from censcore.evaluation.measures.discrimination import Measure

__all__ = ["counted_events", "effective_events", "first_event", "weighted_events", "weights_of_counted"]


def effective_events(
    counted: tuple[np.ndarray, ...], weight: np.ndarray, groups: np.ndarray | None
) -> np.ndarray:
    """The effective number of events, (q,), as ``Comparison.effective_events`` describes it.

    ``counted`` are the subjects that count as an event, and as free of it, (n, q) each: see
    :func:`counted_events`. The fewer of them decide.
    """
    numbers = [
        [effective_number(np.where(column, weight, 0.0), groups) for column in who.T] for who in counted
    ]
    return np.min(numbers, axis=0)


def counted_events(score: CaseScore | Measure, cases: list[Case]) -> tuple[np.ndarray, ...]:
    """Who counts as an event for a score and, where its columns are times, who as free of it: (n, q) each.

    ``cases`` are those of all forecasts, whose quantiles a score of levels is about.
    """
    case = cases[0]
    if score.axis == "time":
        inputs = without_forecast(case.y, case.C)
        times = np.minimum(score.at(case), case.horizon)[None, :]
        known = inputs.known_at(inputs.xp.asarray(times, dtype=inputs.time.dtype)).weights()
        return tuple(to_numpy(weight) > 0 for weight in known)
    time, event = to_numpy(case.y.time)[:, None], to_numpy(case.y.event)[:, None]
    if case.y.time.ndim > 1:  # of several event times: the subjects with an event of any
        seen = event & (time <= case.horizon)
        seen = seen if case.mask is None else seen & case.mask[:, None]
        return (np.repeat(np.any(seen, axis=2), len(score.at(case)), axis=1),)
    until = np.max([of.quantiles for of in cases], axis=0) if score.axis == "level" else case.horizon
    return (event & (time <= until),)


def weighted_events(
    y: RightCensored, G: Univariate, horizon: float, weight: np.ndarray, groups: np.ndarray | None
) -> tuple[int, float]:
    """Events up to the horizon; their effective number by sampling and inverse-probability weights."""
    counted, of_event = weights_of_counted(y, G, horizon, weight)
    return int(counted.sum()), effective_number(weight * of_event, groups)


def weights_of_counted(
    y: RightCensored, G: Univariate, horizon: float, weight: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Whose event counts up to the horizon, and its inverse-probability weight, (n,) each."""
    of_event = weights_of_events(y, G, horizon)
    counted = (of_event > 0) & (to_numpy(y.time) > 0) & (weight > 0)
    return counted, np.where(counted & np.isfinite(of_event), of_event, 0.0)


def first_event(y: RightCensored) -> RightCensored:
    """The first event of any of the event times, (n,); where none was seen, the first of the times."""
    if y.time.ndim == 1:
        return y
    time, event = to_numpy(y.time), to_numpy(y.event)
    first = np.argmin(np.where(event, time, np.inf), axis=1)[:, None]
    time, event = (np.take_along_axis(part, first, axis=1)[:, 0] for part in (time, event))
    return RightCensored(time, event)._with_entry(y.entry)
