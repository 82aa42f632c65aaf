"""Distributions given by a few numbers per subject."""

from __future__ import annotations

from collections.abc import Callable
from typing import ClassVar

import numpy as np

from censcore._arrays import Array, ArrayLike, detach, possibly, to_numpy
from censcore._numerics import safe_log, special, xlogy
from censcore._validation import check_between, name_subjects
from censcore.distributions._panels import merge_edges
from censcore.distributions._special import (
    exp,
    gammainc,
    gammaincc,
    gammainccinv,
    gammaincinv,
    interior,
    log_gammaincc,
    ndtr,
)
from censcore.distributions.derived.truncated import check_possible
from censcore.distributions.univariate.univariate import Univariate
from censcore.exceptions import InvalidInputError


class Parametric(Univariate):
    """A distribution with parameters: each a number or one value per subject.

    The constructor of a subclass calls ``self.set_parameters(name=value, ...)``; its formulas then find each
    parameter as an (n, 1) column ``self._name``.

    Notes
    -----
    Shapes lie between 0.001 and 1e8, scales and rates between 1e-100 and 1e100, logarithms of times between
    -230 and 230 and their standard deviations between 1e-8 and 100. Outside, formulas lose all digits, and
    a parameter there is an error.

    See Also
    --------
    ByHazard : Distributions known by their cumulative hazard.

    Examples
    --------
    >>> from censcore.distributions import Parametric
    >>> class Lomax(Parametric):
    ...     def __init__(self, shape, scale):
    ...         self.set_parameters(shape=shape, scale=scale)
    ...
    ...     def sf_at(self, t):
    ...         return (1 + t / self._scale) ** -self._shape
    >>> distribution = Lomax(shape=2.0, scale=[1.0, 3.0])
    >>> distribution.parameters["scale"], distribution.isf(0.25), distribution.has_density
    (array([1., 3.]), array([1., 3.]), False)
    """

    #: Between which numbers a parameter may lie, by its name: outside the formulas lose all digits. Other
    #: positive parameters are scales and rates, whose unit of time may be anything.
    _ranges: ClassVar[dict[str, tuple[float, float]]] = {"shape": (1e-3, 1e8)}
    _SCALES = (1e-100, 1e100)

    def set_parameters(self, **parameters: Array) -> None:
        """Keep every parameter as an (n, 1) column ``_<name>``."""
        self.store_columns(**parameters)
        for name, value in self.parameters.items():
            check_between(value, name, *self._ranges.get(name, self._SCALES))

    @property
    def parameters(self) -> dict[str, Array]:
        """The parameters by name, each (n,) or (1,)."""
        return {name[1:]: getattr(self, name)[:, 0] for name in self.array_names}

    def _area_by_means(
        self, a: Array, b: Array, mean: Array, middle: Array, partial_mean: Callable[[Array, int], Array]
    ) -> Array:
        r"""From :math:`\int_0^t P(T>s)\,ds=t\,P(T>t)+E[T;T\le t]`, or from the tails beyond ``middle``.

        ``partial_mean(t, sign)`` is :math:`E[T;T\le t]` for the sign 1 and :math:`E[T;T>t]` for -1.
        """
        xp, late = self.xp, a > middle

        def area(t: Array, sign: int) -> Array:
            return interior(lambda t: partial_mean(t, sign) + sign * t * self.sf_at(t), t, 0.0, 0.0)

        below = xp.where(xp.isinf(b), mean, area(b, 1)) - area(a, 1)
        if not possibly(xp.any(late)):
            return below
        start, stop = (xp.where(late, t, 0.0) for t in (a, b))
        return xp.where(late, area(start, -1) - area(stop, -1), below)


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

    def __init__(self, mu: ArrayLike, sigma: ArrayLike) -> None:
        self.set_parameters(mu=mu, sigma=sigma)

    def _z(self, t: Array) -> Array:
        return (self.xp.log(t) - self._mu) / self._sigma

    def sf_at(self, t: Array) -> Array:
        return interior(lambda t: ndtr(-self._z(t)), t, 1.0, 0.0)

    def cdf_at(self, t: Array) -> Array:
        return interior(lambda t: ndtr(self._z(t)), t, 0.0, 1.0)

    def logsf_at(self, t: Array) -> Array:
        return interior(lambda t: special(t).log_ndtr(-self._z(t)), t, 0.0, -np.inf)

    def logpdf_at(self, t: Array) -> Array:
        def formula(t: Array) -> Array:
            constant = safe_log(self._sigma) + float(np.log(2 * np.pi) / 2)
            return -0.5 * self._z(t) ** 2 - self.xp.log(t) - constant

        return interior(formula, t, -np.inf, -np.inf)

    def isf_at(self, p: Array) -> Array:
        return interior(lambda p: exp(self._mu - self._sigma * special(p).ndtri(p)), p, np.inf, 0.0, end=1.0)

    def icdf_at(self, p: Array) -> Array:
        return interior(lambda p: exp(self._mu + self._sigma * special(p).ndtri(p)), p, 0.0, np.inf, end=1.0)

    def integrated_sf_at(self, a: Array, b: Array) -> Array:
        r"""With :math:`E[T;T\le t]=E[T]\,\Phi(z-\sigma)`."""
        log_mean = self._mu + self._sigma**2 / 2

        def partial_mean(t: Array, sign: int) -> Array:
            return exp(log_mean + special(t).log_ndtr(sign * (self._z(t) - self._sigma)))

        return self._area_by_means(a, b, exp(log_mean), exp(self._mu + self._sigma**2), partial_mean)


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

    def __init__(self, shape: ArrayLike, rate: ArrayLike) -> None:
        self.set_parameters(shape=shape, rate=rate)

    def _turned(self, t: Array) -> Array:
        """rt, in the unit in which the rate is one."""
        with np.errstate(over="ignore"):  # beyond the largest float it is infinite
            return self._rate * t

    def sf_at(self, t: Array) -> Array:
        return interior(lambda t: gammaincc(self._shape, self._turned(t)), t, 1.0, 0.0)

    def cdf_at(self, t: Array) -> Array:
        return interior(lambda t: gammainc(self._shape, self._turned(t)), t, 0.0, 1.0)

    def logsf_at(self, t: Array) -> Array:
        return interior(lambda t: log_gammaincc(self._shape, self._turned(t)), t, 0.0, -np.inf)

    def logpdf_at(self, t: Array) -> Array:
        xp, k, rate = self.xp, self._shape, self._rate
        endless = xp.isinf(t)
        t = xp.where(endless, 1.0, t)
        density = k * safe_log(rate) + xlogy(k - 1, t) - self._turned(t) - special(t).gammaln(k)
        return xp.where(endless, -np.inf, density)

    def isf_at(self, p: Array) -> Array:
        t = interior(lambda p: gammainccinv(self._shape, p) / detach(self._rate), p, np.inf, 0.0, end=1.0)
        return self._with_gradient(t, self.sf_at, p, -1)

    def icdf_at(self, p: Array) -> Array:
        t = interior(lambda p: gammaincinv(self._shape, p) / detach(self._rate), p, 0.0, np.inf, end=1.0)
        return self._with_gradient(t, self.cdf_at, p, 1)

    def integrated_sf_at(self, a: Array, b: Array) -> Array:
        r"""With :math:`E[T;T\le t]=E[T]\,P(k+1,rt)`."""
        k, mean = self._shape, self._shape / self._rate

        def partial_mean(t: Array, sign: int) -> Array:
            return mean * (gammainc if sign > 0 else gammaincc)(k + 1, self._turned(t))

        return self._area_by_means(a, b, mean, mean, partial_mean)


class Uniform(Parametric):
    r"""Uniform distribution on [low, high], :math:`P(T>t)=(b-t)/(b-a)` for :math:`a\le t\le b`.

    Parameters
    ----------
    low : array or number
        a >= 0, one value per subject or one for all.
    high : array or number
        b > a, finite.

    Notes
    -----
    As for every distribution on [0, inf], the quantile of level 0 is inf{t >= 0: F(t) >= 0} = 0, not ``low``.

    Examples
    --------
    >>> import censcore as cs
    >>> distribution = cs.Uniform(low=0.0, high=[4.0, 10.0])
    >>> distribution.sf(3.0)
    array([0.25, 0.7 ])
    """

    form = "lines"
    _ranges: ClassVar[dict[str, tuple[float, float]]] = {"low": (0.0, Parametric._SCALES[1])}
    _low: Array
    _high: Array

    def __init__(self, low: ArrayLike, high: ArrayLike) -> None:
        self.set_parameters(low=low, high=high)
        empty = np.nonzero(to_numpy(self._low >= self._high).any(axis=1))[0]
        if empty.size:
            raise InvalidInputError(
                f"Uniform needs low < high; it is not so in {name_subjects(empty)}. For all mass at one time "
                "use PointMass(location)."
            )

    def _within(self, t: Array) -> Array:
        xp = self.xp
        return xp.maximum(xp.minimum(t, self._high), self._low)

    def sf_at(self, t: Array) -> Array:
        return (self._high - self._within(t)) / (self._high - self._low)

    def cdf_at(self, t: Array) -> Array:
        return (self._within(t) - self._low) / (self._high - self._low)

    def logpdf_at(self, t: Array) -> Array:
        xp = self.xp
        density = -safe_log(self._high - self._low) + xp.zeros_like(t)
        inside = (t >= self._low) & (t <= self._high)
        return xp.where(inside, density, -np.inf)

    def isf_at(self, p: Array) -> Array:
        t = self._high - p * (self._high - self._low)
        return self.xp.where(p < 1, t, 0.0)

    def icdf_at(self, p: Array) -> Array:
        t = self._low + p * (self._high - self._low)
        return self.xp.where(p > 0, t, 0.0)

    def integrated_sf_at(self, a: Array, b: Array) -> Array:
        r"""The length below ``low``, and a trapezoid above it."""
        xp = self.xp
        early = xp.minimum(b, self._low) - xp.minimum(a, self._low)
        u, v = self._within(a), self._within(b)
        return early + (v - u) * ((self._high - u) + (self._high - v)) / (2 * (self._high - self._low))

    def excludes_at(self, t: Array) -> Array:
        return (t < self._low) | (t > self._high)

    def given_survival(self, a: ArrayLike) -> Univariate:
        """Uniform on [max(a, low), high]."""
        F, column = self._with_start(a)
        check_possible(column >= F._high, column)
        return F.replaced(_low=F.xp.maximum(F._low, column))

    def breaks(self) -> Array:
        return self.remember("breaks", lambda: merge_edges(self._low, self._high))
