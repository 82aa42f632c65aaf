"""Distributions of one event time that are step functions made of something else."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from censcore._arrays import Array
from censcore.distributions.step import Step
from censcore.distributions.univariate import Univariate

__all__ = ["ByStep"]


class ByStep(Univariate):
    """A distribution whose formulas are those of the step function that it makes of itself."""

    has_density: ClassVar[bool] = False
    _degree: ClassVar[int | None] = 0

    @abstractmethod
    def _step(self) -> Step:
        """The distribution as a step function, made once."""

    def _sf(self, t: Array) -> Array:
        return self._step()._sf(t)

    def _sf_left(self, t: Array) -> Array:
        return self._step()._sf_left(t)

    def _cdf(self, t: Array) -> Array:
        return self._step()._cdf(t)

    def _isf(self, p: Array) -> Array:
        return self._step()._isf(p)

    def _icdf(self, p: Array) -> Array:
        return self._step()._icdf(p)

    def _icdf_beyond(self, y: Array, p: Array) -> Array:
        return self._step()._icdf_beyond(y, p)

    def _integrated_sf(self, a: Array, b: Array) -> Array:
        return self._step()._integrated_sf(a, b)

    def _mass_at_infinity(self) -> Array:
        return self._step()._mass_at_infinity()

    def _steps(self) -> tuple[Array, Array]:
        return self._step()._steps()
