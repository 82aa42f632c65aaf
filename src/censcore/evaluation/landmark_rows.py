"""Subjects at risk at a landmark, from a table of intervals in which covariates are constant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeVar, overload

import numpy as np

from censcore._validation import as_number
from censcore.estimators.covariates import take_rows
from censcore.exceptions import InvalidInputError
from censcore.outcomes import CompetingRisks, RightCensored
from censcore.outcomes.start_stop import read_start_stop

FrameT = TypeVar("FrameT")


@overload
def at_landmark(
    frame: FrameT, s: float, *, id: str = ..., start: str = ..., stop: str = ..., event: str = ...
) -> tuple[FrameT, RightCensored]: ...


@overload
def at_landmark(
    frame: FrameT, s: float, *, cause: str, names: Sequence[str] | None = ..., id: str = ...,
    start: str = ..., stop: str = ...,
) -> tuple[FrameT, CompetingRisks]: ...  # fmt: skip


def at_landmark(
    frame: FrameT,
    s: float,
    *,
    id: str = "id",
    start: str = "start",
    stop: str = "stop",
    event: str = "event",
    cause: str | None = None,
    names: Sequence[str] | None = None,
) -> tuple[FrameT, RightCensored | CompetingRisks]:
    """Rows and outcome of the subjects at risk at a landmark, from a table of intervals (start, stop].

    The table has one row per subject and interval in which its covariates are constant (the long format of
    lifelines and of R's survival). The row that holds s, start <= s < stop, has what is known at s. The
    outcome is that of the whole subject: its last stop, and whether its last row ends with the event.

    Parameters
    ----------
    frame : pandas or polars frame
        The table.
    s : float
        The landmark.
    id, start, stop, event : str
        Columns: the subject, the ends of the interval, and 1 where the interval ends with the event.
    cause : str, optional
        For competing risks, in place of ``event``: the column with the number of the cause where the interval
        ends with an event, else 0.
    names : sequence of str, optional
        Names of the causes 1, 2, ...

    Returns
    -------
    rows : frame
        Of the same library. One row per subject at risk, with the covariates at s.
    y : RightCensored or CompetingRisks
        Their outcome, with the entry s.

    Examples
    --------
    >>> import pandas as pd
    >>> import censcore as cs
    >>> table = pd.DataFrame(
    ...     [[1, 0, 2, 0, 7], [1, 2, 5, 1, 9], [2, 0, 1, 0, 3], [3, 1, 4, 0, 4]],
    ...     columns=["id", "start", "stop", "event", "x"],
    ... )
    >>> rows, y = cs.at_landmark(table, 3.0)
    >>> rows["x"].tolist(), y.time, y.event, y.entry
    ([9, 4], array([5., 4.]), array([ True, False]), array([3., 3.]))
    """
    s = as_number(s, "s", least=0)
    if cause is None and names is not None:
        raise InvalidInputError(f"names: got {names!r:.80} without cause=, the column of the causes.")
    table = read_start_stop(frame, id, start, stop, event if cause is None else cause)
    here = (table.start[table.order] <= s) & (s < table.stop[table.order])
    if not here.any():
        raise InvalidInputError(f"No subject is at risk at {s:g}: got intervals up to {table.stop.max():g}.")
    last = table.order[table.last[np.searchsorted(table.last, np.nonzero(here)[0])]]
    outcome: RightCensored | CompetingRisks
    if cause is None:
        outcome = RightCensored(table.stop[last], table.event[last], entry=float(s))
    else:
        outcome = CompetingRisks(table.stop[last], table.event[last], entry=float(s), names=names)
    return take_rows(frame, table.order[here]), outcome
