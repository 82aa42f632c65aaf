"""Distributions of one event time that are step functions made of something else."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from censcore._arrays import Array
from censcore.distributions.formulas import forwarded
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

    def _forward(self, name: str, *arrays: Array) -> Array:
        return getattr(self._step(), name)(*arrays)

    _sf, _sf_left, _cdf = forwarded("_sf"), forwarded("_sf_left"), forwarded("_cdf")
    _isf, _icdf, _icdf_beyond = forwarded("_isf"), forwarded("_icdf"), forwarded("_icdf_beyond")
    _integrated_sf, _mass_at_infinity = forwarded("_integrated_sf"), forwarded("_mass_at_infinity")
    _steps = forwarded("_steps")
