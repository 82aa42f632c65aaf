"""The Weibull law."""

from __future__ import annotations

from censcore._arrays import Array
from censcore._numerics import expm1, log1p, safe_log, special
from censcore.distributions._parametric import Parametric

__all__ = ["Weibull"]


class Weibull(Parametric):
    r"""Weibull law, :math:`P(T>t)=\exp\{-(t/\lambda)^a\}`.

    Parameters
    ----------
    shape : array or number
        a > 0, one value per row or one for all.
    scale : array or number
        lambda > 0.

    Examples
    --------
    >>> import censcore as cs
    >>> law = cs.Weibull(shape=1.5, scale=[1.0, 2.0])
    >>> law.sf(1.0).round(3)
    array([0.368, 0.702])
    >>> law.icdf(0.5).round(3)
    array([0.783, 1.567])
    """

    def __init__(self, shape: Array, scale: Array) -> None:
        self._set_parameters({"shape": shape, "scale": scale})

    def _hazard(self, t: Array) -> Array:
        return (t / self._scale) ** self._shape

    def _logsf(self, t: Array) -> Array:
        return -self._hazard(t)

    def _sf(self, t: Array) -> Array:
        return self._xp.exp(-self._hazard(t))

    def _cdf(self, t: Array) -> Array:
        return -expm1(-self._hazard(t))

    def _logpdf(self, t: Array) -> Array:
        a, scale = self._shape, self._scale
        power = special(t).xlogy(a - 1, t / scale)
        return safe_log(a / scale) + power - self._hazard(t)

    def _isf(self, p: Array) -> Array:
        return self._scale * (-safe_log(p)) ** (1 / self._shape)

    def _icdf(self, p: Array) -> Array:
        return self._scale * (-log1p(-p)) ** (1 / self._shape)

    def _integrated_sf(self, a: Array, b: Array) -> Array:
        r"""With the substitution u = (t/lambda)^a: lambda Gamma(1 + 1/a) times a difference of gamma tails."""
        inverse = 1 / self._shape
        gamma = special(a)
        whole = self._scale * self._xp.exp(gamma.gammaln(1 + inverse))
        low, high = self._hazard(a), self._hazard(b)
        inverse = inverse + self._xp.zeros_like(low)
        upper = gamma.gammaincc(inverse, low) - gamma.gammaincc(inverse, high)
        lower = gamma.gammainc(inverse, high) - gamma.gammainc(inverse, low)
        return whole * self._xp.where(low > inverse, upper, lower)
