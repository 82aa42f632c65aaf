"""Subjects at risk at a landmark, from a table of intervals in which covariates are constant."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, TypeVar, overload

from censcore._validation import as_frame, as_number
from censcore.estimators.covariates import take_rows
from censcore.exceptions import InvalidInputError
from censcore.outcomes import CompetingRisks, RightCensored, StartStop

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
    table = _table(frame, id, start, stop, event if cause is None else cause, cause is not None)
    rows, y = table.at(s)
    if cause is None:
        return take_rows(frame, rows), y
    causes = as_frame(frame)[cause].to_numpy()[table.last_rows][table.subject[rows]]
    return take_rows(frame, rows), CompetingRisks(y.time, causes, entry=s, names=names)


def _table(frame: Any, id: str, start: str, stop: str, event: str, causes: bool) -> StartStop:
    """The intervals; any cause is an event, and time between intervals is not at risk."""
    columns = {"id": id, "start": start, "stop": stop, "gap": "not at risk"}
    if not causes:
        return StartStop.from_frame(frame, event=event, **columns)
    table = StartStop.from_frame(frame, event=None, **columns)
    any_cause = as_frame(frame, event)[event].to_numpy() != 0
    return StartStop(table.id, table.start, table.stop, any_cause, gap=table.gap)
