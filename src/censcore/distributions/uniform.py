"""The uniform distribution."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from censcore._arrays import Array, is_neutral, to_numpy
from censcore._numerics import safe_log
from censcore._validation import check_positive, name_subjects
from censcore.distributions._panels import merge_edges
from censcore.distributions.given_survival import check_possible
from censcore.distributions.parametric import Parametric
from censcore.distributions.univariate import Univariate
from censcore.exceptions import InvalidInputError

__all__ = ["Uniform"]


class Uniform(Parametric):
    r"""Uniform distribution on [low, high], :math:`P(T>t)=(b-t)/(b-a)` for :math:`a\le t\le b`.

    Parameters
    ----------
    low : array or number
        a >= 0, one value per subject or one for all.
    high : array or number
        b > a, finite.

    Notes
    -----
    As for every distribution on [0, inf], the quantile of level 0 is inf{t >= 0: F(t) >= 0} = 0, not ``low``.

    Examples
    --------
    >>> import censcore as cs
    >>> distribution = cs.Uniform(low=0.0, high=[4.0, 10.0])
    >>> distribution.sf(3.0)
    array([0.25, 0.7 ])
    """

    _degree: ClassVar[int | None] = 1
    _low: Array
    _high: Array

    def __init__(self, low: Array, high: Array) -> None:
        self._set_parameters(low=low, high=high, real={"low"})
        check_positive(self._low, "low", zero=True)
        empty = np.nonzero(to_numpy(self._low >= self._high).any(axis=1))[0]
        if empty.size:
            raise InvalidInputError(
                f"Uniform needs low < high; it is not so in {name_subjects(empty)}. For all mass at one time "
                "use PointMass(location)."
            )

    def _share(self, part: Array, t: Array, before: float, after: float) -> Array:
        """``part`` of the interval divided by all of it, and what it becomes outside."""
        xp = self._xp
        share = part / (self._high - self._low)
        return xp.where(t > self._low, xp.where(t < self._high, share, after), before)

    def _within(self, t: Array) -> Array:
        xp = self._xp
        return xp.maximum(xp.minimum(t, self._high), self._low)

    def _sf(self, t: Array) -> Array:
        return self._share(self._high - self._within(t), t, 1.0, 0.0)

    def _cdf(self, t: Array) -> Array:
        return self._share(self._within(t) - self._low, t, 0.0, 1.0)

    def _logpdf(self, t: Array) -> Array:
        xp = self._xp
        density = -safe_log(self._high - self._low) + xp.zeros_like(t)
        inside = (t >= self._low) & (t <= self._high)
        return xp.where(inside, density, xp.full_like(density, -np.inf))

    def _isf(self, p: Array) -> Array:
        t = self._high - p * (self._high - self._low)
        return self._xp.where(p < 1, t, 0.0)

    def _icdf(self, p: Array) -> Array:
        t = self._low + p * (self._high - self._low)
        return self._xp.where(p > 0, t, 0.0)

    def _integrated_sf(self, a: Array, b: Array) -> Array:
        r"""The length below ``low``, and a trapezoid above it."""
        xp = self._xp
        early = xp.minimum(b, self._low) - xp.minimum(a, self._low)
        u, v = self._within(a), self._within(b)
        return early + (v - u) * ((self._high - u) + (self._high - v)) / (2 * (self._high - self._low))

    def _excludes(self, t: Array) -> Array:
        return (t < self._low) | (t > self._high)

    def given_survival(self, a: Array) -> Univariate:
        """Uniform on [max(a, low), high]."""
        F, column = self._with_start(a)
        check_possible(column >= F._high, column)
        given = F._map(lambda array: array)
        given._low = F._xp.maximum(F._low, column)
        given._neutral = self._neutral and is_neutral(a)
        return given

    def _breaks(self) -> Array:
        return self._remember("breaks", lambda: merge_edges(self._low, self._high))
