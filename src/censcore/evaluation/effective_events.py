"""How many events the mean of a score rests on, by Kish's effective number."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Univariate
from censcore.evaluation.case import Case
from censcore.evaluation.case_scores import CaseScore
from censcore.evaluation.discrimination import Measure
from censcore.evaluation.inference import effective_number

__all__ = ["effective_events", "weighted_events"]


def effective_events(
    score: CaseScore | Measure,
    case: Case,
    quantiles: Sequence[np.ndarray],
    weight: np.ndarray,
    groups: np.ndarray | None,
) -> np.ndarray:
    """The effective number of events, (q,), as ``Comparison.effective_events`` describes it.

    ``quantiles`` are those of all forecasts, (n, q) each, for a score of levels.
    """
    time, event = to_numpy(case.y.time)[:, None], to_numpy(case.y.event)[:, None]
    if score.axis == "level":
        until = np.max(quantiles, axis=0)
    else:
        until = np.minimum(np.nan_to_num(score.at(case), nan=case.horizon), case.horizon)[None, :]
    found = _by_column(event & (time <= until), weight, groups)
    if score.axis == "time":
        free = np.broadcast_to((time > until) | case.never[:, None], (len(time), len(found)))
        found = np.minimum(found, _by_column(free, weight, groups))
    return found


def _by_column(counted: np.ndarray, weight: np.ndarray, groups: np.ndarray | None) -> np.ndarray:
    """Effective numbers of the subjects counted in each column, (q,)."""
    return np.array([effective_number(np.where(column, weight, 0.0), groups) for column in counted.T])


def weighted_events(
    time: np.ndarray,
    event: np.ndarray,
    G: Univariate,
    horizon: float,
    weight: np.ndarray,
    groups: np.ndarray | None,
) -> tuple[int, float]:
    """Events up to the horizon; their effective number by sampling and inverse-probability weights."""
    counted = event & (time > 0) & (time <= horizon) & (weight > 0)
    followed = np.broadcast_to(to_numpy(G.sf_left(time)), time.shape)
    with np.errstate(divide="ignore", invalid="ignore"):
        w = np.where(counted & (followed > 0), weight / followed, 0.0)
    return int(counted.sum()), effective_number(w, groups)
