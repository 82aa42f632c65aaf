"""Step distributions that share one baseline hazard."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from censcore._arrays import Array, ArrayLike, detach, requires_grad, searchsorted, take_along, to_numpy
from censcore._numerics import chunked_rows, log1p, safe_log
from censcore._risk_tables import RISKS, AreaTable, RiskGroup, interpolation_error, risk_groups
from censcore._validation import check_positive
from censcore.distributions.distribution import as_column
from censcore.distributions.univariate.step import Step
from censcore.distributions.univariate.univariate import ByLogSurvival, Univariate
from censcore.exceptions import InvalidInputError

WORTH_TABLES = 500_000  # jumps of all subjects together from which tables of areas are faster than curves
CACHED_NUMBERS = 50_000  # read at a time
KEPT_TABLES = 100_000  # subjects and jumps up to which tables are kept for the next score
TOLERANCE = 1e-10  # of an area from tables, relative to it


class ProportionalHazards(ByLogSurvival):
    r"""Step distributions with proportional cumulative hazards, :math:`P(T>t\mid x)=\exp\{-r(x)H_0(t)\}`.

    With :math:`H_0=-\sum_{u\le t}\log\{1-d\Lambda_0(u)\}` this is the product-limit form
    :math:`\prod_{u\le t}\{1-d\Lambda_0(u)\}^{r(x)}`, infinite after a jump that nobody survives.

    The baseline is stored once and each subject adds one number: the forecasts of a Cox model for 20,000
    subjects with 20,000 jumps take 40,000 numbers and not 400 million. What the last jump leaves sits at
    infinity.

    Parameters
    ----------
    times : array, (J,)
        Jumps of the baseline: finite, non-negative, strictly increasing.
    cumulative_hazard : array, (J,)
        H_0 after each jump: non-negative and not decreasing; infinite where nobody survives.
    risk : array or number
        r > 0, one per subject.

    References
    ----------
    D. R. Cox (1972). Regression models and life-tables. Journal of the Royal Statistical Society, Series B
    34, 187-220.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.distributions import ProportionalHazards
    >>> distribution = ProportionalHazards([1.0, 2.0], [0.1, 0.5], risk=[1.0, 3.0])
    >>> distribution.sf(2.0).round(3), distribution.sf_left(2.0).round(3)
    (array([0.607, 0.223]), array([0.905, 0.741]))
    >>> distribution.icdf(0.3)
    array([2., 2.])
    """

    has_density: ClassVar[bool] = False
    form = "steps"
    is_estimate = True  # its jumps are those of data
    _times: Array
    _hazard: Array
    _risk: Array

    def __init__(self, times: ArrayLike, cumulative_hazard: ArrayLike, risk: ArrayLike) -> None:
        self.store(times=times, hazard=cumulative_hazard, risk=risk)
        if self._times.ndim != 1 or tuple(self._hazard.shape) != tuple(self._times.shape):
            raise InvalidInputError(
                "times and cumulative_hazard must be one-dimensional and equally long; got shapes "
                f"{tuple(self._times.shape)} and {tuple(self._hazard.shape)}."
            )
        xp, t, H = self.xp, detach(self._times), detach(self._hazard)
        check_positive(t, "times", zero=True)
        check_positive(H, "cumulative_hazard", zero=True, infinite=True)
        if t.shape[0] == 0 or bool(xp.any(t[1:] <= t[:-1])) or bool(xp.any(H[1:] < H[:-1])):
            raise InvalidInputError(
                "times must increase strictly and cumulative_hazard not decrease, with at least one jump; "
                f"got times {_beginning(t)} and cumulative_hazard {_beginning(H)}. Sort both by time."
            )
        self._risk = as_column(self._risk, "risk", "ProportionalHazards")
        check_positive(self._risk, "risk")
        self._times, self._hazard = self._times[None, :], self._hazard[None, :]

    @property
    def risk(self) -> Array:
        """Hazard of every subject relative to the baseline, (n,) or (1,)."""
        return self._risk[:, 0]

    def baseline(self) -> tuple[Array, Array]:
        """Return the jumps (J,), and the cumulative hazard after 0, 1, ..., J of them, (J + 1,)."""

        def make() -> tuple[Array, Array]:
            return self._times[0], self.xp.concat([self.xp.zeros_like(self._hazard[0, :1]), self._hazard[0]])

        return self.remember("baseline", make)

    def with_risks(self, risk: Array) -> ProportionalHazards:
        """Return distributions with the same baseline and other risks."""
        return ProportionalHazards(self._times[0], self._hazard[0], risk)

    def _after(self, count: Array) -> Array:
        """The cumulative hazard of each subject after ``count`` jumps."""
        return self._scaled(take_along(self.baseline()[1][None], count))

    def _scaled(self, hazard: Array) -> Array:
        """Risk times hazard; an infinite one, after which nothing is left, has no gradient."""
        xp = self.xp
        endless = xp.isinf(hazard)
        with np.errstate(over="ignore"):  # beyond the largest float it is infinite
            if not bool(xp.any(endless)):
                return self._risk * hazard
            product = self._risk * xp.where(endless, 0.0, hazard)
        return xp.where(endless, np.inf, product)

    def logsf_at(self, t: Array) -> Array:
        xp = self.xp
        value = -self._after(searchsorted(self._times, t, "right"))
        return xp.where(xp.isinf(t), -np.inf, value)

    def sf_left_at(self, t: Array) -> Array:
        return self.xp.exp(-self._after(searchsorted(self._times, t, "left")))

    def steps(self) -> tuple[Array, Array]:
        """The curves of all subjects, (1, J) and (n, J): to be asked of few subjects at a time."""
        return self._times, self.xp.exp(-self._scaled(self._hazard))

    def isf_at(self, p: Array) -> Array:
        return self._first_jump(-safe_log(p), lambda H: self.xp.exp(-H) <= p, p < 1)

    def icdf_at(self, p: Array) -> Array:
        xp = self.xp
        half_unit = float(xp.finfo(p.dtype).eps) / 4  # from here on F rounds to p, if p is a half or more
        level = xp.where(p < 0.5, -log1p(-xp.clip(p, 0.0, 0.5)), -xp.log(1 - p + half_unit))
        t = self._first_jump(level, lambda H: -xp.expm1(-H) >= p, p > 0)
        return xp.where(p < 1, t, self.isf_at(xp.zeros_like(p)))

    def _first_jump(self, level: Array, reached: Callable[[Array], Array], later: Array) -> Array:
        """The first jump whose cumulative hazard reaches ``level``, judged by the probabilities themselves.

        Rounding of the logarithm may miss by one jump to either side, so both neighbours are tried.
        """
        xp = self.xp
        n_jumps = self._times.shape[1]
        with np.errstate(over="ignore"):  # beyond all jumps
            baseline = level / self._risk
        count = searchsorted(self._hazard, baseline, "left")
        count = xp.where((count > 0) & reached(detach(self._after(count))), count - 1, count)
        in_time = xp.clip(count, 0, n_jumps - 1)
        count = xp.where(reached(detach(self._after(in_time + 1))) | (count == n_jumps), count, count + 1)
        return xp.where(later, self._jump(count), 0.0)

    def _jump(self, count: Array) -> Array:
        """The time of the jump after the first ``count``, infinite where there is none left."""
        xp = self.xp
        return take_along(xp.concat([self._times, xp.full_like(self._times[:, :1], np.inf)], axis=1), count)

    def icdf_beyond_at(self, y: Array, p: Array) -> Array:
        """The hazard at the quantile exceeds that before y by -log(1 - p)."""
        xp = self.xp
        before = self._after(searchsorted(self._times, y, "left"))
        level = before - log1p(-p)
        slack = 4 * float(xp.finfo(level.dtype).eps)  # of both logarithms, which must not skip a jump
        with np.errstate(over="ignore"):  # beyond all jumps
            baseline = (level * (1 - slack) - slack) / self._risk
        count = searchsorted(self._hazard, baseline, "left")
        t = xp.maximum(self._jump(count), y + xp.zeros_like(level))
        return xp.where((p > 0) & xp.isfinite(before), t, y + xp.zeros_like(level))

    def integrated_sf_at(self, a: Array, b: Array) -> Array:
        """Exact: the area of the steps, in chunks of subjects since each has a curve of its own."""
        rows = max(len(self), a.shape[0])

        def part(chosen: slice) -> Array:
            distribution = self.take(chosen) if len(self) > 1 else self
            low, high = (t if t.shape[0] == 1 else t[chosen] for t in (a, b))
            return distribution._area(low, high)

        if requires_grad(self._risk) or requires_grad(self._hazard):
            return part(slice(0, rows))
        if self._area_tables_pay(rows, max(a.shape[1], b.shape[1])):
            return self._area_by_tables(a, b, rows)
        return chunked_rows(part, rows, 4 * self._times.shape[1], self._risk)

    def _area_tables_pay(self, rows: int, columns: int) -> bool:
        """Whether reading tables at few risks costs less than the curve of every subject."""
        double = type(self._risk) is np.ndarray and self._risk.dtype == np.float64
        jumps = self._times.shape[1]
        return double and len(self) == rows and rows * jumps >= WORTH_TABLES and 8 * columns < jumps

    def _area_by_tables(self, a: Array, b: Array, rows: int) -> Array:
        """The same from tables at a few risks, in which the area is smooth; few subjects by their curves."""
        wide = (rows, max(a.shape[1], b.shape[1]))
        one_start = a.shape[1] == 1 or a.strides[1] == 0  # of a subject, for all its ends
        low, high = np.broadcast_to(a, wide), np.broadcast_to(b, wide)
        low, some_area = low[:, :1] if one_start else low, high > low
        before_low, before_high = searchsorted(self._times, low, "left"), np.zeros(wide, dtype=np.intp)
        before_high[some_area] = searchsorted(self._times, high[some_area][None], "left")[0]
        area, step = np.zeros(wide), CACHED_NUMBERS // RISKS
        for group, table in area_tables(self):
            number, column = some_area[group.rows].nonzero()
            since = table.up_to(low[group.rows, 0], before_low[group.rows, 0])
            for start in range(0, len(number), step):
                i, j = number[start : start + step], column[start : start + step]
                subjects = group.rows[i]
                at_risks = table.up_to(high[subjects, j], before_high[subjects, j])
                if one_start:
                    at_risks -= since.take(i, axis=0)
                else:
                    at_risks -= table.up_to(low[subjects, j], before_low[subjects, j])
                value = area[subjects, j] = np.einsum("pk,pk->p", at_risks, group.mix.take(i, axis=0))
                slack = TOLERANCE * np.abs(value) + 8 * np.finfo(np.float64).eps * high[subjects, j]
                bad = np.unique(subjects[interpolation_error(at_risks) > slack])
                if bad.size:
                    area[bad] = self.take(bad)._area(low[bad], high[bad])
        return area

    def _area(self, a: Array, b: Array) -> Array:
        return Step.trusted(*self.steps(), falls=True).integrated_sf_at(a, b)

    def prob_never(self) -> Array:
        return self.xp.exp(-self._scaled(self._hazard[:, -1:]))[:, 0]

    def breaks(self) -> Array:
        return self._times

    def censor_at(self, tau: ArrayLike) -> Univariate:
        """The distribution of min(T, tau); of the same kind where ``tau`` is one number."""
        distribution, end = self._with_end(tau)
        xp = distribution.xp
        if end.shape[0] > 1 or bool(xp.isinf(end).any()):
            return super(ProportionalHazards, distribution).censor_at(end[:, 0])
        earlier = int(searchsorted(distribution._times, end, "left")[0, 0])
        times = xp.concat([distribution._times[:, :earlier], end], axis=1)
        hazard = xp.concat([distribution._hazard[:, :earlier], xp.full_like(end, np.inf)], axis=1)
        return distribution.replaced(_times=times, _hazard=hazard)


def area_tables(F: ProportionalHazards, *, inverse: bool = False) -> list[tuple[RiskGroup, AreaTable]]:
    """Groups of risks with the areas under their survival functions S, or under 1/S, kept if they are small.

    >>> F = ProportionalHazards([1.0, 2.0], [0.1, 0.5], risk=[1.0, 3.0])
    >>> [group.rows.tolist() for group, _ in area_tables(F)]
    [[0], [1]]
    """

    def make() -> list[tuple[RiskGroup, AreaTable]]:
        baseline = F.baseline()
        groups = risk_groups(F._risk[:, 0])
        return [(group, AreaTable(*baseline, group.risks, inverse=inverse)) for group in groups]

    small = len(F) + F._times.shape[1] <= KEPT_TABLES
    return F.remember(("area tables", inverse), make) if small else make()


def _beginning(values: Array) -> str:
    return np.array2string(to_numpy(values)[:6], precision=4, threshold=6)
