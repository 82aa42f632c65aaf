"""Forecasts along paths of covariates that are known in advance."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore._validation import check_kind
from censcore.distributions import PiecewiseExponential, Step
from censcore.estimators.covariates import check_rows
from censcore.exceptions import InvalidInputError
from censcore.outcomes import StartStop


def given_survival(distribution: Any, given: Any) -> Any:
    """The distribution of T given T > ``given``, a number or one per subject; as it is for None."""
    return distribution if given is None else distribution.given_survival(given)


def check_path(path: Any, X: Any) -> StartStop:
    """Check that ``path`` says on which interval each row of X is in force, with no unknown values."""
    check_kind(path, "path", StartStop, "StartStop(id, start, stop), the intervals of the rows of X")
    check_rows(X, len(path))
    if path.event.any():
        raise InvalidInputError(
            f"path: got {int(path.event.sum())} events, expected none: a path holds covariates that are "
            "known in advance, StartStop(id, start, stop). Those up to an event are known only after it."
        )
    if path.gap == "unobserved":
        raise InvalidInputError(
            'path: got gap="unobserved", expected covariates at all times, or gap="not at risk".'
        )
    return path


def held(path: StartStop, times: np.ndarray, *, at_events: bool = False) -> np.ndarray:
    """Rows in force at times (q,) or (m, q), the last one also later; -1 before the first and in gaps."""
    rows = path.in_force(times, at_events=at_events)
    last = path.last_rows[:, None]
    after = times > path.stop[last] if at_events else times >= path.stop[last]
    return np.where(after, last, rows)


def steps_along(path: StartStop, times: np.ndarray, jumps: np.ndarray, risk: np.ndarray) -> Step:
    r"""The distributions :math:`\exp\{-\sum_{u\le t}r_{j(u)}h_u\}` with the row j(u) in force at u.

    ``jumps`` are (J,), or (n, J) where they depend on the row.
    """
    row = held(path, times, at_events=True)
    h = jumps if jumps.ndim == 1 else jumps[row, np.arange(len(times))]
    with np.errstate(invalid="ignore", over="ignore"):
        hazard = np.where(row >= 0, risk[row] * h, 0.0)
    return Step(times, sf=np.exp(-np.cumsum(hazard, axis=1)))


def pieces_along(path: StartStop, breaks: np.ndarray, rates: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Breaks (m, K - 1) and rates (m, K) of subjects, from the rates (n, J) of rows between common breaks.

    Before the first start and in gaps the rate is zero. Subjects with fewer breaks than others get some at
    which nothing changes.
    """
    ends = np.concatenate([path.start, path.stop])
    subject = np.concatenate([path.subject, path.subject])
    edges = [np.union1d(breaks, ends[subject == i]) for i in range(len(path.first_rows))]
    edges = [each[each > 0] for each in edges]
    K, last = max(map(len, edges)), float(ends.max())
    times = np.array(
        [np.append(each, max(last, *breaks, 0.0) + 1.0 + np.arange(K - len(each))) for each in edges]
    )
    begins = np.column_stack([np.zeros(len(edges)), times])
    row = held(path, begins)
    piece = np.searchsorted(breaks, begins, side="right")
    return times, np.where(row >= 0, rates[row, piece], 0.0)


def piecewise_forecast(breaks: np.ndarray, rates: np.ndarray, path: Any, X: Any) -> PiecewiseExponential:
    """The distributions of subjects with hazards (n, J) between breaks, which stay or follow a path."""
    if path is None:
        return PiecewiseExponential(breaks, rates)
    path = check_path(path, X)
    rates = np.broadcast_to(rates, (len(path), len(breaks) + 1))
    return PiecewiseExponential(*pieces_along(path, breaks, rates))
