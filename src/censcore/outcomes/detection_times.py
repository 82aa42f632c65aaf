"""Detection times with the planned visits, from which drop-out is estimated."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from censcore._arrays import Array, as_float, namespace
from censcore.outcomes.right_censored import RightCensored
from censcore.outcomes.visits import as_visits


@dataclass(frozen=True, init=False, eq=False, repr=False)
class DetectionTimes(RightCensored):
    """Right-censored detection times, as ``IntervalCensored.detection`` gives them, and the planned visits.

    Subjects drop out between two visits of their own. So the censoring distribution is estimated on the scale
    of visit numbers: :math:`M` is the number of the last visit that a subject would attend, and censoring
    after visit k is :math:`M=k`. A subject is at risk of it if it was free of the event at visit k, and visit
    k + 1 was planned. ``time`` is the visit at which the event was found, or a time from the last visit that
    was attended on and before the next one that was planned; ``visits`` (K,) or (n, K) are the planned ones
    after the entry, padded by infinity.
    """

    part_names: ClassVar[tuple[str, ...]] = (*RightCensored.part_names, "visits")

    visits: Array

    def __init__(self, time: Array, event: Array, visits: Array) -> None:
        observed = RightCensored(time, event)
        self._set({**vars(observed), "visits": as_visits(visits, observed.time)})

    @property
    def attendance(self) -> RightCensored:
        """The number of the last visit attended; an event where no drop-out could follow.

        That is where the event was found, or all planned visits were attended.
        """
        xp, planned = namespace(self.time), namespace(self.time).isfinite(self.visits)
        number = xp.sum(planned & (self.visits <= self.time[:, None]), axis=1)
        ended = self.event | (number == xp.sum(planned, axis=1))
        return RightCensored(xp.astype(number, self.time.dtype), ended)

    @property
    def informs_censoring(self) -> Array:
        """Subjects that inform about drop-out: all but those without a planned visit."""
        return self.attendance.informs_censoring

    def flip(self) -> RightCensored:
        """The same data seen as an outcome of M, the number of the last visit attended."""
        return self.attendance.flip()

    def recorded(self) -> RightCensored:
        """The times that the data record: the visit that found the event, or the last one attended."""
        xp = namespace(self.time)
        attended = xp.where(self.visits <= self.time[:, None], self.visits, xp.zeros_like(self.visits))
        return RightCensored(xp.where(self.event, self.time, xp.max(attended, axis=1)), self.event)

    def censor_at(self, tau: Array) -> DetectionTimes:
        """Follow-up cut at ``tau``: later visits are left out."""
        xp, limit = namespace(self.time), as_float(tau, "tau", like=self.time)
        cut = super().censor_at(tau)
        within = self.visits <= (limit[:, None] if limit.ndim else limit)
        return self._made(cut, visits=xp.where(within, self.visits, xp.full_like(self.visits, float("inf"))))
