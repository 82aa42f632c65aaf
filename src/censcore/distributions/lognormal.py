"""The log-normal distribution."""

from __future__ import annotations

from typing import ClassVar

import numpy as np

from censcore._arrays import Array
from censcore._numerics import safe_log, special
from censcore.distributions._special import exp, interior, ndtr
from censcore.distributions.parametric import Parametric

__all__ = ["LogNormal"]


class LogNormal(Parametric):
    r"""Log-normal distribution: :math:`\log T` is normal, :math:`P(T>t)=\Phi\{(\mu-\log t)/\sigma\}`.

    Parameters
    ----------
    mu : array or number
        Mean of log T, one value per subject or one for all.
    sigma : array or number
        Standard deviation of log T, positive.

    Examples
    --------
    >>> import censcore as cs
    >>> distribution = cs.LogNormal(mu=[0.0, 1.0], sigma=0.5)
    >>> distribution.icdf(0.5).round(3)
    array([1.   , 2.718])
    >>> distribution.mean().round(3)
    array([1.133, 3.08 ])
    """

    _ranges: ClassVar[dict[str, tuple[float, float]]] = {"mu": (-230.0, 230.0), "sigma": (1e-8, 100.0)}
    _mu: Array
    _sigma: Array

    def __init__(self, mu: Array, sigma: Array) -> None:
        self._set_parameters(mu=mu, sigma=sigma, real={"mu"})

    def _z(self, t: Array) -> Array:
        return (self._xp.log(t) - self._mu) / self._sigma

    def _sf(self, t: Array) -> Array:
        return interior(lambda t: ndtr(-self._z(t)), t, 1.0, 0.0)

    def _cdf(self, t: Array) -> Array:
        return interior(lambda t: ndtr(self._z(t)), t, 0.0, 1.0)

    def _logsf(self, t: Array) -> Array:
        return interior(lambda t: special(t).log_ndtr(-self._z(t)), t, 0.0, -np.inf)

    def _logpdf(self, t: Array) -> Array:
        def formula(t: Array) -> Array:
            constant = safe_log(self._sigma) + float(np.log(2 * np.pi) / 2)
            return -0.5 * self._z(t) ** 2 - self._xp.log(t) - constant

        return interior(formula, t, -np.inf, -np.inf)

    def _isf(self, p: Array) -> Array:
        return interior(lambda p: exp(self._mu - self._sigma * special(p).ndtri(p)), p, np.inf, 0.0, end=1.0)

    def _icdf(self, p: Array) -> Array:
        return interior(lambda p: exp(self._mu + self._sigma * special(p).ndtri(p)), p, 0.0, np.inf, end=1.0)

    def _integrated_sf(self, a: Array, b: Array) -> Array:
        r"""From :math:`\int_0^t P(T>s)\,ds=t\,P(T>t)+E[T;T\le t]`, or from the tails if smaller."""
        xp = self._xp

        def partial_mean(t: Array, sign: int) -> Array:
            mean = self._mu + self._sigma**2 / 2
            return exp(mean + special(t).log_ndtr(sign * (self._z(t) - self._sigma)))

        def lower(t: Array) -> Array:
            return interior(lambda t: t * self._sf(t) + partial_mean(t, 1), t, 0.0, 0.0)

        def upper(t: Array) -> Array:
            return interior(lambda t: partial_mean(t, -1) - t * self._sf(t), t, 0.0, 0.0)

        mean = exp(self._mu + self._sigma**2 / 2)
        below = xp.where(xp.isinf(b), mean, lower(b)) - lower(a)
        late = a > exp(self._mu + self._sigma**2)
        start, stop = (xp.where(late, t, xp.zeros_like(t)) for t in (a, b))
        return xp.where(late, upper(start) - upper(stop), below)
