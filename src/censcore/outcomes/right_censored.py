"""Right-censored outcomes: what was seen of one or several event times per subject."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from censcore._arrays import Array, ArrayLike, Frame, as_float, namespace, one_namespace, to_numpy
from censcore._numerics import next_float, previous_float
from censcore._validation import (
    as_coordinate,
    as_names,
    check_kind,
    check_positive,
    check_same_order,
    name_subjects,
)
from censcore.exceptions import InvalidInputError
from censcore.outcomes.outcome import Outcome
from censcore.outcomes.parts import (
    as_event,
    check_censoring_time,
    check_entry,
    check_times,
    one_each,
    read_columns,
    two_fields,
)


@dataclass(frozen=True, init=False, eq=False, repr=False)
class RightCensored(Outcome):
    r"""Right-censored event times of n subjects.

    For event times :math:`T` and censoring times :math:`C` the data are :math:`Y=\min(T,C)` and
    :math:`\Delta=\mathbb 1\{T\le C\}`, coordinate by coordinate. An event at exactly the
    censoring time is an event.

    Parameters
    ----------
    time : array, (n,) or (n, k)
        Observed times Y: finite and non-negative.
    event : array, same shape
        Delta: 1 or True where the event was seen, 0 or False where the time is censored.
    censoring_time : array or number, optional
        C where it is known for every subject, also for those with an event: (n,) for one C shared by
        all coordinates, (n, k) for one per coordinate, a number for one administrative end of
        follow-up. Infinity means never censored.
    entry : array or number, (n,), optional
        Delayed entry (left truncation): the time from which a subject was under observation, below its time
        (below all of its times). The subject is in the data only because T > entry. Zero, and None for
        all subjects, mean observation from the start.

    Notes
    -----
    Scores assume that C is independent of T given the covariates. Nothing in the data can show
    that this holds; without it every score of this library, and every other, is biased. With delayed entry T
    is assumed to be independent of the pair (entry, C).

    With an entry a scores judge the distribution of T given T > a, and a subject is at risk at t if
    a < t <= Y: a subject that enters at a is at risk of events strictly after a.

    See Also
    --------
    from_structured : From a scikit-survival structured array.
    from_frame : From columns of a data frame.
    from_start_stop : From intervals of time-varying covariates.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.RightCensored(time=[2.0, 5.0, 3.5], event=[1, 0, 1])
    >>> y
    RightCensored(n=3, events=2 (66.7 %), time 2 to 5)
    >>> y[[0, 2]].time
    array([2. , 3.5])
    >>> cs.RightCensored(time=[2.0, 5.0, 3.5], event=[1, 0, 1], entry=[0.0, 1.0, 3.0])
    RightCensored(n=3, events=2 (66.7 %), time 2 to 5, delayed entry in 2)
    """

    part_names: ClassVar[tuple[str, ...]] = ("time", "event", "censoring_time", "entry")

    time: Array
    event: Array
    censoring_time: Array
    entry: Array
    names: list[str] | None

    def __init__(
        self,
        time: ArrayLike,
        event: ArrayLike,
        censoring_time: ArrayLike | None = None,
        *,
        entry: ArrayLike | None = None,
    ) -> None:
        one_namespace(time=time, event=event, censoring_time=censoring_time, entry=entry)
        labels = check_same_order(time=time, event=event, censoring_time=censoring_time, entry=entry)
        Y = as_float(time, "time")
        delta = as_event(event, Y)
        check_times(Y, delta)
        c, a = censoring_time, entry
        if c is not None:
            c = one_each(c, Y, "censoring_time", coordinates=True)
            check_censoring_time(c, Y, delta)
        if a is not None:
            a = one_each(a, Y, "entry")
            check_entry(a, Y)
        self._set({"time": Y, "event": delta, "censoring_time": c, "entry": a, "row_labels": labels})

    def require_one_time(self, name: str) -> RightCensored:
        """The outcome with times (n,), or an error which says that ``name`` is of one event time."""
        if self.k > 1:
            raise InvalidInputError(
                f"{name} is for one event time per subject; got an outcome of shape {self.shape}. Use "
                "y.marginal(j) for each j."
            )
        return self.marginal(0)

    @classmethod
    def from_structured(cls, y: np.ndarray) -> RightCensored:
        """From a scikit-survival structured array: one boolean field (event) and one float field (time).

        Examples
        --------
        >>> import numpy as np, censcore as cs
        >>> y = np.array([(True, 2.0), (False, 5.0)], dtype=[("cens", bool), ("time", float)])
        >>> cs.RightCensored.from_structured(y)
        RightCensored(n=2, events=1 (50.0 %), time 2 to 5)
        """
        check_kind(y, "y", np.ndarray, "a structured array of NumPy. Pass RightCensored(time, event)")
        described = (
            "has exactly one boolean field (event) and one numeric (time), or whole numbers (cause), which "
            "CompetingRisks.from_structured(y) reads"
        )
        return cls(*two_fields(y, "b", "fiu", described))

    @classmethod
    def from_frame(
        cls,
        frame: Frame,
        time: str | list[str] = "time",
        event: str | list[str] = "event",
        censoring_time: str | list[str] | None = None,
        entry: str | None = None,
    ) -> RightCensored:
        """From named columns of a pandas or polars frame (lists of columns for several event times).

        Examples
        --------
        >>> import pandas as pd, censcore as cs
        >>> frame = pd.DataFrame({"weeks": [6.0, 9.0], "arrest": [1, 0]})
        >>> cs.RightCensored.from_frame(frame, time="weeks", event="arrest").time
        array([6., 9.])
        """
        names = time, event, censoring_time, entry
        Y, delta, c, a = read_columns(frame, "time=..., event=...", *names)
        named = None if isinstance(time, str) else list(time)
        return cls(Y, delta, c, entry=a)._changed(names=named, row_labels=check_same_order(frame=frame))

    @classmethod
    def from_start_stop(
        cls,
        frame: Frame,
        *,
        id: str = "id",
        start: str = "start",
        stop: str = "stop",
        event: str = "event",
        censoring_time: str | None = None,
        gap: str | None = None,
    ) -> tuple[RightCensored, np.ndarray]:
        r"""From a table with one line per subject and interval (start, stop] of constant covariates.

        This is the long format of time-varying covariates in lifelines and in R's survival. Each line is
        an outcome: entry ``start``, time ``stop``. Its forecast is made of what is known at ``start``,
        is judged given T > start, and is censored where the next line begins. With hazard
        :math:`h_j` on the line j, the log scores of the lines add up to that of the whole history,
        :math:`-\sum_j\{\Delta_j\log h_j(t_j)-\int_{s_j}^{t_j}h_j(u)\,du\}`.

        Parameters
        ----------
        frame : pandas or polars frame
            The table. Lines may be in any order, which is kept.
        id, start, stop, event : str
            Columns: the subject, the ends of the interval, and 1 where it ends with the event.
        censoring_time : str, optional
            Column of the time until which the line would have lasted without the event, such as the next
            planned visit: the censoring time, known for all lines. It equals ``stop`` where there is no
            event. The log score does not depend on it.
        gap : "not at risk" or "unobserved", optional
            What time between two intervals of a subject means, as in :class:`~censcore.StartStop`.

        Returns
        -------
        y : RightCensored
            One outcome per line.
        groups : array, (n,)
            The subject of each line, for ``groups`` of :func:`censcore.compare`: lines of one subject depend
            on each other.

        See Also
        --------
        censcore.StartStop : The table as an outcome of subjects, for estimators.
        censcore.at_landmark : The lines that hold one time, with the outcome of the whole subject.

        Examples
        --------
        >>> import pandas as pd, censcore as cs
        >>> table = pd.DataFrame(
        ...     [["a", 0, 2, 0], ["a", 2, 5, 1], ["b", 1, 4, 0]], columns=["id", "start", "stop", "event"],
        ... )
        >>> y, groups = cs.RightCensored.from_start_stop(table)
        >>> y.time, y.entry, groups.tolist()
        (array([2., 5., 4.]), array([0., 2., 1.]), ['a', 'a', 'b'])
        >>> cs.log_score(y, cs.Exponential([0.1, 0.3, 0.2])).round(3)
        array([0.2  , 2.104, 0.6  ])
        """
        from censcore.outcomes.start_stop import StartStop

        table = StartStop.from_frame(frame, id=id, start=start, stop=stop, event=event, gap=gap)
        y = cls.from_frame(frame, time=stop, event=event, censoring_time=censoring_time, entry=start)
        return y, table.id

    def with_names(self, names: list[str] | None) -> RightCensored:
        """The same outcome with names of its event times.

        Examples
        --------
        >>> import censcore as cs
        >>> cs.RightCensored([[2.0, 5.0]], [[1, 0]]).with_names(["relapse", "death"]).names
        ['relapse', 'death']
        """
        return self._changed(names=None if names is None else list(as_names(names, self.k, of="event time")))

    @property
    def k(self) -> int:
        """Number of event times per subject."""
        return 1 if self.time.ndim == 1 else int(self.time.shape[1])

    @property
    def censored(self) -> Array:
        """Whether the time is censored, so that C = Y: booleans of the shape of ``time``."""
        return ~self.event

    @property
    def never(self) -> Array:
        """Whether the event is known never to happen; False here, see :class:`EventOfCause`."""
        return namespace(self.time).zeros_like(self.event)

    def marginal(self, j: int) -> RightCensored:
        """The outcome of coordinate ``j`` alone, (n,).

        With delayed entry a subject is seen because all of its times exceed the entry, so that the forecast
        of the coordinate is ``forecast.given_survival(y.entry).marginal(j)``.
        """
        j = as_coordinate(j, self.k, "The outcome")
        if self.time.ndim == 1:
            return self
        c = self.censoring_time
        c_j = c if c is None or c.ndim == 1 else c[:, j]
        return self._changed(time=self.time[:, j], event=self.event[:, j], censoring_time=c_j, names=None)

    def first(self) -> RightCensored:
        """Time to whichever event comes first, (n,); C must be shared by the coordinates.

        Examples
        --------
        >>> import censcore as cs
        >>> y = cs.RightCensored([[2.0, 7.0], [4.0, 4.0]], [[1, 0], [0, 0]], censoring_time=[7.0, 4.0])
        >>> y.first().time, y.first().event
        (array([2., 4.]), array([ True, False]))
        """
        if self.time.ndim == 1:
            return self
        self._require_shared("first()")
        xp = namespace(self.time)
        earliest = xp.min(self.time, axis=1)
        event = xp.any(self.event & (self.time == earliest[:, None]), axis=1)
        c = self.shared_censoring_time()
        return self._changed(time=earliest, event=event, censoring_time=c, names=None)

    def last(self) -> RightCensored:
        """Time by which all events have happened, (n,); C must be shared by the coordinates.

        Examples
        --------
        >>> import censcore as cs
        >>> y = cs.RightCensored([[2.0, 7.0], [4.0, 1.0]], [[1, 0], [1, 1]]).last()
        >>> y.time, y.event
        (array([7., 4.]), array([False,  True]))
        """
        if self.time.ndim == 1:
            return self
        self._require_shared("The time of the last event")
        xp = namespace(self.time)
        c, event = self.shared_censoring_time(), xp.all(self.event, axis=1)
        return self._changed(time=xp.max(self.time, axis=1), event=event, censoring_time=c, names=None)

    def shared_censoring_time(self) -> Array:
        """Return the known time of the one C that coordinates share, (n,); None where none is known."""
        c = self.censoring_time
        return c if c is None or c.ndim == 1 else c[:, 0]

    @property
    def shares_censoring(self) -> bool:
        """Whether the data can come from one C per subject: censored coordinates agree, none is later."""
        return self.time.ndim == 1 or not self.censored_apart().size

    def censored_apart(self) -> np.ndarray:
        """The subjects whose coordinates cannot have one censoring time in common.

        The known times differ, or a censored time is below the largest one.
        """
        c, xp = self.censoring_time, namespace(self.time)
        if c is not None and c.ndim == 2:
            apart = xp.any(c != c[:, :1], axis=1)
        else:
            latest = xp.max(self.time, axis=1)[:, None]
            apart = xp.any(~self.event & (self.time < latest), axis=1)
        return np.nonzero(to_numpy(apart))[0]

    def _require_shared(self, method: str) -> None:
        apart = self.censored_apart()
        if apart.size:
            raise InvalidInputError(
                f"{method} needs one censoring time per subject, shared by the coordinates, and these data "
                f"have one per coordinate in {name_subjects(apart)}. Work on y.marginal(j) for each "
                "coordinate j."
            )

    def censor_at(self, tau: ArrayLike) -> RightCensored:
        """Follow-up cut at ``tau``: an event at exactly ``tau`` stays, anything later is censored there.

        Examples
        --------
        >>> import censcore as cs
        >>> cs.RightCensored([2.0, 5.0, 3.0], [1, 1, 1]).censor_at(3.0).event
        array([ True, False,  True])
        """
        end = one_each(tau, self.time, "tau", coordinates=True)
        check_positive(end, "tau", zero=True, infinite=True)
        xp, c = namespace(self.time), self.censoring_time
        limit = end[:, None] if end.ndim < self.time.ndim else end
        if c is not None:
            per_subject = end.ndim < 2 and c.ndim == 1
            c = xp.minimum(c, end) if per_subject else xp.minimum(c.reshape(len(self), -1), limit)
        time, entry = xp.minimum(self.time, limit), self.entry
        if entry is not None:
            entry = xp.minimum(entry, time if time.ndim == 1 else xp.min(time, axis=1))
        event = self.event & (self.time <= limit)
        return self._changed(time=time, event=event, censoring_time=c, entry=entry)

    def followed_through(self, t: ArrayLike) -> RightCensored:
        """The outcome in which whoever is censored at t is censored just after it, free of the event at t.

        Censoring at t says that the event time exceeds t, since events come first.

        Examples
        --------
        >>> import censcore as cs
        >>> cs.RightCensored([2.0, 5.0, 5.0], [1, 1, 0]).followed_through(5.0).time > 5.0
        array([False, False,  True])
        """
        xp, c = namespace(self.time), self.censoring_time
        end = as_float(t, "t", like=self.time)
        after = next_float(xp.asarray(end, dtype=self.time.dtype))
        time = xp.where(self.censored & (self.time == end), after, self.time)
        return self._changed(time=time, censoring_time=None if c is None else xp.where(c == end, after, c))

    def at_risk(self, s: ArrayLike) -> Array:
        """Which subjects are at risk just after ``s``, (n,): entered at or before it, and still followed.

        Examples
        --------
        >>> import censcore as cs
        >>> cs.RightCensored([2.0, 5.0, 6.0], [1, 0, 1], entry=[0.0, 0.0, 4.0]).at_risk(3.0)
        array([False,  True, False])
        """
        landmark = as_float(s, "s", like=self.time)
        if landmark.ndim:
            raise InvalidInputError(f"s must be one time; got an array of shape {tuple(landmark.shape)}.")
        check_positive(landmark, "s", zero=True)
        xp = namespace(self.time)
        earliest = self.time if self.time.ndim == 1 else xp.min(self.time, axis=1)
        inside = earliest > float(landmark)  # in whatever library the time is
        return inside if self.entry is None else inside & (self.entry <= float(landmark))

    def after(self, s: ArrayLike) -> RightCensored:
        """The subjects at risk at the landmark ``s``, who enter there: what is seen of T given T > s.

        Times stay on their scale, and ``entry`` is s for every subject. Forecasts and covariates are those of
        the subjects ``y.at_risk(s)``; scores condition the forecasts on T > s, as
        :meth:`~censcore.Univariate.given_survival` does.

        Examples
        --------
        >>> import censcore as cs
        >>> late = cs.RightCensored([2.0, 5.0, 6.0], [1, 0, 1]).after(3.0)
        >>> late.time, late.entry
        (array([5., 6.]), array([3., 3.]))
        >>> cs.crps(late, cs.Exponential(0.5), cs.Uniform(0.0, 9.0)).round(4)
        array([0.3362, 0.8768])
        """
        rows, landmark = np.nonzero(to_numpy(self.at_risk(s)))[0], float(as_float(s, "s"))
        if not rows.size:
            raise InvalidInputError(
                f"No subject is at risk after {landmark:g}: got times up to {float(self.time.max()):g}. Pass "
                "an earlier landmark."
            )
        late = self.take(rows)
        xp = namespace(late.time)
        first = late.time if late.time.ndim == 1 else late.time[:, 0]
        return late.with_entry(xp.full_like(first, landmark))

    @property
    def informs_censoring(self) -> Array:
        """Subjects that inform about C: all but those whose last event is at time zero."""
        last = self.last()
        return ~last.event | (last.time > 0)

    def flip(self) -> RightCensored:
        r"""The same data seen as an outcome of C: censoring is the event.

        Since :math:`\Delta=\mathbb 1\{T\le C\}`, events come first at ties: a subject with an event at
        y is at risk of censoring only *before* y. Those times move to the next smaller float, which is
        the events-first rule in any estimator; subjects with an event at zero do not inform about C and are
        left out (:attr:`informs_censoring` is the mask of those kept). For several event times
        under one shared C the flipped time is the largest of the subject, and C is seen when any
        coordinate is censored. Under componentwise censoring flip ``y.marginal(j)`` for each j. Entries stay:
        a subject is at risk of censoring from its entry on.

        Examples
        --------
        >>> import censcore as cs
        >>> y = cs.RightCensored([0.0, 2.0, 2.0], [1, 1, 0]).flip()
        >>> y.event, bool(y.time[0] < 2.0)
        (array([False,  True]), True)
        """
        last, keep = self.last(), self.informs_censoring
        latest, censored = last.time[keep], ~last.event[keep]
        flipped = RightCensored(namespace(latest).where(censored, latest, previous_float(latest)), censored)
        return flipped if self.entry is None else flipped.with_entry(self.entry[keep])

    def __repr__(self) -> str:
        time, event = to_numpy(self.time), to_numpy(self.event)
        if self.time.ndim == 1:
            events = f"events={int(event.sum())} ({event.mean():.1%})".replace("%", " %")
        else:
            rates = ", ".join(f"{rate:.1%}".replace("%", " %") for rate in event.mean(axis=0))
            events = f"k={self.k}, events={event.sum(axis=0).tolist()} ({rates})"
        never = f", never={int(to_numpy(self.never).sum())}" if "_never" in self.part_names else ""
        seen = f"{events}{never}, time {time.min():g} to {time.max():g}"
        known = "" if self.censoring_time is None else ", C known"
        late = f", delayed entry in {int((to_numpy(self.entry) > 0).sum())}" if self.has_delayed_entry else ""
        return f"{type(self).__name__}(n={len(self)}, {seen}{known}{late})"
