"""Joint forecasts of semi-competing risks: an event that comes after the terminal one never happens."""

from __future__ import annotations

from typing import Any, ClassVar, cast

import numpy as np

from censcore._arrays import Array, namespace
from censcore._numerics import previous_float
from censcore._validation import check_kind
from censcore.distributions._panels import common_breaks, merge_edges
from censcore.distributions.causes.cause_specific_hazards import BySubdensity
from censcore.distributions.distribution import Distribution
from censcore.distributions.joint.ensemble import Ensemble
from censcore.distributions.joint.joint import Joint, are_steps
from censcore.distributions.random_draws import Draws
from censcore.distributions.univariate.step import ByStep, Step
from censcore.distributions.univariate.univariate import Univariate


def before_terminal(forecast: Distribution, terminal: int) -> Distribution:
    """A joint forecast in which an event after the terminal one is one that never happens.

    An ensemble of changed members, or :class:`BeforeTerminal`; the forecast itself where it has no event
    after the terminal one, which is the coordinate ``terminal``.

    >>> import censcore as cs
    >>> before_terminal(cs.Ensemble([[[1.0, 5.0], [3.0, 2.0]]]), terminal=1).samples
    array([[[ 1.,  5.],
            [inf,  2.]]])
    """
    if isinstance(forecast, BeforeTerminal):
        return forecast
    if isinstance(forecast, Ensemble) and forecast.k > 1:
        changed = _without_later(forecast.samples, terminal)
        same = bool((changed == forecast.samples).all())
        return forecast if same else forecast.with_samples(changed)
    expected = (
        "a joint distribution of all event times, such as Ensemble(samples) with samples (n, m, k), Copula"
    )
    check_kind(forecast, "forecast", Joint, f"{expected} or Independent")
    return BeforeTerminal(cast(Joint, forecast), terminal)


def _without_later(times: Array, terminal: int) -> Array:
    """Times (..., k), infinite where they are later than the terminal one."""
    xp = namespace(times)
    return xp.where(times > times[..., terminal, None], np.inf, times)


class BeforeTerminal(Distribution):
    r"""The distribution of :math:`T_j'`, which is :math:`T_j` where :math:`T_j\le T_D`, else infinite.

    The likelihood of what is seen of such times is that of the joint distribution of the :math:`T_j`: without
    event j before the terminal one at y, :math:`T_j>y` is all that was seen of it. All times are continuous,
    or all have step functions.

    >>> import censcore as cs
    >>> F = BeforeTerminal(cs.Independent([cs.Exponential(0.1), cs.Exponential(0.3)]), terminal=1)
    >>> F.marginal(0).mass_at_infinity().round(6), F.marginal(1).cdf(1.0).round(3)
    (array([0.75]), array([0.259]))
    """

    part_names: ClassVar[tuple[str, ...]] = ("joint",)
    _is_joint = True

    def __init__(self, joint: Joint, terminal: int) -> None:
        #: The distribution of the times without regard to the order.
        self.joint = joint
        self.terminal = terminal
        margins = [joint.marginal(j) for j in range(joint.k)]
        are_steps(margins, "The event times of a forecast of semi-competing risks")

    @property
    def k(self) -> int:
        """Number of event times."""
        return self.joint.k

    def marginal(self, j: int) -> Univariate:
        """The distribution of the time of event ``j``, which may be infinite except for the terminal one."""
        j = self.joint._coordinate(j)
        if j == self.terminal:
            return self.joint.marginal(j)
        kind = _StepEvent if self.joint.marginal(j).form == "steps" else _SmoothEvent
        return self.remember(("event", j), lambda: kind(self.joint, j, self.terminal))

    def first(self) -> Univariate:
        """The distribution of the first of all events, which no other one prevents."""
        return self.joint.first()

    def log_likelihood(self, time: Array, event: Array) -> Array:
        """Log density in the coordinates with an event, log survival in the others, (n,)."""
        return self.joint.log_likelihood(time, event)

    def draw(self, m: int, rng: Draws) -> Array:
        return _without_later(self.joint.draw(m, rng), self.terminal)

    def given_survival(self, a: Array) -> BeforeTerminal:
        """The distribution given that all event times exceed ``a``."""
        return BeforeTerminal(self.joint.given_survival(a), self.terminal)


class _Event(Univariate):
    """The time of event j before the terminal one."""

    part_names: ClassVar[tuple[str, ...]] = ("_joint",)

    def __init__(self, joint: Joint, j: int, terminal: int) -> None:
        self._joint = joint
        self._pair = (j, terminal)

    @property
    def _margins(self) -> list[Univariate]:
        return [self._joint.marginal(j) for j in self._pair]

    def _at(self, event: Array, terminal: Array, others: float) -> Array:
        """Times (n, q, k): those of the event and of the terminal one, all others the same."""
        xp = self.xp
        columns: list[Any] = [xp.full_like(event, others)] * self._joint.k
        columns[self._pair[0]], columns[self._pair[1]] = event, terminal
        return xp.stack(columns, axis=2)


class _SmoothEvent(_Event, BySubdensity):
    r""":math:`F_j(t)=\int_0^tP(T_j\in ds,\,T_D\ge s)`; the others exceed zero, as all times do."""

    def logpdf_at(self, t: Array) -> Array:
        return self._joint._log_density_of(self._pair[0], self._at(t, t, 0.0))

    def breaks(self) -> Array | None:
        return common_breaks(self._margins)

    def _make_panel_edges(self) -> Array:
        return merge_edges(*(margin.panel_edges() for margin in self._margins))


class _StepEvent(_Event, ByStep):
    r""":math:`F_j(t)=\sum_{u\le t}\{P(T_j\ge u,T_D\ge u)-P(T_j>u,T_D\ge u)\}` over the jumps of T_j."""

    def _make_step(self) -> Step:
        xp, joint, u = self.xp, self._joint, self.breaks()
        new = xp.concat([xp.ones_like(u[:, :1]) > 0, u[:, 1:] > u[:, :-1]], axis=1)
        before = previous_float(u)
        reached, passed = (joint.logsf_at(self._at(t, before, -1.0)) for t in (before, u))
        jump = xp.where(new, xp.exp(reached) - xp.exp(passed), xp.zeros_like(reached))
        cdf = xp.cumulative_sum(xp.where(jump > 0, jump, xp.zeros_like(jump)), axis=1)
        times = xp.broadcast_to(u, cdf.shape)
        return Step.trusted(times, xp.where(cdf < 1, cdf, 1.0), falls=False)

    def breaks(self) -> Array:
        breaks = self._margins[0].breaks()
        assert breaks is not None
        return merge_edges(breaks)
