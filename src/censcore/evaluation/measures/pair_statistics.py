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
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from censcore._arrays import as_float, common_rows, to_numpy
from censcore._validation import as_number, name_subjects
from censcore.distributions import Distribution
from censcore.evaluation.inference.estimates import Estimate
from censcore.exceptions import InvalidInputError, PositivityError
from censcore.outcomes import RightCensored
from censcore.scores.inputs import ScoringInputs, without_forecast

__all__ = [
    "ROUNDING",
    "Moved",
    "PairStatistic",
    "Pairs",
    "check_horizon",
    "check_risk",
    "estimate_of_pairs",
    "followed",
    "naming",
    "pair_statistic",
    "share_of_pairs",
    "sums_of_lower",
]

ROUNDING = 1e-12

Sums = tuple[np.ndarray, np.ndarray]
Moved = tuple[np.ndarray, np.ndarray]
"""Times (n,) up to which a hazard of C counts, and by how much for each load, (n, p)."""


class Pairs(ABC):
    """Pairs (i, j) of an earlier and a later subject, with their weights."""

    #: a_i, zero for subjects that are earlier in no pair, (n,).
    earlier: np.ndarray
    #: The weight of a pair involves G of the earlier subject at all times u < ends_earlier[i], and G of the
    #: later subject at all times u < ends_later[i], both (n,), or u < ends_later[j] if ``by_later``.
    ends_earlier: np.ndarray
    ends_later: np.ndarray
    by_later: ClassVar[bool] = False
    #: Entries (n,): a weight involves G of a subject at times u > entry only. None where there are none.
    entry: np.ndarray | None = None

    @abstractmethod
    def over_later(self, values: np.ndarray) -> Sums:
        """Sums over j of q_ij c_ij v_j and of q_ij v_j, for each i, both (n, p), of values (n, p)."""

    @abstractmethod
    def over_earlier(self, values: np.ndarray) -> Sums:
        """Sums over i of v_i q_ij c_ij and of v_i q_ij, for each j, both (n, p), of values (n, p)."""

    def both_ways(self, later: np.ndarray, earlier: np.ndarray) -> tuple[Sums, Sums]:
        """Sums over the later subjects and sums over the earlier ones."""
        return self.over_later(later), self.over_earlier(earlier)

    def moved_by_later(self, weight: np.ndarray, loads: np.ndarray, value: float) -> list[Moved]:
        r"""The sums of :math:`w_iw_ja_iq_{ij}(c_{ij}-\theta)v_j` with the same end of :math:`q_{ij}`."""
        a = (weight * self.earlier)[:, None]
        if self.by_later:
            won, met = self.over_earlier(a)
            return [(self.ends_later, weight[:, None] * (won - value * met) * loads)]
        won, met = self.over_later(weight[:, None] * loads)
        return [(self.ends_later, a * (won - value * met))]


@dataclass(frozen=True, eq=False)
class PairStatistic:
    r"""A share of pairs.

    Attributes
    ----------
    value : float
        The share, NaN without any pair.
    deviations : array, (n,)
        What each subject contributes to the error, before its weight: the Hajek projection of the ratio of
        U-statistics,
        :math:`\sum_j w_j\{K_{ij}(c_{ij}-\theta)+K_{ji}(c_{ji}-\theta)\}/\sqrt{DD_{-i}}` with
        :math:`K_{ij}=a_iq_{ij}` and D the denominator with and without the pairs of i. Its squares have the
        expectation of the variance to the second order (for the AUC this is DeLong's estimator), which
        matters where there are few events.
    """

    value: float
    deviations: np.ndarray
    pairs: Pairs
    weight: np.ndarray
    excess: np.ndarray
    excess_later: np.ndarray
    total: float

    def derivatives(self, loads: np.ndarray, times: Sequence[np.ndarray]) -> list[np.ndarray]:
        r"""A(u) for hazards of C that move together: one array for each column of loads.

        If subject i has :math:`\log\{1-d\Lambda_C(u\mid x_i)\}` raised by :math:`v_i\,\epsilon` at the time
        u, the value rises by :math:`A(u)\,\epsilon`:

        .. math::
            A(u)=-\frac1D\sum_{i,j}w_iw_ja_iq_{ij}(c_{ij}-\theta)
                 \left[v_i\mathbb 1\{u<y_i\}+v_j\mathbb 1\{u<\text{end of }q_{ij}\}\right],

        where times u up to the entry of a subject do not count for it.

        Parameters
        ----------
        loads : array, (n, p)
            v: the indicator of those who share an estimated curve, or relative hazards.
        times : p arrays
            The times u of each column.
        """
        earlier = (self.weight * self.excess)[:, None] * loads
        later = self.pairs.moved_by_later(self.weight, loads, self.value)
        moved = [(self.pairs.ends_earlier, earlier), *later]
        if self.pairs.entry is not None:
            both = (self.weight * (self.excess + self.excess_later))[:, None] * loads
            moved.append((np.nextafter(self.pairs.entry, np.inf), -both))
        return [
            -np.sum([_sums_beyond(ends, values[:, p], u) for ends, values in moved], axis=0) / self.total
            for p, u in enumerate(times)
        ]


def pair_statistic(pairs: Pairs, weight: np.ndarray) -> PairStatistic:
    """The share of pairs under weights (n,) that sum to one."""
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
    others = total - weight * (met + met_later)
    # where all pairs have one subject in common, or all are won or lost, nothing is known of the error
    known = (others > ROUNDING * total) & (ROUNDING < theta < 1 - ROUNDING)
    others = np.where(known, others, np.nan)
    deviations = (excess + excess_later) / (np.sqrt(total) * np.sqrt(others))
    return PairStatistic(theta, deviations, pairs, weight, excess, excess_later, total)


def estimate_of_pairs(
    pairs: Pairs, subjects: np.ndarray, weight: np.ndarray, groups: np.ndarray | None
) -> Estimate:
    """The share with its influence per subject or group; the weights (n,) are zero for other subjects."""
    statistic = pair_statistic(pairs, weight[subjects])
    deviations = np.zeros((len(weight), 1))
    deviations[subjects, 0] = statistic.deviations
    return Estimate(np.array([statistic.value]), Estimate.of_mean(deviations, weight, groups).influence)


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


def _sums_beyond(ends: np.ndarray, values: np.ndarray, u: np.ndarray) -> np.ndarray:
    """Sums of the values (n,) of those with u < end, (J,)."""
    order = np.argsort(ends, kind="stable")
    tails = np.append(np.cumsum(values[order][::-1])[::-1], 0.0)
    return tails[np.searchsorted(ends[order], u, side="right")]


# ---- sums over subjects of lower risk ----------------------------------------------------------------


def sums_of_lower(rank: np.ndarray, values: np.ndarray) -> np.ndarray:
    """For each position, the sum of the values (n, p) at later positions of strictly lower rank.

    By merging: in every block of 2, 4, 8, ... positions the left half meets the right half, O(n log n).
    """
    n = len(rank)
    sums = np.zeros(values.shape)
    by_rank = np.argsort(rank, kind="stable")
    half = 1
    while half < n:
        order = by_rank[np.argsort(by_rank // (2 * half), kind="stable")]  # by block, within it by rank
        block = order // (2 * half)
        in_right = (order // half) % 2 == 1
        passed = np.zeros((n + 1, values.shape[1]))
        np.cumsum(np.where(in_right[:, None], values[order], 0.0), axis=0, out=passed[1:])
        # of equal rank the left position comes first in a stable order, so that only lower ones are passed
        left = np.nonzero(~in_right)[0]
        sums[order[left]] += passed[left] - passed[np.searchsorted(block, block[left])]
        half *= 2
    return sums


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


def followed(y: RightCensored, censoring: Distribution, subjects: np.ndarray) -> ScoringInputs:
    """Some subjects and their censoring distribution, checked against each other, without a forecast."""
    common_rows(outcome=len(y), censoring=len(censoring))
    outcome = y if len(subjects) == len(y) else y.take(subjects)
    C = censoring if len(censoring) in (1, len(subjects)) else censoring.take(subjects)
    return without_forecast(outcome, C)


@contextmanager
def naming(subjects: np.ndarray, at: float, what: str) -> Iterator[None]:
    """An error of weights names subjects of the whole sample: no weight can represent their pairs."""
    try:
        yield
    except PositivityError as error:
        bad, end = subjects[list(error.rows)], error.horizon or 0.0
        raise PositivityError(
            f"The censoring distribution gives {name_subjects(bad)} no chance to be followed up to {what} "
            f"{at:g}, so that no weight can represent them. Pass a horizon (or times) below {end:g}.",
            rows=bad.tolist(),
            horizon=end,
        ) from None
