"""Outcomes from all accepted types: an outcome, a structured array or a data frame."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from censcore._arrays import Frame
from censcore._validation import check_flag, check_instance, column_names
from censcore.exceptions import InvalidTypeError, UnsupportedOutcomeError
from censcore.outcomes.outcome import Outcome
from censcore.outcomes.right_censored import RightCensored
from censcore.outcomes.start_stop import StartStop

if TYPE_CHECKING:
    from censcore.outcomes.competing_risks import CompetingRisks
    from censcore.outcomes.interval_censored import IntervalCensored
    from censcore.outcomes.semi_competing import SemiCompetingRisks


#: What functions accept as an outcome, see :func:`as_outcome`.
OutcomeLike: TypeAlias = "RightCensored | CompetingRisks | IntervalCensored | np.ndarray | Frame"


def as_outcome(y: OutcomeLike | SemiCompetingRisks, *, one_cause: bool = False) -> RightCensored:
    """An outcome from any accepted type.

    Parameters
    ----------
    y : RightCensored, structured array, frame, or matrix of R
        An outcome, a scikit-survival structured array, or a data frame with columns "time" and "event", and
        "entry" where subjects enter late. Of R's ``Surv``: a frame or structured array with the columns time
        and status, or start, stop and status; or the matrix itself, (n, 2) or (n, 3) in this order, whose
        last column is 0 or 1.
    one_cause : bool
        Admit ``CompetingRisks.cause(j)``, whose subjects with another event never have this one. A function
        that does not ask for it gets an error instead, since it would take them for censored.

    Returns
    -------
    RightCensored

    Examples
    --------
    >>> import pandas as pd
    >>> from censcore.outcomes import as_outcome
    >>> as_outcome(pd.DataFrame({"time": [6.0, 9.0], "event": [1, 0]}))
    RightCensored(n=2, events=1 (50.0 %), time 6 to 9)
    """
    check_flag(one_cause, "one_cause")
    check_instance(y, "y")
    if hasattr(y, "any_cause") and not (one_cause and isinstance(y, RightCensored)):
        raise UnsupportedOutcomeError(
            f"got {type(y).__name__}, an outcome with competing risks, where one event time is expected. "
            "Scores take y.cause(j) and forecast.cause(j); AalenJohansen and CauseSpecific estimate from y "
            "itself; y.any_cause() is the time of the first event of any cause. Subjects with a competing "
            "event are not censored, and to call them so would give wrong numbers."
        )
    if isinstance(y, RightCensored):
        return y
    if isinstance(y, StartStop):
        raise UnsupportedOutcomeError(
            "got StartStop, intervals of subjects whose covariates change, where one row per subject is "
            "expected; to take intervals for subjects would give wrong numbers. KaplanMeier, CoxRegression, "
            "WeibullRegression, PiecewiseExponentialRegression, BoostedHazards, LandmarkCox and Censoring "
            "learn from it. Anything else, and all scores, take the subjects at risk at a landmark: "
            "compare_landmarks(models, y, X=X, landmarks=...), cross_validate(models, X, y, landmarks=...), "
            "or rows, outcome = y.at(s) and X[rows]."
        )
    if hasattr(y, "detection"):
        raise UnsupportedOutcomeError(
            "got IntervalCensored where events are expected to be seen when they happen. Scores (log_score, "
            "crps, brier_score, ...), Turnbull, WeibullRegression, LogNormalRegression, "
            "LogLogisticRegression and PiecewiseExponentialRegression take intervals. y.detection() is the "
            "right-censored outcome of the first visit at or after T; to call it the event time would give "
            "wrong numbers."
        )
    surv = _of_surv(y)
    if surv is not None:
        return surv
    if isinstance(y, np.ndarray) and y.dtype.fields is not None:
        return RightCensored.from_structured(y)
    if names := list(column_names(y)):
        _check_one_time(names)
        frame: Any = y
        return RightCensored.from_frame(frame, entry="entry" if "entry" in names else None)
    argument: Any = y  # the declared types exclude tuples
    hint = "libraries disagree on which part of a pair is the time" if isinstance(argument, tuple) else ""
    if hasattr(y, "terminal_event"):
        raise InvalidTypeError(
            f"got {type(y).__name__}, where no event may prevent another; to call those that never happen "
            "censored would give wrong numbers. compare(), also with cv=, Censoring, energy_score, "
            "log_score, joint_brier_score, WithCensoring and CensoredEngression take it; y.marginal(j) is "
            "one event alone, y.terminal_event() the terminal one."
        )
    raise InvalidTypeError(
        f"y must be a RightCensored outcome, a structured array or a frame; got {type(y).__name__}"
        f"{' (' + hint + ')' if hint else ''}. Build one with censcore.RightCensored(time=..., event=...)."
    )


def _of_surv(y: Any) -> RightCensored | None:
    """The outcome of a ``Surv`` object of R, by its names or as a matrix; None for anything else."""
    if isinstance(y, np.ndarray) and y.dtype.fields is None:
        if y.ndim != 2 or y.shape[1] not in (2, 3) or y.dtype.kind not in "fiu" or not len(y):
            return None
        if not np.isin(y[:, -1], (0, 1)).all() or np.isin(y[:, -2], (0, 1)).all():
            return None
        return RightCensored(y[:, -2], y[:, -1], entry=y[:, 0] if y.shape[1] == 3 else None)
    names = set(column_names(y)) or set(getattr(getattr(y, "dtype", None), "names", None) or ())
    if "status" in names and "event" not in names and "time" in names and "time2" not in names:
        return RightCensored(_values(y["time"]), _values(y["status"]))
    event = "event" if "event" in names else "status"
    if {"start", "stop", event} <= names and not names & {"time", "id"}:
        return RightCensored(_values(y["stop"]), _values(y[event]), entry=_values(y["start"]))
    return None


def _values(column: Any) -> np.ndarray:
    return column.to_numpy() if hasattr(column, "to_numpy") else np.asarray(column)


def _check_one_time(columns: list[Any]) -> None:
    """A frame with a second time is no right-censored outcome, whatever its column "time" holds."""
    if {"start", "stop"} <= set(columns):
        raise UnsupportedOutcomeError(
            "got a frame with the columns start and stop, intervals of follow-up, where one time per subject "
            "is expected. Pass StartStop.from_frame(frame) to estimators that learn from covariates along "
            "time; rows, y = at_landmark(frame, s) are the subjects at risk at s; "
            "RightCensored.from_start_stop(frame) has one outcome per interval."
        )
    if "time2" in columns:
        raise UnsupportedOutcomeError(
            "got a frame with the columns time and time2, the ends of an interval, where one time per "
            "subject is expected. Interval-censored data are IntervalCensored(lower=frame['time'], "
            "upper=frame['time2']); intervals (start, stop] of follow-up are "
            "RightCensored.from_start_stop(frame, start='time', stop='time2')."
        )


def as_followed(y: OutcomeLike | SemiCompetingRisks) -> RightCensored:
    """The outcome that shows how long each subject was followed.

    Of competing risks it is that of any event, of semi-competing risks that of the terminal event, of
    interval-censored data the detection time: visits go on until the event is found or the subject drops out.

    Parameters
    ----------
    y : RightCensored, CompetingRisks, SemiCompetingRisks, IntervalCensored, structured array or frame
        The outcome; intervals with the visits.

    Returns
    -------
    RightCensored
        All that the censoring distribution depends on.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.outcomes import as_followed
    >>> as_followed(cs.CompetingRisks([2.0, 5.0, 3.0], [1, 0, 2])).event
    array([ True, False,  True])
    """
    is_outcome = isinstance(y, Outcome)  # a forecast of causes has a distribution of any cause
    if is_outcome and hasattr(y, "any_cause"):
        return y.any_cause()
    if is_outcome and hasattr(y, "terminal_event"):
        return y.terminal_event()
    return y.detection() if hasattr(y, "detection") else as_outcome(y)
