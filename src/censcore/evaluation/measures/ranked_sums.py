"""Sums over pairs of subjects by the order of their risks, in O(n log n)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

NUMBERS = 1 << 19  # of all columns that are summed at a time
SHORT = 8  # places up to which a block is summed pair by pair

Sums = tuple[np.ndarray, np.ndarray]


class RankedSums:
    r"""Sums over the pairs (i, j) with :math:`s_i\le p_j`: i starts at :math:`s_i`, j is at :math:`p_j`.

    A pair counts :math:`c_{ij}=\mathbb 1\{r_i>r_j\}+\tfrac12\mathbb 1\{r_i=r_j\}`.

    Starts are infinite where a subject is i in no pair, places minus infinity where it is j in none.
    """

    def __init__(self, risk: np.ndarray, starts: np.ndarray, places: np.ndarray) -> None:
        earlier, later = np.nonzero(starts < np.inf)[0], np.nonzero(places > -np.inf)[0]
        earlier, later = earlier[np.argsort(starts[earlier])], later[np.argsort(places[later])]
        s, p = starts[earlier], places[later]
        # of a start and a place that are equal the start comes first
        self._earlier = _Placed(earlier, np.arange(len(s)) + np.searchsorted(p, s, "left"))
        self._later = _Placed(later, np.arange(len(p)) + np.searchsorted(s, p, "right"))
        who = np.empty(len(earlier) + len(later), dtype=np.intp)
        for of in (self._earlier, self._later):
            who[of.at] = of.who
        self._merge = _Merge.by(risk[who])

    def over_later(self, values: np.ndarray) -> Sums:
        r""":math:`\sum_jc_{ij}v_j` and :math:`\sum_jv_j` for each i, both (n, p), of values (n, p)."""
        return _sums(self._merge, values, self._later, self._earlier)

    def over_earlier(self, values: np.ndarray) -> Sums:
        r""":math:`\sum_ic_{ij}v_i` and :math:`\sum_iv_i` for each j, both (n, p), of values (n, p).

        Backwards, and with the risks turned round, the earlier subjects come later.
        """
        merge = self._merge.backwards()
        last = len(merge.order) - 1
        earlier, later = (_Placed(who, last - at) for who, at in (self._earlier, self._later))
        return _sums(merge, values, earlier, later)

    def met_within(self, values: np.ndarray, groups: np.ndarray) -> np.ndarray:
        r""":math:`\sum_jv_j` over those j that are in the group of i, for each i, of values (n, p)."""
        sequence = np.empty((len(self._merge.order), values.shape[1] + 1))
        for of, own in ((self._earlier, 0.0), (self._later, values[self._later.who])):
            sequence[of.at, :-1], sequence[of.at, -1] = own, groups[of.who]
        order = np.argsort(sequence[:, -1], kind="stable")
        ordered = sequence[order, -1]
        after = _from_end(sequence[order, :-1].T)
        within = np.empty((len(order), values.shape[1]))
        within[order] = (after[:, :-1] - after[:, np.searchsorted(ordered, ordered, "right")]).T
        met = np.zeros(values.shape)
        met[self._earlier.who] = within[self._earlier.at]
        return met


class AllSums:
    """The same sums where every i meets every j, whatever their order in time: O(n) once risks are sorted."""

    def __init__(self, risk: np.ndarray, earlier: np.ndarray) -> None:
        self._order, begins, ends = _Merge.by(risk)
        self._earlier = earlier[:, None]
        self._below, self._up_to = np.empty((2, len(risk)), dtype=np.intp)
        self._below[self._order], self._up_to[self._order] = begins, ends

    def over_later(self, values: np.ndarray) -> Sums:
        """Sums over all j for each i."""
        won, met = self._sums(values)
        return np.where(self._earlier, won, 0.0), np.where(self._earlier, met, 0.0)

    def over_earlier(self, values: np.ndarray) -> Sums:
        """Sums over all i for each j."""
        lost, met = self._sums(np.where(self._earlier, values, 0.0))
        return met - lost, met

    def met_within(self, values: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Sums over all j in the group of i, for each i."""
        met = np.stack([np.bincount(groups, column)[groups] for column in values.T], axis=1)
        return np.where(self._earlier, met, 0.0)

    def _sums(self, values: np.ndarray) -> Sums:
        """For each subject the sums over those of lower risk, those of equal risk by half, and over all."""
        below = np.zeros((len(values) + 1, values.shape[1]))
        np.cumsum(values[self._order], axis=0, out=below[1:])
        return (below[self._below] + below[self._up_to]) / 2, below[-1]


class _Placed(NamedTuple):
    """Numbers of subjects, and where they are in the sequence."""

    who: np.ndarray
    at: np.ndarray


def _sums(merge: _Merge, values: np.ndarray, of: _Placed, to: _Placed) -> Sums:
    """Sums of values (n, p) of some subjects, over those after each of the others."""
    N, p = len(merge.order), values.shape[1]
    won, met = np.zeros((2, *values.shape))
    width = max(1, NUMBERS // max(N, 1))
    for first in range(0, p, width):
        columns = slice(first, first + width)
        V = np.zeros((values[:, columns].shape[1], N))
        V[:, of.at] = values[of.who, columns].T
        met[to.who, columns] = _from_end(V)[:, to.at].T
        won[to.who, columns] = merge.of_lower(V)[:, to.at].T
    return won, met


class _Merge(NamedTuple):
    """A sequence in the order of risk, places of equal risk ascending; where the equal ones begin and end."""

    order: np.ndarray
    begins: np.ndarray
    ends: np.ndarray

    @classmethod
    def by(cls, risk: np.ndarray) -> _Merge:
        """Of the risks at all places of the sequence, (N,)."""
        order, N = np.argsort(risk), len(risk)
        ranked = risk[order]
        number = np.cumsum(np.append(False, ranked[1:] > ranked[:-1]))[:N]
        if N and number[-1] < N - 1:  # the order of equal ones, faster than by a stable sort
            place = np.empty(N, dtype=np.intp)
            place[order] = number * N
            order = np.argsort(place + np.arange(N))
        edges = np.concatenate([[0], np.nonzero(np.diff(number))[0] + 1, [N]])
        return cls(order, edges[number], edges[number + 1])

    def backwards(self) -> _Merge:
        """The sequence from its end, with the risks turned round."""
        N = len(self.order)
        return _Merge(*(values[::-1] for values in (N - 1 - self.order, N - self.ends, N - self.begins)))

    def of_lower(self, V: np.ndarray) -> np.ndarray:
        """For each place the sum of the values (p, N) after it of lower risk, those of equal risk by half.

        In the order of risk the left half of the sequence meets its right half: each place in the left passes
        those in the right that are lower. The same holds within each half, and so on.
        """
        p, N = V.shape
        halvings = max(0, int(np.ceil(np.log2(max(N, 1) / SHORT))))
        size = max(1, -(-N // (1 << halvings)) << halvings)  # what is added at the end has the value zero
        place = np.concatenate([self.order, np.arange(N, size)])
        v, sums = np.zeros((2, p, size))
        v[:, :N] = V[:, self.order]
        if (self.ends - self.begins > 1).any():
            after = _from_end(v)
            sums[:, :N] = (after[:, :N] - after[:, self.ends]) / 2
        if (self.ends == N).all():  # all risks are equal
            return sums[:, :N]
        for _ in range(halvings):
            half = size // 2
            place = place.reshape(-1, size)
            right = place >= half
            passed = np.cumsum(np.where(right, v.reshape(p, *right.shape), 0.0), axis=2)
            sums += np.where(right, 0.0, passed).reshape(sums.shape)
            to = np.concatenate([np.flatnonzero(side).reshape(-1, half) for side in (~right, right)], axis=1)
            place, size = np.where(right, place - half, place).ravel()[to.ravel()], half
            v, sums = (np.take(values, to.ravel(), axis=1) for values in (v, sums))
        place = place.reshape(-1, size)
        v, within = v.reshape(p, *place.shape), sums.reshape(p, *place.shape)
        for d in range(1, size):
            within[:, :, d:] += (place[:, :-d] > place[:, d:]) * v[:, :, :-d]
        back = np.empty_like(sums)
        back[:, (place + size * np.arange(len(place))[:, None]).ravel()] = sums
        return back[:, :N]


def _from_end(values: np.ndarray) -> np.ndarray:
    """Sums of the values (p, N) from place 0, 1, ..., N on."""
    sums = np.zeros((len(values), values.shape[1] + 1))
    np.cumsum(values[:, ::-1], axis=1, out=sums[:, -2::-1])
    return sums
