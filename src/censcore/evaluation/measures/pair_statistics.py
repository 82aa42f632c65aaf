r"""Shares of pairs: their value, what every subject contributes to it, and how it moves with G.

Concordance and the time-dependent AUC are both

.. math::
    \theta=\frac{\sum_{i,j}w_iw_j\,a_i\,q_{ij}\,c_{ij}}{\sum_{i,j}w_iw_j\,a_i\,q_{ij}},\qquad
    c_{ij}=\mathbb 1\{r_i>r_j\}+\tfrac12\mathbb 1\{r_i=r_j\},

over an earlier subject i with risk :math:`r_i` and inverse-probability weight :math:`a_i`, and a later
subject j, seen to be later than i with the inverse-probability weight :math:`q_{ij}`. No subject is compared
with itself, and copies of one subject are not compared with each other, so that weights w which count
subjects give the value of the replicated data.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from censcore._arrays import as_float, common_rows, searchsorted, to_numpy
from censcore._validation import as_number, check_kind, name_subjects
from censcore.distributions import Distribution
from censcore.estimators.risk_sets import entries_of
from censcore.evaluation.inference.estimates import Estimate
from censcore.evaluation.measures.ranked_sums import AllSums, RankedSums, Sums
from censcore.exceptions import InvalidInputError, PositivityError
from censcore.outcomes import RightCensored
from censcore.scores import clustered_mean
from censcore.scores.inputs.known_at import KnownAt, known_at
from censcore.scores.inputs.scoring_inputs import ScoringInputs, without_forecast

ROUNDING = 1e-12

Moved = tuple[np.ndarray, np.ndarray]
"""Times (n,) up to which a hazard of C counts, and by how much for each load, (n, p)."""


class Pairs(ABC):
    """Pairs (i, j) of an earlier and a later subject, with their weights."""

    #: a_i, zero for subjects that are earlier in no pair, (n,).
    earlier: np.ndarray
    #: The weight of a pair involves G of the earlier subject at all times u < time[i], (n,).
    time: np.ndarray
    #: Entries (n,): a weight involves G of a subject at times u > entry only. None where there are none.
    entry: np.ndarray | None = None

    def over_later(self, values: np.ndarray) -> Sums:
        """Sums over j of q_ij c_ij v_j and of q_ij v_j, for each i, both (n, p), of values (n, p)."""
        return self.both_ways(values, values[:, :0])[0]

    def over_earlier(self, values: np.ndarray) -> Sums:
        """Sums over i of v_i q_ij c_ij and of v_i q_ij, for each j, both (n, p), of values (n, p)."""
        return self.both_ways(values[:, :0], values)[1]

    @abstractmethod
    def both_ways(self, later: np.ndarray, earlier: np.ndarray) -> tuple[Sums, Sums]:
        """Sums over the later subjects and sums over the earlier ones."""

    @abstractmethod
    def met_within(self, values: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Sums of q_ij v_j over those j that are in the group of i, for each i, (n,), of values (n,)."""

    @abstractmethod
    def moved_by_later(self, of: PairStatistic, loads: np.ndarray) -> list[Moved]:
        r"""The sums of :math:`w_iw_ja_iq_{ij}(c_{ij}-\theta)v_j` by the time up to which G of j counts."""


@dataclass(frozen=True, eq=False)
class ProductPairs(Pairs):
    r"""Pairs whose weight is a product, of the earlier subject :math:`a_i` and the later one :math:`b_j`."""

    time: np.ndarray  #: observed times, (n,)
    earlier: np.ndarray  #: a, zero for subjects that are i in no pair, (n,)
    later: np.ndarray  #: b, (n, 1)
    sums: RankedSums | AllSums  #: which subjects meet, and their order by risk
    ends: np.ndarray  #: the weight of the later subject involves its G at times u < ends[j]
    entry: np.ndarray | None = None

    def both_ways(self, later: np.ndarray, earlier: np.ndarray) -> tuple[Sums, Sums]:
        """The weight of the later subject is a factor of each pair."""
        won, met = self.sums.over_earlier(earlier)
        return self.sums.over_later(self.later * later), (self.later * won, self.later * met)

    def met_within(self, values: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """The weight of the later subject is a factor of each pair."""
        return self.sums.met_within(self.later * values[:, None], groups)[:, 0]

    def moved_by_later(self, of: PairStatistic, loads: np.ndarray) -> list[Moved]:
        """The weight of the later subject does not depend on the earlier one."""
        if of.pairs is self:
            return [(self.ends, (of.weight * of.excess_later)[:, None] * loads)]
        won, met = self.over_earlier((of.weight * self.earlier)[:, None])
        return [(self.ends, of.weight[:, None] * (won - of.value * met) * loads)]


class PairsTogether(Pairs):
    """Pairs of several kinds, of the same earlier subjects."""

    def __init__(self, kinds: Sequence[Pairs]) -> None:
        self.kinds = list(kinds)
        first = self.kinds[0]
        self.earlier, self.time, self.entry = first.earlier, first.time, first.entry

    def both_ways(self, later: np.ndarray, earlier: np.ndarray) -> tuple[Sums, Sums]:
        """Both sums in one pass over each kind."""
        both = [kind.both_ways(later, earlier) for kind in self.kinds]
        return _added([sums for sums, _ in both]), _added([sums for _, sums in both])

    def met_within(self, values: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Sums over the later subjects of all kinds."""
        return np.sum([kind.met_within(values, groups) for kind in self.kinds], axis=0)

    def moved_by_later(self, of: PairStatistic, loads: np.ndarray) -> list[Moved]:
        """What G of the later subjects of all kinds moves."""
        return [moved for kind in self.kinds for moved in kind.moved_by_later(of, loads)]


def _added(sums: list[Sums]) -> Sums:
    return np.sum([won for won, _ in sums], axis=0), np.sum([met for _, met in sums], axis=0)


class Jumps:
    """Ascending times u, (J,), at which the estimated distribution of C jumps."""

    def __init__(self, u: np.ndarray) -> None:
        self.u = u
        self._passed: dict[int, tuple[np.ndarray, np.ndarray]] = {}

    def sums_beyond(self, ends: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Sums of the values (n, p) of those with u < end, (J, p); many values have the same ends."""
        if id(ends) not in self._passed:
            passed = searchsorted(self.u[None, :], ends[None, :], "left")[0]
            self._passed[id(ends)] = ends, passed  # the reference to the array keeps its id unique
        passed = self._passed[id(ends)][1]
        sums = [np.bincount(passed, column, len(self.u) + 1)[:0:-1] for column in values.T]
        return np.cumsum(sums, axis=1)[:, ::-1].T


@dataclass(frozen=True, eq=False)
class PairStatistic:
    r"""A share of pairs, and what each subject contributes to its error, before its weight.

    That is the Hajek projection of the ratio of U-statistics,
    :math:`\sum_j w_j\{K_{ij}(c_{ij}-\theta)+K_{ji}(c_{ji}-\theta)\}/\sqrt{DD_{-g}}` with
    :math:`K_{ij}=a_iq_{ij}` and D the denominator with and without the pairs of the group g of i, which is i
    alone where subjects are independent. Its squares have the expectation of the variance to the second
    order (for the AUC this is DeLong's estimator), which matters where there are few events.
    """

    value: float  #: NaN without any pair
    deviations: np.ndarray  #: (n,)
    pairs: Pairs
    weight: np.ndarray
    excess: np.ndarray
    excess_later: np.ndarray
    total: float

    def derivatives(self, loads: np.ndarray, jumps: Jumps) -> np.ndarray:
        r"""A(u) for hazards of C that move together, (p, J).

        If subject i has :math:`\log\{1-d\Lambda_C(u\mid x_i)\}` raised by :math:`v_i\,\epsilon` at the time
        u, the value rises by :math:`A(u)\,\epsilon`:

        .. math::
            A(u)=-\frac1D\sum_{i,j}w_iw_ja_iq_{ij}(c_{ij}-\theta)
                 \left[v_i\mathbb 1\{u<y_i\}+v_j\mathbb 1\{u<\text{end of }q_{ij}\}\right],

        where times u up to the entry of a subject do not count for it. ``loads`` (n, p) are v: the
        indicator of those who share an estimated curve, or relative hazards.
        """
        moved = [(self.pairs.time, (self.weight * self.excess)[:, None] * loads)]
        moved += self.pairs.moved_by_later(self, loads)
        if self.pairs.entry is not None:
            both = (self.weight * (self.excess + self.excess_later))[:, None] * loads
            moved.append((np.nextafter(self.pairs.entry, np.inf), -both))
        return -np.sum([jumps.sums_beyond(*part) for part in moved], axis=0).T / self.total


def pair_statistic(pairs: Pairs, weight: np.ndarray, groups: np.ndarray | None = None) -> PairStatistic:
    """The share of pairs under weights (n,) that sum to one, of subjects with these numbers of groups."""
    a = pairs.earlier
    later, earlier = pairs.both_ways(weight[:, None], (weight * a)[:, None])
    won, met = (a * sums[:, 0] for sums in later)
    total = float(weight @ met)
    if not total > 0:
        nothing = np.full(len(weight), np.nan)
        return PairStatistic(float("nan"), nothing, pairs, weight, nothing, nothing, float("nan"))
    theta = float(weight @ won) / total
    excess = won - theta * met
    won_later, met_later = (sums[:, 0] for sums in earlier)
    excess_later = won_later - theta * met_later
    of_group = weight * (met + met_later)
    if groups is not None:  # pairs within a group were counted from both sides
        of_group = of_group - weight * a * pairs.met_within(weight, groups)
        of_group = np.bincount(groups, of_group)[groups]
    others = total - of_group
    # where all pairs have one subject, or group, in common, or all are won or lost, the error is unknown
    known = (others > ROUNDING * total) & (ROUNDING < theta < 1 - ROUNDING)
    others = np.where(known, others, np.nan)
    deviations = (excess + excess_later) / (np.sqrt(total) * np.sqrt(others))
    return PairStatistic(theta, deviations, pairs, weight, excess, excess_later, total)


def estimate_of_pairs(
    pairs: Pairs, subjects: np.ndarray, weight: np.ndarray, groups: np.ndarray | None
) -> Estimate:
    """The share with its influence per subject or group; the weights (n,) are zero for other subjects."""
    statistic = pair_statistic(pairs, weight[subjects], None if groups is None else groups[subjects])
    deviations = np.zeros((len(weight), 1))
    deviations[subjects, 0] = statistic.deviations
    return Estimate(np.array([statistic.value]), clustered_mean(deviations, weight, groups)[1])


def checked_share(share: float, until: str) -> float:
    """``share``, or an error where no pair of subjects can be compared."""
    if np.isnan(share):
        raise InvalidInputError(
            f"Up to {until} no pair of subjects can be compared: got no event followed by a subject who "
            "survives it, expected at least one. Choose a later time, or more subjects."
        )
    return share


def share_of_pairs(pairs: Pairs, weight: np.ndarray) -> float:
    """The value alone, NaN without any pair."""
    won, met = pairs.over_later(weight[:, None])
    share = weight * pairs.earlier
    total = float(share @ met[:, 0])
    return float(share @ won[:, 0]) / total if total > 0 else float("nan")


# ---- checks ------------------------------------------------------------------------------------------


def check_risk(risk: Any, n: int, columns: int | None = None) -> np.ndarray:
    """Risks without NaN: (n,), or (n, columns) where columns are asked for."""
    values = to_numpy(as_float(risk, "risk")).astype(np.float64)
    shapes = [(n,)] if columns is None else [(n,), (n, columns)]
    if values.shape not in shapes:
        expected = " or ".join(str(shape) for shape in shapes)
        raise InvalidInputError(
            f"risk must have one number per subject: got shape {values.shape}, expected {expected}."
        )
    missing = np.nonzero(np.isnan(values.reshape(n, -1)).any(axis=1))[0]
    if missing.size:
        raise InvalidInputError(f"risk must not be NaN: got NaN in {name_subjects(missing)}.")
    return values if columns is None else np.broadcast_to(values.reshape(n, -1), (n, columns))


def check_horizon(horizon: Any) -> float:
    """The horizon as a number, infinite for None."""
    if horizon is None:
        return np.inf
    return as_number(horizon, "horizon", above=0, infinite=True)


@dataclass(frozen=True, eq=False)
class Followed:
    """Some subjects of an outcome and their censoring distribution, checked against each other.

    All of this is shared by the forecasts and, except for the weights, by all times.
    """

    y: RightCensored
    censoring: Distribution
    subjects: np.ndarray

    @cached_property
    def inputs(self) -> ScoringInputs:
        """Outcomes and censoring distribution of these subjects, without a forecast."""
        y, C = self.y, self.censoring
        check_kind(C, "censoring", Distribution, "the distribution of C, such as Uniform(0, 5)")
        common_rows(outcome=len(y), censoring=len(C))
        outcome = y if len(self.subjects) == len(y) else y.take(self.subjects)
        return without_forecast(outcome, C if len(C) in (1, len(self.subjects)) else C.take(self.subjects))

    @cached_property
    def time(self) -> np.ndarray:
        """Observed times, (n,)."""
        return to_numpy(self.inputs.y.time)

    @cached_property
    def entry(self) -> np.ndarray | None:
        """Entries, (n,); None where there are none."""
        return entries_of(self.inputs.y)

    @cached_property
    def order(self) -> tuple[np.ndarray, np.ndarray]:
        """The place of each in the order of time, events first, and the first place after tied events."""
        time, event = self.time, to_numpy(self.inputs.y.event)
        order = np.lexsort((~event, time))
        place = np.empty(len(order))
        place[order] = np.arange(len(order))
        ranked, events = time[order], np.sort(time[event])
        tied = np.searchsorted(events, ranked, "right") - np.searchsorted(events, ranked, "left")
        starts = np.empty(len(order))
        starts[order] = np.searchsorted(ranked, ranked, "left") + tied
        return place, starts

    def status_at(self, t: float) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Inverse-probability weights of "event by t" and of "no event by t", computed once.

        The last are the times before which G is in the weight of a subject without the event: the jump at t
        is, of a subject followed beyond t, and what comes before another event by t.
        """
        if t not in self._status:
            event, free = (to_numpy(weight)[:, 0] for weight in self.known_at(t, "the time").weights())
            self._status[t] = event, free, np.where(self.time > t, np.nextafter(t, np.inf), self.time)
        return self._status[t]

    @cached_property
    def _status(self) -> dict[float, tuple[np.ndarray, np.ndarray, np.ndarray]]:
        return {}

    def known_at(self, t: float, what: str, before: bool = False) -> KnownAt:
        """What is known at t; an error of weights names subjects of the whole sample."""
        y, C, at = self.inputs.y, self.inputs.C, self.inputs.xp.full_like(self.inputs.time[:1], t)
        try:
            return known_at(y, C, at, "ipcw", before=before)
        except PositivityError as error:
            bad, end = self.subjects[list(error.rows)], error.horizon or 0.0
            raise PositivityError(
                f"The censoring distribution gives {name_subjects(bad)} no chance to be followed up to "
                f"{what} {t:g}, so that no weight can represent them. Pass a horizon (or times) below "
                f"{end:g}.",
                rows=bad.tolist(),
                horizon=end,
            ) from None
