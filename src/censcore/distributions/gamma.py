"""The gamma distribution."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from censcore._arrays import Array, detach
from censcore._numerics import safe_log, special, xlogy
from censcore.distributions._special import (
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    interior,
    log_gammaincc,
)
from censcore.distributions.parametric import Parametric

__all__ = ["Gamma"]


class Gamma(Parametric):
    r"""Gamma distribution with density :math:`r^k t^{k-1}e^{-rt}/\Gamma(k)`.

    Parameters
    ----------
    shape : array or number
        k > 0, one value per subject or one for all.
    rate : array or number
        r > 0; the mean is k / r.

    Notes
    -----
    The incomplete gamma functions of tensors are SciPy's, computed on the CPU in double precision, since
    torch's own are less accurate and have no derivative in the shape.

    Examples
    --------
    >>> import censcore as cs
    >>> distribution = cs.Gamma(shape=[1.0, 3.0], rate=0.5)
    >>> distribution.sf(4.0).round(3)
    array([0.135, 0.677])
    >>> distribution.mean()
    array([2., 6.])
    """

    _shape: Array
    _rate: Array

    def __init__(self, shape: Array, rate: Array) -> None:
        self._set_parameters(shape=shape, rate=rate)

    def _turned(self, t: Array) -> Array:
        """rt, in the unit in which the rate is one."""
        with np.errstate(over="ignore"):  # beyond the largest float it is infinite
            return self._rate * t

    def _sf(self, t: Array) -> Array:
        return interior(lambda t: gammaincc(self._shape, self._turned(t)), t, 1.0, 0.0)

    def _cdf(self, t: Array) -> Array:
        return interior(lambda t: gammainc(self._shape, self._turned(t)), t, 0.0, 1.0)

    def _logsf(self, t: Array) -> Array:
        return interior(lambda t: log_gammaincc(self._shape, self._turned(t)), t, 0.0, -np.inf)

    def _logpdf(self, t: Array) -> Array:
        xp, k, rate = self._xp, self._shape, self._rate
        endless = xp.isinf(t)
        t = xp.where(endless, xp.ones_like(t), t)
        density = k * safe_log(rate) + xlogy(k - 1, t) - self._turned(t) - special(t).gammaln(k)
        return xp.where(endless, xp.full_like(density, -np.inf), density)

    def _isf(self, p: Array) -> Array:
        t = interior(lambda p: gammainccinv(self._shape, p) / detach(self._rate), p, np.inf, 0.0, end=1.0)
        return self._with_gradient(t, self._sf, p, -1)

    def _icdf(self, p: Array) -> Array:
        t = interior(lambda p: gammaincinv(self._shape, p) / detach(self._rate), p, 0.0, np.inf, end=1.0)
        return self._with_gradient(t, self._cdf, p, 1)

    def _integrated_sf(self, a: Array, b: Array) -> Array:
        r"""From :math:`\int_0^t P(T>s)\,ds=t\,P(T>t)+E[T;T\le t]`, or from the tails if smaller."""
        xp, k, rate = self._xp, self._shape, self._rate
        mean = k / rate

        def lower(t: Array) -> Array:
            return t * gammaincc(k, self._turned(t)) + mean * gammainc(k + 1, self._turned(t))

        def upper(t: Array) -> Array:
            return mean * gammaincc(k + 1, self._turned(t)) - t * gammaincc(k, self._turned(t))

        def at(t: Array, area: Callable[[Array], Array]) -> Array:
            return interior(area, t, 0.0, 0.0)

        below = xp.where(xp.isinf(b), mean, at(b, lower)) - at(a, lower)
        late = a > mean
        return xp.where(late, at(a, upper) - at(b, upper), below) if bool(xp.any(late)) else below
