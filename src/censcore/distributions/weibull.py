"""The Weibull distribution."""

from __future__ import annotations

import numpy as np

from censcore._arrays import Array, detach, possibly, requires_grad, surely
from censcore._numerics import safe_log, special, xlogy
from censcore.distributions._special import gammainc, gammaincc, log_of_positive, power
from censcore.distributions.hazard import ByHazard
from censcore.distributions.parametric import Parametric

__all__ = ["Weibull"]


class Weibull(ByHazard, Parametric):
    r"""Weibull distribution, :math:`P(T>t)=\exp\{-(t/\lambda)^a\}`.

    Parameters
    ----------
    shape : array or number
        a > 0, one value per subject or one for all.
    scale : array or number
        lambda > 0.

    Examples
    --------
    >>> import censcore as cs
    >>> distribution = cs.Weibull(shape=1.5, scale=[1.0, 2.0])
    >>> distribution.sf(1.0).round(3)
    array([0.368, 0.702])
    >>> distribution.icdf(0.5).round(3)
    array([0.783, 1.566])
    """

    _shape: Array
    _scale: Array

    def __init__(self, shape: Array, scale: Array) -> None:
        self._set_parameters(shape=shape, scale=scale)

    def _cumulative_hazard(self, t: Array) -> Array:
        return power(t / self._scale, self._shape)

    def _hazard_at(self, t: Array) -> Array:
        r"""With a gradient as :math:`e^{a(\log t-\log\lambda)}`: no power of small t in any derivative."""
        if not (self._requires_grad or requires_grad(t)):
            return self._cumulative_hazard(t)
        xp, limits = self._xp, self._xp.finfo(t.dtype)
        log_hazard = self._shape * (log_of_positive(t) - xp.log(self._scale))
        ordinary = (t > float(limits.tiny) / float(limits.eps)) & (t < np.inf)
        ordinary = ordinary & (log_hazard < float(np.log(limits.max)))
        if surely(xp.all(ordinary)):
            return xp.exp(log_hazard)
        inner = xp.exp(xp.where(ordinary, log_hazard, xp.zeros_like(log_hazard)))
        return xp.where(ordinary, inner, self.detach()._cumulative_hazard(detach(t)))

    def _inverse_hazard(self, h: Array) -> Array:
        return self._scale * power(h, 1 / self._shape)

    def _log_hazard(self, t: Array) -> Array:
        a, log_scale = self._shape, safe_log(self._scale)
        return safe_log(a) - log_scale + xlogy(a - 1, t) - (a - 1) * log_scale

    def _integrated_sf(self, a: Array, b: Array) -> Array:
        r"""With u = H(t): :math:`\lambda\Gamma(1+1/a)` times a difference of the smaller gamma tails."""
        xp = self._xp
        inverse = 1 / self._shape
        with np.errstate(over="ignore"):
            whole = self._scale * xp.exp(special(a).gammaln(1 + inverse))
        low, high = self._hazard_at(a), self._hazard_at(b)
        share = gammainc(inverse, high) - gammainc(inverse, low)
        late = low > inverse
        if possibly(xp.any(late)):
            share = xp.where(late, gammaincc(inverse, low) - gammaincc(inverse, high), share)
        endless = xp.isinf(whole)
        if not possibly(xp.any(endless)):
            return whole * share
        finite = xp.where(endless, xp.ones_like(whole), whole)
        return xp.where(endless, self._area_to(b) - self._area_to(a), finite * share)

    def _area_to(self, t: Array) -> Array:
        r"""The integral up to t, where :math:`s=1/a` is so large that :math:`\Gamma(1+s)` is no float.

        With x = H(t) it is :math:`te^{-x}\sum_n x^n/\{(s+1)\cdots(s+n)\}`; all terms are positive.
        """
        xp, s = self._xp, 1 / self._shape
        endless = xp.isinf(t)
        t = xp.where(endless, xp.ones_like(t), t)
        x = self._hazard_at(t)
        term = total = xp.ones_like(x)
        for n in range(1, _TERMS):
            term = term * x / (s + n)
            total = total + term
        area = t * xp.exp(-x) * total
        return xp.where(endless, xp.full_like(area, np.inf), area)


# Terms of the series above: s > 170 and so x < 300 for all times that are floats.
_TERMS = 600
