"""Distributions known by their cumulative hazard."""

from __future__ import annotations

from abc import abstractmethod

import numpy as np

from censcore._arrays import Array, detach, namespace, requires_grad, surely
from censcore._numerics import expm1, log1p, safe_log
from censcore.distributions.univariate import Univariate

__all__ = ["ByHazard"]


class ByHazard(Univariate):
    r"""A continuous distribution given by its cumulative hazard :math:`H(t)=-\log P(T>t)`.

    A subclass writes three formulas: H on [0, inf] (``_cumulative_hazard``), its inverse
    (``_inverse_hazard``) and the logarithm of the hazard rate :math:`h=H'` (``_log_hazard``). What follows
    from them is written here once, accurate in both tails.

    See Also
    --------
    Parametric : To be combined with it where the distribution has a few parameters per subject.

    Examples
    --------
    >>> from censcore.distributions import ByHazard, Parametric
    >>> class Rayleigh(ByHazard, Parametric):
    ...     def __init__(self, scale):
    ...         self._set_parameters(scale=scale)
    ...
    ...     def _cumulative_hazard(self, t):
    ...         return (t / self._scale) ** 2 / 2
    ...
    ...     def _inverse_hazard(self, h):
    ...         return self._scale * self._xp.sqrt(2 * h)
    ...
    ...     def _log_hazard(self, t):
    ...         return self._xp.log(t / self._scale**2)
    >>> Rayleigh([1.0, 2.0]).sf(2.0).round(3)
    array([0.135, 0.607])
    """

    @abstractmethod
    def _cumulative_hazard(self, t: Array) -> Array:
        """H(t) for 0 <= t <= inf."""

    @abstractmethod
    def _inverse_hazard(self, h: Array) -> Array:
        """The smallest t with H(t) >= h, for 0 <= h <= inf."""

    @abstractmethod
    def _log_hazard(self, t: Array) -> Array:
        """Log h(t) for 0 <= t < inf."""

    def _hazard_at(self, t: Array) -> Array:
        """H(t), whose gradient stays finite where H or t is infinite and where t is zero, or as good as zero.

        There torch would multiply a zero gradient by an infinite slope, so these entries leave the graph.
        """
        with np.errstate(over="ignore"):  # beyond the largest float the hazard is infinite
            hazard = self._cumulative_hazard(t)
        if not requires_grad(hazard):
            return hazard
        xp = namespace(hazard)
        limits = xp.finfo(hazard.dtype)
        ordinary = (t > float(limits.tiny) / float(limits.eps)) & xp.isfinite(t) & xp.isfinite(hazard)
        if surely(xp.all(ordinary)):
            return hazard
        typical = self.detach()._inverse_hazard(self._reachable(detach(hazard)))
        inner = self._cumulative_hazard(xp.where(ordinary, t, typical))
        return xp.where(ordinary, inner, detach(hazard))

    def _time_at(self, hazard: Array) -> Array:
        """The smallest t with H(t) >= hazard, its gradient guarded in the same way."""
        with np.errstate(over="ignore"):
            t = self._inverse_hazard(hazard)
        if not requires_grad(t):
            return t
        xp = namespace(t)
        ordinary = (hazard > 0) & xp.isfinite(hazard) & xp.isfinite(t)
        if surely(xp.all(ordinary)):
            return t
        inner = self._inverse_hazard(xp.where(ordinary, hazard, self._reachable(detach(hazard))))
        return xp.where(ordinary, inner, detach(t))

    def _reachable(self, like: Array) -> Array:
        """Levels that H reaches, for entries that only stand in for others."""
        return namespace(like).ones_like(like)

    def _logsf(self, t: Array) -> Array:
        return 0.0 - self._hazard_at(t)

    def _sf(self, t: Array) -> Array:
        return self._xp.exp(-self._hazard_of_survivors(t))

    def _cdf(self, t: Array) -> Array:
        return 0.0 - expm1(-self._hazard_of_survivors(t))

    def _hazard_of_survivors(self, t: Array) -> Array:
        """H(t), without a gradient where no survival is left: zero times its square would be NaN."""
        hazard = self._hazard_at(t)
        if not requires_grad(hazard):
            return hazard
        xp = namespace(hazard)
        return xp.where(hazard < float(-np.log(xp.finfo(hazard.dtype).tiny)), hazard, detach(hazard))

    def _logpdf(self, t: Array) -> Array:
        xp = self._xp
        hazard = self._hazard_at(t)
        endless = xp.isinf(t) | xp.isinf(hazard)
        density = self._log_hazard(xp.where(endless, xp.ones_like(t), t)) - hazard
        return xp.where(endless, xp.full_like(density, -np.inf), density)

    def _isf(self, p: Array) -> Array:
        return self._time_at(0.0 - safe_log(p))

    def _icdf(self, p: Array) -> Array:
        return self._time_at(0.0 - log1p(-p))

    def _icdf_beyond(self, y: Array, p: Array) -> Array:
        """Given T >= y the hazard that is spent before the event exceeds H(y) by a unit exponential."""
        xp = self._xp
        return xp.maximum(self._time_at(self._hazard_at(y) - log1p(-p)), y)

    def _isf_given(self, a: Array, alive: Array, p: Array) -> Array:
        """By the hazard, which has digits where P(T > a) underflows."""
        return self._time_at(self._hazard_at(a) - safe_log(p))
