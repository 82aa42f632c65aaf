"""What joint distributions share: shapes, coordinates, the first event; independent event times."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Iterable, Sequence
from typing import Any, ClassVar, Self

import numpy as np

from censcore._arrays import (
    Array,
    ArrayLike,
    as_float,
    common_rows,
    convert,
    detach,
    is_neutral,
    namespace,
    one_namespace,
)
from censcore._numerics import safe_log
from censcore._validation import as_coordinate, as_events, as_list, check_positive
from censcore.distributions._panels import common_breaks, merge_edges
from censcore.distributions.contract import Form
from censcore.distributions.distribution import Distribution
from censcore.distributions.random_draws import Draws
from censcore.distributions.univariate.univariate import ByLogSurvival, Univariate, check_one_time
from censcore.exceptions import InvalidInputError


class Joint(Distribution):
    """A distribution of k event times per subject.

    A subclass writes ``k``, :meth:`marginal`, ``draw(m, rng)``, ``prob_never()``
    and two formulas of times (n, q, k), ``logsf_at`` and ``log_likelihood_at``: one formula serves the times
    (n, 1, k) of a likelihood and the diagonal (n, q, k) of the first event.

    See Also
    --------
    FromMarginals : Joint distributions that join given marginals.
    CensoredJoint : What ``censor_at`` returns unless a subclass overrides it.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.distributions import Joint
    >>> F = cs.Independent([cs.Exponential(1.0), cs.Weibull(2.0, [1.0, 2.0])])
    >>> isinstance(F, Joint), F.shape, F.marginal(1)
    (True, (2, 2), Weibull(shape=(2,)))
    """

    _is_joint = True

    @property
    @abstractmethod
    def k(self) -> int:
        """Number of event times."""

    @property
    def has_density(self) -> bool:
        """Whether ``log_likelihood`` exists for events in every coordinate."""
        return all(self.marginal(j).has_density for j in range(self.k))

    @abstractmethod
    def logsf_at(self, t: Array, left: bool = False) -> Array:
        """Log of P(T_j > t_j for all j), or >= from the left: (n, q, k) -> (n, q)."""

    @abstractmethod
    def log_likelihood_at(self, t: Array, event: Array) -> Array:
        """Log of the density in the coordinates of ``event`` and the survival in the others."""

    def _log_density_of(self, j: int, t: Array) -> Array:
        """Log density of "event j at t_j, all others later than their t", (n, q, k) -> (n, q)."""
        event = convert(np.arange(self.k) == j, t)
        return self.log_likelihood_at(t, self.xp.broadcast_to(event, t.shape))

    @abstractmethod
    def prob_never(self) -> Array:
        """P(T_j = inf for all j), (n,) or (1,)."""

    def _end_of_first(self) -> Array:
        """The end of the support of the first event, (n,) or (1,)."""
        ends = stacked(self.marginal(j).support_end()[:, 0] for j in range(self.k))
        return self.xp.min(ends, axis=1)

    def sf(self, t: ArrayLike) -> Array:
        """P(T_1 > t_1, ..., T_k > t_k) at times (n, k), or (1, k) for all rows: (n,)."""
        return namespace(logsf := self.logsf(t)).exp(logsf)

    def logsf(self, t: ArrayLike) -> Array:
        """Log of P(T_1 > t_1, ..., T_k > t_k) at times (n, k): (n,)."""
        distribution, times = self._at(t, "t")
        check_positive(times, "t", zero=True, infinite=True)
        return distribution.logsf_at(times[:, None, :])[:, 0]

    def log_likelihood(self, time: ArrayLike, event: ArrayLike) -> Array:
        """Density in the coordinates with an event, survival in the censored ones, (n,).

        ``time`` and ``event`` are (n, k). One shared or componentwise C that is independent of T
        contributes no factor, so this is the censored log-likelihood under both.
        """
        distribution, t = self._at(time, "time")
        check_positive(t, "time", zero=True)
        delta = as_events(event, t)
        common_rows(distribution=len(self), time=t.shape[0], event=delta.shape[0])
        return distribution.log_likelihood_at(t[:, None, :], delta[:, None, :])[:, 0]

    def first(self) -> Univariate:
        """The distribution of the smallest of the event times."""
        return self.marginal(0) if self.k == 1 else First(self)

    def given_survival(self, a: ArrayLike) -> Joint:
        """The distribution given that all event times exceed ``a``, a number or one per subject (n,).

        Its marginals are those given that *all* times exceed a, which is more than T_j > a unless the
        coordinates are independent. An :class:`~censcore.exceptions.ImpossibleForecastError` where that has
        probability zero.

        Examples
        --------
        >>> import censcore as cs
        >>> F = cs.Independent([cs.Exponential(1.0), cs.Exponential(2.0)]).given_survival(1.0)
        >>> F.sf([[1.0, 1.0], [2.0, 1.0]]).round(3)
        array([1.   , 0.368])
        """
        from censcore.distributions.derived.truncated import GivenJointSurvival

        return self if bool((self._with_start(a)[1] < 0).all()) else GivenJointSurvival(self, a)

    def censor_at(self, tau: ArrayLike) -> Joint:
        """The distribution of min(T_j, tau_j) for every j; ``tau`` is a number, (n,) or (n, k)."""
        from censcore.distributions.derived.censored import CensoredJoint

        return CensoredJoint(self, tau)

    def _at(self, values: Array, name: str) -> tuple[Self, Array]:
        """The distribution in the library of ``values``, and these as (n, k)."""
        distribution = self._fitting(values)
        one_namespace(**{name: values, "distribution": distribution.reference})
        array = as_float(values, name, like=distribution.reference)
        if array.ndim == 1 and self.k == 1:
            array = array[:, None]
        if array.ndim != 2 or array.shape[1] != self.k or not array.shape[0]:
            raise InvalidInputError(
                f"{name} must have one column per event time, (n, {self.k}); got an array of shape "
                f"{tuple(array.shape)}."
            )
        common_rows(**{name: array.shape[0], "distribution": len(self)})
        return distribution, array

    def _coordinate(self, j: int) -> int:
        return as_coordinate(j, self.k, "The distribution")


class FromMarginals(Joint):
    """A joint distribution made of its marginals and a rule that joins their survival functions.

    A subclass sets ``marginals`` and writes the rule, ``join``: the joint log survival from those of the
    coordinates. It also writes ``log_likelihood_at`` and ``draw``.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.distributions import FromMarginals
    >>> isinstance(cs.Copula("clayton", [cs.Exponential(1.0)] * 2, theta=2.0), FromMarginals)
    True
    """

    part_names: ClassVar[tuple[str, ...]] = ("marginals",)
    marginals: list[Univariate]

    @property
    def k(self) -> int:
        """Number of event times."""
        return len(self.marginals)

    def marginal(self, j: int) -> Univariate:
        """The distribution of coordinate ``j``."""
        return self.marginals[self._coordinate(j)]

    @abstractmethod
    def join(self, logsf: list[Array]) -> Array:
        """The joint log survival from those of the coordinates."""

    def logsf_at(self, t: Array, left: bool = False) -> Array:
        if left:
            return self.join([_logsf_left(F, t[..., j]) for j, F in enumerate(self.marginals)])
        return self.join([F.logsf_at(t[..., j]) for j, F in enumerate(self.marginals)])

    def prob_never(self) -> Array:
        logsf = self.join([safe_log(F.prob_never()[:, None]) for F in self.marginals])
        return self.xp.exp(logsf)[:, 0]

    def censor_at(self, tau: ArrayLike) -> Joint:
        """The distribution of min(T_j, tau_j) for every j, by the same rule from censored marginals."""
        distribution, ends = self._with_end(tau)
        censored = [F.censor_at(ends[:, j]) for j, F in enumerate(distribution.marginals)]
        return distribution.replaced(marginals=censored)


def _logsf_left(F: Univariate, t: Array) -> Array:
    """Log P(T >= t): that of P(T > t) where there is no atom, which has digits where P(T > t) underflows."""
    left = F.sf_left_at(t)
    return F.xp.where(left == F.sf_at(t), F.logsf_at(t), safe_log(left))


def stacked(values: Iterable[Array]) -> Array:
    """Values of coordinates or components, broadcast against each other, on a new last axis."""
    values = list(values)
    xp = namespace(values[0])
    return xp.stack(xp.broadcast_arrays(*values), axis=-1)


def in_one_library(distributions: Sequence[Distribution], owner: str, common: bool = True) -> list[Any]:
    """The distributions, those built from plain numbers brought to the library of the others.

    ``common`` demands that all describe the same subjects.
    """
    distributions = as_list(distributions, owner, "distributions of one event time")
    if not distributions:
        raise InvalidInputError(f"{owner} needs at least one distribution; got an empty list.")
    for distribution in distributions:
        check_one_time(distribution, owner)
    bound = [F for F in distributions if not F.is_neutral]
    one_namespace(**{f"distribution {i}": F.reference for i, F in enumerate(bound)})
    if bound:
        distributions = [F.like(bound[0].reference) if F.is_neutral else F for F in distributions]
    if common:
        common_rows(**{f"distribution {j}": len(F) for j, F in enumerate(distributions)})
    return distributions


def are_steps(parts: Sequence[Univariate], what: str) -> bool:
    """Whether distributions are step functions; an error unless all of them are, or all are continuous."""
    steps = [part.form == "steps" for part in parts]
    if any(steps) and not all(steps):
        raise InvalidInputError(
            f"{what} must all be continuous, or all of them step functions; got "
            f"{', '.join(type(part).__name__ for part in parts)}."
        )
    return steps[0]


def beside(distributions: list[Any], values: Array, name: str) -> tuple[list[Any], Array]:
    """Distributions and numbers in one library: that of whichever was not built from plain numbers."""
    if not is_neutral(values) and all(F.is_neutral for F in distributions):
        distributions = [F.like(as_float(values, name)) for F in distributions]
    reference = distributions[0].reference
    one_namespace(**{name: values, "distributions": reference})
    return distributions, as_float(values, name, like=reference)


class OfJoint(ByLogSurvival):
    r"""The time of a question about a joint distribution, :math:`P(T>t)=P(T_j>t_j\text{ for all }j)`.

    A subclass writes ``_at``, the times (n, q, k) that belong to times t, ``support_end`` and ``logpdf_at``.
    """

    part_names: ClassVar[tuple[str, ...]] = ("_joint",)
    _joint: Any

    @abstractmethod
    def _at(self, t: Array) -> Array:
        """Times (n, q, k) of all coordinates."""

    @property
    def _unconditional(self) -> Joint:
        """The joint distribution whose marginals tell the form."""
        return self._joint

    @property
    def form(self) -> Form:  # type: ignore[override]
        """Functions of step functions are step functions; those of lines are no lines."""
        joint = self._unconditional
        return "steps" if all(joint.marginal(j).form == "steps" for j in range(joint.k)) else "smooth"

    def logsf_at(self, t: Array) -> Array:
        return self._joint.logsf_at(self._at(t))

    def sf_left_at(self, t: Array) -> Array:
        return self.xp.exp(self._joint.logsf_at(self._at(t), left=True))

    def _moving_end(self) -> Array:
        """The end of the support, with a gradient where it has one."""
        return self.support_end()

    def isf_at(self, p: Array) -> Array:
        """No survival is left only at the end of the support, though floats run out of digits before."""
        return self.xp.where(p > 0, super().isf_at(p), self._moving_end())

    def icdf_at(self, p: Array) -> Array:
        return self.xp.where(p < 1, super().icdf_at(p), self._moving_end())


class First(OfJoint):
    r"""The distribution of :math:`\min_j T_j`: :math:`P(\min_j T_j>t)=P(T_1>t,\dots,T_k>t)`.

    Made by ``joint.first()``. Its density is the sum over j of "event j at t, none of the others yet".
    """

    def __init__(self, joint: Joint) -> None:
        self._joint = joint

    def _at(self, t: Array) -> Array:
        return self.xp.broadcast_to(t[:, :, None], (*t.shape, self._joint.k))

    def _moving_end(self) -> Array:
        return self._joint._end_of_first()[:, None]

    def support_end(self) -> Array:
        return detach(self._moving_end())

    def excludes_at(self, t: Array) -> Array:
        """The first event is one of them, so it can be at t only where one of them can."""
        excluded = stacked(self._joint.marginal(j).excludes_at(t) for j in range(self._joint.k))
        return (t > self.support_end()) | self.xp.all(excluded, axis=-1)

    def logpdf_at(self, t: Array) -> Array:
        terms = [self._joint._log_density_of(j, self._at(t)) for j in range(self._joint.k)]
        return logsumexp(self.xp.stack(terms, axis=-1))

    def prob_never(self) -> Array:
        return self._joint.prob_never()

    def breaks(self) -> Array | None:
        return common_breaks(self._joint.marginal(j) for j in range(self._joint.k))

    def _make_panel_edges(self) -> Array:
        """For two event times the edges of both, up to the earlier end; quantiles would need a search."""
        if not isinstance(self._joint, FromMarginals) or self._joint.k > 2:
            return super()._make_panel_edges()
        xp, marginals = self.xp, self._joint.marginals
        edges = merge_edges(*(F.panel_edges() for F in marginals))
        for F in marginals:
            over = xp.where(F.prob_never()[:, None] > 0, np.inf, F.panel_edges()[:, -1:])
            edges = xp.minimum(edges, over)
        return edges


def logsumexp(x: Array) -> Array:
    """Log of the sum of exponentials over the last axis; -inf, with a zero gradient, where all are -inf."""
    xp = namespace(x)
    top = xp.max(x, axis=-1, keepdims=True)
    top = xp.where(xp.isfinite(top), top, 0.0)
    top = detach(top)
    total = xp.sum(xp.exp(x - top), axis=-1)
    empty = total == 0
    inner = xp.log(xp.where(empty, 1.0, total)) + top[..., 0]
    return xp.where(empty, xp.full_like(inner, -np.inf), inner)


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
        self.marginals = in_one_library(distributions, type(self).__name__)

    def join(self, logsf: list[Array]) -> Array:
        return sum(logsf[1:], start=logsf[0])

    def log_likelihood_at(self, t: Array, event: Array) -> Array:
        return self.join(
            [F.log_likelihood_at(t[..., j], event[..., j]) for j, F in enumerate(self.marginals)]
        )

    def draw(self, m: int, rng: Draws) -> Array:
        n = len(self)
        draws = [marginal.isf_at(self._uniforms((n, m), rng)) for marginal in self.marginals]
        return self.xp.stack(draws, axis=2)

    def given_survival(self, a: ArrayLike) -> Independent:
        """The distribution given that all event times exceed ``a``: each given that it does."""
        return Independent([F.given_survival(a) for F in self._fitting(a).marginals])
