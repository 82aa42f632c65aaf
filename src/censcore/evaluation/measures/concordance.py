"""Concordance: the share of comparable pairs that a risk puts in the right order."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from censcore._arrays import Array, to_numpy
from censcore._validation import check_kind
from censcore.distributions import Distribution, Grouped, PointMass, Univariate
from censcore.estimators.risk_sets import entries_of
from censcore.evaluation.inference.estimates import Estimate, group_codes, shares
from censcore.evaluation.measures.competing_pairs import PairsPassed, PairsTogether, ranked_after
from censcore.evaluation.measures.pair_statistics import (
    ROUNDING,
    Pairs,
    Sums,
    check_horizon,
    check_risk,
    checked_share,
    estimate_of_pairs,
    followed,
    naming,
    share_of_pairs,
    sums_of_lower,
)
from censcore.outcomes import OutcomeLike, RightCensored, as_outcome
from censcore.scores.inputs import ScoringInputs
from censcore.scores.known_at import followed_to_entry, known_at, over_reached

__all__ = ["comparable_pairs", "concordance", "concordance_estimate"]

CELLS = 1 << 19  # of the matrix of G at event times (rows: subjects) that are held at once
FEW = 32  # groups up to which G is summed group by group


def concordance(
    y: OutcomeLike,
    risk: Array,
    censoring: Distribution | None = None,
    *,
    horizon: float | None = None,
    sample_weight: Array | None = None,
) -> float:
    r"""Share of comparable pairs that the risk orders rightly, ties counting one half.

    A pair (i, j) is comparable if i has an event at :math:`y_i` and j is known to have its event later.
    Events come first, so a subject censored at :math:`y_i` itself counts as later. Without a censoring
    distribution this is Harrell's index, which depends on how the data were censored. With one, every pair
    has the inverse-probability weight

    .. math:: \frac1{G(y_i-\mid x_i)\,G(y_i-\mid x_j)},\qquad G(t-\mid x)=P(C\ge t\mid x),

    since the pair is seen if :math:`C_i\ge y_i` and :math:`C_j\ge y_i`. The index then estimates
    :math:`P(r_i>r_j\mid T_i<T_j,\ T_i<\tau)` with :math:`\tau` the horizon. If C is the same for all
    subjects, the weight is :math:`G(y_i-)^{-2}`, and this is Uno's index.

    For one of several causes, ``y.cause(k)`` of :class:`~censcore.CompetingRisks`, the later subject may also
    be one who never has this event because another came first, at whatever time :math:`y_j`. Its weight is
    :math:`1/G(y_j-\mid x_j)` if :math:`y_j<y_i`, and the index that of Wolbers and others for
    :math:`P(r_i>r_j\mid T_{ik}<T_{jk},\ T_{ik}<\tau)`, with :math:`T_k=\infty` after another event.

    With delayed entry j must have entered before :math:`y_i`, as in R's ``concordance`` of (start, stop]
    data, and the weight of a pair is multiplied by :math:`G(a_i\mid x_i)\,G(a_j\mid x_j)`. The index then
    estimates :math:`P(r_i>r_j\mid a_j<T_i<T_j,\ T_i<\tau)` over the subjects as they are seen. The risk
    should not depend on the entry, as F given survival to it does: rank by a linear predictor, or by a
    forecast for one common time of entry.

    The index is descriptive and not proper: it ignores calibration, and a forecast may gain by departing from
    the truth.

    Parameters
    ----------
    y : outcome
        n subjects, also with delayed entry; of competing risks, that of one cause.
    risk : array, (n,)
        Higher means an earlier event.
    censoring : Distribution, optional
        Censoring distribution, for the weights.
    horizon : float, optional
        Only events before it count as the earlier one of a pair.
    sample_weight : array, (n,), optional
        Weights of the subjects; counts give the index of the replicated data.

    Returns
    -------
    float
        Between 0 and 1; an error where no pair can be compared.

    Raises
    ------
    PositivityError
        If some subject has no chance to be followed up to the last event that counts.

    References
    ----------
    Uno, Cai, Pencina, D'Agostino & Wei (2011). On the C-statistics for evaluating overall adequacy of risk
    prediction procedures with censored survival data. Statistics in Medicine 30, 1105-1117.

    Harrell, Califf, Pryor, Lee & Rosati (1982). Evaluating the yield of medical tests. Journal of the
    American Medical Association 247, 2543-2546.

    Gerds, Kattan, Schumacher & Yu (2013). Estimating a time-dependent concordance index for survival
    prediction models with covariate dependent censoring. Statistics in Medicine 32, 2173-2184.

    Wolbers, Blanche, Koller, Witteman & Gerds (2014). Concordance for prognostic models with competing risks.
    Biostatistics 15, 526-539.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.evaluation import concordance
    >>> y = cs.RightCensored(time=[1.0, 2.0, 3.0, 4.0], event=[1, 1, 0, 1])
    >>> concordance(y, risk=[0.9, 0.3, 0.5, 0.1])
    0.8
    >>> round(concordance(y, [0.9, 0.3, 0.5, 0.1], cs.Exponential([0.1, 0.2, 0.1, 0.1])), 3)
    0.755

    Of the first cause, where subject 0 has had an event of the second:

    >>> risks = cs.CompetingRisks(time=[1.0, 2.0, 3.0, 4.0], cause=[2, 1, 0, 1])
    >>> concordance(risks.cause(1), risk=[0.2, 0.3, 0.5, 0.1])
    0.5
    """
    y = as_outcome(y, one_cause=True).require_one_time("The concordance index")
    weight = shares(sample_weight, len(y))
    used = np.nonzero(weight > 0)[0]
    pairs = comparable_pairs(y, check_risk(risk, len(y)), censoring, horizon=horizon, subjects=used)
    return checked_share(share_of_pairs(pairs, weight[used]), "the horizon")


def concordance_estimate(
    y: OutcomeLike,
    risk: Array,
    censoring: Distribution | None = None,
    *,
    horizon: float | None = None,
    sample_weight: Array | None = None,
    groups: Array | None = None,
) -> Estimate:
    """:func:`concordance` with its standard error, for any risk score.

    The censoring distribution is taken as known; :func:`compare` adds the error of estimating it. The
    difference of two estimates on the same subjects is that of a paired comparison.

    Parameters
    ----------
    y, risk, censoring, horizon, sample_weight
        As in :func:`concordance`.
    groups : array, (n,), optional
        Labels of subjects that depend on each other, such as visits of one patient.

    Returns
    -------
    Estimate
        ``value`` and ``standard_error``, both (1,), and ``interval(confidence)``; the error is NaN where all
        pairs are won or lost, or have one subject in common.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> from censcore.evaluation import concordance_estimate
    >>> rng = np.random.default_rng(0)
    >>> x, noise = rng.normal(size=(2, 200))
    >>> T, C = rng.exponential(np.exp(-x)), rng.exponential(2.0, 200)
    >>> y = cs.RightCensored(np.minimum(T, C), T <= C)
    >>> good, bad = (concordance_estimate(y, r, cs.Exponential(0.5), horizon=2.0) for r in (x, x + noise))
    >>> difference = good - bad
    >>> difference.value.round(3), difference.standard_error.round(3)
    (array([0.058]), array([0.021]))
    """
    y = as_outcome(y, one_cause=True).require_one_time("The concordance index")
    n = len(y)
    weight = shares(sample_weight, n)
    used = np.nonzero(weight > 0)[0]
    pairs = comparable_pairs(y, check_risk(risk, n), censoring, horizon=horizon, subjects=used)
    return estimate_of_pairs(pairs, used, weight, group_codes(groups, n))


def comparable_pairs(
    y: RightCensored,
    risk: np.ndarray,
    censoring: Distribution | None,
    *,
    horizon: float | None = None,
    subjects: np.ndarray,
) -> Pairs:
    """The comparable pairs among some of the subjects."""
    if censoring is None:
        censoring = PointMass(np.inf)  # all weights are one
    check_kind(censoring, "censoring", Distribution, "the distribution of C, such as Uniform(0, 5)")
    some = followed(y, censoring, subjects)
    time, risk = to_numpy(some.y.time), risk[subjects]
    counted = to_numpy(some.y.event) & (time < check_horizon(horizon))
    last = float(np.max(time, where=counted, initial=0.0))
    with naming(subjects, last, "the event at"):
        known = known_at(some.y, some.C, some.xp.full_like(some.time[:1], last), "ipcw", before=True)
    seen = to_numpy(known.seen)
    groups = _groups(some.C)
    pairs: _ComparablePairs
    if groups is None:
        pairs = PairsByBlocks(some, counted, seen, risk)
    else:
        pairs = PairsByGroups(some, counted, seen, risk, groups)
    passed = to_numpy(some.y.never) & (time < last)
    if not passed.any():
        return pairs
    return PairsTogether([pairs, PairsPassed(time, risk, pairs.earlier, np.where(passed, seen, 0.0))])


def _groups(C: Univariate) -> list[tuple[Any, Univariate]] | None:
    """Subjects that share one censoring distribution, with it; None where there are many of them."""
    if len(C) == 1:
        return [(slice(None), C)]
    if isinstance(C, Grouped):
        groups = C._groups()
        if len(groups) <= FEW and all(len(distribution) == 1 for _, distribution in groups):
            return list(groups)
    return None


class _ComparablePairs(Pairs):
    """Comparable pairs, with subjects in the order of their times, events first.

    The later subjects of i are then all from the position ``starts[i]`` on.
    """

    def __init__(self, some: ScoringInputs, counted: np.ndarray, seen: np.ndarray) -> None:
        time, event = (to_numpy(part) for part in (some.y.time, some.y.event))
        self.earlier, self.entry = np.where(counted, seen, 0.0), entries_of(some.y)
        self.order = np.lexsort((~event, time))
        self.position = np.argsort(self.order)
        before = np.searchsorted(time[self.order], time, side="left")
        events = np.sort(time[event])
        tied = np.searchsorted(events, time, "right") - np.searchsorted(events, time, "left")
        self.starts = before + tied
        self.counted = counted
        self.ends_earlier = self.ends_later = np.where(counted, time, 0.0)


class PairsByGroups(_ComparablePairs):
    """Groups that share one censoring distribution each: O(n log n) for every group."""

    def __init__(
        self,
        some: ScoringInputs,
        counted: np.ndarray,
        seen: np.ndarray,
        risk: np.ndarray,
        groups: list[tuple[Any, Univariate]],
    ) -> None:
        super().__init__(some, counted, seen)
        time, event = (to_numpy(part) for part in (some.y.time, some.y.event))
        self.members, self.later = np.zeros((2, len(time), len(groups)))
        for g, (rows, C) in enumerate(groups):
            at_entry = followed_to_entry(some.y.take(rows), C)
            self.members[rows, g] = 1.0 if at_entry is None else to_numpy(at_entry)
            self.later[:, g] = over_reached(counted, to_numpy(C.sf_left(some.y.time)))
        self.rank = np.unique(risk, return_inverse=True)[1].reshape(-1)
        # events at one time are not comparable: no lower (or higher) one may come after another
        self.ascending = np.lexsort((self.rank, ~event, time))
        self.descending = np.lexsort((-self.rank, ~event, time))
        self.late = None if self.entry is None else _Late(time, self.entry, self.rank)

    def over_later(self, values: np.ndarray) -> Sums:
        """Sums over the later subjects, for each event."""
        some = _each_with_each(self.members, values)
        met = self._later(some)
        lower = _in_order(self.ascending, self.rank, some)
        higher = _in_order(self.descending, -self.rank, some)
        won = (met + lower - higher) / 2
        if self.late is not None:
            won, met = _left(won, met, self.late.over_later(some))
        return _summed(self.later, won), _summed(self.later, met)

    def over_earlier(self, values: np.ndarray) -> Sums:
        """Sums over the earlier events, for each subject."""
        some = _each_with_each(self.later, values)
        met = self._earlier(some)
        higher = _in_order(self.ascending[::-1], -self.rank, some)
        lower = _in_order(self.descending[::-1], self.rank, some)
        won = (met + higher - lower) / 2
        if self.late is not None:
            won, met = _left(won, met, self.late.over_earlier(some))
        return _summed(self.members, won), _summed(self.members, met)

    def _later(self, values: np.ndarray) -> np.ndarray:
        """Sums over the later subjects of each."""
        tails = np.zeros((len(values) + 1, values.shape[1]))
        tails[:-1] = np.cumsum(values[self.order][::-1], axis=0)[::-1]
        return tails[self.starts]

    def _earlier(self, values: np.ndarray) -> np.ndarray:
        """Sums over those that each is later than."""
        at_start = np.zeros((len(values) + 1, values.shape[1]))
        np.add.at(at_start, self.starts, values)
        return np.cumsum(at_start, axis=0)[self.position]


def _each_with_each(of_groups: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Products of every column (n, G) with every column (n, p), as (n, G p)."""
    return (of_groups[:, :, None] * values[:, None, :]).reshape(len(values), -1)


def _summed(of_groups: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """The sum over groups of a factor (n, G) times sums (n, G p), as (n, p)."""
    n, G = of_groups.shape
    return np.einsum("ng,ngp->np", of_groups, sums.reshape(n, G, -1))


def _in_order(order: np.ndarray, rank: np.ndarray, values: np.ndarray) -> np.ndarray:
    found = np.empty(values.shape)
    found[order] = sums_of_lower(rank[order], values[order])
    return found


class _Late:
    """Pairs of an event at y_i and a subject that enters at or after it, which are not comparable."""

    def __init__(self, time: np.ndarray, entry: np.ndarray, rank: np.ndarray) -> None:
        # an entry at the time of an event comes after it
        self.order = np.lexsort((np.repeat([False, True], len(time)), np.concatenate([time, entry])))
        self.rank = np.concatenate([rank, rank])

    def over_later(self, values: np.ndarray) -> Sums:
        """Sums over those that enter later, for each subject as the earlier one."""
        won, met = ranked_after(self.order, self.rank, np.concatenate([np.zeros_like(values), values]))
        return won[: len(values)], met[: len(values)]

    def over_earlier(self, values: np.ndarray) -> Sums:
        """Sums over the subjects with a time up to the entry of each."""
        none = np.zeros_like(values)
        lost, met = ranked_after(self.order[::-1], self.rank, np.concatenate([values, none]))
        return (met - lost)[len(values) :], met[len(values) :]


def _left(won: np.ndarray, met: np.ndarray, late: Sums) -> Sums:
    """What is left of sums without those of pairs that are too late; zero where it is rounding."""
    left = won - late[0], met - late[1]
    return tuple(np.where(np.abs(part) > ROUNDING * np.abs(met), part, 0.0) for part in left)  # type: ignore[return-value]


class PairsByBlocks(_ComparablePairs):
    """One censoring distribution per subject: all pairs in blocks of subjects, O(n^2), memory O(n)."""

    def __init__(self, some: ScoringInputs, counted: np.ndarray, seen: np.ndarray, risk: np.ndarray) -> None:
        super().__init__(some, counted, seen)
        self.risk, self.some = risk, some
        time, events = to_numpy(some.y.time), np.nonzero(counted)[0]
        self.events = events[np.argsort(time[events], kind="stable")]
        self.times, self.number = np.unique(time[self.events], return_inverse=True)

    def over_later(self, values: np.ndarray) -> Sums:
        """Sums over the later subjects, for each event."""
        return self.both_ways(values, np.zeros((len(values), 0)))[0]

    def over_earlier(self, values: np.ndarray) -> Sums:
        """Sums over the earlier events, for each subject."""
        return self.both_ways(np.zeros((len(values), 0)), values)[1]

    def both_ways(self, later: np.ndarray, earlier: np.ndarray) -> tuple[Sums, Sums]:
        """Both sums in one pass over the pairs."""
        won_by, met_by, won_from, met_from = (np.zeros(v.shape) for v in (later, later, earlier, earlier))
        for j, i, q, c in self._blocks():
            won = q * c
            met_by[i] += q.T @ later[j]
            won_by[i] += won.T @ later[j]
            met_from[j] = q @ earlier[i]
            won_from[j] = won @ earlier[i]
        return (won_by, met_by), (won_from, met_from)

    def _blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        """Some later subjects j, their earlier events i, and q_ij and c_ij with a row for each j."""
        n, starts = len(self.position), self.starts[self.events]
        size = max(1, CELLS // max(len(self.events), 1))
        for first in range(0, n, size):
            j = self.order[first : first + size]
            k = int(np.searchsorted(starts, first + len(j) - 1, side="right"))
            if not k:
                continue
            i = self.events[:k]
            free = self._free(j, self.times[: self.number[k - 1] + 1])
            q = np.where(self.position[j][:, None] >= starts[None, :k], free[:, self.number[:k]], 0.0)
            r_i, r_j = self.risk[i][None, :], self.risk[j][:, None]
            yield j, i, q, 0.5 * ((r_j < r_i).astype(np.float64) + (r_j <= r_i))

    def _free(self, j: np.ndarray, t: np.ndarray) -> np.ndarray:
        """Weights of "no event before t" of the subjects j, (j, t)."""
        some = self.some.take(j)
        at = some.xp.asarray(t[None, :], dtype=some.time.dtype)
        return to_numpy(known_at(some.y, some.C, at, "ipcw", before=True).weights()[1])
