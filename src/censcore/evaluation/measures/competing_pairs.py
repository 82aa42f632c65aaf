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

from censcore.evaluation.measures.pair_statistics import Moved, Pairs, PairStatistic
from censcore.evaluation.measures.ranked_sums import RankedSums, Sums

__all__ = ["PairsPassed", "PairsTogether"]


class PairsTogether(Pairs):
    """Pairs of several kinds, of the same earlier subjects."""

    def __init__(self, kinds: Sequence[Pairs]) -> None:
        self.kinds = list(kinds)
        first = self.kinds[0]
        self.earlier, self.time, self.entry = first.earlier, first.time, first.entry

    def over_later(self, values: np.ndarray) -> Sums:
        """Sums over the later subjects of all kinds."""
        return _added([kind.over_later(values) for kind in self.kinds])

    def over_earlier(self, values: np.ndarray) -> Sums:
        """Sums over the earlier subjects of all kinds."""
        return _added([kind.over_earlier(values) for kind in self.kinds])

    def both_ways(self, later: np.ndarray, earlier: np.ndarray) -> tuple[Sums, Sums]:
        """Both sums in one pass over each kind."""
        found = [kind.both_ways(later, earlier) for kind in self.kinds]
        return _added([sums for sums, _ in found]), _added([sums for _, sums in found])

    def moved_by_later(self, of: PairStatistic, loads: np.ndarray) -> list[Moved]:
        """What G of the later subjects of all kinds moves."""
        return [moved for kind in self.kinds for moved in kind.moved_by_later(of, loads)]


def _added(found: list[Sums]) -> Sums:
    return np.sum([won for won, _ in found], axis=0), np.sum([met for _, met in found], axis=0)


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

    def __init__(self, time: np.ndarray, risk: np.ndarray, earlier: np.ndarray, later: np.ndarray) -> None:
        self.earlier, self.time, self.later = earlier, time, later[:, None]
        # backwards in time: from the first place after y_i on
        starts = np.where(earlier > 0, np.nextafter(-time, np.inf), np.inf)
        self.sums = RankedSums(risk, starts, np.where(later > 0, -time, -np.inf))

    def over_later(self, values: np.ndarray) -> Sums:
        """Sums over those who were passed, for each event."""
        return self.sums.over_later(self.later * values)

    def over_earlier(self, values: np.ndarray) -> Sums:
        """Sums over the events that come later in time, for each who was passed."""
        won, met = self.sums.over_earlier(values)
        return self.later * won, self.later * met

    def moved_by_later(self, of: PairStatistic, loads: np.ndarray) -> list[Moved]:
        """The weight of a subject who was passed counts G up to its own time."""
        won, met = self.over_earlier((of.weight * self.earlier)[:, None])
        return [(self.time, of.weight[:, None] * (won - of.value * met) * loads)]
