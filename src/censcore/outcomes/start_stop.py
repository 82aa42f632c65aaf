"""Intervals (start, stop] of constant covariates: several rows per subject, whose covariates change."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar, Self

import numpy as np

from censcore._arrays import ArrayLike, Frame, as_float, is_torch, to_numpy
from censcore._numerics import previous_float
from censcore._validation import (
    as_frame,
    as_list,
    as_number,
    check_flag,
    check_kind,
    check_option,
    check_positive,
    check_same_order,
)
from censcore.exceptions import InvalidInputError, InvalidTypeError
from censcore.outcomes.outcome import Outcome
from censcore.outcomes.parts import as_event
from censcore.outcomes.right_censored import RightCensored
from censcore.plain_text import html_table

GAPS = ("not at risk", "unobserved")


@dataclass(frozen=True, init=False, eq=False, repr=False)
class StartStop(Outcome):
    r"""Intervals (start, stop] of follow-up in which the covariates of a subject are constant.

    This is the long format of R's survival and of lifelines: row j of the table X holds the covariates in
    force on interval j. A subject is an ``id``, whatever the number of its rows. The hazard at t is that of
    the covariates in force at t, so that the likelihood of a subject is the product over its rows of that of
    T given T > start. Estimators that learn from it have ``takes_intervals``; all others, and all scores,
    take the rows in force at a landmark, see :func:`censcore.at_landmark`.

    Parameters
    ----------
    id : array, (n,)
        The subject of each row, of any kind of label. Rows may be in any order.
    start, stop : array, (n,)
        Ends of the interval, 0 <= start < stop.
    event : array, (n,), optional
        1 or True where the interval ends with the event, which only the last one of a subject may. Without
        events the intervals are a path of covariates that are known in advance, as ``path=`` of a forecast.
    gap : "not at risk" or "unobserved", optional
        What time between two intervals of a subject means; an error without it. Either way the subject is in
        no risk set there. "not at risk": the event cannot happen, and follow-up goes on: the subject is still
        at risk of censoring, with the covariates before the gap. "unobserved": an event would not have been
        seen, and the subject comes back only because there was none, so that its follow-up ends with the
        first interval of the gap and begins anew, as a delayed entry, with the second.

    Attributes
    ----------
    subjects : array, (m,)
        The labels of the subjects, in their order, or in that of the rows where labels have none.
    subject : array of int, (n,)
        For each row, the number of its subject among them.

    See Also
    --------
    merge : Intervals from baseline covariates and dated measurements.
    censcore.at_landmark : Rows in force at a time, and the outcome of those at risk.
    censcore.compare_landmarks : Comparisons of forecasts by covariates that change.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.StartStop(["a", "a", "b"], [0.0, 2.0, 1.0], [2.0, 3.0, 4.0], [0, 1, 0])
    >>> y
    StartStop(2 subjects, 3 intervals, events=1 (50.0 %), time 0 to 4)
    >>> cs.CoxRegression(alpha=0.1).fit([[7.1], [9.0], [3.2]], y).coef_.round(2)
    array([0.75])
    """

    part_names: ClassVar[tuple[str, ...]] = ("id", "start", "stop", "event")

    id: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    event: np.ndarray
    gap: str | None
    subject: np.ndarray
    _order: np.ndarray

    def __init__(
        self,
        id: ArrayLike,
        start: ArrayLike,
        stop: ArrayLike,
        event: ArrayLike | None = None,
        *,
        gap: str | None = None,
    ) -> None:
        labels, ids = check_same_order(id=id, start=start, stop=stop, event=event), _labels(id)
        n = len(ids)
        begin, end = (_times(values, name, n) for values, name in ((start, "start"), (stop, "stop")))
        ended = np.zeros(n, dtype=bool) if event is None else to_numpy(as_event(event, end))
        if ended.shape != (n,):
            raise InvalidInputError(f"event must have one value per row, ({n},); got {ended.shape}.")
        if gap is not None:
            check_option(gap, "gap", GAPS)
        subject = _codes(ids)
        self._set({
            "id": ids, "start": begin, "stop": end, "event": ended, "gap": gap, "subject": subject,
            "_order": np.lexsort([end, begin, subject]), "row_labels": labels,
        })  # fmt: skip
        self._check()

    def _check(self) -> None:
        """Check that intervals have a length, do not overlap, leave no unnamed gap, and end with events."""
        order, at = self._order, self.subject
        subject, begins, ends, event = at[order], self.start[order], self.stop[order], self.event[order]
        same, empty = subject[1:] == subject[:-1], ~(begins < ends)
        wrong = {
            "intervals must have start < stop": empty,
            "intervals must not overlap": np.append(same & (begins[1:] < ends[:-1]), False),
            "only the last interval may end with the event": np.append(same & event[:-1], False),
            "each interval must begin where the one before it ends": np.append(
                same & (begins[1:] > ends[:-1]) & (self.gap is None), False
            ),
        }
        for rule, where in wrong.items():
            if where.any():
                i, count = int(np.nonzero(where)[0][0]), len(set(subject[where].tolist()))
                raise InvalidInputError(
                    f"Of each subject, {rule}; that is not so for {count} subject{'s' if count > 1 else ''} "
                    f"(first id = {self.id[order][i]}, interval {begins[i]:g} to {ends[i]:g})."
                    + (_ON_GAPS if rule.startswith("each") else "")
                )

    @classmethod
    def from_frame(
        cls,
        frame: Frame,
        *,
        id: str = "id",
        start: str = "start",
        stop: str = "stop",
        event: str | None = "event",
        gap: str | None = None,
    ) -> Self:
        """From named columns of a pandas or polars frame.

        Examples
        --------
        >>> import pandas as pd, censcore as cs
        >>> table = pd.DataFrame({"id": [1, 1], "start": [0, 2], "stop": [2, 5], "died": [0, 1]})
        >>> cs.StartStop.from_frame(table, event="died")
        StartStop(1 subjects, 2 intervals, events=1 (100.0 %), time 0 to 5)
        """
        names = [name for name in (id, start, stop, event) if name is not None]
        data = as_frame(frame, *names)
        if not len(data):
            raise InvalidInputError("frame: got no rows, expected one for each subject and interval.")
        missing = [name for name in names if name not in data.columns]
        if missing:
            raise InvalidInputError(
                f"Columns {missing} are not in the table, which has {list(data.columns)[:20]}."
            )
        empty = [name for name in names if _has_empty(data[name])]
        if empty:
            raise InvalidInputError(f"Columns {empty} have missing values; every interval needs all of them.")
        begins, ends = (as_float(data[name].to_numpy(), f"Column {name!r}") for name in (start, stop))
        happened = None if event is None else data[event].to_numpy()
        found = cls(data[id].to_numpy(), begins, ends, happened, gap=gap)
        return found._changed(row_labels=check_same_order(frame=frame))

    @classmethod
    def merge(
        cls,
        baseline: Frame,
        measurements: Frame,
        *,
        id: str = "id",
        time: str = "time",
        event: str = "event",
        entry: str | None = None,
        at: str = "time",
    ) -> tuple[Any, Self]:
        """Make intervals from one row per subject and dated measurements, as ``tmerge`` of R does.

        A value is in force from its measurement on, until the next one of the same column. Before the first
        it is the column of the same name in ``baseline``, if there is one, else missing. An empty cell of
        ``measurements`` means that this was not measured. What was measured at or before the entry holds at
        the entry; what was measured at the end of follow-up or later plays no part, since it tells nothing of
        an earlier hazard.

        Parameters
        ----------
        baseline : pandas or polars frame
            One row per subject: its label, the end of its follow-up, whether that was the event, and
            covariates that do not change.
        measurements : frame
            One row per subject and time of a measurement, with a column for each covariate.
        id : str
            The column of labels, of both.
        time, event, entry : str
            Columns of ``baseline``: end of follow-up, whether it was the event, and delayed entry.
        at : str
            The column of ``measurements`` with the time of the measurement.

        Returns
        -------
        rows : frame
            Of the library of ``baseline``: covariates in force on each interval, without label and times.
        y : StartStop
            The intervals.

        Examples
        --------
        >>> import pandas as pd, censcore as cs
        >>> baseline = pd.DataFrame({"id": [1, 2], "time": [5.0, 4.0], "event": [1, 0], "age": [60, 71]})
        >>> visits = pd.DataFrame({"id": [1, 1, 2], "time": [0.0, 2.0, 1.0], "marker": [7.1, 9.0, 3.2]})
        >>> rows, y = cs.StartStop.merge(baseline, visits)
        >>> rows.assign(id=y.id, start=y.start, stop=y.stop, event=y.event)
           age  marker  id  start  stop  event
        0   60     7.1   1    0.0   2.0  False
        1   60     9.0   1    2.0   5.0   True
        2   71     NaN   2    0.0   1.0  False
        3   71     3.2   2    1.0   4.0  False
        """
        from censcore.outcomes.dated_measurements import merged

        rows, parts = merged(baseline, measurements, id, time, event, entry, at)
        return rows, cls(*parts)

    # ---- subjects and their rows ------------------------------------------------------------------

    @property
    def subjects(self) -> np.ndarray:
        """The labels of the subjects, (m,)."""
        return self.id[np.unique(self.subject, return_index=True)[1]]

    @property
    def first_rows(self) -> np.ndarray:
        """The row of the first interval of each subject, (m,)."""
        order = self._order
        return order[np.diff(self.subject[order], prepend=-1) != 0]

    @property
    def last_rows(self) -> np.ndarray:
        """The row of the last interval of each subject, (m,)."""
        order = self._order
        return order[np.append(np.diff(self.subject[order]) != 0, True)]

    def in_force(self, times: ArrayLike, *, at_events: bool = False) -> np.ndarray:
        """Find the row of each subject that is in force at times (q,) or (m, q): -1 where none is.

        Just after t that is the row with start <= t < stop; for events at t, the one with
        start < t <= stop.

        Examples
        --------
        >>> import censcore as cs
        >>> y = cs.StartStop(["a", "a", "b"], [0.0, 2.0, 1.0], [2.0, 5.0, 4.0])
        >>> y.in_force([0.5, 2.0, 4.5])
        array([[ 0,  1,  1],
               [-1,  2, -1]])
        """
        check_flag(at_events, "at_events")
        m = len(self.first_rows)
        t = to_numpy(as_float(times, "times"))
        t = np.broadcast_to(t, (m, t.shape[-1]) if t.ndim else (m, 1))
        side = "left" if at_events else "right"
        row = latest(self.subject, self.start, np.repeat(np.arange(m), t.shape[1]), t.reshape(-1), side)
        row = row.reshape(t.shape)
        ends = self.stop[row]
        return np.where((row >= 0) & ((t <= ends) if at_events else (t < ends)), row, -1)

    def at(self, s: float) -> tuple[np.ndarray, RightCensored]:
        """Find the rows in force at s, of the subjects at risk there, and what happened to these after s.

        Follow-up ends with the last interval, or where the first gap after s begins that is "unobserved".

        Examples
        --------
        >>> import censcore as cs
        >>> y = cs.StartStop(["a", "a", "b"], [0.0, 2.0, 1.0], [2.0, 5.0, 4.0], [0, 1, 0])
        >>> rows, outcome = y.at(2.5)
        >>> rows, outcome.time, outcome.event
        (array([1, 2]), array([5., 4.]), array([ True, False]))
        """
        s = as_number(s, "s", least=0)
        here = self.in_force([s])[:, 0]
        rows = here[here >= 0]
        if not len(rows):
            raise InvalidInputError(
                f"No subject is at risk at {s:g}: got intervals up to {self.stop.max():g}."
            )
        last = self._ends[rows]
        return rows, RightCensored(self.stop[last], self.event[last], entry=s)

    @property
    def _ends(self) -> np.ndarray:
        """For each row, that in which the follow-up of the subject ends: before a gap that is unobserved."""
        order = self._order
        ends = np.append(np.diff(self.subject[order]) != 0, True)
        if self.gap == "unobserved":
            ends[:-1] |= self.start[order][1:] > self.stop[order][:-1]
        found = np.empty(len(order), dtype=np.intp)
        places = np.nonzero(ends)[0]
        found[order] = order[places[np.searchsorted(places, np.arange(len(order)))]]
        return found

    def of_subjects(self) -> RightCensored:
        """One outcome per subject, (m,), from its first start on.

        >>> import censcore as cs
        >>> cs.StartStop(["a", "a", "b"], [0.0, 2.0, 1.0], [2.0, 5.0, 4.0], [0, 1, 0]).of_subjects()
        RightCensored(n=2, events=1 (50.0 %), time 4 to 5, delayed entry in 1)
        """
        first = self.first_rows
        last = self._ends[first]
        return RightCensored(self.stop[last], self.event[last], entry=self.start[first])

    def each_once(self, values: ArrayLike | None, name: str) -> np.ndarray | None:
        """Give the values of rows (n,) to subjects (m,); an error where they differ within a subject."""
        if values is None:
            return None
        array = to_numpy(values, name)
        if array.shape != (len(self),):
            raise InvalidInputError(f"{name} must have one value per row, ({len(self)},); got {array.shape}.")
        first = self.first_rows
        differ = np.nonzero(array != array[first][self.subject])[0]
        if differ.size:
            raise InvalidInputError(
                f"{name}: got several values of one subject (first id = {self.id[differ[0]]}), expected the "
                "same in all of its intervals: a subject counts once, and in one place."
            )
        return array[first]

    def summed(self, values: np.ndarray) -> np.ndarray:
        """Sum values of rows (n, ...) over those of each subject, (m, ...)."""
        sums = np.zeros((len(self.first_rows), *values.shape[1:]))
        np.add.at(sums, self.subject, values)
        return sums

    # ---- as other outcomes ------------------------------------------------------------------------

    @property
    def intervals(self) -> RightCensored:
        """The rows as outcomes with entry ``start``: right for risk sets and likelihoods, not for scores."""
        return RightCensored(self.stop, self.event, entry=self.start)

    @property
    def time(self) -> np.ndarray:
        """Ends of the intervals."""
        return self.stop

    @property
    def entry(self) -> np.ndarray:
        """Starts of the intervals."""
        return self.start

    @property
    def k(self) -> int:
        """Number of event times per subject."""
        return 1

    @property
    def shares_censoring(self) -> bool:
        """Whether one C per subject explains the data: always."""
        return True

    @property
    def informs_censoring(self) -> np.ndarray:
        """Rows that inform about C: all."""
        return np.ones(len(self), dtype=bool)

    def flip(self) -> Self:
        """The same rows seen as an outcome of C: the end of a subject's follow-up is the event, once.

        Events come first at ties, as in :meth:`RightCensored.flip`.
        """
        order, ends = self._order, self._ends == np.arange(len(self))
        stop = np.where(self.event, previous_float(self.stop), self.stop)
        if self.gap == "not at risk":
            same = np.diff(self.subject[order]) == 0
            stop[order[:-1][same]] = self.start[order[1:][same]]
        return self._changed(stop=stop, event=ends & ~self.event)

    def take(self, rows: ArrayLike | slice) -> Self:
        """Some of the rows: all of those of each chosen subject, since a subject is in one place."""
        chosen = np.arange(len(self))[rows if type(rows) is slice else to_numpy(rows)].reshape(-1)
        whole = np.bincount(self.subject[chosen], minlength=len(self.first_rows))
        torn = (whole > 0) & (whole != np.bincount(self.subject))
        if torn.any() or len(np.unique(chosen)) < len(chosen):
            first = self.subjects[torn][0] if torn.any() else self.id[chosen][0]
            raise InvalidInputError(
                f"Rows of an outcome of intervals: got some of the rows of a subject (first id = {first}) or "
                "some twice, expected each of its rows once. Choose subjects: folds with groups=y.id keep "
                "them together; at(s) gives the rows in force at a time."
            )
        return type(self)(*(getattr(self, name)[chosen] for name in self.part_names), gap=self.gap)

    @classmethod
    def concat(cls, outcomes: Sequence[Self]) -> Self:
        """The rows of several outcomes, in their order, with gaps of one meaning."""
        for other in as_list(outcomes, "concat", "outcomes"):
            check_kind(other, "concat", cls, f"a {cls.__name__}")
        gaps = {other.gap for other in outcomes}
        if len(gaps) != 1:
            raise InvalidInputError(
                f"concat: gap must be the same in all outcomes; got {gaps or 'no outcomes'}."
            )
        parts = ([getattr(other, name) for other in outcomes] for name in cls.part_names)
        return cls(*map(np.concatenate, parts), gap=gaps.pop())

    def like(self, array: ArrayLike) -> Self:
        """The outcome itself, which is in NumPy; an error for a tensor."""
        if is_torch(array):
            raise InvalidTypeError("StartStop is in NumPy; got a tensor. Convert the covariates to NumPy.")
        return self

    def _repr_html_(self) -> str:
        rows = [[str(getattr(self, name)[i]) for name in self.part_names] for i in range(min(5, len(self)))]
        return html_table(repr(self), list(self.part_names), rows)

    def __repr__(self) -> str:
        m, events = len(self.first_rows), int(self.event.sum())
        return (
            f"StartStop({m} subjects, {len(self)} intervals, events={events} ({100 * events / m:.1f} %), "
            f"time {self.start.min():g} to {self.stop.max():g})"
        )


def rows_in_force(y: Any, s: float) -> tuple[np.ndarray, Any]:
    """Find the rows of the subjects of any outcome who are at risk at s, and what happened after it."""
    if isinstance(y, StartStop):
        return y.at(s)
    return np.nonzero(to_numpy(y.at_risk(s)))[0], y.after(s)


_ON_GAPS = (
    ' Say what the gaps mean: gap="not at risk" where the event cannot happen in between, or '
    'gap="unobserved" where it would not have been seen.'
)


def _labels(id: Any) -> np.ndarray:
    """One label per row, (n,), none of them missing."""
    labels = to_numpy(id, "id")
    if labels.ndim != 1 or not len(labels):
        raise InvalidInputError(f"id must have one label per row, (n,); got shape {labels.shape}.")
    missing = [label is None or label != label for label in labels.tolist()]
    if any(missing):
        raise InvalidInputError(f"id: got a missing label in row {missing.index(True)}, expected a subject.")
    return labels


def _codes(labels: np.ndarray) -> np.ndarray:
    """Numbers of the subjects, in the order of their labels, or of appearance where labels have no order."""
    try:
        return np.unique(labels, return_inverse=True)[1]
    except TypeError:
        number = {label: i for i, label in enumerate(dict.fromkeys(labels.tolist()))}
        return np.array([number[label] for label in labels.tolist()])


def _times(values: Any, name: str, n: int) -> np.ndarray:
    """Finite times that are not negative, one per row."""
    times = to_numpy(as_float(values, name)).astype(np.float64)
    if times.shape != (n,):
        raise InvalidInputError(f"{name} must have one value per row, ({n},); got {times.shape}.")
    check_positive(times, name, zero=True)
    return times


def _has_empty(column: Any) -> bool:
    values = column.to_numpy()
    return bool(column.is_null().any()) or (values.dtype.kind == "f" and bool(np.isnan(values).any()))


def latest(
    subject: np.ndarray, time: np.ndarray, of: np.ndarray, at: np.ndarray, side: Any = "right"
) -> np.ndarray:
    """Find the last entry of subjects ``of`` at or before times ``at`` ("left": before); -1 for none.

    >>> latest(np.array([0, 0, 1]), np.array([1.0, 3.0, 2.0]), np.array([0, 0, 1]), np.array([3.0, 0.5, 9.0]))
    array([ 1, -1,  2])
    """
    values = np.unique(time)
    order = np.lexsort([time, subject])
    key = subject * (len(values) + 1) + np.searchsorted(values, time) + 1
    wanted = of * (len(values) + 1) + np.searchsorted(values, at, side=side)
    place = np.searchsorted(key[order], wanted, side="right") - 1
    found = order[place]
    return np.where((place >= 0) & (subject[found] == of), found, -1)
