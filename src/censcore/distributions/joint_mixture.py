"""Mixtures of joint distributions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import ClassVar

import numpy as np

from censcore._arrays import Array, as_float, common_rows, convert
from censcore._validation import as_list, check_kind
from censcore.distributions.joint import Joint, log_or_never, logsumexp
from censcore.distributions.mixture import Mixture
from censcore.distributions.random_draws import Draws
from censcore.distributions.univariate import Univariate
from censcore.exceptions import InvalidInputError

__all__ = ["JointMixture"]


class JointMixture(Joint):
    r"""Mixture of joint distributions, :math:`P(T>t)=\sum_c w_c\,P(T^{(c)}>t)`.

    Event times that are independent within every component depend on each other through the component that
    they share.

    Parameters
    ----------
    components : sequence of joint distributions
        Of the same number of event times, in one array library, each for n subjects or one for all.
    weights : array, (J,) or (n, J)
        Probabilities of the J components, non-negative, summing to one.

    See Also
    --------
    Mixture : The same for one event time.

    Examples
    --------
    >>> import censcore as cs
    >>> early, late = (cs.Independent([cs.Exponential(rate)] * 2) for rate in (2.0, 0.5))
    >>> F = cs.JointMixture([early, late], weights=[0.5, 0.5])
    >>> F.sf([[1.0, 1.0]]).round(3), F.marginal(0).sf(1.0).round(3)
    (array([0.193]), array([0.371]))
    """

    _arrays: ClassVar[tuple[str, ...]] = ("_weights",)
    _distributions: ClassVar[tuple[str, ...]] = ("_components",)

    def __init__(self, components: Sequence[Joint], weights: Array) -> None:
        self._components = as_list(components, "JointMixture", "joint distributions")
        for part in self._components:
            check_kind(part, "components", Joint, "joint distributions, such as Independent([...])")
        sizes = {part.k for part in self._components}
        if len(sizes) != 1:
            raise InvalidInputError(
                f"components: got distributions of {sorted(sizes)} event times, expected one number for all."
            )
        first = Mixture([part.marginal(0) for part in self._components], weights)  # checks the weights
        self._components = [part.like(first._reference) for part in self._components]
        self._weights = as_float(first.weights, "weights", like=self._components[0]._reference)
        common_rows(weights=len(self._weights), components=max(len(part) for part in self._components))

    @property
    def components(self) -> list[Joint]:
        """The distributions that are mixed."""
        return list(self._components)

    @property
    def weights(self) -> Array:
        """Their probabilities, (1, J) or (n, J)."""
        return self._weights

    @property
    def k(self) -> int:
        """Number of event times."""
        return self._components[0].k

    def marginal(self, j: int) -> Univariate:
        """The distribution of coordinate ``j``, a mixture of theirs."""
        j = self._coordinate(j)
        return Mixture([part.marginal(j) for part in self._components], self._weights)

    def _log_mixed(self, values: list[Array]) -> Array:
        """Log of the weighted sum of exponentials, one array (n, q) for each component."""
        xp, log_w = self._xp, log_or_never(self._weights)
        terms = [log_w[:, j : j + 1] + value for j, value in enumerate(values)]
        return logsumexp(xp.stack(xp.broadcast_arrays(*terms), axis=-1))

    def _logsf(self, t: Array, left: bool = False) -> Array:
        value = self._log_mixed([part._logsf(t, left) for part in self._components])
        return self._xp.minimum(value, self._xp.zeros_like(value))  # the weights may sum to 1 + eps

    def _log_likelihood(self, t: Array, event: Array) -> Array:
        return self._log_mixed([part._log_likelihood(t, event) for part in self._components])

    def _mass_at_infinity(self) -> Array:
        masses = [part._mass_at_infinity() for part in self._components]
        return sum(self._weights[:, j] * mass for j, mass in enumerate(masses))

    def _end_of_first(self) -> Array:
        xp = self._xp
        ends = [
            xp.where(self._weights[:, j] > 0, part._end_of_first(), xp.zeros_like(self._weights[:, j]))
            for j, part in enumerate(self._components)
        ]
        return xp.max(xp.stack(xp.broadcast_arrays(*ends), axis=1), axis=1)

    def _sample(self, m: int, rng: Draws) -> Array:
        """Draw the component, then from it."""
        xp, n = self._xp, len(self)
        level = convert(rng.random((n, m)), self._reference)
        ends = xp.cumulative_sum(self._weights, axis=1)[:, None, :-1]
        chosen = xp.sum(xp.astype(level[..., None] >= ends, xp.int64), axis=2)
        draws = xp.full((n, m, self.k), np.inf, dtype=level.dtype)
        draws = convert(draws, self._reference)
        for j, part in enumerate(self._components):
            draws = xp.where((chosen == j)[..., None], part._sample(m, rng), draws)
        return draws
