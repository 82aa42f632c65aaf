"""Mixtures of distributions, cure fractions among them."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from censcore._arrays import (
    Array,
    ArrayLike,
    as_float,
    common_rows,
    convert,
    detach,
    one_namespace,
    possibly,
    to_numpy,
)
from censcore._validation import as_list, check_kind, check_positive, name_subjects
from censcore.distributions._panels import common_breaks, merge_edges
from censcore.distributions.derived.truncated import check_possible
from censcore.distributions.distribution import Distribution
from censcore.distributions.joint.joint import Joint, beside, in_one_library, logsumexp, stacked
from censcore.distributions.random_draws import Draws
from censcore.distributions.univariate.univariate import Univariate
from censcore.exceptions import InvalidInputError


class Mixed(Distribution):
    """What mixtures of one event time and of several share: components, and their weights."""

    array_names: ClassVar[tuple[str, ...]] = ("_weights",)
    part_names: ClassVar[tuple[str, ...]] = ("_components",)
    _components: list[Any]
    _weights: Array

    @property
    def components(self) -> list[Any]:
        """The distributions that are mixed."""
        return list(self._components)

    @property
    def weights(self) -> Array:
        """Their probabilities, (1, J) or (n, J)."""
        return self._weights

    def _log_sum(self, values: dict[int, Array]) -> Array:
        """Log of the weighted sum of exponentials of what is known of some components, by their number."""
        xp = self.xp
        terms = []
        for j, value in values.items():
            w = self._weights[:, j : j + 1]
            log_w = xp.log(xp.where(w > 0, w, 1.0))
            terms.append(xp.where(w > 0, log_w + value, xp.full_like(value, -np.inf)))
        return logsumexp(stacked(terms))

    def _of_used(self, formula: Callable[[Any], Array], otherwise: float) -> list[Array]:
        """A formula of each component, ``otherwise`` where its weight is zero."""
        xp = self.xp
        values = [formula(F) for F in self._components]
        return [xp.where(self._weights[:, j : j + 1] > 0, value, otherwise) for j, value in enumerate(values)]

    def _latest(self, formula: Callable[[Any], Array]) -> Array:
        """The largest of what a formula gives for the components, (1 or n, 1)."""
        return self.xp.max(stacked(self._of_used(formula, 0.0)), axis=-1)

    def _choice(self, m: int, rng: Draws) -> Array:
        """The numbers of the components of m draws, (n, m)."""
        xp, level = self.xp, convert(rng.random((len(self), m)), self.reference)[..., None]
        ends = xp.cumulative_sum(detach(self._weights), axis=1)[:, None, :-1]
        return xp.sum(xp.astype(level >= ends, xp.int64), axis=2)


class Mixture(Mixed, Univariate):
    r"""Mixture of distributions, :math:`P(T>t)=\sum_j w_j\,P(T_j>t)`.

    Parameters
    ----------
    components : sequence of distributions
        Distributions of one event time of any kind, each for n subjects or one for all. ``PointMass(inf)`` as
        a component is a cure fraction: the share of subjects who never have the event.
    weights : array, (J,) or (n, J)
        Probabilities of the J components, non-negative, summing to one (to rounding, which is divided out).

    Notes
    -----
    The mixture has a density where every component has one; a component at infinity does no harm, since it
    has no mass at any finite time. Gradients reach weights and components through every formula and through
    quantiles and samples, except that a quantile on an atom has none.

    Examples
    --------
    >>> import censcore as cs
    >>> cured = cs.Mixture([cs.Exponential(rate=1.0), cs.PointMass(float("inf"))], weights=[0.7, 0.3])
    >>> cured.sf([0.0, 1.0, 50.0]).round(3), cured.mass_at_infinity()
    (array([1.   , 0.558, 0.3  ]), array([0.3]))
    >>> cured.icdf([0.35, 0.9]).round(3)
    array([0.693,   inf])
    """

    def __init__(self, components: Sequence[Univariate], weights: ArrayLike) -> None:
        self._components, weights = beside(in_one_library(components, "Mixture"), weights, "weights")
        self._weights = self._checked(weights)

    def _checked(self, weights: Array) -> Array:
        weights = weights.reshape(1, -1) if weights.ndim < 2 else weights
        count = len(self._components)
        if weights.ndim != 2 or weights.shape[1] != count:
            raise InvalidInputError(
                f"weights must be ({count},) or (n, {count}), one per component; "
                f"got an array of shape {tuple(weights.shape)}."
            )
        check_positive(weights, "weights", zero=True)
        common_rows(weights=weights.shape[0], components=max(len(F) for F in self._components))
        xp = one_namespace(weights=weights)
        total = xp.sum(weights, axis=1, keepdims=True)
        off = np.nonzero(np.abs(to_numpy(total)[:, 0] - 1) > 1e-5)[0]
        if off.size:
            raise InvalidInputError(
                f"weights must sum to 1; they sum to {float(to_numpy(total)[off[0], 0]):g} in "
                f"{name_subjects(off)}. Divide by the sum, or use softmax."
            )
        return weights / total

    form = Univariate._form_of_parts

    def _sum(self, formula: Callable[[Univariate], Array]) -> Array:
        """Weighted sum over the components, where a weight of zero removes even an infinite value."""
        xp = self.xp
        total: Array = 0.0
        for j, F in enumerate(self._components):
            w, value = self._weights[:, j : j + 1], formula(F)
            used = xp.where(w > 0, value, 0.0)
            total = total + w * used
        return total

    def sf_at(self, t: Array) -> Array:
        return self._sum(lambda F: F.sf_at(t))

    def sf_left_at(self, t: Array) -> Array:
        return self._sum(lambda F: F.sf_left_at(t))

    def cdf_at(self, t: Array) -> Array:
        xp, endless = self.xp, self.xp.isinf(t)
        value = self._sum(lambda F: F.cdf_at(t))
        return xp.where(endless, 1.0, value) if possibly(endless.any()) else value

    def logsf_at(self, t: Array) -> Array:
        return self._log_sum({j: F.logsf_at(t) for j, F in enumerate(self._components)})

    def logpdf_at(self, t: Array) -> Array:
        if not self.has_density:
            return super().logpdf_at(t)
        return self._log_sum({j: F.logpdf_at(t) for j, F in enumerate(self._components)})

    def _log_slope(self, t: Array) -> Array | None:
        slopes = {j: F._log_slope(t) for j, F in enumerate(self._components)}
        smooth = {j: slope for j, slope in slopes.items() if slope is not None}
        return self._log_sum(smooth) if smooth else None

    def isf_at(self, p: Array) -> Array:
        t = self._up_to_the_end(super().isf_at(p * (1 + self._rounding)), p == 0)
        return self.xp.where(p < 1, t, 0.0)  # the weights may sum to 1 + eps

    def icdf_at(self, p: Array) -> Array:
        return self._up_to_the_end(super().icdf_at(p * (1 - self._rounding)), p == 1)

    @property
    def _rounding(self) -> float:
        """What a level may miss the sum of jumps by: quantiles are the same however they are mixed."""
        eps = float(self.xp.finfo(self.reference.dtype).eps)
        return 0.0 if self.has_density else (len(self._components) + 1) * eps

    def _up_to_the_end(self, t: Array, last: Array) -> Array:
        """The end of the support, the latest of the components': rounding would stop the search early."""
        xp = self.xp
        return xp.where(last, self.support_end(), t) if bool(xp.any(last)) else t

    def support_end(self) -> Array:
        """The latest of the components' ends."""
        return self._latest(lambda F: F.support_end())

    def excludes_at(self, t: Array) -> Array:
        return self.xp.all(stacked(self._of_used(lambda F: F.excludes_at(t), True)), axis=-1)

    def integrated_sf_at(self, a: Array, b: Array) -> Array:
        return self._sum(lambda F: F.integrated_sf_at(a, b))

    def prob_never(self) -> Array:
        return self._sum(lambda F: F.prob_never()[:, None])[:, 0]

    def breaks(self) -> Array | None:
        return common_breaks(self._components)

    def _make_panel_edges(self) -> Array:
        return merge_edges(*(F.panel_edges() for F in self._components))

    def draw(self, m: int, rng: Draws) -> Array:
        """Draw the component, then from it; the gradient is that of a quantile at the level drawn."""
        xp, distribution = self.xp, self.detach()
        chosen, level = self._choice(m, rng), self._uniforms((len(self), m), rng)
        t = xp.zeros_like(level)
        for j, component in enumerate(distribution._components):
            t = xp.where(chosen == j, component.isf_at(level), t)
        return self._with_gradient(t, self.sf_at, distribution.sf_at(t), -1)

    def given_survival(self, a: ArrayLike) -> Univariate:
        r"""The mixture of :math:`T_j\mid T_j>a`, with the weights :math:`w_jP(T_j>a)/P(T>a)`."""
        mixture, column = self._with_start(a)
        xp = mixture.xp
        if bool((column < 0).all()):
            return self
        start = xp.maximum(column, xp.zeros_like(column))
        logs = xp.broadcast_arrays(*(F.logsf_at(start) for F in mixture._components))
        logs = [xp.where(column < 0, 0.0, value) for value in logs]
        alive = mixture._log_sum(dict(enumerate(logs)))
        check_possible(alive == -np.inf, column)
        all_alive = all(bool(xp.all(value > -np.inf)) for value in logs)
        components = [
            # a component that ends before a has no weight, and needs no conditional distribution
            F.given_survival(a if all_alive else xp.where(value > -np.inf, column, -1.0)[:, 0])
            for F, value in zip(mixture._components, logs, strict=True)
        ]
        shares = [mixture._weights[:, j : j + 1] * xp.exp(value - alive) for j, value in enumerate(logs)]
        weights = xp.concat(xp.broadcast_arrays(*shares), axis=1)
        weights = weights / xp.sum(weights, axis=1, keepdims=True)
        return mixture.replaced(_components=components, _weights=weights)


class JointMixture(Mixed, Joint):
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

    def __init__(self, components: Sequence[Joint], weights: ArrayLike) -> None:
        self._components = as_list(components, "JointMixture", "joint distributions")
        for part in self._components:
            check_kind(part, "components", Joint, "joint distributions, such as Independent([...])")
        sizes = {part.k for part in self._components}
        if len(sizes) != 1:
            raise InvalidInputError(
                f"components: got distributions of {sorted(sizes)} event times, expected one number for all."
            )
        first = Mixture([part.marginal(0) for part in self._components], weights)  # checks the weights
        self._components = [part.like(first.reference) for part in self._components]
        self._weights = as_float(first.weights, "weights", like=self._components[0].reference)
        common_rows(weights=len(self._weights), components=max(len(part) for part in self._components))

    @property
    def k(self) -> int:
        """Number of event times."""
        return self._components[0].k

    def marginal(self, j: int) -> Univariate:
        """The distribution of coordinate ``j``, a mixture of theirs."""
        j = self._coordinate(j)
        return Mixture([part.marginal(j) for part in self._components], self._weights)

    def logsf_at(self, t: Array, left: bool = False) -> Array:
        value = self._log_sum({j: part.logsf_at(t, left) for j, part in enumerate(self._components)})
        return self.xp.minimum(value, self.xp.zeros_like(value))  # the weights may sum to 1 + eps

    def log_likelihood_at(self, t: Array, event: Array) -> Array:
        return self._log_sum({j: F.log_likelihood_at(t, event) for j, F in enumerate(self._components)})

    def prob_never(self) -> Array:
        masses = [part.prob_never() for part in self._components]
        return sum(self._weights[:, j] * mass for j, mass in enumerate(masses))

    def _end_of_first(self) -> Array:
        return self._latest(lambda part: part._end_of_first()[:, None])[:, 0]

    def draw(self, m: int, rng: Draws) -> Array:
        """Draw the component, then from it."""
        xp, chosen = self.xp, self._choice(m, rng)
        draws = convert(np.full((len(self), m, self.k), np.inf), self.reference)
        for j, part in enumerate(self._components):
            draws = xp.where((chosen == j)[..., None], part.draw(m, rng), draws)
        return draws
