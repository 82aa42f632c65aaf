"""Distributions given by a survival curve (or CDF) at certain times: storing, checking and searching it."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any, ClassVar, Self

import numpy as np

from censcore._arrays import (
    Array,
    as_float,
    common_rows,
    detach,
    is_neutral,
    is_torch,
    namespace,
    searchsorted,
    take_along,
    to_numpy,
)
from censcore._validation import check_positive, check_same_order, name_subjects
from censcore.distributions.univariate.monotone import monotone
from censcore.distributions.univariate.univariate import Univariate
from censcore.exceptions import InvalidInputError

_REPAIR = "as_forecast(..., repair=True) takes the nearest monotone curve."


class Curve(Univariate):
    """Knots (time, level) per subject; before the first the survival is one.

    Levels are stored as given, survival or CDF, and compared without conversion: 1 - (1 - p) may miss a
    level that is given exactly.
    """

    array_names: ClassVar[tuple[str, ...]] = ("_times", "_levels")
    _times: Array
    _levels: Array
    _falls: bool  # whether the levels are a survival function

    #: How a matrix of survival probabilities was read (``survival_matrix``); None for a curve given as such.
    reading: Any = None

    def _set_curve(self, times: Array, sf: Array, cdf: Array) -> None:
        """Check and keep what a user gave."""
        if (sf is None) == (cdf is None):
            got = "both" if sf is not None else "neither"
            raise InvalidInputError(f"{type(self).__name__} takes exactly one of sf= and cdf=; got {got}.")
        self._falls = cdf is None
        name, levels = ("sf", sf) if self._falls else ("cdf", cdf)
        self.row_labels = check_same_order(**{name: levels})
        levels = levels if is_neutral(levels) else as_float(levels, name)
        self.store(times=times, levels=levels)
        self._times, self._levels = _aligned(self._times, self._levels, name)
        check_positive(detach(self._times), "times", zero=True)
        self._times, self._levels = in_time_order(self._times, self._levels)
        self._levels, _ = monotone(
            self._levels, falls=self._falls, name=name, times=self._times, remedy=_REPAIR
        )

    @classmethod
    def trusted(cls, times: Array, levels: Array, *, falls: bool, **attributes: Any) -> Self:
        """From arrays (1 or n, J) that are known to be right; tied times are allowed here."""
        distribution = cls.__new__(cls)
        vars(distribution).update(_times=times, _levels=levels, _falls=falls, **attributes)
        return distribution

    # ---- reading the curve ---------------------------------------------------------------------

    @property
    def _start(self) -> float:
        return 1.0 if self._falls else 0.0

    def _as_sf(self, level: Array) -> Array:
        return level if self._falls else 1 - level

    def _as_cdf(self, level: Array) -> Array:
        return 1 - level if self._falls else level

    def _last_knot(self, array: Array, count: Array, start: float) -> Array:
        """``array`` at the last of the first ``count`` knots, ``start`` where there is none yet."""
        xp = self.xp
        if array.shape[0] == 1:
            return take_along(self._padded(array, start, front=True), count)
        if count.shape[0] == 1 and bool(xp.all(count > 0)):
            return take_along(array, count - 1)
        value = take_along(array, xp.where(count > 0, count - 1, count))
        return xp.where(count > 0, value, start)

    def _next_knot(self, array: Array, count: Array, end: float) -> Array:
        """``array`` at the knot after the first ``count``, ``end`` where there is none left."""
        xp = self.xp
        if array.shape[0] == 1:
            return take_along(self._padded(array, end, front=False), count)
        last = array.shape[1] - 1
        value = take_along(array, xp.where(count > last, last, count))
        return xp.where(count > last, end, value)

    def _padded(self, array: Array, value: float, front: bool) -> Array:
        edge = self.xp.full_like(array[:, :1], value)
        return self.xp.concat([edge, array] if front else [array, edge], axis=1)

    def _knots_passed(self, t: Array, side: str) -> Array:
        """How many knots lie at or before t (``side="right"``) or before t (``"left"``)."""
        return searchsorted(self._times, t, side)

    def _knots_above(self, level: Array) -> Array:
        """How many knots come before the first that reaches ``level``."""
        if not self._falls:
            return searchsorted(self._levels, level, "left")
        if is_torch(level):
            return searchsorted(-detach(self._levels), -level, "left")
        rising = self._levels[:, ::-1]  # a view, where torch would copy
        return rising.shape[1] - searchsorted(rising, level, "right")

    # 1 - p may be off by half an eps, which must hide neither the level that was meant nor that p > 0.

    def _level_of_sf(self, p: Array) -> Array:
        """The level at which P(T > t) = p."""
        if self._falls:
            return p
        limits = self.xp.finfo(p.dtype)
        return self.xp.clip(1 - p - limits.eps / 2, min=limits.smallest_normal)

    def _level_of_cdf(self, p: Array) -> Array:
        """The level at which F = p."""
        if not self._falls:
            return p
        eps = self.xp.finfo(p.dtype).eps
        return self.xp.clip(1 - p + eps / 2, max=1 - eps / 2)

    def _never(self, t: Array, level: Array) -> Array:
        """P(T > inf) = 0: the level of t = inf is the last one there is."""
        xp = self.xp
        if not bool(xp.any(xp.isinf(t))):
            return level
        return xp.where(xp.isinf(t), 1 - self._start, level)

    def integrated_sf_at(self, a: Array, b: Array) -> Array:
        xp = self.xp
        whole, part = self._area_before(b)
        if bool(xp.any(a > 0)):
            if a.shape[1] > 1 and not is_torch(a) and a.strides[1] == 0:  # one start for all ends
                a = a[:, :1]
            whole_a, part_a = self._area_before(a)
            return (whole - whole_a) + (part - part_a)
        total = whole + part
        return xp.broadcast_to(total, np.broadcast_shapes(tuple(total.shape), tuple(a.shape)))

    def areas(self) -> Array:
        """Return the area under the survival curve up to each knot, (1 or n, J)."""
        return self.remember("areas", self._make_areas)

    @abstractmethod
    def _make_areas(self) -> Array: ...

    @abstractmethod
    def _area_before(self, t: Array) -> tuple[Array, Array]:
        """The area under the survival curve up to the last knot before t, and from there to t."""

    def prob_never(self) -> Array:
        return self.sf_left_at(self.xp.full_like(self.reference[:1, :1], np.inf))[:, 0]

    def breaks(self) -> Array:
        return self._times

    def __repr__(self) -> str:
        return f"{type(self).__name__}(shape=({len(self)},), times={self._times.shape[1]})"


def _aligned(times: Array, levels: Array, name: str) -> tuple[Array, Array]:
    """Both as (1 or n, J); one number is one time, at which there may be one level per subject."""
    if times.ndim == 0:
        times = times.reshape(1)
        levels = levels.reshape(-1, 1) if levels.ndim < 2 else levels
    if times.ndim not in (1, 2) or levels.ndim not in (1, 2):
        raise InvalidInputError(
            f"times and {name} must have shape (J,) or (n, J); "
            f"got {tuple(times.shape)} and {tuple(levels.shape)}."
        )
    J = int(times.shape[-1])
    if 0 in times.shape or 0 in levels.shape:
        raise InvalidInputError("A curve needs at least one time and one subject; got an empty array.")
    if levels.shape[-1] != J:
        hint = ""
        if levels.ndim == 2 and levels.shape[0] == J:
            hint = f" It looks transposed: rows are subjects and columns times, so pass {name}.T."
        raise InvalidInputError(
            f"{name} must have one column for each of the {J} times; got shape {tuple(levels.shape)}.{hint}"
        )
    times, levels = times.reshape(-1, J), levels.reshape(-1, J)
    common_rows(**{"times": times.shape[0], name: levels.shape[0]})
    return times, levels


def in_time_order(times: Array, levels: Array, name: str = "times") -> tuple[Array, Array]:
    """Times (q,) or (n, q) in ascending order, and levels (..., q) with them; times must be distinct."""
    xp = namespace(times)
    if bool(xp.all(times[..., 1:] > times[..., :-1])):
        return times, levels
    order = xp.argsort(times, axis=-1, stable=True)
    if times.ndim == 1:
        times, levels = times[order], levels[..., order]
    else:
        times, levels = take_along(times, order), take_along(levels, order)
    tied = to_numpy(times[..., 1:] == times[..., :-1])
    if tied.any():
        whose = f" in {name_subjects(np.unique(np.nonzero(tied)[0]))}" if tied.ndim == 2 else ""
        raise InvalidInputError(
            f"{name} must be distinct; got {to_numpy(times)[..., 1:][tied][0]:g} more than once{whose}. Keep "
            "the last of each."
        )
    return times, levels
