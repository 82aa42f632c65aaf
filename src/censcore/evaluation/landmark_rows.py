"""Subjects at risk at a landmark, with the covariates in force there."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from inspect import signature
from typing import Any, TypeVar, overload

import numpy as np

from censcore._validation import as_frame, as_number
from censcore.estimators.covariates import take_rows
from censcore.estimators.regression.landmark_cox import LandmarkCox
from censcore.evaluation.sample import Sample
from censcore.exceptions import InvalidInputError
from censcore.outcomes import CompetingRisks, RightCensored, StartStop
from censcore.outcomes.start_stop import rows_in_force

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

    See Also
    --------
    censcore.StartStop : The table as an outcome of subjects; ``at(s)`` finds the same rows.
    censcore.compare_landmarks : Comparisons at several landmarks.

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


# ---- samples whose covariates change ------------------------------------------------------------------


def of_subjects(sample: Sample) -> Sample:
    """One row per subject, with its whole outcome and the covariates of its first row."""
    y = sample.y
    if not isinstance(y, StartStop):
        return sample
    if sample.mask is not None:
        raise InvalidInputError("mask: got one with an outcome of intervals, which has one event time.")
    weight, groups = (
        y.each_once(part, name)
        for name, part in (("sample_weight", sample.weight), ("groups", sample.groups))
    )
    return Sample(take_rows(sample.X, y.first_rows), y.of_subjects(), weight, groups)


def sample_at(sample: Sample, s: float) -> tuple[Sample, np.ndarray, np.ndarray]:
    """The subjects at risk at s, their numbers, and the rows of ``sample`` in force there."""
    rows, outcome = rows_in_force(sample.y, s)
    here = sample.take(rows, outcome)
    return here, sample.y.subject[rows] if isinstance(sample.y, StartStop) else rows, rows


def forecast_at(model: Any, X: Any, s: float) -> Any:
    """What a fitted model says of subjects with covariates X at s: their distributions, or model and X."""
    predict = getattr(model, "predict_distribution", None)
    if predict is None or "given" not in signature(predict).parameters:
        return model, X
    return predict(X, given=s)


def check_window(models: Mapping[str, Any], window: float | None) -> None:
    """Check that no model is judged beyond the window of its forecasts."""
    for name, model in models.items():
        if isinstance(model, LandmarkCox) and (window is None or window > model.window):
            raise InvalidInputError(
                f"window: got {window}, expected at most {model.window:g}: {name!r} forecasts survival from "
                "a landmark to the end of its window, and no further."
            )
