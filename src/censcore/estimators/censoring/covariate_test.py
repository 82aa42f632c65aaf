"""Do covariates predict censoring? One test against trends, curves, interactions and changes over time."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.estimators.covariate_columns import Columns, read_columns
from censcore.estimators.covariates import take_rows
from censcore.estimators.risk_sets import entries_of
from censcore.outcomes import RightCensored

FLIPS = 1999  # of the signs, for the distribution of the statistic
BLOCKS = 1000  # of subjects that change sign together, at most
INTERVALS = 50  # of time with one mean of those at risk each
PRODUCTS = 800  # of two columns, at most
LEAST_CENSORED = 5
LEAST_GROUPS = 8
CHUNK = 2**21  # numbers of features held at a time


@dataclass(frozen=True)
class CensoringTest:
    """Test of "the covariates do not predict censoring".

    ``p_value`` is for all departures together; at least 1 / 2000, which is what the sign changes resolve.
    ``kind`` is the most significant departure, for instance ``"interaction of age and sex"``, and
    ``kinds`` has the p-value of each kind (trend, curve, interaction, and each changing over time), adjusted
    for all kinds. ``features`` are the ten largest standardised scores of single features, largest first;
    ``clusters`` and ``censored`` count independent groups, and censorings that were compared with subjects
    still at risk. ``notes`` say what was done about missing values, rare levels and large numbers of columns.
    """

    p_value: float
    kind: str
    kinds: dict[str, float]
    features: dict[str, float]
    clusters: int
    censored: int
    notes: list[str] = field(default_factory=list)

    @property
    def told(self) -> str:
        """The result in one line."""
        p = "p < 0.001" if self.p_value < 0.001 else f"p = {self.p_value:.2g}"
        article = "an" if self.kind.startswith("interaction") else "a"
        return f"{p} ({'most of all' if self.p_value < 0.05 else 'the largest is'} {article} {self.kind})"


def covariates_predict(
    X: Any,
    y: RightCensored,
    *,
    sample_weight: np.ndarray | None = None,
    groups: np.ndarray | None = None,
    labels: Mapping[str, np.ndarray] | None = None,
    seed: int = 0,
) -> CensoringTest | str:
    r"""Score test with random signs; where it cannot be computed, the reason in words.

    Censoring is the event here. With Nelson-Aalen's estimate of its cumulative hazard, the martingale
    residual of subject i is :math:`dM_i=dN_i-Y_i\,d\hat\Lambda`, and a feature z with a weight
    :math:`\varphi(t)` has the score

    .. math:: U=\sum_i L_i,\qquad L_i=\int\varphi(t)\{z_i-\bar z(t)\}\,dM_i(t),

    which has mean zero if the hazard of C does not depend on x. Features are the columns (trends), their
    squares (curves) and products (interactions); :math:`\varphi` is constant, or rises linearly from -1 to 1
    as censoring goes on (effects that change over time). Each is divided by the root of its variance, the
    mean of two estimates: the sum of the squared L, and the predictable variance

    .. math:: \int\varphi(t)^2\sum_g\Bigl[\sum_{i\in g}Y_i(t)\{z_i-\bar z(t)\}\Bigr]^2d\hat\Lambda(t),

    over groups g, or single subjects. The former is far too small for a level in which nobody is censored,
    the latter for one in which many are, so that each alone rejects too often. Every kind of departure is
    measured by its largest score and by its sum of squares, and the most extreme of these measures, each on
    the scale of its p-value, is the statistic. Its distribution comes from changing the signs of all L of a
    group at random, which keeps the dependence within groups and between features; no covariance matrix is
    needed, so that p may exceed n.

    References
    ----------
    .. [1] Lin, Wei (1989). The robust inference for the Cox proportional hazards model. Journal of the
       American Statistical Association 84, 1074-1078. The contributions L.
    .. [2] Hemerik, Goeman, Finos (2020). Robust testing in generalized linear models by sign flipping score
       contributions. Journal of the Royal Statistical Society B 82, 841-864.
    """
    used = to_numpy(y.informs_censoring)
    if sample_weight is not None:
        used = used & (sample_weight > 0)
    rows = np.nonzero(used)[0]
    if not len(rows):
        return "every subject has an event at time zero"
    entry = entries_of(y)  # at a landmark, which all have reached, it does not matter
    if entry is not None and entry[rows].max() >= to_numpy(y.time)[rows].min():
        return "subjects enter late, which the test does not take into account"
    weight = np.ones(len(rows)) if sample_weight is None else sample_weight[rows]
    further = {name: values[rows] for name, values in (labels or {}).items()}
    columns = read_columns(take_rows(X, rows), weight, further)
    if not columns.parts:
        return "no column of X has two values" + "".join(f" ({note})" for note in columns.notes)
    flipped = y.take(rows).flip()
    residuals = _Residuals(to_numpy(flipped.time), to_numpy(flipped.event), weight)
    if residuals.censored < LEAST_CENSORED:
        return (
            f"{residuals.censored} subjects are censored while others are still followed; at least "
            f"{LEAST_CENSORED} are needed"
        )
    code = np.arange(len(rows)) if groups is None else np.unique(groups[rows], return_inverse=True)[1]
    clusters = int(code.max()) + 1
    if clusters < LEAST_GROUPS:
        return f"there are {clusters} independent groups; at least {LEAST_GROUPS} are needed"
    rng = np.random.default_rng(seed)
    features = _Features(columns, rng)
    # many groups are put together at random, which keeps them independent
    together = code if clusters <= BLOCKS else rng.permutation(clusters)[code] % BLOCKS
    scores, predictable = _scores(features, residuals, together)
    varies = (scores**2).sum(axis=0) > 1e-10 * residuals.scale
    if not varies.any():
        return "no column of X differs between subjects at risk at the same time"
    inflation = 1 / max(1 - residuals.leverage(together), 1e-3)
    variance = ((scores**2).sum(axis=0) + predictable) / 2
    z = _under_signs(scores[:, varies], variance[varies], inflation, rng)
    decision = _decide(z, features, np.nonzero(varies)[0])
    return CensoringTest(**decision, clusters=clusters, censored=residuals.censored, notes=columns.notes)


class _Residuals:
    """Martingale residuals of censoring, split into intervals of time, for both weights of time."""

    def __init__(self, time: np.ndarray, event: np.ndarray, weight: np.ndarray) -> None:
        distinct, k = np.unique(time, return_inverse=True)
        d = np.bincount(k, weight * event, minlength=len(distinct))
        Y = np.cumsum(np.bincount(k, weight, minlength=len(distinct))[::-1])[::-1]
        # where everybody left is censored at once (the end of the study) nothing can be compared
        information = np.where(Y - d > 1e-9 * Y, d * (Y - d) / Y, 0.0)
        self.censored = int(np.sum(event & (information[k] > 0)))
        self.weight, self.k = weight, k
        self.scale = float(weight @ weight)
        total = max(information.sum(), np.finfo(float).tiny)
        V = (np.cumsum(information) - information / 2) / total
        hazard = np.where(information > 0, d / Y, 0.0)
        event = event & (information[k] > 0)
        self._event, self._hazard = event, hazard
        self._phi = np.stack([np.ones_like(V), 2 * V - 1])

        jumps = np.nonzero(information > 0)[0]
        count = min(INTERVALS, len(jumps), max(10, 2 * CHUNK // len(time)))
        starts = jumps[np.arange(count) * len(jumps) // max(count, 1)]  # the first jump of each interval
        self._starts = starts
        self.at_risk = Y[starts]
        by_time = self._phi**2 * information
        self._jumps = np.add.reduceat(by_time, starts, axis=1) / Y[starts]
        self._information = np.add.reduceat(information, starts)
        self._of = np.searchsorted(starts, np.arange(len(distinct)), side="right") - 1

    @property
    def intervals(self) -> int:
        return len(self._starts)

    def sums_at_risk(self, groups: np.ndarray, values: np.ndarray) -> np.ndarray:
        """Weighted sums of values (n, q) over those of a group at risk at each start, (g, intervals, q)."""
        from scipy.sparse import csr_array

        g, J = int(groups.max()) + 1, self.intervals + 1
        place = groups * J + self._of[self.k] + 1  # by the number of starts at which each is at risk
        belongs = csr_array((self.weight, (place, np.arange(len(place)))), shape=(g * J, len(place)))
        sums = (belongs @ values).reshape(g, J, -1)
        return np.cumsum(sums[:, ::-1], axis=1)[:, ::-1][:, 1:]

    def predictable_variance(self, groups: np.ndarray, Z: np.ndarray, mean: np.ndarray) -> np.ndarray:
        """Of features Z (n, q) with these means of those at risk, for both weights of time, (2, q)."""
        count, parts = self.sums_at_risk(groups, np.ones((len(Z), 1))), []
        width = max(1, CHUNK // (len(count) * (self.intervals + 1)))
        for start in range(0, Z.shape[1], width):
            chunk = slice(start, start + width)
            deviation = self.sums_at_risk(groups, Z[:, chunk]) - count * mean[:, chunk]
            parts.append(self._jumps @ np.einsum("gjq,gjq->jq", deviation, deviation))
        return np.concatenate(parts, axis=1)

    def leverage(self, groups: np.ndarray) -> float:
        """Mean over time of the sum of squared shares of the groups at risk: 1 / Y without groups.

        Means of those at risk follow each of them, so that the squares of the L are too small by this share;
        scores are divided by 1 less it, as in the jackknife.
        """
        share = self.sums_at_risk(groups, np.ones((len(groups), 1)))[:, :, 0] / self.at_risk
        return float(np.average((share**2).sum(axis=0), weights=self._information))

    def of(self, phi: int) -> tuple[np.ndarray, np.ndarray]:
        """The residual of each subject, (n,), and its part in each interval, (n, intervals)."""
        jump = self._phi[phi] * self._hazard
        A = np.concatenate([[0.0], np.cumsum(jump)])
        own = self._phi[phi][self.k] * self._event
        ends = np.append(self._starts[1:], len(jump))
        upto = self.k[:, None] + 1
        part = A[np.clip(upto, self._starts, ends)] - A[self._starts]
        split = -part
        censored = np.nonzero(self._event)[0]
        split[censored, self._of[self.k[censored]]] += own[censored]
        return own - A[self.k + 1], split


class _Features:
    """Columns, squares and products, made when they are asked for."""

    def __init__(self, columns: Columns, rng: np.random.Generator) -> None:
        self.Z = columns.values
        p = self.Z.shape[1]
        source = np.array(columns.sources)
        a, b = np.triu_indices(p, 1)
        different = source[a] != source[b]
        a, b = a[different], b[different]
        if len(a) > PRODUCTS:
            columns.notes.append(f"{PRODUCTS} of {len(a)} products of two columns were drawn at random")
            drawn = np.sort(rng.choice(len(a), PRODUCTS, replace=False))
            a, b = a[drawn], b[drawn]
        squared = np.nonzero(np.array(columns.graded))[0]
        self.a = np.concatenate([np.full(p, -1), squared, a])
        self.b = np.concatenate([np.arange(p), squared, b])
        self.shape = np.repeat([0, 1, 2], [p, len(squared), len(a)])
        self.names, self.graded = columns.names, columns.graded

    def chunks(self) -> Iterator[tuple[slice, np.ndarray]]:
        """Slices of the features and their values (n, some)."""
        width = max(1, CHUNK // len(self.Z))
        for start in range(0, len(self.a), width):
            part = slice(start, min(start + width, len(self.a)))
            values = self.Z[:, self.b[part]]
            other = self.a[part]
            values[:, other >= 0] *= self.Z[:, other[other >= 0]]
            yield part, values

    def name(self, j: int) -> str:
        """What a departure along feature j is called; the features are counted twice, for both weights."""
        over_time, j = divmod(j, len(self.a))
        one = self.names[self.b[j]]
        trend = "trend in" if self.graded[self.b[j]] else "difference by"
        named = (f"{trend} {one}", f"curve in {one}", f"interaction of {self.names[self.a[j]]} and {one}")
        return named[self.shape[j]] + " that changes over time" * over_time


KINDS = ("trend", "curve", "interaction")


def _scores(features: _Features, residuals: _Residuals, groups: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Sums of L over each group, (groups, 2 q), and predictable variances, (2 q,): constant weights first."""
    from scipy.sparse import csr_array

    n, g, q = len(groups), int(groups.max()) + 1, len(features.a)
    belongs = csr_array((residuals.weight, (groups, np.arange(n))), shape=(g, n))
    whole, by_interval = zip(*(residuals.of(phi) for phi in (0, 1)), strict=True)
    split = [belongs @ parts for parts in by_interval]
    L, V = np.empty((g, 2 * q)), np.empty((2, q))
    for part, Z in features.chunks():
        mean = residuals.sums_at_risk(np.zeros(n, dtype=np.intp), Z)[0] / residuals.at_risk[:, None]
        V[:, part] = residuals.predictable_variance(groups, Z, mean)
        for phi in (0, 1):
            columns = slice(phi * q + part.start, phi * q + part.stop)
            L[:, columns] = belongs @ (whole[phi][:, None] * Z) - split[phi] @ mean
    return L, V.reshape(-1)


def _under_signs(
    L: np.ndarray, variance: np.ndarray, inflation: float, rng: np.random.Generator
) -> np.ndarray:
    """Standardised scores under changes of signs, (FLIPS + 1, q); the first line is as observed."""
    error = np.sqrt((L**2).sum(axis=0))
    z = _signs(len(L), rng) @ (L / error)
    # scores divided by the inflation as Student's t: |z| cannot exceed the root of the number of groups
    g, observed = len(L), z[0] * error / np.sqrt(variance)
    t_squared = observed**2 / np.maximum(1 - observed**2 / g, 1e-12) / inflation**2
    z[0] = np.sign(observed) * np.sqrt(t_squared / (1 + t_squared / g))
    return z


def _decide(z: np.ndarray, features: _Features, columns: np.ndarray) -> dict[str, Any]:
    """p-values and the most significant departure, from scores (FLIPS + 1, q) of the selected features."""
    kind = np.append(features.shape, features.shape + 3)[columns]
    evidence = {}
    for which in np.unique(kind):
        squares = z[:, kind == which] ** 2
        measure = _of_largest(np.sqrt(squares.max(axis=1)))
        if squares.shape[1] > 1:
            measure = np.maximum(measure, _of_sum(squares.sum(axis=1)))
        evidence[int(which)] = measure
    most = np.max(list(evidence.values()), axis=0)

    def p_value(value: float) -> float:
        return float(np.mean(most >= value * (1 - 1e-12)))

    loudest = max(evidence, key=lambda which: evidence[which][0])
    inside = np.nonzero(kind == loudest)[0]
    top = inside[np.argmax(np.abs(z[0, inside]))]
    order = np.argsort(-np.abs(z[0]), kind="stable")[:10]
    words = {which: KINDS[which % 3] + " over time" * (which >= 3) for which in evidence}
    return {
        "p_value": p_value(most[0]),
        "kind": features.name(int(columns[top])),
        "kinds": {words[which]: p_value(measure[0]) for which, measure in evidence.items()},
        "features": {features.name(int(columns[j])): float(z[0, j]) for j in order},
    }


def _signs(groups: int, rng: np.random.Generator) -> np.ndarray:
    """Random signs (FLIPS + 1, groups), all positive in the first line."""
    size = (FLIPS + 1) * groups
    bits = np.unpackbits(np.frombuffer(rng.bytes(size // 8 + 1), dtype=np.uint8), count=size)
    signs = bits.reshape(FLIPS + 1, groups) * 2.0 - 1.0
    signs[0] = 1.0
    return signs


def _of_largest(largest: np.ndarray) -> np.ndarray:
    """-log p of the largest of |z|, as if of as many independent ones as fit the median."""
    from scipy.special import log_ndtr

    tail = np.log(2) + log_ndtr(-np.maximum(largest, 1e-6))
    median = np.median(tail)
    number = max(np.log(0.5) / np.log1p(-np.exp(min(median, -1e-9))), 1.0)
    return -np.log(-np.expm1(number * np.log1p(-np.exp(np.minimum(tail, -1e-9)))))


def _of_sum(total: np.ndarray) -> np.ndarray:
    """-log p of a sum of squares, by the chi-square distribution with its mean and variance."""
    from scipy.special import chdtrc

    mean, variance = total.mean(), max(total.var(), np.finfo(float).tiny)
    p = chdtrc(2 * mean**2 / variance, 2 * mean * total / variance)
    return -np.log(np.maximum(p, np.finfo(float).tiny))
