"""Distributions known by their cumulative hazard."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

import numpy as np

from censcore._arrays import Array, ArrayLike, detach, namespace, possibly, requires_grad, surely
from censcore._numerics import expm1, log1p, safe_log, special, xlogy
from censcore._quadrature import integrate_panels
from censcore.distributions._special import (
    decaying_area,
    exp,
    expint_scaled,
    gammainc,
    gammaincc,
    interior,
    log_of_positive,
)
from censcore.distributions.univariate.parametric import Parametric
from censcore.distributions.univariate.univariate import Univariate


class ByHazard(Univariate):
    r"""A continuous distribution given by its cumulative hazard :math:`H(t)=-\log P(T>t)`.

    A subclass writes three formulas: H on [0, inf] (``cumulative_hazard_at``), its inverse
    (``inverse_hazard_at``) and the logarithm of the hazard rate :math:`h=H'` (``log_hazard_at``). What
    follows from them is written here once, accurate in both tails.

    See Also
    --------
    Parametric : To be combined with it where the distribution has a few parameters per subject.

    Examples
    --------
    >>> from censcore.distributions import ByHazard, Parametric
    >>> class Rayleigh(ByHazard, Parametric):
    ...     def __init__(self, scale):
    ...         self.set_parameters(scale=scale)
    ...
    ...     def cumulative_hazard_at(self, t):
    ...         return (t / self._scale) ** 2 / 2
    ...
    ...     def inverse_hazard_at(self, h):
    ...         return self._scale * self.xp.sqrt(2 * h)
    ...
    ...     def log_hazard_at(self, t):
    ...         return self.xp.log(t / self._scale**2)
    >>> Rayleigh([1.0, 2.0]).sf(2.0).round(3)
    array([0.135, 0.607])
    """

    @abstractmethod
    def cumulative_hazard_at(self, t: Array) -> Array:
        """H(t) for 0 <= t <= inf."""

    @abstractmethod
    def inverse_hazard_at(self, h: Array) -> Array:
        """The smallest t with H(t) >= h, for 0 <= h <= inf."""

    @abstractmethod
    def log_hazard_at(self, t: Array) -> Array:
        """Log h(t) for 0 <= t < inf."""

    def _hazard_at(self, t: Array) -> Array:
        """H(t), with a gradient that is finite everywhere."""
        if self.xp is not np and (self._requires_grad or requires_grad(t)):
            return self._hazard_with_gradient(t)
        with np.errstate(over="ignore"):  # beyond the largest float the hazard is infinite
            return self.cumulative_hazard_at(t)

    def _hazard_with_gradient(self, t: Array) -> Array:
        """Without a gradient where H or t is infinite and where t is zero, or as good as zero.

        There torch would multiply a zero gradient by an infinite slope, so these entries leave the graph.
        """
        xp, hazard = self.xp, self.cumulative_hazard_at(t)
        limits = xp.finfo(hazard.dtype)
        ordinary = (t > float(limits.tiny) / float(limits.eps)) & xp.isfinite(t) & xp.isfinite(hazard)
        if surely(xp.all(ordinary)):
            return hazard
        typical = self.detach().inverse_hazard_at(self._reachable(detach(hazard)))
        inner = self.cumulative_hazard_at(xp.where(ordinary, t, typical))
        return xp.where(ordinary, inner, detach(hazard))

    def _time_at(self, hazard: Array) -> Array:
        """The smallest t with H(t) >= hazard, its gradient guarded in the same way."""
        with np.errstate(over="ignore"):
            t = self.inverse_hazard_at(hazard)
        if not requires_grad(t):
            return t
        xp = namespace(t)
        ordinary = (hazard > 0) & xp.isfinite(hazard) & xp.isfinite(t)
        if surely(xp.all(ordinary)):
            return t
        inner = self.inverse_hazard_at(xp.where(ordinary, hazard, self._reachable(detach(hazard))))
        return xp.where(ordinary, inner, detach(t))

    def _reachable(self, like: Array) -> Array:
        """Levels that H reaches, as placeholders for entries that are replaced."""
        return namespace(like).ones_like(like)

    def logsf_at(self, t: Array) -> Array:
        return 0.0 - self._hazard_at(t)

    def sf_at(self, t: Array) -> Array:
        return self.xp.exp(-self._hazard_of_survivors(t))

    def cdf_at(self, t: Array) -> Array:
        return 0.0 - self.xp.expm1(-self._hazard_of_survivors(t))

    def _hazard_of_survivors(self, t: Array) -> Array:
        """H(t), without a gradient where no survival is left: zero times its square would be NaN."""
        hazard, xp = self._hazard_at(t), self.xp
        if xp is np or not requires_grad(hazard):
            return hazard
        return xp.where(hazard < float(-np.log(xp.finfo(hazard.dtype).tiny)), hazard, detach(hazard))

    def logpdf_at(self, t: Array) -> Array:
        xp = self.xp
        hazard = self._hazard_at(t)
        endless = xp.isinf(t) | xp.isinf(hazard)
        density = self.log_hazard_at(xp.where(endless, 1.0, t)) - hazard
        return xp.where(endless, -np.inf, density)

    def isf_at(self, p: Array) -> Array:
        return self._time_at(0.0 - safe_log(p))

    def icdf_at(self, p: Array) -> Array:
        return self._time_at(0.0 - log1p(-p))

    def icdf_beyond_at(self, y: Array, p: Array) -> Array:
        """Given T >= y, H(T) exceeds H(y) by a unit exponential."""
        xp = self.xp
        return xp.maximum(self._time_at(self._hazard_at(y) - log1p(-p)), y)

    def _isf_given(self, a: Array, alive: Array, p: Array) -> Array:
        """By the hazard, which has digits where P(T > a) underflows."""
        return self._time_at(self._hazard_at(a) - safe_log(p))


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

    def __init__(self, rate: ArrayLike) -> None:
        self.set_parameters(rate=rate)

    def cumulative_hazard_at(self, t: Array) -> Array:
        return self._rate * t

    def inverse_hazard_at(self, h: Array) -> Array:
        return h / self._rate

    def log_hazard_at(self, t: Array) -> Array:
        return safe_log(self._rate)

    def integrated_sf_at(self, a: Array, b: Array) -> Array:
        return decaying_area(self.sf_at(a), self._rate, b - a)


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

    def __init__(self, shape: ArrayLike, scale: ArrayLike) -> None:
        self.set_parameters(shape=shape, scale=scale)

    def cumulative_hazard_at(self, t: Array) -> Array:
        return (t / self._scale) ** self._shape

    def _hazard_with_gradient(self, t: Array) -> Array:
        r"""As :math:`e^{a(\log t-\log\lambda)}`: no power of small t in any derivative."""
        xp, limits = self.xp, self.xp.finfo(t.dtype)
        log_hazard = self._shape * (log_of_positive(t) - xp.log(self._scale))
        ordinary = (t > float(limits.tiny) / float(limits.eps)) & (t < np.inf)
        ordinary = ordinary & (log_hazard < float(np.log(limits.max)))
        if surely(xp.all(ordinary)):
            return xp.exp(log_hazard)
        inner = xp.exp(xp.where(ordinary, log_hazard, 0.0))
        return xp.where(ordinary, inner, self.detach()._hazard_at(detach(t)))

    def inverse_hazard_at(self, h: Array) -> Array:
        return self._scale * h ** (1 / self._shape)

    def log_hazard_at(self, t: Array) -> Array:
        a, log_scale = self._shape, safe_log(self._scale)
        return safe_log(a) - log_scale + xlogy(a - 1, t) - (a - 1) * log_scale

    def integrated_sf_at(self, a: Array, b: Array) -> Array:
        r"""With u = H(t): :math:`\lambda\Gamma(1+1/a)` times a difference of the smaller gamma tails."""
        xp = self.xp
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
        finite = xp.where(endless, 1.0, whole)
        return xp.where(endless, self._area_to(b) - self._area_to(a), finite * share)

    def _area_to(self, t: Array) -> Array:
        r"""The integral up to t, where :math:`s=1/a` is so large that :math:`\Gamma(1+s)` is no float.

        With x = H(t) it is :math:`te^{-x}\sum_n x^n/\{(s+1)\cdots(s+n)\}`; all terms are positive.
        """
        xp, s = self.xp, 1 / self._shape
        endless = xp.isinf(t)
        t = xp.where(endless, 1.0, t)
        x = self._hazard_at(t)
        term = total = xp.ones_like(x)
        for n in range(1, _TERMS):
            term = term * x / (s + n)
            total = total + term
        area = t * xp.exp(-x) * total
        return xp.where(endless, np.inf, area)


# Terms of the series above: s > 170 and so x < 300 for all times that are floats.
_TERMS = 600


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

    def __init__(self, shape: ArrayLike, rate: ArrayLike) -> None:
        self.set_parameters(shape=shape, rate=rate)

    def cumulative_hazard_at(self, t: Array) -> Array:
        with np.errstate(over="ignore"):
            return self._rate / self._shape * expm1(self._shape * t)

    def inverse_hazard_at(self, h: Array) -> Array:
        return self.xp.log1p(h * self._shape / self._rate) / self._shape

    def log_hazard_at(self, t: Array) -> Array:
        return safe_log(self._rate) + self._shape * t

    def integrated_sf_at(self, a: Array, b: Array) -> Array:
        r"""From :math:`\int_t^\infty P(T>s)\,ds=P(T>t)\,e^xE_1(x)/b` with :math:`x=(r/b)e^{bt}`.

        The difference of two tails has no digits left where a and b are close: there one panel of quadrature
        is exact.
        """

        def tail(t: Array) -> Array:
            x = self._rate / self._shape + self._hazard_at(t)
            return self.sf_at(t) * expint_scaled(x) / self._shape

        xp = self.xp
        endless = xp.isinf(b)
        stop = xp.where(endless, a, b)
        with np.errstate(over="ignore"):
            little = self.cumulative_hazard_at(stop) < self.cumulative_hazard_at(a) + 1
            short = ~endless & little & (self._shape * (stop - a) < 1)
        panel = integrate_panels(self.sf_at, a, xp.where(short, stop, a))
        return xp.where(short, panel, tail(a) - tail(b))


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

    def __init__(self, shape: ArrayLike, scale: ArrayLike) -> None:
        self.set_parameters(shape=shape, scale=scale)

    def cumulative_hazard_at(self, t: Array) -> Array:
        """Log of 1 + odds, the odds being those of an event before t."""
        log_odds = self._shape * (safe_log(t) - safe_log(self._scale))
        return self.xp.logaddexp(log_odds, self.xp.zeros_like(log_odds))

    def inverse_hazard_at(self, h: Array) -> Array:
        def formula(h: Array) -> Array:
            log_odds = h + self.xp.log(-expm1(-h))
            return exp(safe_log(self._scale) + log_odds / self._shape)

        return interior(formula, h, 0.0, np.inf)

    def log_hazard_at(self, t: Array) -> Array:
        a, log_scale = self._shape, safe_log(self._scale)
        return safe_log(a) - log_scale + xlogy(a - 1, t) - (a - 1) * log_scale - self._hazard_at(t)
