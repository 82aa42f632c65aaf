"""Semi-competing risks: events that a terminal event prevents, and the terminal event itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from censcore._arrays import Array, ArrayLike, namespace, to_numpy
from censcore._validation import as_coordinate, name_subjects
from censcore.exceptions import InvalidInputError
from censcore.outcomes.competing_risks import CompetingRisks
from censcore.outcomes.event_of_cause import EventOfCause
from censcore.outcomes.outcome import Outcome
from censcore.outcomes.right_censored import RightCensored


@dataclass(frozen=True, init=False, eq=False, repr=False)
class SemiCompetingRisks(Outcome):
    r"""Right-censored event times, one of which is terminal: after it none of the others can happen.

    Recurrence and death: :math:`T_j\le T_D` for a recurrence that happens, and :math:`T_j=\infty` for one
    that never does because death came first. With C shared by all times the data are
    :math:`Y_j=\min(T_j,T_D,C)` and :math:`\Delta_j=\mathbb 1\{T_j\le\min(T_D,C)\}`: the usual coding, where a
    subject without recurrence has the end of follow-up in both places.

    Parameters
    ----------
    time : array, (n, k)
        Observed times; that of the terminal event is the largest of a subject.
    event : array, (n, k)
        1 or True where the event was seen. Other times without an event equal the terminal one.
    terminal : int
        The coordinate of the terminal event; the last one by default.
    censoring_time : array or number, optional
        C where it is known for every subject, also for those with a terminal event.

    Notes
    -----
    A subject with the terminal event at y and without event j is *not* censored for event j:
    :math:`T_j=\infty` is known, and C is known to be at least y. Scores compare it with the forecast at every
    such C.

    See Also
    --------
    RightCensored : Event times of which none prevents another.
    censcore.compare : Compares forecasts of such times.
    censcore.CensoredEngression : Learns the joint distribution of such times.

    References
    ----------
    .. [1] J. P. Fine, H. Jiang and R. Chappell (2001). On semi-competing risks data. Biometrika 88, 907-919.

    Examples
    --------
    Recurrence at 2 and death at 5; death at 4 without recurrence; alive without recurrence at 6:

    >>> import censcore as cs
    >>> y = cs.SemiCompetingRisks([[2.0, 5.0], [4.0, 4.0], [6.0, 6.0]], [[1, 1], [0, 1], [0, 0]])
    >>> y
    SemiCompetingRisks(n=3, k=2, events=[1, 2], never=[1, 0], time 2 to 6)
    >>> y.never[:, 0]
    array([False,  True, False])
    """

    part_names: ClassVar[tuple[str, ...]] = ("time", "event", "_end")

    time: Array
    event: Array
    terminal: int
    _end: RightCensored

    #: There is no delayed entry, and the event times have the names that a comparison gives them.
    entry: ClassVar[None] = None
    has_delayed_entry: ClassVar[bool] = False
    names: ClassVar[None] = None

    def __init__(
        self, time: ArrayLike, event: ArrayLike, terminal: int = -1, censoring_time: ArrayLike | None = None
    ) -> None:
        y = RightCensored(time, event)
        if y.time.ndim != 2 or y.k < 2:
            raise InvalidInputError(
                f"time must have shape (n, k) with k of at least 2, one of them terminal; got {y.shape}."
            )
        terminal = as_coordinate(terminal, y.k, "terminal: the outcome")
        last = y.time[:, terminal, None]
        for bad, what in (
            (y.time > last, "A time exceeds that of the terminal event"),
            (~y.event & (y.time < last), "A time without event is earlier than the terminal time"),
        ):
            rows = np.unique(np.nonzero(to_numpy(bad))[0])
            if rows.size:
                raise InvalidInputError(
                    f"{what} in {name_subjects(rows)}. Expected an event at or before the end of follow-up, "
                    "or else that end itself in both places. Is the terminal event coordinate "
                    f"{terminal}?"
                )
        end = RightCensored(last[:, 0], y.event[:, terminal], censoring_time)
        self._set({"time": y.time, "event": y.event, "terminal": terminal, "_end": end})

    @classmethod
    def from_first_event(cls, y: RightCensored) -> SemiCompetingRisks:
        """From the times (n, 2) to "the event or death" and to death, in this order.

        Equal times with both events are a death without the event before it.

        Examples
        --------
        >>> import censcore as cs
        >>> y = cs.RightCensored([[2.0, 5.0], [4.0, 4.0]], [[1, 1], [1, 1]])
        >>> cs.SemiCompetingRisks.from_first_event(y).event[:, 0]
        array([ True, False])
        """
        if y.shape[1:] != (2,):
            raise InvalidInputError(f"Expected two times, the composite and the terminal one; got {y.shape}.")
        xp = namespace(y.time)
        alone = (y.time[:, 0] == y.time[:, 1]) & y.event[:, 1]
        event = xp.stack([y.event[:, 0] & ~alone, y.event[:, 1]], axis=1)
        return cls(y.time, event, 1, y.shared_censoring_time())

    @property
    def never(self) -> Array:
        """Whether an event is known never to happen, because the terminal event was first; (n, k)."""
        return ~self.event & self.event[:, self.terminal, None]

    @property
    def censored(self) -> Array:
        """Whether a time is censored, so that C = Y: not where the terminal event was seen; (n, k)."""
        return ~self.event & ~self.event[:, self.terminal, None]

    @property
    def known_time(self) -> Array:
        """The observed times, infinite for events that never happen; (n, k)."""
        xp = namespace(self.time)
        return xp.where(self.never, xp.full_like(self.time, np.inf), self.time)

    @property
    def censoring_time(self) -> Array:
        """C where it is known for every subject, else None."""
        return self._end.censoring_time

    def terminal_event(self) -> RightCensored:
        """The terminal event alone, (n,): all that informs about the censoring distribution."""
        return self._end

    def marginal(self, j: int) -> RightCensored:
        """Event ``j`` alone, (n,): one that the terminal event prevents is as an event of one cause.

        Examples
        --------
        >>> import censcore as cs
        >>> y = cs.SemiCompetingRisks([[2.0, 5.0], [4.0, 4.0], [6.0, 6.0]], [[1, 1], [0, 1], [0, 0]])
        >>> y.marginal(0)
        EventOfCause(n=3, events=1 (33.3 %), never=1, time 2 to 6)
        """
        j = as_coordinate(j, self.k, "The outcome")
        if j == self.terminal:
            return self._end
        return EventOfCause(self.time[:, j], self.event[:, j], self.never[:, j], self.censoring_time)

    def first(self) -> RightCensored:
        """Time to whichever event comes first, (n,)."""
        xp = namespace(self.time)
        return RightCensored(xp.min(self.time, axis=1), xp.any(self.event, axis=1), self.censoring_time)

    def last(self) -> EventOfCause:
        """Time by which all events have happened, (n,): never, where the terminal one is before another.

        Examples
        --------
        >>> import censcore as cs
        >>> y = cs.SemiCompetingRisks([[2.0, 5.0], [4.0, 4.0]], [[1, 1], [0, 1]]).last()
        >>> y.event, y.never
        (array([ True, False]), array([False,  True]))
        """
        return EventOfCause._of(self._end, namespace(self.time).all(self.event, axis=1))

    @property
    def k(self) -> int:
        """Number of event times per subject, the terminal one among them."""
        return int(self.time.shape[1])

    def censor_at(self, tau: ArrayLike) -> SemiCompetingRisks:
        """Follow-up cut at ``tau``: an event at exactly ``tau`` stays, anything later is censored there."""
        cut = RightCensored(self.time, self.event).censor_at(tau)
        return self._changed(time=cut.time, event=cut.event, _end=self._end.censor_at(tau))

    def __repr__(self) -> str:
        time, event, never = to_numpy(self.time), to_numpy(self.event), to_numpy(self.never)
        known = "" if self.censoring_time is None else ", C known"
        return (
            f"SemiCompetingRisks(n={len(self)}, k={self.k}, events={event.sum(axis=0).tolist()}, "
            f"never={never.sum(axis=0).tolist()}, time {time.min():g} to {time.max():g}{known})"
        )


class CauseTimes(SemiCompetingRisks):
    r"""The times :math:`T_1,\dots,T_m` of the causes: T for the cause of the event, never for the others.

    The first event of any cause takes the place of the terminal event: it decides what is known of C.
    """

    def __init__(self, risks: CompetingRisks) -> None:
        m, time, cause = risks.n_causes, to_numpy(risks.time), to_numpy(risks.causes)
        times, event = np.repeat(time[:, None], m, axis=1), cause[:, None] == np.arange(1, m + 1)
        self._set({"time": times, "event": event, "terminal": 0, "_end": risks.any_cause()})

    @property
    def never(self) -> Array:
        """Whether a cause is known never to happen, because another one was first; (n, m)."""
        return ~self.event & self._end.event[:, None]
