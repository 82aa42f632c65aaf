"""Semi-competing risks without covariates: the Aalen-Johansen estimate of which events have happened."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Ensemble
from censcore.estimators.covariates import check_weights
from censcore.outcomes import SemiCompetingRisks

MEMBERS = 1024  # the estimated probabilities are hit to about one in so many


def event_histories(X: Any, y: SemiCompetingRisks, X_test: Any = None, sample_weight: Any = None) -> Ensemble:
    """The forecast of all subjects by the transitions between the sets of events that have happened.

    The estimated shares of these sets, and with them the distribution of each event time, are consistent for
    any dependence between the times [1]_; the joint distribution is that of a Markov process with these
    transitions. X and X_test are ignored, so that a cross-validation calls it as any other model.

    References
    ----------
    .. [1] Datta, S. and Satten, G. A. (2001). Validity of the Aalen-Johansen estimators of stage occupation
       probabilities and Nelson-Aalen estimators of integrated transition hazards for non-Markov models.
       Statistics and Probability Letters 55, 403-411.
    """
    return Ensemble(draw_histories(y, check_weights(sample_weight, len(y)))[None])


def draw_histories(
    y: SemiCompetingRisks, weight: np.ndarray, members: int = MEMBERS, seed: int = 0
) -> np.ndarray:
    """Draws (members, k) of all event times from the estimated transitions; infinite where none is seen.

    The state of a subject is the set of its events so far. At an event time u a member in state s moves to s'
    with probability :math:`d_{ss'}(u)/n_s(u)`, the share of the subjects at risk in s who do. Members that
    move are chosen at random, their number is not: what is left of the expected number is carried to the next
    time, so that the shares of states are those of Aalen and Johansen up to 1 / members.
    """
    used = weight > 0
    time, event, weight = to_numpy(y.time)[used], to_numpy(y.event)[used], weight[used]
    rng, k = np.random.default_rng(seed), y.k
    drawn, state = np.full((members, k), np.inf), np.zeros(members, dtype=np.int64)
    count = np.bincount(state, minlength=2**k)
    of_subject, at_risk = np.zeros(len(time), dtype=np.int64), np.zeros(2**k)
    at_risk[0] = weight.sum()
    carried: dict[tuple[int, int], float] = {}
    leaving = np.argsort(time[:, y.terminal], kind="stable")
    ends, left = time[leaving, y.terminal], 0
    for u, subjects, events in _by_time(time, event):
        gone = leaving[left : (last := int(np.searchsorted(ends, u)))]
        np.subtract.at(at_risk, of_subject[gone], weight[gone])
        left = last
        moving, place = np.unique(subjects, return_inverse=True)
        before = of_subject[moving]
        after = before.copy()
        np.bitwise_or.at(after, place, 1 << events)
        moved = state
        for s, target in sorted(set(zip(before.tolist(), after.tolist(), strict=True))):
            share = weight[moving[(before == s) & (after == target)]].sum() / at_risk[s]
            expected = carried.get((s, target), 0.0) + share * count[s]
            number = int(expected + 1e-9)
            carried[s, target] = expected - number
            if number:
                movers = rng.permutation(np.nonzero((state == s) & (moved == s))[0])[:number]
                drawn[np.ix_(movers, np.nonzero((target & ~s) >> np.arange(k) & 1)[0])] = u
                moved = moved.copy()
                moved[movers] = target
        if moved is not state:
            state, count = moved, np.bincount(moved, minlength=2**k)
        np.subtract.at(at_risk, before, weight[moving])
        np.add.at(at_risk, after, weight[moving])
        of_subject[moving] = after
    return drawn


def _by_time(time: np.ndarray, event: np.ndarray) -> Iterator[tuple[float, np.ndarray, np.ndarray]]:
    """The event times, ascending, each with the subjects and the numbers of the events that happen there."""
    subjects, events = np.nonzero(event)
    order = np.argsort(time[subjects, events], kind="stable")
    subjects, events = subjects[order], events[order]
    distinct, first = np.unique(time[subjects, events], return_index=True)
    yield from zip(distinct, np.split(subjects, first)[1:], np.split(events, first)[1:], strict=True)
