"""Concordance: the share of comparable pairs that a risk puts in the right order."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from censcore._arrays import Array, common_rows, to_numpy
from censcore._validation import check_kind
from censcore.distributions import Distribution, Grouped, Univariate
from censcore.evaluation.competing_pairs import PairsPassed, PairsTogether
from censcore.evaluation.inference import Estimate, group_codes, shares
from censcore.evaluation.pair_statistics import (
    Pairs,
    Sums,
    check_horizon,
    check_risk,
    checked_share,
    estimate_of_pairs,
    positivity_error,
    share_of_pairs,
    sums_of_lower,
)
from censcore.outcomes import EventOfCause, OutcomeLike, RightCensored, as_outcome

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

    The index is descriptive and not proper: it ignores calibration, and a forecast may gain by departing from
    the truth.

    Parameters
    ----------
    y : outcome
        n subjects; of competing risks, that of one cause.
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
    if censoring is not None:
        check_kind(censoring, "censoring", Distribution, "the distribution of C, such as Uniform(0, 5)")
        common_rows(outcome=len(y), censoring=len(censoring))
    y.require_no_entry("The concordance index")
    time, event = to_numpy(y.time)[subjects], to_numpy(y.event)[subjects]
    counted = event & (time < check_horizon(horizon))
    C = None if censoring is None else _of_subjects(censoring.marginal(0), subjects)
    if C is not None and counted.any():
        _check_positivity(C, time[counted].max(), subjects)
    risk = risk[subjects]
    groups = _groups(C, len(time))
    pairs: _ComparablePairs
    if groups is None:
        assert C is not None
        pairs = PairsByBlocks(time, event, counted, risk, C)
    else:
        pairs = PairsByGroups(time, event, counted, risk, groups)
    if not isinstance(y, EventOfCause) or not counted.any():
        return pairs
    passed = to_numpy(y.never)[subjects] & (time < time[counted].max())
    if not passed.any():
        return pairs
    return PairsTogether([pairs, PairsPassed(time, risk, pairs.earlier, _inverse(passed, C, time))])


def _of_subjects(C: Univariate, subjects: np.ndarray) -> Univariate:
    return C if len(C) in (1, len(subjects)) else C.take(subjects)


def _check_positivity(C: Univariate, last: float, subjects: np.ndarray) -> None:
    bad = np.nonzero(np.broadcast_to(to_numpy(C.sf_left(last)) <= 0, (len(subjects),)))[0]
    if bad.size:
        end = float(to_numpy(C.isf(0.0)).min())
        raise positivity_error(last, "the event at", subjects[bad], end)


def _groups(C: Univariate | None, n: int) -> list[tuple[np.ndarray, Univariate | None]] | None:
    """Subjects that share one censoring distribution, with it; None where there are many of them."""
    if C is None or len(C) == 1:
        return [(np.arange(n), C)]
    if isinstance(C, Grouped):
        groups = C._groups()
        if len(groups) <= FEW and all(len(distribution) == 1 for _, distribution in groups):
            return list(groups)
    return None


def _inverse(counted: np.ndarray, C: Univariate | None, time: np.ndarray) -> np.ndarray:
    """1/G(y-) of the subjects that count, and zero for all others."""
    inverse = counted.astype(np.float64)
    if C is not None:
        G = np.broadcast_to(to_numpy(C.sf_left(time)), time.shape)
        inverse[counted] /= G[counted]
    return inverse


class _ComparablePairs(Pairs):
    """Comparable pairs, with subjects in the order of their times, events first.

    The later subjects of i are then all from the position ``starts[i]`` on.
    """

    def __init__(self, time: np.ndarray, event: np.ndarray, counted: np.ndarray) -> None:
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
        time: np.ndarray,
        event: np.ndarray,
        counted: np.ndarray,
        risk: np.ndarray,
        groups: list[tuple[np.ndarray, Univariate | None]],
    ) -> None:
        super().__init__(time, event, counted)
        n = len(time)
        self.members = np.zeros((n, len(groups)))
        self.later = np.zeros((n, len(groups)))
        for g, (rows, C) in enumerate(groups):
            self.members[rows, g] = 1.0
            self.later[:, g] = _inverse(counted, C, time)
        self.earlier = (self.members * self.later).sum(axis=1)
        rank = np.unique(risk, return_inverse=True)[1].reshape(-1)
        # events at one time are not comparable: no lower (or higher) one may come after another
        self.ascending = np.lexsort((rank, ~event, time))
        self.descending = np.lexsort((-rank, ~event, time))
        self.rank = rank

    def over_later(self, values: np.ndarray) -> Sums:
        """Sums over the later subjects, for each event."""
        some = _each_with_each(self.members, values)
        seen = self._later(some)
        lower = _in_order(self.ascending, self.rank, some)
        higher = _in_order(self.descending, -self.rank, some)
        return _summed(self.later, (seen + lower - higher) / 2), _summed(self.later, seen)

    def over_earlier(self, values: np.ndarray) -> Sums:
        """Sums over the earlier events, for each subject."""
        some = _each_with_each(self.later, values)
        seen = self._earlier(some)
        higher = _in_order(self.ascending[::-1], -self.rank, some)
        lower = _in_order(self.descending[::-1], self.rank, some)
        return _summed(self.members, (seen + higher - lower) / 2), _summed(self.members, seen)

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


class PairsByBlocks(_ComparablePairs):
    """One censoring distribution per subject: all pairs in blocks of subjects, O(n^2), memory O(n)."""

    def __init__(
        self, time: np.ndarray, event: np.ndarray, counted: np.ndarray, risk: np.ndarray, C: Univariate
    ) -> None:
        super().__init__(time, event, counted)
        self.earlier = _inverse(counted, C, time)
        self.risk, self.C = risk, C
        events = np.nonzero(counted)[0]
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
            t = self.times[: self.number[k - 1] + 1]
            G = to_numpy(self.C.take(j).sf_left(t[None, :]))
            later = self.position[j][:, None] >= starts[None, :k]
            q = later / G[:, self.number[:k]]
            r_i, r_j = self.risk[i][None, :], self.risk[j][:, None]
            yield j, i, q, 0.5 * ((r_j < r_i).astype(np.float64) + (r_j <= r_i))
