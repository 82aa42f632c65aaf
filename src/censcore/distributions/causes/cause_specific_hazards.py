"""Forecasts of competing risks by one hazard per cause."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, ClassVar

import numpy as np

from censcore._arrays import Array, ArrayLike, convert, detach, namespace, to_numpy
from censcore._quadrature import ORDER, Antiderivative
from censcore.distributions._panels import common_breaks, merge_edges
from censcore.distributions.causes.time_and_cause import TimeAndCause
from censcore.distributions.joint.joint import Independent, are_steps, in_one_library
from censcore.distributions.univariate.step import ByStep, Step
from censcore.distributions.univariate.univariate import Univariate


class CauseSpecificHazards(TimeAndCause):
    r"""Time and cause of an event by one hazard per cause.

    .. math::
        F_j(t)=\int_0^tP(T\ge s)\,d\Lambda_j(s),\qquad P(T>t)=\prod_jP_j(t)\text{ with }P_j=e^{-\Lambda_j},

    where :math:`\Lambda_j` is the cumulative hazard of cause j among those who are free of any event. It is
    given as the distribution that has this hazard: ``Weibull(shape, scale)``, a Cox model fitted with
    competing events censored, and so on.

    Parameters
    ----------
    hazards : sequence of distributions
        One per cause, each for n subjects or one for all: all of them continuous, or all of them step
        functions.
    names : sequence of str, optional
        Names of the causes.

    Notes
    -----
    The distributions are a way to write hazards down. Nothing is assumed about event times in the absence of
    the other causes, which data do not identify.

    Step functions are combined as Aalen and Johansen [1]_ do, with jumps
    :math:`d\Lambda_j(u)=1-P_j(u)/P_j(u-)` and :math:`P(T>t)=\prod_{u\le t}\{1-\sum_jd\Lambda_j(u)\}`; where
    the jumps of one time sum to more than one, which a regression can predict at ties, they are divided by
    their sum. Continuous ones are integrated by quadrature, to 1e-9 and better.

    See Also
    --------
    censcore.CauseSpecific : Estimates them, one model per cause.
    CumulativeIncidence : From matrices.

    References
    ----------
    .. [1] Aalen, O. O. and Johansen, S. (1978). An empirical transition matrix for non-homogeneous Markov
       chains based on censored observations. Scandinavian Journal of Statistics 5, 141-150.

    Examples
    --------
    >>> import censcore as cs
    >>> hazards = [cs.Exponential([0.1, 0.2]), cs.Exponential(0.3)]
    >>> F = cs.CauseSpecificHazards(hazards, names=["relapse", "death"])
    >>> F.cif([1.0, 5.0]).round(3)
    array([[[0.082, 0.216],
            [0.247, 0.648]],
    <BLANKLINE>
           [[0.157, 0.367],
            [0.236, 0.551]]])
    >>> F.cause("relapse").mass_at_infinity().round(3)
    array([0.75, 0.6 ])
    """

    part_names: ClassVar[tuple[str, ...]] = ("_hazards",)
    _hazards: list[Univariate]

    def __init__(self, hazards: Sequence[Univariate], *, names: Sequence[str] | None = None) -> None:
        self._hazards = in_one_library(hazards, "CauseSpecificHazards")
        self._steps = are_steps(self._hazards, "The hazards of the causes")
        self._name(names, len(self._hazards))

    def of_cause(self, number: int) -> Univariate:
        if len(self._hazards) == 1:
            return self._hazards[0]
        if self._steps:
            return _StepCause(self._hazards, number)
        first = self.of_any_cause()
        return self.remember(("cause", number), lambda: _SmoothCause(self._hazards, number, first))

    def given_survival(self, a: ArrayLike) -> CauseSpecificHazards:
        """Given T > a: the hazards stay as they are beyond a."""
        self._alive(a)
        return CauseSpecificHazards([part.given_survival(a) for part in self._hazards], names=self.names)

    def of_any_cause(self) -> Univariate:
        if len(self._hazards) == 1:
            return self._hazards[0]
        if self._steps:
            return _StepCause(self._hazards, 0)
        return self.remember("any cause", lambda: Independent(self._hazards).first())


_FACTOR = 4.0  # a panel in which cumulative incidences are read spans no more than this factor


class BySubdensity(Univariate):
    r"""A distribution with mass at infinity by its density, :math:`F(t)=\int_0^tf(s)\,ds`, by quadrature.

    A subclass writes ``logpdf_at``, and ``_make_panel_edges``: times between which the density is smooth, up
    to the end of its mass.
    """

    dense_edges: ClassVar[bool] = True  # quantiles, which take a search, add nothing to the edges
    _kept: ClassVar[frozenset[str]] = frozenset({"panel edges", "antiderivative"})

    def _density(self, t: Array) -> Array:
        """Zero at time zero, where a rate may be infinite: only empty panels have a node there."""
        xp = self.xp
        later = t > 0
        return xp.where(later, xp.exp(self.logpdf_at(xp.where(later, t, 1.0))), xp.zeros_like(t))

    def _edges(self) -> Array:
        """From 0 to the end of T, in panels that are short on the log scale."""
        edges = self.panel_edges()
        zero = self.xp.zeros_like(edges[:, :1])
        return merge_edges(zero, edges, convert(_between(to_numpy(edges)), edges))

    def _make_antiderivative(self) -> Antiderivative:
        edges = self._edges()
        edges = self.xp.broadcast_to(edges, (len(self), edges.shape[1]))
        return Antiderivative.of(self._density, edges, ORDER)

    def _incidence(self, t: Array) -> Array:
        """The cumulative incidence, whose limit at infinity is below one."""
        xp, integral = self.xp, self.remember("antiderivative", self._make_antiderivative)
        last = integral.edges[:, -1:]
        t = xp.where(t < last, t, last)
        return xp.clip(integral(t), 0.0, 1.0)

    def cdf_at(self, t: Array) -> Array:
        F = self._incidence(t)
        return self.xp.where(self.xp.isinf(t), 1.0, F)

    def sf_at(self, t: Array) -> Array:
        return 1 - self.cdf_at(t)

    def _never(self) -> Array:
        return self.xp.full_like(self.reference.reshape(-1)[:1].reshape(1, 1), np.inf)

    def prob_never(self) -> Array:
        return 1 - self._incidence(self._never())[:, 0]

    def support_end(self) -> Array:
        """Infinite, since the event may never come."""
        return detach(self._never())


def _between(edges: np.ndarray) -> np.ndarray:
    """Times that cut the gaps between positive edges (n, p) to a factor of at most ``_FACTOR``."""
    positive = np.where(edges > 0, edges, np.inf)
    low = max(float(positive.min()), float(np.finfo(edges.dtype).tiny) * 1e4)
    high = float(edges.max())
    if not low < high:
        return np.zeros((edges.shape[0], 0), dtype=edges.dtype)
    count = int(np.ceil(np.log(high / low) / np.log(_FACTOR))) + 1
    grid = np.geomspace(low, high, min(count, 200))
    return np.broadcast_to(np.minimum(grid, edges.max(axis=1, keepdims=True)), (edges.shape[0], len(grid)))


class _SmoothCause(BySubdensity):
    r"""The distribution of T_j for continuous hazards: :math:`F_j(t)=\int_0^tf_j\prod_{k\ne j}S_k`."""

    part_names: ClassVar[tuple[str, ...]] = ("_hazards", "_first")
    _hazards: list[Univariate]

    def __init__(self, hazards: list[Univariate], number: int, first: Univariate) -> None:
        self._hazards, self._first = list(hazards), [first]
        self._number = number

    def logpdf_at(self, t: Array) -> Array:
        own = self._hazards[self._number - 1]
        total = own.logpdf_at(t)
        for part in self._hazards:
            if part is not own:
                total = total + part.logsf_at(t)
        return total

    def breaks(self) -> Array | None:
        return common_breaks(self._hazards)

    def _make_panel_edges(self) -> Array:
        """Those of T, the first event of any cause, beyond which no cumulative incidence rises."""
        return self._first[0].panel_edges()


class _StepCause(ByStep):
    """The distribution of the time of cause ``number`` (0: any cause) for hazards that are step functions.

    Curves are computed from the hazards on demand, for few subjects at a time, to save memory.
    """

    part_names: ClassVar[tuple[str, ...]] = ("_hazards",)
    _hazards: list[Univariate]

    def __init__(self, hazards: list[Univariate], number: int) -> None:
        self._hazards = list(hazards)
        self._number = number

    def _make_step(self) -> Step:
        times, jumps = _jumps(self._hazards)
        xp = namespace(times)
        left = xp.cumulative_prod(1 - sum(jumps), axis=1)
        if self._number == 0:
            return Step.trusted(times, left, falls=True)
        before = xp.concat([xp.ones_like(left[:, :1]), left[:, :-1]], axis=1)
        cdf = xp.cumulative_sum(before * jumps[self._number - 1], axis=1)
        return Step.trusted(times, xp.where(cdf < 1, cdf, 1.0), falls=False)

    def breaks(self) -> Array | None:
        return common_breaks(self._hazards)

    def censor_at(self, tau: Array) -> Univariate:
        """The distribution of min(T, tau)."""
        return self.as_step().censor_at(tau)


def _jumps(parts: list[Univariate]) -> tuple[Array, list[Array]]:
    r"""All times, and :math:`d\Lambda_j` at each of them, (1 or n, J); their sum is at most one."""
    times: Any = common_breaks(parts)
    xp = namespace(times)
    first = xp.concat([xp.ones_like(times[:, :1]) < 2, times[:, 1:] > times[:, :-1]], axis=1)
    jumps = []
    for part in parts:
        here, before = part.sf_at(times), part.sf_left_at(times)
        at_risk = (before > 0) & first & xp.isfinite(times)
        share = xp.where(at_risk, here, 1.0) / xp.where(at_risk, before, 1.0)
        jumps.append(1 - share)
    total = sum(jumps)
    if bool(xp.any(total > 1)):
        jumps = [jump / xp.where(total > 1, total, 1.0) for jump in jumps]
    return times, jumps
