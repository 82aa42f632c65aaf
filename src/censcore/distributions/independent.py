"""Several independent event times."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from censcore._arrays import Array
from censcore.distributions.joint import FromMarginals, in_one_library
from censcore.distributions.univariate import Univariate

__all__ = ["Independent"]


class Independent(FromMarginals):
    r"""Joint distribution with independent coordinates, :math:`P(T>t)=\prod_j P(T_j>t_j)`.

    As a censoring distribution it says that every event time has a censoring time of its own (componentwise
    censoring); one C shared by all coordinates is a distribution of one time instead.

    Parameters
    ----------
    distributions : list of distributions of one time
        The distribution of each coordinate, with one distribution per subject or one for all subjects.

    See Also
    --------
    Copula : Event times that depend on each other.

    Examples
    --------
    >>> import censcore as cs
    >>> distribution = cs.Independent([cs.Exponential(rate=1.0), cs.Weibull(shape=2.0, scale=[1.0, 2.0])])
    >>> distribution.shape
    (2, 2)
    >>> distribution.sf([[1.0, 1.0], [1.0, 1.0]]).round(3)
    array([0.135, 0.287])
    >>> distribution.first().sf(1.0).round(3)
    array([0.135, 0.287])
    """

    def __init__(self, distributions: Sequence[Univariate]) -> None:
        self._marginals = in_one_library(distributions, type(self).__name__)

    def _join(self, logsf: list[Array]) -> Array:
        return sum(logsf[1:], start=logsf[0])

    def _log_likelihood(self, t: Array, event: Array) -> Array:
        return self._join(
            [marginal._log_likelihood(t[..., j], event[..., j]) for j, marginal in enumerate(self._marginals)]
        )

    def _sample(self, m: int, rng: np.random.Generator) -> Array:
        n = len(self)
        draws = [marginal._isf(self._uniforms((n, m), rng)) for marginal in self._marginals]
        return self._xp.stack(draws, axis=2)

    def censor_at(self, tau: Array) -> Independent:
        """The distribution of min(T_j, tau_j) for every j; ``tau`` is a number, (n,) or (n, k)."""
        return Independent(self._fitting(tau)._censored_marginals(tau))

    def given_survival(self, a: Array) -> Independent:
        """The distribution given that all event times exceed ``a``: each given that it does."""
        return Independent([F.given_survival(a) for F in self._fitting(a)._marginals])
