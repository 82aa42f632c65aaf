"""The distribution of min(T_j, tau_j) for joint distributions that are not made of their marginals."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from censcore._arrays import Array
from censcore.distributions._base import Univariate
from censcore.distributions._joint import Joint
from censcore.exceptions import NoDensityError

__all__ = ["CensoredJoint"]


class CensoredJoint(Joint):
    r"""The distribution of :math:`(\min(T_j,\tau_j))_j`, made by ``joint.censor_at(tau)``."""

    _arrays: ClassVar[tuple[str, ...]] = ("_tau",)
    _distributions: ClassVar[tuple[str, ...]] = ("_inner",)

    def __init__(self, joint: Joint, tau: Array) -> None:
        distribution = joint._fitting(tau)
        columns = [column.reshape(-1) for column in distribution._columns_of(tau)]
        self._tau = distribution._xp.stack(columns, axis=1)
        self._inner = [distribution]
        self._neutral = distribution._is_neutral

    @property
    def _distribution(self) -> Joint:
        return self._inner[0]

    @property
    def k(self) -> int:
        """Number of event times."""
        return self._distribution.k

    def marginal(self, j: int) -> Univariate:
        """The distribution of coordinate ``j``."""
        return self._distribution.marginal(j).censor_at(self._tau[:, self._coordinate(j)])

    def _logsf(self, t: Array, left: bool = False) -> Array:
        xp = self._xp
        limit = self._tau[:, None, :]
        open_ = xp.all((t <= limit) if left else (t < limit), axis=-1)
        value = self._distribution._logsf(t, left)
        return xp.where(open_, value, xp.full_like(value, -np.inf))

    def _mass_at_infinity(self) -> Array:
        xp = self._xp
        mass = self._distribution._mass_at_infinity()
        unlimited = xp.all(xp.isinf(self._tau), axis=1)
        return xp.where(unlimited, mass, xp.zeros_like(mass))

    def _end_of_first(self) -> Array:
        return self._xp.minimum(self._distribution._end_of_first(), self._xp.min(self._tau, axis=1))

    def _log_likelihood(self, t: Array, event: Array) -> Array:
        if bool(self._xp.any(event)):
            raise NoDensityError(
                "A distribution cut at tau has an atom there and so no density. Take the likelihood under the distribution "
                "before censor_at, at the outcome cut by y.censor_at(tau)."
            )
        return self._logsf(t)

    def _sample(self, m: int, rng: np.random.Generator) -> Array:
        xp = self._xp
        draws = self._distribution._sample(m, rng)
        return xp.minimum(draws, self._tau[:, None, :] + xp.zeros_like(draws[..., :1]))

    def censor_at(self, tau: Array) -> CensoredJoint:
        """The distribution cut once more."""
        return CensoredJoint(self, tau)
