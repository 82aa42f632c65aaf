"""Survival curves that are step functions: as given, made of something else, or stored in half the space."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from censcore._arrays import (
    Array,
    ArrayLike,
    as_float,
    common_rows,
    is_neutral,
    is_torch,
    namespace,
    searchsorted,
    take_along,
)
from censcore._numerics import chunked_rows
from censcore._validation import check_probabilities
from censcore.distributions.contract import forwarded
from censcore.distributions.distribution import _are_alike
from censcore.distributions.univariate.curve import Curve
from censcore.distributions.univariate.univariate import Univariate


class Step(Curve):
    r"""The distribution with a right-continuous step function as its survival curve.

    :math:`P(T>t)` is 1 before the first time, the level of the last time at or before t afterwards; what
    is left after the last time sits at infinity. All mass sits in atoms, at times whose level drops.

    Parameters
    ----------
    times : array, (J,) or (n, J)
        Distinct, finite and non-negative; common to all subjects or one set per subject. In any
        order: columns are sorted together with their times.
    sf, cdf : array, (J,) or (n, J)
        Exactly one of P(T > time) and P(T <= time), one row per subject or one for all.

    Notes
    -----
    Levels outside [0, 1] or turning back are errors, except by rounding: where a change of at most 1e-6 makes
    a curve valid, it is made. :func:`as_forecast` repairs larger violations on request.

    Examples
    --------
    >>> import censcore as cs
    >>> distribution = cs.Step(times=[1.0, 2.0, 4.0], sf=[[0.8, 0.5, 0.5], [0.9, 0.6, 0.0]])
    >>> distribution.sf(2.0), distribution.sf_left(2.0)
    (array([0.5, 0.6]), array([0.8, 0.9]))
    >>> distribution.icdf(0.5), distribution.mass_at_infinity()
    (array([2., 4.]), array([0.5, 0. ]))
    """

    has_density: ClassVar[bool] = False
    form = "steps"

    def __init__(
        self, times: ArrayLike, *, sf: ArrayLike | None = None, cdf: ArrayLike | None = None
    ) -> None:
        self._set_curve(times, sf, cdf)

    def _after(self, count: Array) -> Array:
        """The level after ``count`` jumps."""
        return self._last_knot(self._levels, count, self._start)

    def sf_at(self, t: Array) -> Array:
        return self._as_sf(self._never(t, self._after(self._knots_passed(t, "right"))))

    def cdf_at(self, t: Array) -> Array:
        return self._as_cdf(self._never(t, self._after(self._knots_passed(t, "right"))))

    def sf_left_at(self, t: Array) -> Array:
        return self._as_sf(self._after(self._knots_passed(t, "left")))

    def steps(self) -> tuple[Array, Array]:
        return self._times, self._as_sf(self._levels)

    def isf_at(self, p: Array) -> Array:
        t = self._time_of(self._level_of_sf(p))
        return self.xp.where(p < 1, t, 0.0)

    def icdf_at(self, p: Array) -> Array:
        t = self._time_of(self._level_of_cdf(p))
        return self.xp.where(p > 0, t, 0.0)

    def _time_of(self, level: Array) -> Array:
        return self._next_knot(self._times, self._knots_above(level), end=float("inf"))

    def icdf_beyond_at(self, y: Array, p: Array) -> Array:
        """The first jump from y on that leaves at most (1 - p) P(T >= y), up to the product's rounding."""
        xp = self.xp
        survivors = self.sf_left_at(y)
        left = (1 - p) * survivors
        slack = 4 * xp.finfo(left.dtype).eps
        level = left * (1 + slack) if self._falls else 1 - left - slack
        t = xp.maximum(self._time_of(level), y + xp.zeros_like(left))
        return xp.where((survivors > 0) & (p > 0), t, y + xp.zeros_like(left))

    def _area_before(self, t: Array) -> tuple[Array, Array]:
        xp = self.xp
        count = self._knots_passed(t, "left")
        left = self._as_sf(self._after(count))
        width = t - self._last_knot(self._times, count, 0.0)
        part = left * xp.where(left > 0, width, 0.0)
        return self._last_knot(self.areas(), count, 0.0), part

    def _make_areas(self) -> Array:
        """The area under the curve up to each jump; what follows a jump at infinity is never read."""
        xp = self.xp
        times = xp.where(xp.isfinite(self._times), self._times, 0.0)
        widths = xp.diff(self._padded(times, 0.0, front=True), axis=1)
        heights = self._as_sf(self._padded(self._levels, self._start, front=True)[:, :-1])
        return xp.cumulative_sum(widths * heights, axis=1)

    def thinned(self, jumps: int) -> Step:
        """The distribution of T rounded up to one of ``jumps`` jumps at most; several subjects stay as is.

        Every m-th jump from the last one back is kept: no probability changes by more than what m jumps
        have together, and P(T >= t) does not become smaller.

        Examples
        --------
        >>> import censcore as cs
        >>> T = cs.Step(times=[1.0, 2.0, 3.0, 4.0], sf=[0.8, 0.5, 0.25, 0.0])
        >>> T.thinned(2).sf([[1.5, 2.0, 3.0, 4.0]])
        array([[1. , 0.5, 0.5, 0. ]])
        """
        rows, J = self._levels.shape
        if max(rows, self._times.shape[0]) > 1 or jumps >= J:
            return self
        every = -(-J // jumps)
        columns = slice((J - 1) % every, None, every)
        return self.replaced(_times=self._times[:, columns], _levels=self._levels[:, columns], reading=None)

    def censor_at(self, tau: ArrayLike) -> Univariate:
        """The distribution of min(T, tau); a step distribution where all subjects share times and ``tau``."""
        distribution, end = self._with_end(tau)
        if distribution._times.shape[0] > 1 or end.shape[0] > 1:
            return super(Step, distribution).censor_at(end[:, 0])
        xp = distribution.xp
        if bool(xp.isinf(end).all()):
            return distribution
        passed = int(distribution._knots_passed(end, "left")[0, 0])
        times = xp.concat([distribution._times[:, :passed], end], axis=1)
        all_gone = xp.full_like(distribution._levels[:, :1], 1 - distribution._start)
        levels = xp.concat([distribution._levels[:, :passed], all_gone], axis=1)
        neutral = distribution._neutral and is_neutral(tau)
        return distribution.replaced(_times=times, _levels=levels, reading=None, _neutral=neutral)


class ByStep(Univariate):
    """A distribution whose formulas are those of the step function that it makes of itself."""

    has_density: ClassVar[bool] = False
    form = "steps"

    @abstractmethod
    def _make_step(self) -> Step:
        """The distribution as a step function."""

    def as_step(self) -> Step:
        return self.remember("step", self._make_step)

    def _forward(self, name: str, *arrays: Array) -> Array:
        return getattr(self.as_step(), name)(*arrays)

    sf_at, sf_left_at, cdf_at, steps = forwarded("sf_at", "sf_left_at", "cdf_at", "steps")
    isf_at, icdf_at, icdf_beyond_at = forwarded("isf_at", "icdf_at", "icdf_beyond_at")
    integrated_sf_at, prob_never = forwarded("integrated_sf_at", "prob_never")


class CompactStep(Univariate):
    r"""The distributions of :class:`Step` for many subjects, with levels kept in single precision.

    For the forecasts of survival forests: 21,000 subjects with 7,400 common times take 0.6 GB. Levels are
    rounded once, by 3e-8 at most; all that follows is computed in double precision, from the curves of few
    subjects at a time.

    Parameters
    ----------
    times : array, (J,)
        Jumps, common to all subjects.
    sf : array, (n, J)
        P(T > time), one row per subject.

    See Also
    --------
    censcore.Step : The same in the precision of its input, with times per subject where needed.
    ProportionalHazards : Curves that share a baseline, stored as one number per subject.

    Examples
    --------
    >>> import numpy as np
    >>> from censcore.distributions import CompactStep
    >>> distribution = CompactStep([1.0, 2.0], np.array([[0.75, 0.5], [0.5, 0.0]]))
    >>> distribution.sf(1.5), distribution.icdf(0.5)
    (array([0.75, 0.5 ]), array([2., 1.]))
    """

    has_density: ClassVar[bool] = False
    form = "steps"
    array_names: ClassVar[tuple[str, ...]] = ("_times", "_levels")
    _times: Array
    _levels: Array

    def __init__(self, times: ArrayLike, sf: ArrayLike) -> None:
        levels = as_float(sf, "sf")
        if not is_torch(levels):
            check_probabilities(levels, "sf")
            levels = levels.astype(np.float32, copy=False)
        levels = levels if levels.ndim > 1 else levels.reshape(1, -1)
        checked = Step(times, sf=levels[:1])  # the times, and what is wrong with them
        self._times = namespace(levels).astype(checked._times, namespace(levels).float64)
        self._levels = levels
        checks = (lambda rows: Step(times, sf=levels[rows])._levels[:, 0], len(levels))
        chunked_rows(*checks, 4 * int(self._times.shape[1]), self._times)

    def _is_like(self, array: Array) -> bool:
        return _are_alike(self._times, array)

    def _some(self, rows: slice) -> Step:
        levels = self._levels[rows]
        return Step.trusted(self._times, self.xp.astype(levels, self._times.dtype), falls=True)

    def _forward(self, name: str, *arrays: Array) -> Array:
        """A formula of :class:`Step` on the curves of few subjects at a time."""
        n = common_rows(distribution=len(self), **{f"array {i}": x.shape[0] for i, x in enumerate(arrays)})

        def part(rows: slice) -> Array:
            curves = self._some(rows if len(self) > 1 else slice(0, 1))
            return getattr(curves, name)(*(x if x.shape[0] == 1 else x[rows] for x in arrays))

        return chunked_rows(part, n, 4 * int(self._times.shape[1]), self._times)

    def _after(self, count: Array) -> Array:
        """P(T > t) after ``count`` jumps."""
        xp = self.xp
        level = take_along(self._levels, xp.where(count > 0, count - 1, count))
        return xp.where(count > 0, xp.astype(level, self._times.dtype), xp.ones_like(self._times[:1, :1]))

    def sf_at(self, t: Array) -> Array:
        xp = self.xp
        value = self._after(searchsorted(self._times, t, "right"))
        return xp.where(xp.isinf(t), 0.0, value)

    def sf_left_at(self, t: Array) -> Array:
        return self._after(searchsorted(self._times, t, "left"))

    def steps(self) -> tuple[Array, Array]:
        """The curves of all subjects: to be asked of few at a time."""
        return self._some(slice(0, len(self))).steps()

    isf_at, icdf_at = forwarded("isf_at", "icdf_at")
    icdf_beyond_at, integrated_sf_at = forwarded("icdf_beyond_at", "integrated_sf_at")

    def prob_never(self) -> Array:
        return self.xp.astype(self._levels[:, -1], self._times.dtype)

    def breaks(self) -> Array:
        return self._times
