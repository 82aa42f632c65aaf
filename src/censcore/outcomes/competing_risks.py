"""Competing risks: the time of the first of several kinds of event, and which kind it was."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from censcore._arrays import Array, as_float, as_rows, convert, is_torch, namespace, to_numpy
from censcore._validation import as_count, as_frame, as_names, name_subjects
from censcore.exceptions import InvalidInputError, InvalidTypeError
from censcore.outcomes.base import Outcome
from censcore.outcomes.right_censored import RightCensored
from censcore.plain_text import one_line

__all__ = ["CompetingRisks", "EventOfCause", "as_competing_risks", "cause_number", "is_competing"]


class CompetingRisks(Outcome):
    r"""Time and cause of the first of m kinds of event, right-censored, for n subjects.

    The data are :math:`Y=\min(T,C)` and the cause :math:`D\in\{1,\dots,m\}` where :math:`T\le C`, 0 where
    the time is censored. An event at exactly the censoring time is an event.

    Parameters
    ----------
    time : array, (n,)
        Observed times Y: finite and non-negative.
    cause : array of whole numbers, (n,)
        0 where the time is censored, j where the event was of cause j, from 1 to m.
    censoring_time : array or number, optional
        C where it is known for every subject, also for those with an event; a number for one administrative
        end of follow-up. Infinity means never censored.
    entry : array or number, optional
        Delayed entry (left truncation): the time from which a subject was under observation, below its time.
        The subject is in the data only because no event of any cause came before. A score of all causes
        conditions the forecast on that; one cause is scored by ``forecast.given_survival(entry).cause(j)``.
    names : sequence of str, optional
        Names of the causes 1 to m.
    n_causes : int, optional
        m. By default the number of names, or the largest cause in the data.

    Notes
    -----
    A subject with an event of another cause at y will never have an event of cause j: :math:`T_j=\infty` is
    known, and C is known to be at least y. Such a subject is *not* censored at y. ``y.cause(j)`` says so to
    every score; an outcome that calls these subjects censored gives wrong scores.

    See Also
    --------
    from_frame : From columns of a data frame.
    from_structured : From a structured array.
    from_hazardous : From the columns "event" and "duration" of hazardous.
    censcore.CumulativeIncidence : Forecasts of such data.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.CompetingRisks([2.0, 5.0, 3.0, 4.0], [1, 0, 2, 1], names=["relapse", "death"])
    >>> y
    CompetingRisks(n=4, events: relapse 2 (50.0 %), death 1 (25.0 %), time 2 to 5)
    >>> y.cause("relapse")
    EventOfCause(n=4, events=2 (50.0 %), never=1, time 2 to 5)
    >>> y.any_cause()
    RightCensored(n=4, events=3 (75.0 %), time 2 to 5)
    """

    _parts: ClassVar[tuple[str, ...]] = ("_any", "_cause")

    def __init__(
        self,
        time: Array,
        cause: Array,
        censoring_time: Array = None,
        *,
        entry: Array = None,
        names: Sequence[str] | None = None,
        n_causes: int | None = None,
    ) -> None:
        codes = _as_causes(cause, time)
        if tuple(codes.shape) != tuple(np.shape(time)) or codes.ndim != 1:
            raise InvalidInputError(
                f"time and cause must both have shape (n,); got {tuple(np.shape(time))} and "
                f"{tuple(codes.shape)}."
            )
        self._any = RightCensored(time, codes != 0, censoring_time, entry=entry)
        self._cause: Array = codes
        self.names: tuple[str, ...] = _as_names(names, n_causes, int(to_numpy(codes).max()))

    @classmethod
    def from_frame(
        cls,
        frame: Any,
        time: str = "time",
        cause: str = "cause",
        censoring_time: str | None = None,
        entry: str | None = None,
        *,
        names: Sequence[str] | None = None,
        n_causes: int | None = None,
    ) -> CompetingRisks:
        """From named columns of a pandas or polars frame.

        Examples
        --------
        >>> import pandas as pd, censcore as cs
        >>> frame = pd.DataFrame({"months": [6.0, 9.0, 2.0], "status": [1, 0, 2]})
        >>> cs.CompetingRisks.from_frame(frame, time="months", cause="status").causes
        array([1, 0, 2])
        """
        wanted = [time, cause, *(name for name in (censoring_time, entry) if name is not None)]
        data = as_frame(frame, *wanted)
        missing = [name for name in wanted if name not in data.columns]
        if missing:
            raise InvalidInputError(
                f"Columns {missing} are not in the frame, whose columns are {list(data.columns)[:20]}. "
                "Name them: from_frame(frame, time=..., cause=...)."
            )
        column = {name: data[name].to_numpy() for name in wanted}
        known = None if censoring_time is None else column[censoring_time]
        begin = None if entry is None else column[entry]
        return cls(column[time], column[cause], known, entry=begin, names=names, n_causes=n_causes)

    @classmethod
    def from_structured(
        cls, y: np.ndarray, *, names: Sequence[str] | None = None, n_causes: int | None = None
    ) -> CompetingRisks:
        """From a structured array with one field of whole numbers (cause) and one of floats (time).

        Examples
        --------
        >>> import numpy as np, censcore as cs
        >>> y = np.array([(1, 2.0), (0, 5.0), (2, 1.0)], dtype=[("status", int), ("time", float)])
        >>> cs.CompetingRisks.from_structured(y).any_cause().event
        array([ True, False,  True])
        """
        fields = {} if y.dtype.fields is None else {name: kind[0] for name, kind in y.dtype.fields.items()}
        causes = [name for name, dtype in fields.items() if dtype.kind in "iu"]
        times = [name for name, dtype in fields.items() if dtype.kind == "f"]
        if len(fields) != 2 or len(causes) != 1 or len(times) != 1:
            raise InvalidTypeError(
                "A structured outcome of competing risks has exactly one field of whole numbers (cause) and "
                f"one of floats (time); got fields {dict(fields)}. Use CompetingRisks(time, cause) to name "
                "them yourself."
            )
        return cls(y[times[0]], y[causes[0]], names=names, n_causes=n_causes)

    @classmethod
    def from_hazardous(cls, y: Any, *, names: Sequence[str] | None = None) -> CompetingRisks:
        """From the two columns of hazardous: "event" (0 is censored) and "duration".

        Examples
        --------
        >>> import pandas as pd, censcore as cs
        >>> cs.CompetingRisks.from_hazardous(pd.DataFrame({"event": [0, 2], "duration": [5.0, 3.0]})).time
        array([5., 3.])
        """
        return cls.from_frame(y, time="duration", cause="event", names=names)

    @property
    def time(self) -> Array:
        """Observed times, (n,)."""
        return self._any.time

    @property
    def causes(self) -> Array:
        """Cause of every event, 0 where the time is censored: whole numbers, (n,)."""
        return self._cause

    @property
    def censoring_time(self) -> Array:
        """C where it is known for every subject, else None."""
        return self._any.censoring_time

    @property
    def entry(self) -> Array:
        """The times from which subjects were under observation, (n,); None where all were from the start."""
        return self._any.entry

    @property
    def n_causes(self) -> int:
        """The number m of causes."""
        return len(self.names)

    def _with(self, any_cause: RightCensored, cause: Array) -> CompetingRisks:
        other = copy.copy(self)  # part of a valid outcome is valid, so it is not checked again
        other._any, other._cause = any_cause, cause
        return other

    def with_names(self, names: Sequence[str]) -> CompetingRisks:
        """The same outcome with other names of its causes; more names than causes add some that nobody had.

        Examples
        --------
        >>> import censcore as cs
        >>> cs.CompetingRisks([2.0, 5.0], [1, 0]).with_names(["relapse", "death"]).n_causes
        2
        """
        other = self._with(self._any, self._cause)
        other.names = _as_names(names, None, int(to_numpy(self._cause).max()))
        return other

    def number_of(self, cause: int | str) -> int:
        """The number, from 1 to m, of a cause that is given by number or name."""
        return cause_number(cause, self.names)

    def cause(self, j: int | str) -> EventOfCause:
        r"""The outcome of the event time of cause j alone: :math:`T_j=T` if the cause is j, else never.

        Every score takes it, together with ``forecast.cause(j)``. A subject with an event of another cause
        at y stays under observation until C: the event of cause j is known never to come, and C to be at
        least y.

        Parameters
        ----------
        j : int or str
            Number of the cause, from 1 to m, or its name.

        Returns
        -------
        EventOfCause

        Examples
        --------
        >>> import censcore as cs
        >>> y = cs.CompetingRisks(time=[2.0, 5.0, 3.0], cause=[1, 0, 2]).cause(1)
        >>> y.event, y.never, y.censored
        (array([ True, False, False]), array([False, False,  True]), array([False,  True, False]))
        """
        return self._event_of(self.number_of(j))

    def _event_of(self, number: int) -> EventOfCause:
        return EventOfCause._of(self._any, self._cause == number)

    def any_cause(self) -> RightCensored:
        """The time of the first event of any cause."""
        return self._any

    def censor_at(self, tau: Array) -> CompetingRisks:
        """Follow-up cut at ``tau``: an event at exactly ``tau`` stays, anything later is censored there.

        Examples
        --------
        >>> import censcore as cs
        >>> cs.CompetingRisks([2.0, 5.0, 3.0], [1, 2, 2]).censor_at(3.0).causes
        array([1, 0, 2])
        """
        cut = self._any.censor_at(tau)
        return self._with(cut, namespace(self._cause).where(cut.event, self._cause, 0))

    def at_risk(self, s: Array) -> Array:
        """Which subjects are at risk just after ``s``, of any cause; see :meth:`RightCensored.at_risk`.

        Examples
        --------
        >>> import censcore as cs
        >>> cs.CompetingRisks([2.0, 5.0, 6.0], [1, 0, 2]).at_risk(3.0)
        array([False,  True,  True])
        """
        return self._any.at_risk(s)

    def after(self, s: Array) -> CompetingRisks:
        """The subjects at risk at the landmark ``s``, who enter there; see :meth:`RightCensored.after`.

        Examples
        --------
        >>> import censcore as cs
        >>> cs.CompetingRisks([2.0, 5.0, 6.0], [1, 0, 2]).after(3.0).causes
        array([0, 2])
        """
        kept = np.nonzero(to_numpy(self.at_risk(s)))[0]
        return self._with(self._any.after(s), self._cause[as_rows(kept)])

    def flip(self) -> RightCensored:
        """The same data seen as an outcome of C: censoring is the event, events of all causes come first.

        Examples
        --------
        >>> import censcore as cs
        >>> cs.CompetingRisks([2.0, 5.0, 3.0], [1, 0, 2]).flip().event
        array([False,  True, False])
        """
        return self._any.flip()

    def __repr__(self) -> str:
        cause, time = to_numpy(self._cause), to_numpy(self.time)
        shares = ", ".join(
            f"{one_line(name)} {int((cause == j).sum())} ({(cause == j).mean():.1%})".replace("%", " %")
            for j, name in enumerate(self.names, start=1)
        )
        known = "" if self.censoring_time is None else ", C known"
        return (
            f"CompetingRisks(n={len(self)}, events: {shares}, time {time.min():g} to {time.max():g}{known})"
        )


class EventOfCause(RightCensored):
    r"""The event time :math:`T_j` of one of several causes, as ``CompetingRisks.cause(j)`` gives it.

    :math:`T_j=T` if the event is of cause j, and infinite if it is of another one. There are three kinds of
    subjects: with the event at y (:attr:`event`), censored at y (:attr:`censored`), and with an event of
    another cause at y (:attr:`never`), of whom it is known that :math:`T_j=\infty` and :math:`C\ge y`.

    Parameters
    ----------
    time : array, (n,)
        Observed times.
    event, never : array of bool, (n,)
        Whether the event of this cause, or of another one, was seen at that time; not both.
    censoring_time : array or number, optional
        C where it is known for every subject.

    See Also
    --------
    CompetingRisks : The outcome of all causes.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.CompetingRisks([2.0, 5.0, 3.0], [1, 0, 2])
    >>> F = cs.CumulativeIncidence([1.0, 4.0], [[[0.2, 0.4], [0.1, 0.3]]])
    >>> cs.brier_score(y.cause(1), F.cause(1), cs.Uniform(0.0, 8.0), times=[4.0]).round(4)
    array([[0.24 ],
           [0.16 ],
           [0.128]])
    """

    _parts: ClassVar[tuple[str, ...]] = (*RightCensored._parts, "_never")

    def __init__(self, time: Array, event: Array, never: Array, censoring_time: Array = None) -> None:
        seen = RightCensored(time, event, None)
        other = RightCensored(time, never, None).event
        both = to_numpy(seen.event & other)
        if both.any():
            raise InvalidInputError(
                "An event cannot be of this cause and of another one; it is both in "
                f"{name_subjects(np.nonzero(both)[0])}."
            )
        self._keep(RightCensored(seen.time, seen.event | other, censoring_time), seen.event)

    def _keep(self, followed: RightCensored, event: Array) -> None:
        """From the outcome of any cause and the events of this one."""
        if followed.time.ndim > 1:
            raise InvalidInputError(f"An outcome of one cause has shape (n,); got {followed.shape}.")
        self.__dict__.update(followed.__dict__)
        self.event = event
        self._never = followed.event & ~event

    @property
    def never(self) -> Array:
        """Whether an event of another cause was seen: this one never happens, and C >= Y."""
        return self._never

    @property
    def censored(self) -> Array:
        """Whether the time is censored, so that C = Y."""
        return ~(self.event | self._never)

    def any_cause(self) -> RightCensored:
        """The time of the first event of any cause."""
        return self._followed(self.event | self._never)

    def _followed(self, event: Array) -> RightCensored:
        other = RightCensored.__new__(RightCensored)
        other.__dict__.update({name: value for name, value in self.__dict__.items() if name != "_never"})
        other.event = event
        return other

    @classmethod
    def _of(cls, followed: RightCensored, event: Array) -> EventOfCause:
        """From a valid outcome of any cause, which is not checked again."""
        other = cls.__new__(cls)
        other._keep(followed, event)
        return other

    def marginal(self, j: int) -> EventOfCause:
        """The outcome itself: it has one event time."""
        super().marginal(j)
        return self

    def censor_at(self, tau: Array) -> EventOfCause:
        """Follow-up cut at ``tau``: events of any cause at exactly ``tau`` stay, later ones are censored."""
        cut = self.any_cause().censor_at(tau)
        return self._of(cut, cut.event & self.event)

    @property
    def informs_censoring(self) -> Array:
        """Subjects that say something of C: all but those with an event at time zero."""
        return self.any_cause().informs_censoring

    def flip(self) -> RightCensored:
        """The same data seen as an outcome of C: events of all causes come first."""
        return self.any_cause().flip()

    def __repr__(self) -> str:
        whole = super().__repr__().removeprefix("RightCensored")
        return (
            f"EventOfCause{whole.replace(', time', f', never={int(to_numpy(self._never).sum())}, time', 1)}"
        )


def as_competing_risks(y: Any) -> CompetingRisks:
    """Competing risks from whatever holds them.

    Parameters
    ----------
    y : CompetingRisks, structured array or frame
        The outcome; a structured array as :meth:`CompetingRisks.from_structured` takes it; a frame with
        columns "time" and "cause", or "duration" and "event".

    Returns
    -------
    CompetingRisks

    Examples
    --------
    >>> import pandas as pd
    >>> from censcore.outcomes import as_competing_risks
    >>> as_competing_risks(pd.DataFrame({"event": [0, 2, 1], "duration": [5.0, 3.0, 1.0]})).causes
    array([0, 2, 1])
    """
    if isinstance(y, CompetingRisks):
        return y
    if isinstance(y, np.ndarray) and y.dtype.fields is not None:
        return CompetingRisks.from_structured(y)
    if hasattr(y, "columns"):
        if "duration" in y.columns:
            return CompetingRisks.from_hazardous(y)
        return CompetingRisks.from_frame(y, entry="entry" if "entry" in y.columns else None)
    raise InvalidTypeError(
        f"y must be a CompetingRisks outcome, a structured array or a frame; got {type(y).__name__}. Build "
        "one with censcore.CompetingRisks(time=..., cause=...)."
    )


def is_competing(y: Any) -> bool:
    """Whether something holds competing risks: an outcome of them, or a frame with a column "cause".

    Parameters
    ----------
    y : object
        An outcome, a structured array or a frame.

    Returns
    -------
    bool

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.outcomes import is_competing
    >>> is_competing(cs.CompetingRisks([2.0, 5.0], [1, 0])), is_competing(cs.RightCensored([2.0], [1]))
    (True, False)
    """
    columns = [str(name) for name in getattr(y, "columns", ())]
    return isinstance(y, CompetingRisks) or ("cause" in columns and "event" not in columns)


def cause_number(cause: int | str, names: Sequence[str]) -> int:
    """The number, from 1 to m, of a cause that is given by number or name."""
    if isinstance(cause, str):
        if cause not in names:
            raise InvalidInputError(f"There is no cause called {cause!r}; there are {', '.join(names)}.")
        return list(names).index(cause) + 1
    if isinstance(cause, bool) or not isinstance(cause, int | np.integer) or not 1 <= cause <= len(names):
        raise InvalidInputError(
            f"A cause is a number from 1 to {len(names)} or one of the names {', '.join(names)}; got "
            f"{cause!r}."
        )
    return int(cause)


def _as_causes(cause: Array, time: Array) -> Array:
    """Whole numbers in the library of ``time``."""
    given = to_numpy(cause)
    if given.dtype.kind == "O":
        given = as_float(given, "cause")
    if given.dtype.kind not in "biuf":
        raise InvalidTypeError(
            f"cause must hold whole numbers, 0 for censored and 1 to m; got an array of dtype {given.dtype}. "
            "Translate labels: cause = [['censored', 'relapse', 'death'].index(label) for label in labels]."
        )
    whole = np.isfinite(given) & (given == np.round(given)) & (given >= 0)
    if not whole.all():
        bad = np.unique(np.nonzero(~whole)[0])
        raise InvalidInputError(
            "cause must hold whole numbers, 0 for censored and 1 to m for the causes; got "
            f"{given[~whole].ravel()[0]}, in {name_subjects(bad)}. Were time and cause swapped?"
        )
    codes = given.astype(np.int64)
    return convert(codes, as_float(time, "time")) if is_torch(time) else codes


#: Kinds of event: many more than anybody distinguishes, few enough to be named.
MOST_CAUSES = 10**4


def _as_names(names: Sequence[str] | None, n_causes: int | None, largest: int) -> tuple[str, ...]:
    if n_causes is not None:
        n_causes = as_count(n_causes, "n_causes", most=MOST_CAUSES)
    if names is not None:
        names = as_names(names, n_causes)
    if largest == 0 and n_causes is None and names is None:
        raise InvalidInputError(
            "cause is 0 for every subject: all are censored, and no cause was seen. Expected a cause from 1 "
            "to m where an event was seen; where there was none, say n_causes=m."
        )
    m = n_causes if n_causes is not None else len(names) if names is not None else largest
    found = tuple(names) if names is not None else tuple(f"cause {j + 1}" for j in range(m))
    if largest > m:
        raise InvalidInputError(
            f"The data have a cause {largest}; expected causes 1 to {m} ({', '.join(found)}) and 0 for "
            "censored."
        )
    return found
