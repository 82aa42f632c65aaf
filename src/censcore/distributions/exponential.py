"""The exponential distribution."""

from __future__ import annotations

from censcore._arrays import Array
from censcore._numerics import safe_log
from censcore.distributions._special import decaying_area
from censcore.distributions.hazard import ByHazard
from censcore.distributions.parametric import Parametric

__all__ = ["Exponential"]


class Exponential(ByHazard, Parametric):
    r"""Exponential distribution, :math:`P(T>t)=e^{-rt}`.

    Parameters
    ----------
    rate : array or number
        r > 0, one value per subject or one for all; the mean is 1 / r.

    Examples
    --------
    >>> import censcore as cs
    >>> distribution = cs.Exponential(rate=[1.0, 0.5])
    >>> distribution.sf(2.0).round(3)
    array([0.135, 0.368])
    >>> distribution.mean()
    array([1., 2.])
    """

    _rate: Array

    def __init__(self, rate: Array) -> None:
        self._set_parameters(rate=rate)

    def _cumulative_hazard(self, t: Array) -> Array:
        return self._rate * t

    def _inverse_hazard(self, h: Array) -> Array:
        return h / self._rate

    def _log_hazard(self, t: Array) -> Array:
        return safe_log(self._rate)

    def _integrated_sf(self, a: Array, b: Array) -> Array:
        return decaying_area(self._sf(a), self._rate, b - a)
