"""The Gompertz distribution."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from censcore._arrays import Array
from censcore._numerics import expm1, safe_log
from censcore._quadrature import integrate_panels
from censcore.distributions._special import expint_scaled
from censcore.distributions.hazard import ByHazard
from censcore.distributions.parametric import Parametric

__all__ = ["Gompertz"]


class Gompertz(ByHazard, Parametric):
    r"""Gompertz distribution, :math:`P(T>t)=\exp\{-(r/b)(e^{bt}-1)\}`.

    Its hazard :math:`re^{bt}` grows exponentially.

    Parameters
    ----------
    shape : array or number
        b > 0, one value per subject or one for all: the growth of the log hazard per unit of time. A falling
        hazard (b < 0) would leave mass at infinity; say so with ``Mixture([..., PointMass(inf)], ...)``.
        The limit b = 0 is ``Exponential(rate)``.
    rate : array or number
        r > 0, the hazard at time zero.

    Examples
    --------
    >>> import censcore as cs
    >>> distribution = cs.Gompertz(shape=0.1, rate=[0.01, 0.001])
    >>> distribution.icdf(0.5).round(2)
    array([20.71, 42.53])
    >>> distribution.mean().round(2)
    array([20.15, 40.79])
    """

    # the shape of a Gompertz distribution is a rate, whose unit may be anything
    _ranges: ClassVar[dict[str, tuple[float, float]]] = {}
    _shape: Array
    _rate: Array

    def __init__(self, shape: Array, rate: Array) -> None:
        self._set_parameters(shape=shape, rate=rate)

    def _cumulative_hazard(self, t: Array) -> Array:
        with np.errstate(over="ignore"):
            return self._rate / self._shape * expm1(self._shape * t)

    def _inverse_hazard(self, h: Array) -> Array:
        return self._xp.log1p(h * self._shape / self._rate) / self._shape

    def _log_hazard(self, t: Array) -> Array:
        return safe_log(self._rate) + self._shape * t

    def _integrated_sf(self, a: Array, b: Array) -> Array:
        r"""From :math:`\int_t^\infty P(T>s)\,ds=P(T>t)\,e^xE_1(x)/b` with :math:`x=(r/b)e^{bt}`.

        The difference of two tails has no digits left where a and b are close: there one panel of quadrature
        is exact.
        """

        def tail(t: Array) -> Array:
            x = self._rate / self._shape + self._hazard_at(t)
            return self._sf(t) * expint_scaled(x) / self._shape

        xp = self._xp
        endless = xp.isinf(b)
        stop = xp.where(endless, a, b)
        with np.errstate(over="ignore"):
            little = self._cumulative_hazard(stop) < self._cumulative_hazard(a) + 1
            short = ~endless & little & (self._shape * (stop - a) < 1)
        panel = integrate_panels(self._sf, a, xp.where(short, stop, a))
        return xp.where(short, panel, tail(a) - tail(b))
