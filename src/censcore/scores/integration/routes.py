"""The routes to the CRPS and to the integrated Brier score: which method an input takes, and which there are.

All routes to a loss agree to 1e-8. The first that fits is taken; where C is known by group, each group has a
route of its own. Subjects whose error a fast route finds too large are served exactly, or adaptively.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np

from censcore._arrays import Array, ArrayLike
from censcore.distributions import Distribution, PointMass
from censcore.distributions.contract import Form
from censcore.outcomes import OutcomeLike
from censcore.scores.inputs.scoring_inputs import ScoringInputs, check_scale, scoring_inputs
from censcore.scores.inputs.support import check_infinite, check_unreached_before
from censcore.scores.integration.chebyshev_in_risk import risk_method
from censcore.scores.integration.panel_quadrature import panels_method
from censcore.scores.integration.piecewise_linear_integrals import by_lines, lines_method
from censcore.scores.integration.shared_panels import Loss, Method
from censcore.scores.integration.step_sums import by_sums, sums_method
from censcore.scores.integration.time_integral import TimeIntegral, by_formula
from censcore.scores.rules.interval import through_visits


class Route(NamedTuple):
    """A method, and the inputs that it is for."""

    name: str
    fits: str
    forms: tuple[Form, ...]  #: of the forecasts that it is for
    method: Callable[[TimeIntegral, Loss], Method]  #: given what serves subjects whose error is not small


#: In the order in which they are tried.
ROUTES = (
    Route(
        "risk tables",
        "steps where the forecast or C has proportional hazards: tables at a few risks",
        ("steps",),
        risk_method,
    ),
    Route("sums", "step forecasts: sums over the jumps, of areas under C", ("steps",), sums_method),
    Route(
        "lines",
        "piecewise-linear forecasts, one step C: its moments between the knots",
        ("lines", "smooth"),
        lines_method,
    ),
    Route(
        "panels",
        "smooth forecasts, a smooth C, one step C or one with proportional hazards: shared panels",
        ("smooth",),
        panels_method,
    ),
    Route(
        "formula",
        "all else: closed forms, or quadrature by subject",
        ("steps", "lines", "smooth"),
        lambda it, otherwise: partial(by_formula, it),
    ),
)


def _chosen(it: TimeIntegral) -> tuple[str, Callable[[], Array]]:
    """The name of the first route that is for the input, and its method."""
    form, otherwise = it.inputs.F.form, partial(exactly, end=it.end)
    for route in ROUTES:
        if form in route.forms and (method := route.method(it, otherwise)) is not None:
            return route.name, method
    raise AssertionError("the last route serves every input")


def exactly(inputs: ScoringInputs, end: PointMass | None = None) -> Array:
    """The losses by what serves every input: finite sums, closed forms, or quadrature by subject."""
    it = TimeIntegral(inputs, end)
    method = by_sums(it) if inputs.F.form == "steps" else by_lines(it)
    return by_formula(it) if method is None else method()


def integrated(inputs: ScoringInputs, end: PointMass | None = None) -> Array:
    """The CRPS of checked inputs, or up to an ``end`` the integrated Brier score on the ipcw scale, (n,)."""
    if end is not None:
        check_unreached_before(inputs, end.location)
    return check_infinite(TimeIntegral(inputs, end).in_groups(lambda it: _chosen(it)[1]()), inputs)


def end_of(inputs: ScoringInputs) -> PointMass:
    """A point mass at the horizon, or at infinity where there is none."""
    h = inputs.horizon
    return PointMass(np.inf).like(inputs.y.time) if h is None else PointMass(h.reshape(-1))


@dataclass(frozen=True)
class Routes:
    """The routes, and the one that an input takes; printed as a table.

    Attributes
    ----------
    taken : tuple of str
        The names of the routes that the input takes, one, or one per group of censoring distributions.
    """

    taken: tuple[str, ...]

    def __repr__(self) -> str:
        return "\n".join(f"{'>' if r.name in self.taken else ' '} {r.name:<12} {r.fits}" for r in ROUTES)


def routes(
    y: OutcomeLike,
    forecast: Distribution,
    censoring: Distribution | None = None,
    horizon: ArrayLike | None = None,
    *,
    scale: str = "localized",
) -> Routes:
    """The routes to the CRPS and the integrated Brier score, and which of them an input takes.

    All of them give the same losses, to 1e-8 relative. They differ in time, by factors of 3 to 10 and more.

    Parameters
    ----------
    y, forecast, censoring, horizon
        As for :func:`crps`; one event time, or one cause of several.
    scale : {"localized", "ipcw"}
        That of :func:`integrated_brier_score`.

    Returns
    -------
    Routes
        Printed, the table of routes in the order in which they are tried, with a mark at what is taken.

    See Also
    --------
    censcore.crps, censcore.integrated_brier_score : The scores.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.scores import routes
    >>> y = cs.RightCensored(time=[1.0, 3.0, 2.0], event=[1, 1, 0])
    >>> C = cs.Uniform(0.0, 5.0)
    >>> routes(y, cs.Exponential([0.5, 1.0, 0.2]), C).taken
    ('panels',)
    >>> routes(y, cs.Step([1.0, 2.0], sf=[[0.7, 0.2], [0.6, 0.3], [0.5, 0.1]]), C)
      risk tables  steps where the forecast or C has proportional hazards: tables at a few risks
    > sums         step forecasts: sums over the jumps, of areas under C
      ...
    """
    check_scale(scale)
    y, forecast, censoring = through_visits(y, forecast, censoring, horizon)
    inputs = scoring_inputs(y, forecast, censoring, horizon, one_cause=True)
    end = end_of(inputs) if scale == "ipcw" else None
    taken: list[str] = []

    def note(it: TimeIntegral) -> Array:
        taken.append(_chosen(it)[0])
        return it.inputs.y.time

    TimeIntegral(inputs, end).in_groups(note)
    return Routes(tuple(taken))
