"""Step functions of many subjects on many common times, stored in half the space."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from censcore._arrays import Array, as_float, common_rows, is_torch, namespace, searchsorted, take_along
from censcore._numerics import chunked_rows
from censcore._validation import check_probabilities
from censcore.distributions.base import _are_alike
from censcore.distributions.formulas import forwarded
from censcore.distributions.step import Step
from censcore.distributions.univariate import Univariate

__all__ = ["CompactStep"]


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
    _degree: ClassVar[int | None] = 0
    _arrays: ClassVar[tuple[str, ...]] = ("_times", "_levels")
    _times: Array
    _levels: Array

    def __init__(self, times: Array, sf: Array) -> None:
        levels = as_float(sf, "sf")
        levels = levels if is_torch(levels) else _single(levels)
        if levels.ndim < 2:
            levels = levels.reshape(1, -1)
        checked = Step(times, sf=levels[:1])  # the times, and what is wrong with them
        self._times = namespace(levels).astype(checked._times, namespace(levels).float64)
        self._levels = levels
        self._check_levels(times)

    def _check_levels(self, times: Array) -> None:
        chunked_rows(
            lambda some: Step(times, sf=self._levels[some])._levels[:, 0],
            int(self._levels.shape[0]),
            4 * int(self._times.shape[1]),
            self._times,
        )

    def _is_like(self, array: Array) -> bool:
        return _are_alike(self._times, array)

    def _some(self, rows: slice) -> Step:
        levels = self._levels[rows]
        return Step._trusted(self._times, self._xp.astype(levels, self._times.dtype), falls=True)

    def _forward(self, name: str, *arrays: Array) -> Array:
        """A formula of :class:`Step` on the curves of few subjects at a time."""
        n = common_rows(distribution=len(self), **{f"array {i}": x.shape[0] for i, x in enumerate(arrays)})

        def part(rows: slice) -> Array:
            curves = self._some(rows if len(self) > 1 else slice(0, 1))
            return getattr(curves, name)(*(x if x.shape[0] == 1 else x[rows] for x in arrays))

        return chunked_rows(part, n, 4 * int(self._times.shape[1]), self._times)

    def _after(self, count: Array) -> Array:
        """P(T > t) after ``count`` jumps."""
        xp = self._xp
        level = take_along(self._levels, xp.where(count > 0, count - 1, count))
        return xp.where(count > 0, xp.astype(level, self._times.dtype), xp.ones_like(self._times[:1, :1]))

    def _sf(self, t: Array) -> Array:
        xp = self._xp
        value = self._after(searchsorted(self._times, t, "right"))
        return xp.where(xp.isinf(t), xp.zeros_like(value), value)

    def _sf_left(self, t: Array) -> Array:
        return self._after(searchsorted(self._times, t, "left"))

    def _steps(self) -> tuple[Array, Array]:
        """The curves of all subjects: to be asked of few at a time."""
        return self._some(slice(0, len(self)))._steps()

    _isf, _icdf, _icdf_beyond = forwarded("_isf"), forwarded("_icdf"), forwarded("_icdf_beyond")
    _integrated_sf = forwarded("_integrated_sf")

    def _mass_at_infinity(self) -> Array:
        return self._xp.astype(self._levels[:, -1], self._times.dtype)

    def _breaks(self) -> Array:
        return self._times


def _single(levels: np.ndarray) -> np.ndarray:
    check_probabilities(levels, "sf")
    return levels.astype(np.float32, copy=False)
