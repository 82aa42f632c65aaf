r"""From losses per subject to means, intervals and tests.

Every mean of losses is kept together with its *influence* :math:`\psi`: a vector whose sum of squares is the
variance of the mean. It has one entry per independent subject (or cluster of subjects), and further entries
for whatever else was estimated, the censoring distribution. Differences and skills are smooth functions of
means, so that their influence is a linear combination, and one formula gives every standard error.

**Small samples.** Losses are skewed, events few, clusters fewer, so that (value - truth) / standard error is
not normal. Two corrections come from the influence itself, and serve means, differences, skills, subgroups
and clusters alike. With :math:`V=\sum\psi^2`,

.. math::
    \gamma=\frac{\sum\psi^3}{V^{3/2}}\cdot\frac{(\sum\psi^3)^2}{(\sum\psi^3)^2+\sum\psi^6},\qquad
    g(z)=\frac{(1+\gamma z/3)^3-1}{\gamma}+\frac{\gamma}{6},\qquad
    \nu=\min\Bigl(m-1,\frac{2V^2}{\sum\psi^4}\Bigr).

Hall's transformation g removes the skewness of the studentised value; it is increasing, so that it turns
into an interval. The skewness is shrunk by its noise, of which :math:`\sum\psi^6` is the variance: where few
contributions of either sign carry it, as in differences with few events, the plain estimate would do more
harm than good. The result is compared with Student's distribution with :math:`\nu` degrees of freedom:
Satterthwaite's :math:`2V^2/\mathrm{var}(V)`, with the variance of V, a sum of m independent squares,
estimated by :math:`\sum\psi^4`, and never more than the m - 1 of the t-test. If k contributions of equal
size carry all the variance, it is 2k. Bell and McCaffrey derive the same quantity from a model of the errors
within clusters.

References
----------
.. [1] Satterthwaite, F. E. (1946). An approximate distribution of estimates of variance components.
   Biometrics Bulletin 2, 110-114.
.. [2] Johnson, N. J. (1978). Modified t tests and confidence intervals for asymmetrical populations. JASA
   73, 536-544.
.. [3] Hall, P. (1992). On the removal of skewness by transformation. JRSS B 54, 221-228.
.. [4] Bell, R. M. and McCaffrey, D. F. (2002). Bias reduction in standard errors for linear regression with
   multi-stage samples. Survey Methodology 28, 169-181.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from math import comb
from typing import Any, Self

import numpy as np

from censcore._kept_values import KeepsValues
from censcore._validation import as_labels, as_seed, as_weights
from censcore.exceptions import InvalidInputError

POWERS = (2, 3, 4, 6)  # of the influence, whose sums give skewness and degrees of freedom
MOST_STEPS = 40  # outwards in search of an end of an interval, each half as long again as the last
AT_ONCE = 256  # pairs whose influences are in memory together
SMALLEST_P = 1e-16  # no approximation to a tail resolves less; smaller p-values are given as this
ROUNDING = 1e-12  # relative to the value: a standard error below it is rounding, not spread


UNITS = "units"  # the block of contributions by the numbers of units, of scored and training subjects
EMPTY_ROWS = np.zeros(0, dtype=np.intp)
Rows = dict[str, np.ndarray]
"""Numbers of what the contributions are of, by block: the first entries are of the first block, and so on."""


@dataclass(frozen=True, eq=False)
class Estimate(KeepsValues):
    """An estimate and the vector whose sum of squares is its variance.

    Parameters
    ----------
    value : array, (q,)
        One number per column.
    influence : array, (m, q)
        Contributions of what is independent of each other.
    rows : dict of str to array of int
        Numbers of the contributions by block, where they are known: of units in the first, and of whatever
        else was estimated. Estimates that are averaged have their units in common by these.

    Notes
    -----
    ``interval`` and ``p_value`` agree: the p-value is below 1 - confidence if and only if the interval
    excludes zero. Both are NaN where nothing varies, since an observed spread of zero does not
    imply certainty.

    Examples
    --------
    >>> import numpy as np
    >>> from censcore.evaluation.inference.estimates import Estimate
    >>> from censcore.scores import clustered_mean
    >>> losses = np.array([[0.0], [0.1], [0.1], [0.3], [0.9]])
    >>> mean = Estimate(*clustered_mean(losses, np.full(5, 0.2)))
    >>> low, high = mean.interval(0.95)                  # longer towards the long tail
    >>> round(float(mean.value[0]), 2), round(float(low[0]), 2), round(float(high[0]), 2)
    (0.28, -0.11, 0.94)
    """

    value: np.ndarray
    influence: np.ndarray
    rows: Rows = field(default_factory=dict, kw_only=True)

    def with_contributions(self, more: np.ndarray, name: str) -> Estimate:
        """Add a block of contributions (m, q), of what is independent of those it has."""
        rows = self.rows | {name: np.arange(len(more))}
        return Estimate(self.value, np.concatenate([self.influence, more]), rows=rows)

    def without_contributions(self) -> Estimate:
        """Leave the value alone."""
        return Estimate(self.value, self.influence[:0])

    def renumbered(self, unit: np.ndarray) -> Estimate:
        """Give each of its units another number, which several of them may have."""
        return replace(self, rows=self.rows | {UNITS: unit[self.rows[UNITS]]})

    @property
    def blocks(self) -> dict[str, np.ndarray]:
        """The contributions by block."""
        ends = np.cumsum([len(number) for number in self.rows.values()])
        return dict(zip(self.rows, np.split(self.influence, ends[:-1]), strict=True))

    @property
    def size(self) -> int:
        """How many contributions there are."""
        return len(self.influence)

    @cached_property
    def divisor(self) -> np.ndarray:
        """What the influence is divided by before its powers are taken, (q,): a power of two, mostly one."""
        psi = self.influence
        size = np.maximum(psi.max(axis=0, initial=0.0), -psi.min(axis=0, initial=0.0))
        far = ~((size > 1e-40) & (size < 1e40)) & (size > 0) & (size < np.inf)
        return np.where(far, np.ldexp(0.5, np.frexp(np.where(far, size, 1.0))[1]), 1.0)

    @cached_property
    def powers(self) -> np.ndarray:
        """Sums of the powers 2, 3, 4 and 6 of the divided influence, (4, q); NaN where a loss is infinite."""
        psi = self.influence if (self.divisor == 1).all() else self.influence / self.divisor
        square = psi * psi
        factors = (psi, psi), (square, psi), (square, square), (cube := square * psi, cube)
        return np.stack([np.einsum("mq,mq->q", a, b) for a, b in factors])

    @property
    def standard_error(self) -> np.ndarray:
        """The root of the sum of squares of the influence, (q,)."""
        return self.divisor * np.sqrt(self.powers[0])

    def column(self, j: int) -> Estimate:
        """The estimate of one column."""
        return self.columns(slice(j, j + 1))

    def columns(self, which: slice | np.ndarray) -> Estimate:
        """The estimate of some columns."""
        return Estimate(self.value[which], self.influence[:, which], rows=self.rows)

    @staticmethod
    def differences(estimates: Sequence[Any]) -> Differences:
        """Of estimates of one column: the first less the second of every pair of them, side by side."""
        every, (a, b) = beside(estimates), pairs_of(len(estimates))
        powers, scale = np.zeros((len(POWERS), len(a))), np.maximum(*np.abs(every.value[[a, b]]))
        divisor = np.ones(len(a))
        for start in range(0, len(a), AT_ONCE):
            some = slice(start, start + AT_ONCE)
            block = Estimate(a[some], _minus(*(every.influence[:, i[some]] for i in (a, b))))
            powers[:, some], divisor[some] = block.powers, block.divisor
        known = np.where(np.isfinite(every.influence).all(axis=0), every.influence, 0.0)
        root: np.ndarray = np.linalg.qr(known, mode="r")  # type: ignore[assignment]  # its stub
        value = _minus(*every.value[[a, b]])
        found = Differences(value, EMPTY, powers, every.size, divisor, root, np.array([a, b]))
        return found._beyond_rounding(scale)

    def unit(self, which: np.ndarray) -> np.ndarray:
        """Vectors of length one, in columns, whose products are the correlations of some columns."""
        return self.influence[:, which] / self.standard_error[which]

    def residual_products(self, reference: Estimate) -> tuple[float, float, np.ndarray, int]:
        r"""Of estimates of one column: scale s, slope beta, and sums of products of powers, (7, 7).

        With :math:`\psi/s=\beta\psi_0/s+\varepsilon` by least squares, entry (i, j) is the sum of
        :math:`\varepsilon^i(\psi_0/s)^j` for i + j <= 6; last is the number of contributions.
        """
        scale = float(np.hypot(self.standard_error[0], reference.standard_error[0]))
        psi, psi0 = self.influence[:, 0] / scale, reference.influence[:, 0] / scale
        beta = float(psi @ psi0) / max(float(psi0 @ psi0), 1e-300)
        return scale, beta, powers_up_to_6(psi - beta * psi0) @ powers_up_to_6(psi0).T, len(psi)

    @cached_property
    def varies(self) -> np.ndarray:
        """Whether the standard error is known and more than rounding, (q,)."""
        with np.errstate(invalid="ignore"):
            return np.isfinite(self.value) & (self.standard_error > ROUNDING * np.abs(self.value))

    @property
    def skewness(self) -> np.ndarray:
        """gamma, the skewness of the estimate, shrunk by its noise, (q,)."""
        return self._corrections[0]

    @property
    def degrees_of_freedom(self) -> np.ndarray:
        """nu, of Student's distribution that the statistic is compared with, (q,); at least one."""
        return self._corrections[1]

    @cached_property
    def _corrections(self) -> tuple[np.ndarray, np.ndarray]:
        error, sums = np.where(self.varies, np.sqrt(self.powers[0]), np.nan), self.powers
        with np.errstate(invalid="ignore"):
            return corrections({p: s / error**p for p, s in zip(POWERS, sums, strict=True)}, self.size)

    def interval(self, confidence: float = 0.95) -> tuple[np.ndarray, np.ndarray]:
        """Ends of the confidence interval, (q,) each."""
        from scipy.special import stdtrit

        x = stdtrit(self.degrees_of_freedom, 0.5 + confidence / 2)
        error, gamma = np.where(self.varies, self.standard_error, np.nan), self.skewness
        return self.value - error * hall_inverse(x, gamma), self.value - error * hall_inverse(-x, gamma)

    @cached_property
    def p_value(self) -> np.ndarray:
        """Two-sided p-value of "the value is zero", (q,)."""
        from scipy.special import stdtr

        with np.errstate(divide="ignore", invalid="ignore"):
            x = hall(self.value / np.where(self.varies, self.standard_error, np.nan), self.skewness)
        return np.maximum(2 * stdtr(self.degrees_of_freedom, -np.abs(x)), SMALLEST_P)

    def aligned(self, other: Estimate) -> tuple[np.ndarray, np.ndarray, Rows]:
        """The influences of two estimates by the units of both, where they are of different ones."""
        a, b = self.rows, other.rows
        unknown = a is b or not (a and b)
        if unknown or (a.keys() == b.keys() and all(np.array_equal(a[name], b[name]) for name in a)):
            return self.influence, other.influence, a
        rows = {name: np.union1d(*(of.get(name, EMPTY_ROWS) for of in (a, b))) for name in {**a, **b}}

        def spread(of: Estimate) -> np.ndarray:
            parts = {name: np.zeros((len(number), of.influence.shape[1])) for name, number in rows.items()}
            for name, psi in of.blocks.items():
                parts[name][np.searchsorted(rows[name], of.rows[name])] = psi
            return np.concatenate([*parts.values()])

        return spread(self), spread(other), rows

    def __add__(self, other: Estimate) -> Estimate:
        psi, phi, rows = self.aligned(other)
        return Estimate(self.value + other.value, psi + phi, rows=rows)

    def __truediv__(self, other: Estimate) -> Estimate:
        r"""Divide by another estimate: :math:`r=a/b` with :math:`(\psi_a-r\psi_b)/b`; NaN where b is zero."""
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(other.value != 0, self.value / other.value, np.nan)
            psi, phi, rows = self.aligned(other)
            return Estimate(ratio, (psi - ratio * phi) / other.value, rows=rows)

    def __sub__(self, other: Estimate) -> Estimate:
        psi, phi, rows = self.aligned(other)
        difference = Estimate(_minus(self.value, other.value), _minus(psi, phi), rows=rows)
        return difference._beyond_rounding(np.maximum(np.abs(self.value), np.abs(other.value)))

    def _beyond_rounding(self, scale: np.ndarray) -> Self:
        """Zero where value and error are rounding of numbers of this size, as for two equal forecasts."""
        with np.errstate(invalid="ignore"):
            size = np.maximum(np.abs(self.value), self.standard_error)
            equal = (size <= ROUNDING * scale) & np.isfinite(scale)
        return self._zero_where(equal) if equal.any() else self

    def _zero_where(self, equal: np.ndarray) -> Self:
        value, influence = (np.where(equal, 0.0, values) for values in (self.value, self.influence))
        return replace(self, value=value, influence=influence)

    def skill(self, reference: Estimate) -> Estimate:
        """1 - value / reference, by the delta method; :func:`skill_interval` has the better interval."""
        ratio = self / reference
        return Estimate(1 - ratio.value, -ratio.influence, rows=ratio.rows)._beyond_rounding(
            np.ones_like(ratio.value)
        )


EMPTY = np.zeros((0, 1))


@dataclass(frozen=True, eq=False)
class SummedEstimate(Estimate):
    """An estimate whose influence is empty, and the sums of the powers of that influence are known."""

    summed: np.ndarray  #: sums of the powers 2, 3, 4 and 6, (4, q)
    count: int  #: how many contributions there were
    divided_by: np.ndarray  #: what these were divided by, (q,)

    @property
    def divisor(self) -> np.ndarray:
        """What contributions were divided by."""
        return self.divided_by

    @property
    def powers(self) -> np.ndarray:
        """As they were summed."""
        return self.summed

    @property
    def size(self) -> int:
        """How many contributions there were."""
        return self.count

    def columns(self, which: slice | np.ndarray) -> Self:
        """The estimate of some columns."""
        value, summed, divisor = self.value[which], self.summed[:, which], self.divided_by[which]
        return replace(self, value=value, summed=summed, divided_by=divisor)

    def _zero_where(self, equal: np.ndarray) -> Self:
        value, summed = (np.where(equal, 0.0, values) for values in (self.value, self.summed))
        return replace(self, value=value, summed=summed)


@dataclass(frozen=True, eq=False)
class Differences(SummedEstimate):
    """The differences of all pairs of k models, whose correlations follow from k vectors."""

    root: np.ndarray  #: a column for each model, (r, k); products of differences of columns are covariances
    pairs: np.ndarray  #: numbers of the two models of each difference, (2, q)

    def columns(self, which: slice | np.ndarray) -> Self:
        """Some of the differences."""
        return replace(super().columns(which), pairs=self.pairs[:, which])

    def unit(self, which: np.ndarray) -> np.ndarray:
        """Vectors of length one, in columns, whose products are the correlations of some differences."""
        a, b = self.pairs[:, which]
        return (self.root[:, a] - self.root[:, b]) / self.standard_error[which]


def pairs_of(k: int) -> np.ndarray:
    """Numbers of the first and of the second model of every pair of k models, (2, k (k - 1) / 2)."""
    return np.stack(np.triu_indices(k, 1))


def beside(estimates: Sequence[Estimate]) -> Estimate:
    """The columns of all of them as one estimate."""
    return Estimate(
        np.concatenate([each.value for each in estimates]),
        np.concatenate([each.influence for each in estimates], axis=1),
    )


def skill_interval(mean: Estimate, reference: Estimate, confidence: float = 0.95) -> tuple[float, float]:
    r"""Fieller's interval of the skill 1 - mean / reference, for estimates of one column.

    It holds every 1 - r for which the data do not refute that mean - r reference is zero,

    .. math:: \{1-r:\ |g\{z(r)\}|\le t_{\nu(r)}\},\qquad z(r)=\frac{\bar\ell-r\bar\ell_0}{\|\psi-r\psi_0\|},

    with skewness and degrees of freedom of :math:`\psi-r\psi_0`. So it excludes zero if and only if the
    interval of the difference does, which the delta method does not ensure; and it is right where the
    reference is uncertain. An end is infinite where no value on that side is rejected.

    References
    ----------
    .. [1] Fieller, E. C. (1954). Some problems in interval estimation. JRSS B 16, 175-185.
    """
    from scipy.optimize import brentq
    from scipy.special import stdtrit

    ratio = mean.skill(reference)
    if not (mean.varies[0] or reference.varies[0]) or not ratio.varies[0]:
        return np.nan, np.nan
    # psi = beta psi_0 + epsilon by least squares, so that psi - r psi_0 = epsilon + (beta - r) psi_0, whose
    # power sums are polynomials in r without cancellation
    scale, beta, products, m = mean.residual_products(reference)
    sums = {p: [comb(p, i) * float(products[p - i, i]) for i in range(p + 1)] for p in POWERS}

    def refuted(r: float) -> float:
        """How far mean - r reference is beyond its critical value."""
        power = {p: sum(c * (beta - r) ** i for i, c in enumerate(sums[p])) for p in POWERS}
        if power[2] < 1e-28:  # nothing varies at this r
            return np.inf
        z = (float(mean.value[0]) - r * float(reference.value[0])) / (scale * np.sqrt(power[2]))
        gamma, nu = corrections(power, m)
        return float(abs(hall(z, gamma)) - stdtrit(nu, 0.5 + confidence / 2))

    center, step = 1 - float(ratio.value[0]), float(ratio.standard_error[0])
    ends = []
    for sign in (-1.0, 1.0):
        inner, width = center, step
        for _ in range(MOST_STEPS):
            outer = center + sign * width
            if refuted(outer) > 0:
                ends.append(float(brentq(refuted, inner, outer, xtol=1e-10 * step + 1e-300)))
                break
            inner, width = outer, 1.5 * width
        else:
            ends.append(sign * np.inf)
    return 1 - ends[1], 1 - ends[0]


def powers_up_to_6(values: np.ndarray) -> np.ndarray:
    """Powers 0 to 6 of an influence (m,), (7, m), by multiplication, which is faster than ``**``."""
    powers = np.ones((POWERS[-1] + 1, *values.shape))
    for k in range(POWERS[-1]):
        np.multiply(powers[k], values, out=powers[k + 1])
    return powers


def corrections(sums: dict[int, Any], m: int) -> tuple[Any, Any]:
    """Skewness gamma and degrees of freedom nu from the sums of powers 2, 3, 4 and 6 of an influence."""
    V, third, fourth, sixth = (sums[p] for p in POWERS)
    gamma = third / V**1.5 * third**2 / (third**2 + sixth)
    return gamma, np.maximum(np.minimum(2 * V**2 / fourth, m - 1), 1.0)


def hall(z: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    r"""Hall's transformation :math:`g(z)=z+\gamma z^2/3+\gamma^2z^3/27+\gamma/6` of a studentised value."""
    return z + gamma * z**2 / 3 + gamma**2 * z**3 / 27 + gamma / 6


def hall_inverse(x: np.ndarray, gamma: np.ndarray) -> np.ndarray:
    r"""The z with g(z) = x: :math:`z=3\gamma^{-1}[\{1+\gamma(x-\gamma/6)\}^{1/3}-1]`."""
    y = x - gamma / 6
    root = np.cbrt(1 + gamma * y)
    # (root - 1) / gamma without cancellation
    return 3 * y / (root**2 + root + 1)


def effective_number(weight: np.ndarray, groups: np.ndarray | None = None) -> float:
    r"""Kish's effective number :math:`(\sum w)^2/\sum w^2` of subjects, or of groups by their weight.

    References
    ----------
    .. [1] Kish, L. (1965). Survey Sampling. Wiley.
    """
    total = weight if groups is None else np.bincount(groups, weight)
    if not total.any():
        return 0.0
    total = total / total.max()  # so that equal weights give whole numbers
    return float(total.sum()) ** 2 / float(total @ total)


def separate_stream(seed: int | None) -> np.random.Generator:
    """Random numbers apart from those of ``default_rng(seed)``.

    Data are often drawn from ``default_rng(seed)``. Bootstrap samples from the same stream would follow the
    data, and their spread would be wrong.
    """
    entropy = None if seed is None else as_seed(seed)
    return np.random.default_rng(np.random.SeedSequence(entropy, spawn_key=(1,)))


def _minus(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    with np.errstate(invalid="ignore"):  # infinity minus infinity is NaN
        return a - b


def shares(sample_weight: Any, n: int) -> np.ndarray:
    """Weights of n subjects that sum to one."""
    if sample_weight is None:
        return np.full(n, 1 / n)
    weight = as_weights(sample_weight, n)
    return weight / weight.sum()


def group_codes(groups: Any, n: int) -> np.ndarray | None:
    """Labels of any kind as numbers from 0, one per subject."""
    if groups is None:
        return None
    labels = as_labels(groups, n)
    if n > 1 and len(np.unique(labels)) == 1:
        raise InvalidInputError(
            f"groups: got one group of all {n} subjects, expected at least two. Groups are independent of "
            "each other, and errors are estimated from how they differ. Leave groups out if all subjects are."
        )
    return np.unique(labels, return_inverse=True)[1].reshape(-1)
