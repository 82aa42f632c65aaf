r"""Pairs with a subject who never has the event, since one of another cause came first.

For one of several causes, :math:`T_j=\infty` after an event of another one. So a subject i with the event at
:math:`y_i` is compared with all subjects who have it later or never:

- those still followed at :math:`y_i`, with the weight :math:`1/G(y_i-\mid x_j)`, as for one event time,
- and those with another event at :math:`y_j<y_i`, who are known to be later because :math:`C_j\ge y_j`: their
  weight is :math:`1/G(y_j-\mid x_j)`.

References
----------
Wolbers, Blanche, Koller, Witteman & Gerds (2014). Concordance for prognostic models with competing risks.
Biostatistics 15, 526-539.

Blanche, Dartigues & Jacqmin-Gadda (2013). Estimating and comparing time-dependent areas under receiver
operating characteristic curves for censored event times with competing risks. Statistics in Medicine 32,
5381-5397.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from censcore.evaluation.measures.pair_statistics import Moved, Pairs, Sums, sums_of_lower

__all__ = ["PairsPassed", "PairsTogether", "ranked_after"]


class PairsTogether(Pairs):
    """Pairs of several kinds, of the same earlier subjects."""

    def __init__(self, kinds: Sequence[Pairs]) -> None:
        self.kinds = list(kinds)
        first = self.kinds[0]
        self.earlier, self.ends_earlier, self.entry = first.earlier, first.ends_earlier, first.entry

    def over_later(self, values: np.ndarray) -> Sums:
        """Sums over the later subjects of all kinds."""
        return _added([kind.over_later(values) for kind in self.kinds])

    def over_earlier(self, values: np.ndarray) -> Sums:
        """Sums over the earlier subjects of all kinds."""
        return _added([kind.over_earlier(values) for kind in self.kinds])

    def both_ways(self, later: np.ndarray, earlier: np.ndarray) -> tuple[Sums, Sums]:
        """Both sums in one pass over each kind."""
        both = [kind.both_ways(later, earlier) for kind in self.kinds]
        return _added([sums for sums, _ in both]), _added([sums for _, sums in both])

    def moved_by_later(self, weight: np.ndarray, loads: np.ndarray, value: float) -> list[Moved]:
        """What G of the later subjects of all kinds moves."""
        return [moved for kind in self.kinds for moved in kind.moved_by_later(weight, loads, value)]


def _added(parts: list[Sums]) -> Sums:
    return np.sum([won for won, _ in parts], axis=0), np.sum([met for _, met in parts], axis=0)


class PairsPassed(Pairs):
    """An event at y_i, and a subject with an event of another cause at an earlier y_j: O(n log n).

    Parameters
    ----------
    time, risk : array, (n,)
        Observed times and risks.
    earlier : array, (n,)
        The weights a_i of the events that count, zero for all other subjects.
    later : array, (n,)
        The weights of subjects with another event, zero for all others.
    """

    by_later = True

    def __init__(self, time: np.ndarray, risk: np.ndarray, earlier: np.ndarray, later: np.ndarray) -> None:
        self.earlier, self.later = earlier, later
        self.counted, passed = earlier > 0, later > 0
        self.ends_earlier = np.where(self.counted, time, 0.0)
        self.ends_later = np.where(passed, time, 0.0)
        # from the last time to the first; an event comes after all others at its time, which are not passed
        self.order = np.lexsort((self.counted, -time))
        self.rank = np.unique(risk, return_inverse=True)[1].reshape(-1)

    def over_later(self, values: np.ndarray) -> Sums:
        """Sums over those who were passed, for each event."""
        weighted = self.later[:, None] * values
        won, met = ranked_after(self.order, self.rank, weighted)
        event = self.counted[:, None]
        return np.where(event, won, 0.0), np.where(event, met, 0.0)

    def over_earlier(self, values: np.ndarray) -> Sums:
        """Sums over the events that come later in time, for each who was passed."""
        events = np.where(self.counted[:, None], values, 0.0)
        lost, met = ranked_after(self.order[::-1], self.rank, events)
        return self.later[:, None] * (met - lost), self.later[:, None] * met


def ranked_after(order: np.ndarray, rank: np.ndarray, values: np.ndarray) -> Sums:
    """Sums over all that come after each in the order: of lower rank (equal ones count half), and of any."""
    ordered, ranked = values[order], rank[order]
    after = np.zeros(values.shape)
    after[:-1] = np.cumsum(ordered[:0:-1], axis=0)[::-1]
    lower, higher = sums_of_lower(ranked, ordered), sums_of_lower(-ranked, ordered)
    won, met = np.empty(values.shape), np.empty(values.shape)
    won[order], met[order] = (after + lower - higher) / 2, after
    return won, met
