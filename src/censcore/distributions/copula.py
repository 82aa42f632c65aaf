"""Several event times that depend on each other through a survival copula."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from censcore._arrays import Array, as_float, common_rows, convert, is_neutral, one_namespace, to_numpy
from censcore.distributions._archimedean import FAMILIES, Family, bounded
from censcore.distributions._base import Univariate
from censcore.distributions._joint import FromMarginals, in_one_library
from censcore.exceptions import InvalidInputError

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
        The distribution of each coordinate, with one distribution per row or one for all rows.
    theta : array or number
        Strength of the dependence, one per row or one for all: theta >= 0 for Clayton (0 is
        independence), theta >= 1 for Gumbel (1 is independence).

    Notes
    -----
    ``sample`` draws through the frailty that both families share (Marshall and Olkin). Gradients of
    draws flow through the marginals, not through theta; those of ``log_likelihood``, ``sf`` and
    ``first()`` flow through both.

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

    _arrays: ClassVar[tuple[str, ...]] = ("_theta",)

    def __init__(self, family: str, marginals: Sequence[Univariate], theta: Array) -> None:
        if family not in FAMILIES:
            raise InvalidInputError(f"family must be one of {sorted(FAMILIES)}; got {family!r}.")
        distributions = in_one_library(marginals, type(self).__name__)
        if not is_neutral(theta) and all(distribution._is_neutral for distribution in distributions):
            distributions = [distribution.like(as_float(theta, "theta")) for distribution in distributions]
        one_namespace(theta=theta, marginals=distributions[0]._reference)
        column = as_float(theta, "theta", like=distributions[0]._reference)
        if column.ndim > 1:
            raise InvalidInputError(
                f"theta must be a number or one per row; got an array of shape {tuple(column.shape)}."
            )
        self.family = family
        self._marginals = distributions
        self._theta = self._marginals[0]._xp.astype(column.reshape(-1, 1), distributions[0]._reference.dtype)
        self._neutral = is_neutral(theta) and all(distribution._is_neutral for distribution in distributions)
        self._family.check(self._theta[:, 0], self.k)
        common_rows(
            theta=self._theta.shape[0],
            marginals=common_rows(**{str(j): len(m) for j, m in enumerate(distributions)}),
        )

    @property
    def _family(self) -> Family:
        return FAMILIES[self.family]

    @property
    def theta(self) -> Array:
        """Strength of the dependence, (n,) or (1,)."""
        return self._theta[:, 0]

    @property
    def kendall_tau(self) -> Array:
        """Kendall's rank correlation of any two coordinates, (n,) or (1,)."""
        return self._family.kendall_tau(self.theta)

    def _stack(self, columns: list[Array]) -> Array:
        xp = self._xp
        return xp.stack(xp.broadcast_arrays(*columns), axis=-1)

    def _join(self, logsf: list[Array]) -> Array:
        H = -self._stack(logsf)
        xp = self._xp
        over = xp.any(xp.isinf(H), axis=-1)
        value = -self._family.exponent(bounded(H), self._theta)
        return xp.where(over, xp.full_like(value, -np.inf), value)

    def _log_likelihood(self, t: Array, event: Array) -> Array:
        xp = self._xp
        H = -self._stack([distribution._logsf(t[..., j]) for j, distribution in enumerate(self._marginals)])
        event = xp.broadcast_to(event, H.shape)
        finite = bounded(H)
        log_hazard = self._log_density(t, event) + xp.where(event, finite, xp.zeros_like(H))
        value = self._family.log_likelihood(finite, log_hazard, event, self._theta)
        over = xp.any(xp.isinf(H) & ~event, axis=-1)
        return xp.where(over, xp.full_like(value, -np.inf), value)

    def _log_density(self, t: Array, event: Array) -> Array:
        """Log densities of the coordinates with an event, zero in the others."""
        xp = self._xp
        columns = []
        for j, distribution in enumerate(self._marginals):
            seen = event[..., j]
            inner = xp.where(seen, t[..., j], xp.ones_like(t[..., j]))
            zero = xp.zeros_like(inner)
            columns.append(xp.where(seen, distribution._logpdf(inner), zero) if bool(xp.any(seen)) else zero)
        return self._stack(columns)

    def _sample(self, m: int, rng: np.random.Generator) -> Array:
        H = self._family.draw_hazards(to_numpy(self._theta).astype(np.float64), (len(self), m, self.k), rng)
        survival = convert(np.exp(-H), self._reference)
        return self._xp.stack(
            [distribution._isf(survival[:, :, j]) for j, distribution in enumerate(self._marginals)], axis=2
        )

    def censor_at(self, tau: Array) -> Copula:
        """The distribution of min(T_j, tau_j) for every j; ``tau`` is a number, (n,) or (n, k)."""
        distribution = self._fitting(tau)
        return Copula(self.family, distribution._censored_marginals(tau), distribution.theta)
