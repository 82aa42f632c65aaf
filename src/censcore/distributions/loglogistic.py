"""The log-logistic distribution."""

from __future__ import annotations

import numpy as np

from censcore._arrays import Array
from censcore._numerics import expm1, safe_log, xlogy
from censcore.distributions._special import exp, interior
from censcore.distributions.hazard import ByHazard
from censcore.distributions.parametric import Parametric

__all__ = ["LogLogistic"]


class LogLogistic(ByHazard, Parametric):
    r"""Log-logistic distribution, :math:`P(T>t)=1/\{1+(t/\lambda)^a\}`.

    Its tail falls like :math:`t^{-a}`, so the mean is infinite for a <= 1.

    Parameters
    ----------
    shape : array or number
        a > 0, one value per subject or one for all.
    scale : array or number
        lambda > 0, the median.

    Examples
    --------
    >>> import censcore as cs
    >>> distribution = cs.LogLogistic(shape=[2.0, 1.0], scale=3.0)
    >>> distribution.sf(6.0).round(3)
    array([0.2  , 0.333])
    >>> distribution.mean().round(3)
    array([4.712,   inf])
    """

    _shape: Array
    _scale: Array

    def __init__(self, shape: Array, scale: Array) -> None:
        self._set_parameters(shape=shape, scale=scale)

    def _log_odds(self, t: Array) -> Array:
        return self._shape * (safe_log(t) - safe_log(self._scale))

    def _cumulative_hazard(self, t: Array) -> Array:
        """Log of 1 + odds, the odds being those of an event before t."""
        return self._xp.logaddexp(x := self._log_odds(t), self._xp.zeros_like(x))

    def _inverse_hazard(self, h: Array) -> Array:
        def formula(h: Array) -> Array:
            log_odds = h + self._xp.log(-expm1(-h))
            return exp(safe_log(self._scale) + log_odds / self._shape)

        return interior(formula, h, 0.0, np.inf)

    def _log_hazard(self, t: Array) -> Array:
        a, log_scale = self._shape, safe_log(self._scale)
        return safe_log(a) - log_scale + xlogy(a - 1, t) - (a - 1) * log_scale - self._hazard_at(t)
