"""The event time of one of several causes, with the subjects that will never have it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from censcore._arrays import Array, ArrayLike, to_numpy
from censcore._validation import name_subjects
from censcore.exceptions import InvalidInputError
from censcore.outcomes.right_censored import RightCensored


@dataclass(frozen=True, init=False, eq=False, repr=False)
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

    part_names: ClassVar[tuple[str, ...]] = (*RightCensored.part_names, "_never")
    _never: Array

    def __init__(
        self, time: ArrayLike, event: ArrayLike, never: ArrayLike, censoring_time: ArrayLike | None = None
    ) -> None:
        observed = RightCensored(time, event, None)
        other = RightCensored(time, never, None).event
        both = to_numpy(observed.event & other)
        if both.any():
            raise InvalidInputError(
                "An event cannot be of this cause and of another one; it is both in "
                f"{name_subjects(np.nonzero(both)[0])}."
            )
        if observed.time.ndim > 1:
            raise InvalidInputError(f"An outcome of one cause has shape (n,); got {observed.shape}.")
        followed = RightCensored(observed.time, observed.event | other, censoring_time)
        self._set(vars(self._of(followed, observed.event)))

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
        return RightCensored._made(self, event=self.event | self._never)

    @classmethod
    def _of(cls, followed: RightCensored, event: Array) -> EventOfCause:
        """From a valid outcome of any cause and the events of this one."""
        return cls._made(followed, event=event, _never=followed.event & ~event)

    def censor_at(self, tau: ArrayLike) -> EventOfCause:
        """Follow-up cut at ``tau``: events of any cause at exactly ``tau`` stay, later ones are censored."""
        cut = self.any_cause().censor_at(tau)
        return self._of(cut, cut.event & self.event)

    @property
    def informs_censoring(self) -> Array:
        """Subjects that inform about C: all but those with an event at time zero."""
        return self.any_cause().informs_censoring

    def flip(self) -> RightCensored:
        """The same data seen as an outcome of C: events of all causes come first."""
        return self.any_cause().flip()
