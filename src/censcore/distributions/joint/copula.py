"""Several event times that depend on each other through a survival copula."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import ClassVar

import numpy as np

from censcore._arrays import (
    Array,
    ArrayLike,
    common_rows,
    convert,
    detach,
    grad_is_recorded,
    is_torch,
    namespace,
    possibly,
    surely,
    to_numpy,
)
from censcore._validation import check_option, check_positive
from censcore.distributions.distribution import as_column
from censcore.distributions.joint.joint import FromMarginals, beside, in_one_library, stacked
from censcore.distributions.random_draws import Draws
from censcore.distributions.univariate.univariate import Univariate
from censcore.exceptions import DerivativeError, InvalidInputError

__all__ = ["Copula"]


class Copula(FromMarginals):
    r"""Joint distribution of any marginals under a Clayton or Gumbel survival copula.

    With :math:`H_j(t)=-\log P(T_j>t)` the joint survival function :math:`P(T_1>t_1,\dots,T_k>t_k)` is

    .. math::
        \Big(1+\sum_j(e^{\theta H_j(t_j)}-1)\Big)^{-1/\theta}\ \text{(Clayton)},\qquad
        \exp\{-(H_1^\theta+H_2^\theta)^{1/\theta}\}\ \text{(Gumbel)}.

    ``log_likelihood`` is its mixed derivative in the coordinates with an event.

    Parameters
    ----------
    family : "clayton" or "gumbel"
        Clayton joins any number of event times; late events depend most. Gumbel joins two; early
        events depend most.
    marginals : list of distributions of one time
        The distribution of each coordinate, with one distribution per subject or one for all subjects.
    theta : array or number
        Strength of the dependence, one per subject or one for all: theta >= 0 for Clayton (0 is
        independence), theta >= 1 for Gumbel (1 is independence).

    Notes
    -----
    ``sample`` draws through the frailty that both families have (Marshall and Olkin, 1988; Chambers, Mallows
    and Stuck, 1976). Draws are smooth functions of the parameters and of random numbers that do not depend on
    them, so that gradients of draws flow through the marginals and through theta, as those of
    ``log_likelihood``, ``sf`` and ``first()`` do. With a gradient in theta Clayton coordinates are drawn one
    after the other, each given those before it: the same distribution, by other draws than without a
    gradient. Marginals with jumps have draws that do not move with theta, and Gumbel draws no derivative at
    theta = 1: there a gradient in theta is an error.

    See Also
    --------
    Independent : Event times that are independent of each other.
    JointGrid : Any dependence, by the probabilities of cells.

    References
    ----------
    D. G. Clayton (1978). A model for association in bivariate life tables and its application in
    epidemiological studies of familial tendency in chronic disease incidence. Biometrika 65, 141-151.

    J. M. Chambers, C. L. Mallows and B. W. Stuck (1976). A method for simulating stable random variables.
    Journal of the American Statistical Association 71, 340-344.

    P. Hougaard (1986). A class of multivariate failure time distributions. Biometrika 73, 671-678.

    A. W. Marshall and I. Olkin (1988). Families of multivariate distributions. Journal of the American
    Statistical Association 83, 834-841.

    Examples
    --------
    >>> import censcore as cs
    >>> distribution = cs.Copula("clayton", [cs.Exponential(1.0), cs.Weibull(2.0, 1.0)], theta=[0.0, 3.0])
    >>> distribution.kendall_tau
    array([0. , 0.6])
    >>> distribution.sf([[1.0, 1.0]]).round(3)
    array([0.135, 0.294])
    >>> distribution.log_likelihood([[1.0, 1.0], [1.0, 1.0]], [[1, 0], [1, 1]]).round(3)
    array([-2.   , -0.479])
    """

    array_names: ClassVar[tuple[str, ...]] = ("_theta",)

    def __init__(self, family: str, marginals: Sequence[Univariate], theta: ArrayLike) -> None:
        check_option(family, "family", _FAMILIES)
        self.marginals, column = beside(in_one_library(marginals, type(self).__name__), theta, "theta")
        self.family, first = family, self.marginals[0]
        self._theta = first.xp.astype(as_column(column, "theta", "Copula"), first.reference.dtype)
        self._family.check(self._theta[:, 0], self.k)
        common_rows(theta=self._theta.shape[0], marginals=max(len(F) for F in self.marginals))

    @property
    def _family(self) -> Clayton | Gumbel:
        return _FAMILIES[self.family]

    @property
    def theta(self) -> Array:
        """Strength of the dependence, (n,) or (1,)."""
        return self._theta[:, 0]

    @property
    def kendall_tau(self) -> Array:
        """Kendall's rank correlation of any two coordinates, (n,) or (1,)."""
        return self._family.kendall_tau(self.theta)

    def join(self, logsf: list[Array]) -> Array:
        H = -stacked(logsf)
        xp = self.xp
        over = xp.any(xp.isinf(H), axis=-1)
        value = -self._family.exponent(_bounded(H), self._theta)
        return xp.where(over, -np.inf, value)

    def log_likelihood_at(self, t: Array, event: Array) -> Array:
        xp = self.xp
        H = -stacked([F.logsf_at(t[..., j]) for j, F in enumerate(self.marginals)])
        event = xp.broadcast_to(event, H.shape)
        finite = _bounded(H)
        log_hazard = self._log_density(t, event) + xp.where(event, finite, xp.zeros_like(H))
        value = self._family.log_likelihood(finite, log_hazard, event, self._theta)
        over = xp.any(xp.isinf(H) & ~event, axis=-1)
        return xp.where(over, -np.inf, value)

    def _log_density(self, t: Array, event: Array) -> Array:
        """Log densities of the coordinates with an event, zero in the others."""
        xp = self.xp
        columns = []
        for j, F in enumerate(self.marginals):
            exact = event[..., j]
            inner = xp.where(exact, t[..., j], 1.0)
            zero = xp.zeros_like(inner)
            columns.append(xp.where(exact, F.logpdf_at(inner), zero) if possibly(xp.any(exact)) else zero)
        return stacked(columns)

    def draw(self, m: int, rng: Draws) -> Array:
        jumping = [type(F).__name__ for F in self.marginals if not F.has_density]
        if jumping and grad_is_recorded(self._theta):  # they stay where they are when theta moves
            raise DerivativeError(
                f"Draws of a copula with marginals that have jumps ({', '.join(jumping)}) have no gradient "
                "in theta. Train theta by log_likelihood or joint_brier_score, use continuous marginals, or "
                "pass theta.detach()."
            )
        H = self._family.draw_hazards(self._theta, (len(self), m, self.k), rng)
        survival = convert(namespace(H).exp(-H), self.reference)
        return self.xp.stack([F.isf_at(survival[:, :, j]) for j, F in enumerate(self.marginals)], axis=2)


# ---- families -------------------------------------------------------------------------------------------
#
# Formulas take cumulative hazards H with the coordinates last, (n, q, k), and theta as (n, 1) or (1, 1).
# A copula gives the joint survival function exp{-g(H)} by its ``exponent`` g, (n, q). ``log_likelihood`` is
# the log of its mixed derivative in the coordinates with an event; ``log_hazard`` is zero in the others.
# ``draw_hazards`` gives the cumulative hazards of draws, (n, m, k): T_j solves H_j(T_j) = H_j.

# Stands in for an infinite cumulative hazard: far beyond any that a float can turn into a probability.
_ENDLESS = 1e30
# Below this the series of the functions at a removable singularity is exact to the last bit.
_SERIES = 0.05
_EXPM1_SERIES = [1 / math.factorial(i) for i in range(1, 11)]
_LOG1P_SERIES = [(-1) ** i / (i + 1) for i in range(13)]

_STRONGEST = 1e8


def _check_strength(theta: Array) -> None:
    """Beyond it, differences of hazards times theta have no significant digits."""
    if surely((theta > _STRONGEST).any()):
        raise InvalidInputError(
            f"theta: got {float(detach(theta).max()):g}, expected at most {_STRONGEST:g}, a Kendall's tau "
            "of almost 1. For identical times use one event time."
        )


class Clayton:
    r""":math:`g=\theta^{-1}\log A,\ A=1+\sum_j(e^{\theta H_j}-1)`; theta = 0 is independence."""

    def check(self, theta: Array, k: int) -> None:
        check_positive(theta, "theta of a Clayton copula", zero=True)
        _check_strength(theta)

    def exponent(self, H: Array, theta: Array) -> Array:
        """Small theta H: B psi(theta B) with B = sum_j H_j phi(theta H_j), no division by theta.

        Large theta H: the largest hazard is taken out of the sum, as in a log-sum-exp.
        """
        xp = namespace(H)
        column = theta[..., None]
        M = detach(xp.max(H, axis=-1))
        small = theta * M < 1
        inner = xp.where(small[..., None], H, 0.0)
        B = xp.sum(inner * _expm1_over(column * inner), axis=-1)
        near = B * _log1p_over(theta * B)
        theta_far = xp.where(small, xp.ones_like(theta * M), theta + 0 * M)
        H_far = xp.where(small[..., None], 0.0, H)
        M_far = xp.where(small, 0.0, M)
        ratios = xp.sum(xp.exp(theta_far[..., None] * (H_far - M_far[..., None])), axis=-1)
        a = ratios - (H.shape[-1] - 1) * xp.exp(-theta_far * M_far)
        far = M_far + xp.log(a) / theta_far
        return xp.where(small, near, far)

    def log_likelihood(self, H: Array, log_hazard: Array, event: Array, theta: Array) -> Array:
        xp = namespace(H)
        g = self.exponent(H, theta)
        zero = xp.zeros_like(H)
        terms = xp.sum(log_hazard + xp.where(event, theta[..., None] * (H - g[..., None]), zero), axis=-1)
        earlier = xp.where(event, xp.cumsum(xp.astype(event, H.dtype), axis=-1) - 1, zero)
        constants = xp.sum(xp.log1p(earlier * theta[..., None]), axis=-1)
        return terms + constants - g

    def draw_hazards(self, theta: Array, shape: tuple[int, int, int], rng: Draws) -> Array:
        r"""V ~ Gamma(1/theta), H_j = log(1 + E_j/V)/theta, with log V since V underflows for large theta.

        With a gradient in theta the coordinates are drawn one by one instead: of the frailty it is unbounded
        near independence.
        """
        if grad_is_recorded(theta):
            return self._draw_in_turn(theta, shape, rng)
        n, m, k = shape
        exponential, theta = _in_one_library(rng.standard_exponential((n, m, k)), detach(theta), n)
        xp = namespace(exponential)
        dependent = theta > 0
        positive = xp.where(dependent, theta, 1.0)
        shape_of_V = 1 + 1 / positive
        shape_of_V = to_numpy(shape_of_V) if isinstance(rng, np.random.Generator) else shape_of_V
        gamma = rng.standard_gamma(shape_of_V, (n, m))
        log_frailty = xp.log(convert(gamma, exponential))
        log_frailty = log_frailty - positive * convert(rng.standard_exponential((n, m)), exponential)
        x = xp.log(exponential) - log_frailty[:, :, None]
        H = xp.logaddexp(xp.zeros_like(x), x) / positive[:, :, None]
        return xp.where(dependent[:, :, None], H, exponential)

    def _draw_in_turn(self, theta: Array, shape: tuple[int, int, int], rng: Draws) -> Array:
        r"""One coordinate given those before it, from unit exponentials E_j.

        With :math:`A_j=1+\sum_{i\le j}(e^{\theta H_i}-1)` the chance to survive a hazard H after j events
        is :math:`(A_{j+1}/A_j)^{-(1+j\theta)/\theta}=e^{-E}`, so that :math:`\log A_{j+1}=\log A_j+a` and
        :math:`e^{\theta H_{j+1}}-1=A_j(e^a-1)` with :math:`a=\theta E/(1+j\theta)`.
        """
        n, m, k = shape
        exponential, theta = _in_one_library(rng.standard_exponential((n, m, k)), theta, n)
        xp = namespace(exponential)
        log_A, hazards = xp.zeros_like(exponential[:, :, 0]), []
        for j in range(k):
            rate = exponential[:, :, j] / (1 + j * theta)
            hazards.append(_log_of_risen(log_A, rate, theta))
            log_A = log_A + theta * rate
        return xp.stack(hazards, axis=2)

    def kendall_tau(self, theta: Array) -> Array:
        return theta / (theta + 2)


class Gumbel:
    r""":math:`g=R=(H_1^\theta+H_2^\theta)^{1/\theta}`; theta = 1 is independence."""

    def check(self, theta: Array, k: int) -> None:
        if k != 2:
            raise InvalidInputError(
                f"A Gumbel copula joins two event times; got {k} marginals. Use 'clayton' for more."
            )
        check_positive(theta, "theta of a Gumbel copula")
        if surely((theta < 1).any()):
            raise InvalidInputError(
                "theta of a Gumbel copula must be at least 1 (1 is independence); "
                f"got {float(detach(theta).min()):g}."
            )
        _check_strength(theta)

    def exponent(self, H: Array, theta: Array) -> Array:
        return self._norm(H, theta)[0]

    def _norm(self, H: Array, theta: Array) -> tuple[Array, Array, Array]:
        """R, log R and log(H_j / R), where a hazard of zero counts as the smallest float in the logs."""
        xp = namespace(H)
        tiny = float(xp.finfo(H.dtype).tiny)
        log_H = xp.log(xp.where(H > 0, H, tiny))
        excess = xp.log1p(xp.exp(-theta * xp.abs(log_H[..., 0] - log_H[..., 1]))) / theta
        log_R = xp.maximum(log_H[..., 0], log_H[..., 1]) + excess
        R = xp.maximum(H[..., 0], H[..., 1]) * xp.exp(excess)
        return R, log_R, log_H - log_R[..., None]

    def log_likelihood(self, H: Array, log_hazard: Array, event: Array, theta: Array) -> Array:
        xp = namespace(H)
        R, log_R, log_share = self._norm(H, theta)
        zero = xp.zeros_like(H)
        column = theta[..., None]
        # at zero hazard, beside a coordinate with a positive one, events need independence
        impossible = (H == 0) & (R > 0)[..., None] & (column > 1)
        shares = xp.where(impossible, xp.full_like(H, -np.inf), (column - 1) * log_share)
        terms = xp.sum(log_hazard + xp.where(event, shares, zero), axis=-1)
        both = event[..., 0] & event[..., 1]
        cross = xp.where(both, _log_ratio(theta - 1, R, log_R), xp.zeros_like(R))
        at_zero = both & (R == 0) & (theta > 1)
        return xp.where(at_zero, xp.full_like(R, np.inf), terms + cross - R)

    def draw_hazards(self, theta: Array, shape: tuple[int, int, int], rng: Draws) -> Array:
        """Positive stable V of index a = 1/theta (Chambers, Mallows and Stuck), H_j = (E_j/V)^a."""
        n, m, k = shape
        if grad_is_recorded(theta) and possibly((theta <= 1).any()):
            raise DerivativeError(
                "Draws of a Gumbel copula have no gradient in theta at independence, theta = 1. Keep theta "
                "above 1, for instance theta = 1.01 + softplus(x), or train it by log_likelihood."
            )
        exponential, theta = _in_one_library(rng.standard_exponential((n, m, k)), theta, n)
        xp, a = namespace(exponential), 1 / theta
        U = convert(np.pi * (1 - rng.random((n, m))), exponential)
        W = convert(rng.standard_exponential((n, m)), exponential)
        b = xp.where(a < 1, 1 - a, xp.full_like(a, 0.5))
        a_log_V = a * xp.log(xp.sin(a * U)) - xp.log(xp.sin(U)) + b * (xp.log(xp.sin(b * U)) - xp.log(W))
        a_log_V = xp.where(a < 1, a_log_V, 0.0)
        return xp.exp(a[:, :, None] * xp.log(exponential) - a_log_V[:, :, None])

    def kendall_tau(self, theta: Array) -> Array:
        return 1 - 1 / theta


_FAMILIES: dict[str, Clayton | Gumbel] = {"clayton": Clayton(), "gumbel": Gumbel()}


def _in_one_library(draws: Array, theta: Array, n: int) -> tuple[Array, Array]:
    """Draws in the library and on the device of theta, and theta as (n, 1) in the precision of the draws."""
    if is_torch(theta):
        dtype = draws.dtype if is_torch(draws) else namespace(theta).float64
        theta = theta.to(dtype)
        draws = convert(draws, theta)
    else:
        theta = convert(theta, draws)
    return draws, namespace(theta).broadcast_to(theta, (n, 1))


def _log_of_risen(log_A: Array, rate: Array, theta: Array) -> Array:
    r""":math:`\theta^{-1}\log\{1+A(e^{\theta r}-1)\}`, which is A r at theta = 0.

    Small theta r: B psi(theta B) with B = A r phi(theta r), no division by theta.
    """
    xp = namespace(rate)
    small = detach(theta * rate + log_A) < 1
    zero, one = xp.zeros_like(rate), xp.ones_like(rate)
    B = xp.exp(xp.where(small, log_A, zero)) * rate * _expm1_over(xp.where(small, theta * rate, zero))
    B = xp.where(small, B, zero)
    near = B * _log1p_over(theta * B)
    theta_far = xp.where(small, one, theta + zero)
    rise = theta_far * xp.where(small, one, rate)
    x = xp.where(small, zero, log_A) + rise + xp.log(-xp.expm1(-rise))
    far = xp.logaddexp(zero, x) / theta_far
    return xp.where(small, near, far)


def _bounded(H: Array) -> Array:
    """Infinite cumulative hazards as a finite number, so that differences of two exist."""
    xp = namespace(H)
    return xp.where(xp.isinf(H), _ENDLESS, H)


def _expm1_over(x: Array) -> Array:
    """(exp(x) - 1) / x, with its gradient, also at zero."""
    return _by_series(x, _EXPM1_SERIES, lambda x: namespace(x).expm1(x) / x)


def _log1p_over(y: Array) -> Array:
    """log(1 + y) / y, with its gradient, also at zero."""
    return _by_series(y, _LOG1P_SERIES, lambda y: namespace(y).log1p(y) / y)


def _by_series(x: Array, coefficients: Sequence[float], formula: Callable[[Array], Array]) -> Array:
    """A power series near zero, the formula elsewhere."""
    xp = namespace(x)
    near = xp.abs(x) < _SERIES
    apart = xp.where(near, 1.0, x)
    close = xp.where(near, x, 0.0)
    series = xp.zeros_like(x)
    for coefficient in reversed(coefficients):
        series = coefficient + close * series
    return xp.where(near, series, formula(apart))


def _log_ratio(x: Array, R: Array, log_R: Array) -> Array:
    """log((x + R) / R) for x >= 0, which neither cancels for small x nor overflows for small R."""
    xp = namespace(R)
    x = x + xp.zeros_like(R)
    large = x > R
    one = xp.ones_like(R)
    small_ratio = xp.where(large | (R == 0), 0 * x, x / xp.where(large | (R == 0), one, R))
    return xp.where(large, xp.log(xp.where(large, x + R, one)) - log_R, xp.log1p(small_ratio))
