"""Whether an event ends the follow-up of another one, as death does that of a relapse."""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np

from censcore._arrays import to_numpy
from censcore.exceptions import UnsupportedOutcomeError
from censcore.outcomes.right_censored import RightCensored

FEWEST = 5  # subjects, at least
SHARE = 0.5  # of those who have event j while event i is still to come, beyond what chance explains
DEVIATIONS = 4.0  # standard deviations by which they exceed what chance explains


class Ended(NamedTuple):
    """Event j ends the follow-up of event i: subjects ``rows`` have time i censored at exactly their event j.

    They are among those (``of``) who have event j while event i is still to come, of whom so many would be
    censored at that time by ``chance``.
    """

    i: int
    j: int
    rows: np.ndarray
    of: int
    chance: float


def ended_follow_up(y: RightCensored, mask: np.ndarray | None = None) -> Iterator[Ended]:
    r"""Pairs of events of which one ends the follow-up of the other, by their times alone.

    A censoring time that is independent of the event times coincides with one of them by chance only. Of the
    subjects :math:`R_u` with event j at u and event i still to come, the share censored for i at u is then
    that of all others who are followed for i to u, :math:`\lambda(u)=c_u/n_u`. This counts ties of rounded
    times, and an administrative end with event times of its own. With B coincidences among the R subjects,

    .. math:: E=\sum_u|R_u|\lambda(u),\qquad
        V=\sum_u\lambda(u)\{1-\lambda(u)\}\bigl(|R_u|+|R_u|^2/n_u\bigr),

    event j is taken to end the follow-up where :math:`B\ge 5`, :math:`B-E>4\sqrt V` and
    :math:`B-E\ge(R-E)/2`: death as the censoring of a relapse has B = R. The mask (n, k) is False where a
    time does not count.
    """
    time, event = to_numpy(y.time).reshape(len(y), -1), to_numpy(y.event).reshape(len(y), -1)
    counts = np.ones(time.shape, dtype=bool) if mask is None else mask
    for i in range(y.k):
        for j in range(y.k):
            used = counts[:, i] & counts[:, j] & (time[:, j] > 0)  # an event at zero is no evidence
            if i == j or not used.any():
                continue
            still = used & event[:, j] & ((time[:, i] > time[:, j]) | ~event[:, i])
            still &= time[:, i] >= time[:, j]
            tied = still & ~event[:, i] & (time[:, i] == time[:, j])
            if tied.sum() < FEWEST:
                continue
            chance, variance = _by_chance(time[:, i], event[:, i], counts[:, i], still, time[:, j])
            excess = tied.sum() - chance
            if excess > DEVIATIONS * np.sqrt(variance) and excess >= SHARE * (still.sum() - chance) > 0:
                yield Ended(i, j, np.nonzero(tied)[0], int(still.sum()), chance)


def _by_chance(
    time: np.ndarray, event: np.ndarray, counts: np.ndarray, still: np.ndarray, at: np.ndarray
) -> tuple[float, float]:
    """E and V. At a time that no other subject is followed to, chance may explain everything."""
    u, number = np.unique(at[still], return_inverse=True)
    R = np.bincount(number).astype(np.float64)
    censored, events = np.sort(time[counts & ~event]), np.sort(time[counts & event])
    followed = len(censored) - np.searchsorted(censored, u)
    followed += len(events) - np.searchsorted(events, u, "right")
    ended = np.searchsorted(censored, u, "right") - np.searchsorted(censored, u)
    mine = still & ~event & (time == at)
    ended = ended - np.bincount(np.searchsorted(u, at[mine]), minlength=len(u))
    n = (followed - R).clip(0)
    rate = np.where(n > 0, ended / np.where(n > 0, n, 1.0), 1.0)
    spread = rate * (1 - rate) * (R + R**2 / np.where(n > 0, n, 1.0))
    return float(R @ rate), float(spread.sum())


def check_no_event_ends_follow_up(
    y: RightCensored, mask: np.ndarray | None = None, names: tuple[str, ...] | None = None, of: str = "y"
) -> None:
    """An error where an event ends the follow-up of another, which no independent censoring time does.

    The mask (n, k) is False where a time does not count; the message has the names of the event times, and
    says whose outcome it is ``of``.
    """
    for ended in ended_follow_up(y, mask):
        raise UnsupportedOutcomeError(f"{of}: got {found_in_words(ended, names)}")


def found_in_words(ended: Ended, names: tuple[str, ...] | None = None) -> str:
    """The pattern, and what to do about it."""
    i, j = (f"event time {k}" if names is None else repr(names[k]) for k in (ended.i, ended.j))
    return (
        f"{i} censored at exactly the time of {j} in {len(ended.rows)} of the {ended.of} subjects who have "
        f"the latter while the former is still to come (chance explains {ended.chance:.2g}), expected a "
        f"censoring time that does not depend on the event times. It looks as if {j} was coded as censoring "
        f"of {i}, which gives wrong numbers. If {j} prevents {i}, as death prevents a relapse, pass "
        f"SemiCompetingRisks(y.time, y.event, terminal={ended.j}) in place of RightCensored: the same "
        "columns. compare(), also with cv=, Censoring, energy_score and CensoredEngression take it."
    )
