"""Concordance: the share of comparable pairs that a risk puts in the right order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from math import factorial
from typing import Any, NamedTuple

import numpy as np

from censcore._arrays import Array, namespace, to_numpy
from censcore._validation import check_same_order
from censcore.distributions import Distribution, Grouped, PointMass, ProportionalHazards, Univariate
from censcore.evaluation.inference.estimates import Estimate, group_codes, shares
from censcore.evaluation.measures.pair_statistics import (
    ROUNDING,
    Followed,
    Moved,
    Pairs,
    PairStatistic,
    PairsTogether,
    ProductPairs,
    check_horizon,
    check_risk,
    checked_share,
    estimate_of_pairs,
    share_of_pairs,
)
from censcore.evaluation.measures.ranked_sums import RankedSums, Sums
from censcore.outcomes import OutcomeLike, as_outcome
from censcore.scores.inputs.known_at import KnownAt, over_reached

CELLS = 1 << 19  # of the matrix of G at event times (rows: subjects) that are held at once
FEW = 48  # curves up to which their sums are made one by one
WIDEST = 6.0  # range of log G between risks; the last digits of a small weight are lost beyond


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
    pairs, used, weight = _pairs_of(y, risk, censoring, horizon, sample_weight)
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
    pairs, used, weight = _pairs_of(y, risk, censoring, horizon, sample_weight, groups)
    return estimate_of_pairs(pairs, used, weight, group_codes(groups, len(weight)))


def _pairs_of(
    y: Any, risk: Any, censoring: Any, horizon: Any, sample_weight: Any, groups: Any = None
) -> tuple[Pairs, np.ndarray, np.ndarray]:
    """The pairs, the subjects that have a weight, and the weights of all."""
    check_same_order(y=y, risk=risk, censoring=censoring, sample_weight=sample_weight, groups=groups)
    y = as_outcome(y, one_cause=True).require_one_time("The concordance index")
    weight = shares(sample_weight, len(y))
    used = np.nonzero(weight > 0)[0]
    followed = Followed(y, PointMass(np.inf) if censoring is None else censoring, used)
    return comparable_pairs(followed, check_risk(risk, len(y))[used], horizon=horizon), used, weight


def comparable_pairs(followed: Followed, risk: np.ndarray, *, horizon: float | None = None) -> Pairs:
    r"""The comparable pairs of subjects with risks (n,).

    For one of several causes these are also pairs of an event at y_i and another event at y_j < y_i, after
    which :math:`T_j=\infty`: that j is later is known because C_j >= y_j.
    """
    y, time = followed.inputs.y, followed.time
    counted = to_numpy(y.event) & (time < check_horizon(horizon))
    last = float(np.max(time, where=counted, initial=0.0))
    known = followed.known_at(last, "the event at", before=True)
    curves = _shared_curves(followed.inputs.C, last)
    pairs: _ComparablePairs
    if curves is None:
        pairs = PairsByBlocks(followed, counted, known, risk)
    else:
        pairs = PairsByCurves(followed, counted, known, risk, curves)
    passed = to_numpy(y.never) & (time < last)
    if not passed.any():
        return pairs
    # backwards in time: from the first place after y_i on
    starts = np.where(pairs.earlier > 0, np.nextafter(-time, np.inf), np.inf)
    sums = RankedSums(risk, starts, np.where(passed, -time, -np.inf))
    later = np.where(passed, to_numpy(known.seen), 0.0)[:, None]
    return PairsTogether([pairs, ProductPairs(time, pairs.earlier, later, sums, time)])


class _Curves(NamedTuple):
    """Subjects whose 1 / G is a mix of those of a few curves."""

    rows: Any  #: numbers of the subjects
    mix: np.ndarray  #: (subjects, curves)
    curves: Univariate  #: of as many rows as there are curves


def _shared_curves(C: Univariate, last: float) -> list[_Curves] | None:
    """The curves that make up 1 / G until the last event; None where there are many."""
    if len(C) == 1:
        return [_Curves(slice(None), np.ones((1, 1)), C)]
    shared = None
    if isinstance(C, ProportionalHazards):
        shared = _between_risks(C, last)
    elif isinstance(C, Grouped) and len(groups := C.groups()) <= FEW:
        of_groups = [(rows, _shared_curves(D, last)) for rows, D in groups]
        if all(parts is not None for _, parts in of_groups):
            shared = [part._replace(rows=rows) for rows, parts in of_groups for part in parts or []]
    few = shared is not None and sum(len(part.curves) for part in shared) <= FEW
    return shared if few else None


def _between_risks(C: ProportionalHazards, last: float) -> list[_Curves] | None:
    r""":math:`1/G=e^{rH}` interpolated between Chebyshev nodes r to the last digit; None over a wide range.

    With half-width w of the risks the relative error of m nodes is at most
    :math:`2e^{wH}(wH/2)^m/m!` for all H up to that of the last event.
    """
    r, H = to_numpy(C.risk).astype(np.float64), float(to_numpy(-np.log(C.sf_left(last)) / C.risk).max())
    middle, w = (r.max() + r.min()) / 2, max((r.max() - r.min()) / 2, 1e-15 * r.max())
    if w * H > WIDEST:
        return None
    m = 1
    while 2 * np.exp(w * H) * (w * H / 2) ** m / factorial(m) > 1e-15:
        m += 1
    angles = (2 * np.arange(m) + 1) * np.pi / (2 * m)
    away = ((r - middle) / w)[:, None] - np.cos(angles)
    mix = (-1.0) ** np.arange(m) * np.sin(angles) / np.where(np.abs(away) > 1e-15, away, 1e-15)
    nodes = C.with_risks(C.xp.asarray(middle + w * np.cos(angles)))
    return [_Curves(slice(None), mix / mix.sum(axis=1, keepdims=True), nodes)]


class _ComparablePairs(Pairs):
    """Comparable pairs: the later subjects of i are all from the place ``starts[i]`` on."""

    def __init__(self, followed: Followed, counted: np.ndarray, known: KnownAt) -> None:
        self.earlier, self.entry = np.where(counted, to_numpy(known.seen), 0.0), followed.entry
        self.time, self.counted = followed.time, counted
        self.place, self.starts = followed.order

    def moved_by_later(self, of: PairStatistic, loads: np.ndarray) -> list[Moved]:
        """The weight of the later subject counts G up to the time of the earlier one."""
        if of.pairs is self and (loads == 1).all():
            return [(self.time, (of.weight * of.excess)[:, None] * loads)]
        won, met = self.over_later(of.weight[:, None] * loads)
        return [(self.time, (of.weight * self.earlier)[:, None] * (won - of.value * met))]


class PairsByCurves(_ComparablePairs):
    """Weights of later subjects that are mixtures of few curves: O(n log n) for each curve."""

    def __init__(
        self, followed: Followed, counted: np.ndarray, known: KnownAt, risk: np.ndarray, curves: list[_Curves]
    ) -> None:
        super().__init__(followed, counted, known)
        n, count = len(self.time), sum(len(part.curves) for part in curves)
        self.members, self.later, first = np.zeros((n, count)), np.zeros((n, count)), 0
        for rows, mix, D in curves:
            columns = slice(first, first + len(D))
            self.members[rows, columns] = mix
            reached = to_numpy(D.sf_left(followed.inputs.y.time[None, :])).T
            self.later[:, columns] = over_reached(counted[:, None], reached)
            first = columns.stop
        if known.at_entry is not None:
            self.members *= to_numpy(known.at_entry)[:, None]
        self.sums = RankedSums(risk, np.where(counted, self.starts, np.inf), self.place)
        # a subject that enters at or after y_i is not comparable
        self.late = None
        if self.entry is not None:
            self.late = RankedSums(risk, np.where(counted, self.time, np.inf), self.entry)

    def both_ways(self, later: np.ndarray, earlier: np.ndarray) -> tuple[Sums, Sums]:
        """Sums over the later subjects, for each event, and over the events, for each subject."""
        return (
            self._over(RankedSums.over_later, _each_with_each(self.members, later), self.later),
            self._over(RankedSums.over_earlier, _each_with_each(self.later, earlier), self.members),
        )

    def met_within(self, values: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Sums over the later subjects in the group of each event."""
        products = self.members * values[:, None]
        met = self.sums.met_within(products, groups)
        if self.late is not None:
            met -= self.late.met_within(products, groups)
        return (self.later * met).sum(axis=1)

    def _over(
        self, ranked: Callable[[RankedSums, np.ndarray], Sums], products: np.ndarray, factor: np.ndarray
    ) -> Sums:
        sums = ranked(self.sums, products)
        if self.late is not None:
            sums = _left(sums, ranked(self.late, products))
        return _summed(factor, sums[0]), _summed(factor, sums[1])


def _each_with_each(of_curves: np.ndarray, values: np.ndarray) -> np.ndarray:
    """Products of every column (n, G) with every column (n, p), as (n, G p)."""
    return (of_curves[:, :, None] * values[:, None, :]).reshape(len(values), -1)


def _summed(of_curves: np.ndarray, sums: np.ndarray) -> np.ndarray:
    """The sum over curves of a factor (n, G) times sums (n, G p), as (n, p)."""
    n, G = of_curves.shape
    return np.einsum("ng,ngp->np", of_curves, sums.reshape(n, G, -1))


def _left(sums: Sums, late: Sums) -> Sums:
    """Sums without those of pairs that are too late; zero where the difference is only rounding."""
    left = sums[0] - late[0], sums[1] - late[1]
    return tuple(np.where(np.abs(part) > ROUNDING * np.abs(sums[1]), part, 0.0) for part in left)  # type: ignore[return-value]


class PairsByBlocks(_ComparablePairs):
    """One censoring distribution per subject: all pairs in blocks of subjects, O(n^2), memory O(n)."""

    def __init__(self, followed: Followed, counted: np.ndarray, known: KnownAt, risk: np.ndarray) -> None:
        super().__init__(followed, counted, known)
        self.risk, self.known, self.order = risk, known, np.argsort(self.place)
        events = np.nonzero(counted)[0]
        self.events = events[np.argsort(self.time[events], kind="stable")]

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

    def met_within(self, values: np.ndarray, groups: np.ndarray) -> np.ndarray:
        """Sums over the later subjects in the group of each event."""
        met = np.zeros(len(values))
        for j, i, q, _ in self._blocks():
            met[i] += values[j] @ np.where(groups[j][:, None] == groups[i], q, 0.0)
        return met

    def _blocks(self) -> Iterator[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]]:
        """Some later subjects j, their earlier events i, and q_ij and c_ij with a row for each j."""
        n, starts = len(self.place), self.starts[self.events]
        size = max(1, CELLS // max(len(self.events), 1))
        for first in range(0, n, size):
            j = self.order[first : first + size]
            k = int(np.searchsorted(starts, first + len(j) - 1, side="right"))
            if not k:
                continue
            i = self.events[:k]
            at = namespace(self.known.t).asarray(self.time[i][None, :], dtype=self.known.t.dtype)
            free = to_numpy(replace(self.known, t=at).weights(j)[1])
            q = np.where(self.place[j][:, None] >= starts[None, :k], free, 0.0)
            r_i, r_j = self.risk[i][None, :], self.risk[j][:, None]
            yield j, i, q, 0.5 * ((r_j < r_i).astype(np.float64) + (r_j <= r_i))
