"""Competing risks: the time of the first of several kinds of event, and which kind it was."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from censcore._arrays import Array, ArrayLike, Frame, as_float, as_rows, namespace, to_numpy
from censcore._validation import check_instance, check_same_order, column_names
from censcore.exceptions import InvalidTypeError
from censcore.outcomes.event_of_cause import EventOfCause
from censcore.outcomes.outcome import Outcome
from censcore.outcomes.parts import as_cause_names, as_causes, cause_number, read_columns, two_fields
from censcore.outcomes.right_censored import RightCensored
from censcore.plain_text import some_of

if TYPE_CHECKING:
    from censcore.outcomes.as_outcome import OutcomeLike
    from censcore.outcomes.semi_competing import SemiCompetingRisks

MOST_LISTED = 10  # causes in words; of more those that occur


def _of_any(name: str, words: str) -> property:
    """An attribute of the outcome of any cause."""
    return property(lambda y: getattr(y._any, name), doc=words)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class CompetingRisks(Outcome):
    r"""Time and cause of the first of m kinds of event, right-censored, for n subjects.

    The data are :math:`Y=\min(T,C)` and the cause :math:`D\in\{1,\dots,m\}` where :math:`T\le C`, 0 where
    the time is censored. An event at exactly the censoring time is an event.

    Parameters
    ----------
    time : array, (n,)
        Observed times Y: finite and non-negative.
    cause : array of whole numbers, (n,)
        0 where the time is censored, j where the event was of cause j, from 1 to m. Every number from 1 to m
        is a cause, which a forecast has a place for, whether anybody had it or not; m is at most 10,000.
        Other codes are numbered first: ``codes, cause = numpy.unique(given, return_inverse=True)``, where 0
        is among them.
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

    part_names: ClassVar[tuple[str, ...]] = ("_any", "_cause")

    _any: RightCensored
    _cause: Array
    names: tuple[str, ...]

    def __init__(
        self,
        time: ArrayLike,
        cause: ArrayLike,
        censoring_time: ArrayLike | None = None,
        *,
        entry: ArrayLike | None = None,
        names: Sequence[str] | None = None,
        n_causes: int | None = None,
    ) -> None:
        labels = check_same_order(time=time, cause=cause, censoring_time=censoring_time, entry=entry)
        time = as_float(time, "time")
        codes = as_causes(cause, time)
        followed = RightCensored(time, codes != 0, censoring_time, entry=entry)
        names = as_cause_names(names, n_causes, int(to_numpy(codes).max()))
        self._set({"_cause": codes, "names": names} | self._labelled(followed, labels))

    @staticmethod
    def _labelled(followed: RightCensored, labels: Any) -> dict[str, Any]:
        """The fields that have the labels of the subjects."""
        return {"_any": followed._changed(row_labels=labels), "row_labels": labels}

    @classmethod
    def from_frame(
        cls,
        frame: Frame,
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
        columns = time, cause, censoring_time, entry
        Y, causes, c, a = read_columns(frame, "time=..., cause=...", *columns)
        outcome = cls(Y, causes, c, entry=a, names=names, n_causes=n_causes)
        return outcome._changed(**outcome._labelled(outcome._any, check_same_order(frame=frame)))

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
        described = "of competing risks has one field of whole numbers (cause) and one of floats (time)"
        return cls(*two_fields(y, "iu", "f", described), names=names, n_causes=n_causes)

    @classmethod
    def from_hazardous(cls, y: Frame, *, names: Sequence[str] | None = None) -> CompetingRisks:
        """From the two columns of hazardous: "event" (0 is censored) and "duration".

        Examples
        --------
        >>> import pandas as pd, censcore as cs
        >>> cs.CompetingRisks.from_hazardous(pd.DataFrame({"event": [0, 2], "duration": [5.0, 3.0]})).time
        array([5., 3.])
        """
        return cls.from_frame(y, time="duration", cause="event", names=names)

    time = _of_any("time", "Observed times, (n,).")
    censoring_time = _of_any("censoring_time", "C where it is known for every subject, else None.")
    entry = _of_any("entry", "The times from which subjects were under observation, (n,), or None.")

    @property
    def causes(self) -> Array:
        """Cause of every event, 0 where the time is censored: whole numbers, (n,)."""
        return self._cause

    @property
    def n_causes(self) -> int:
        """The number m of causes."""
        return len(self.names)

    def with_names(self, names: Sequence[str]) -> CompetingRisks:
        """The same outcome with other names of its causes; more names than causes add some that nobody had.

        Examples
        --------
        >>> import censcore as cs
        >>> cs.CompetingRisks([2.0, 5.0], [1, 0]).with_names(["relapse", "death"]).n_causes
        2
        """
        return self._changed(names=as_cause_names(names, None, int(to_numpy(self._cause).max())))

    def number_of(self, cause: int | str) -> int:
        """The number, from 1 to m, of a cause that is given by number or name."""
        return cause_number(cause, self.names)

    def cause(self, j: int | str) -> EventOfCause:
        """The outcome of the event time of cause j alone: :math:`T_j=T` if the cause is j, else never.

        The cause is given by its number, from 1 to m, or its name. Every score takes the outcome, together
        with ``forecast.cause(j)``. A subject with an event of another cause at y stays under observation
        until C: the event of cause j is known never to come, and C to be at least y.

        Examples
        --------
        >>> import censcore as cs
        >>> y = cs.CompetingRisks(time=[2.0, 5.0, 3.0], cause=[1, 0, 2]).cause(1)
        >>> y.event, y.never, y.censored
        (array([ True, False, False]), array([False, False,  True]), array([False,  True, False]))
        """
        return self.event_of(self.number_of(j))

    def event_of(self, number: int) -> EventOfCause:
        """The outcome of a cause by its number, which nobody may have had."""
        return EventOfCause._of(self._any, self._cause == number)

    def any_cause(self) -> RightCensored:
        """The time of the first event of any cause."""
        return self._any

    def censor_at(self, tau: ArrayLike) -> CompetingRisks:
        """Follow-up cut at ``tau``: an event at exactly ``tau`` stays, anything later is censored there."""
        cut = self._any.censor_at(tau)
        return self._changed(_any=cut, _cause=namespace(self._cause).where(cut.event, self._cause, 0))

    def followed_through(self, t: ArrayLike) -> CompetingRisks:
        """See :meth:`RightCensored.followed_through`."""
        return self._changed(_any=self._any.followed_through(t))

    def at_risk(self, s: ArrayLike) -> Array:
        """Which subjects are at risk just after ``s``, of any cause; see :meth:`RightCensored.at_risk`."""
        return self._any.at_risk(s)

    def after(self, s: ArrayLike) -> CompetingRisks:
        """The subjects at risk at the landmark ``s``, who enter there; see :meth:`RightCensored.after`."""
        at_risk = np.nonzero(to_numpy(self.at_risk(s)))[0]
        return self._changed(_any=self._any.after(s), _cause=self._cause[as_rows(at_risk)])

    def flip(self) -> RightCensored:
        """The same data seen as an outcome of C: censoring is the event, events of all causes come first."""
        return self._any.flip()

    def __repr__(self) -> str:
        time, count = to_numpy(self.time), np.bincount(to_numpy(self._cause), minlength=self.n_causes + 1)[1:]
        listed = range(self.n_causes) if self.n_causes <= MOST_LISTED else np.nonzero(count)[0].tolist()
        shares = some_of(
            [f"{self.names[j]} {count[j]} ({count[j] / len(self):.1%})".replace("%", " %") for j in listed],
            MOST_LISTED,
        )
        known = "" if self.censoring_time is None else ", C known"
        return (
            f"CompetingRisks(n={len(self)}, events: {shares}, time {time.min():g} to {time.max():g}{known})"
        )


def as_competing_risks(y: OutcomeLike | SemiCompetingRisks) -> CompetingRisks:
    """Competing risks from any accepted type.

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
    check_instance(y, "y")
    if names := list(column_names(y)):
        frame: Any = y
        if "duration" in names:
            return CompetingRisks.from_hazardous(frame)
        return CompetingRisks.from_frame(frame, entry="entry" if "entry" in names else None)
    raise InvalidTypeError(
        f"y must be a CompetingRisks outcome, a structured array or a frame; got {type(y).__name__}. Build "
        "one with censcore.CompetingRisks(time=..., cause=...)."
    )


def is_competing(y: object) -> bool:
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
    columns = [str(name) for name in column_names(y)]
    return isinstance(y, CompetingRisks) or ("cause" in columns and "event" not in columns)
