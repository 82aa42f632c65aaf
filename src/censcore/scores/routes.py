"""The routes to the CRPS and to the integrated Brier score: which method an input takes, and which there are.

All routes to a loss agree to 1e-8. The first that fits is taken; the last three are exact or adaptive and fit
between them every input, and serve the subjects whose error a faster route finds too large.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from censcore._arrays import Array
from censcore.distributions import Distribution, Grouped, PointMass
from censcore.outcomes import OutcomeLike
from censcore.scores._knots import are_knots, knot_losses
from censcore.scores._lines import line_kernel, line_losses
from censcore.scores._proportional import are_curves_under_risks, has_risks, losses_under_risks, risk_losses
from censcore.scores._smooth import Weights, are_smooth, losses_under_smooth, panels_of_smooth, smooth_losses
from censcore.scores._squares import as_steps, is_shared
from censcore.scores._support import check_infinite, check_unreached_before
from censcore.scores._time_integral import TimeIntegral, by_formula, by_sums, squares
from censcore.scores.inputs import ScoringInputs, check_scale, scoring_inputs
from censcore.scores.interval import through_visits

__all__ = ["ROUTES", "Route", "Routes", "end_of", "exactly", "integrated", "routes"]


class Route(NamedTuple):
    """A method, and the inputs that it is for."""

    name: str
    fits: str
    takes: Callable[[TimeIntegral], Any]
    losses: Callable[[TimeIntegral], Array]
    serves_never: bool = False  #: also subjects that are known never to have the event


def _has_one_curve(it: TimeIntegral) -> bool:
    F, C = it.inputs.F, it.inputs.C
    return is_shared(F, C) and (it.end is None or (len(C) == 1 and C._degree == 0))


def _has_sums(it: TimeIntegral) -> bool:
    F, C = it.inputs.F, it.inputs.C
    return F._degree == 0 and (it.end is None or (C._degree == 0 and it.has_finite_end))


def exactly(inputs: ScoringInputs, end: PointMass | None = None) -> Array:
    """The losses by the first of the last three routes, which serve every input."""
    it = TimeIntegral(inputs, end)
    return _first(it, ROUTES[-3:]).losses(it)


def _otherwise(it: TimeIntegral) -> Callable[[ScoringInputs], Array]:
    """The losses of subjects whose error is not small."""
    return lambda inputs: exactly(inputs, it.end)


def _on_panels(it: TimeIntegral) -> Array:
    return smooth_losses(it.inputs, Weights.up_to(it.beyond, ipcw=it.end is not None), _otherwise(it))


#: In the order in which they are tried.
ROUTES = (
    Route(
        "groups",
        "censoring distributions by group: each group on its own",
        lambda it: isinstance(it.inputs.C, Grouped) and (it.end is None or len(it.end) == 1),
        lambda it: it.inputs.in_groups(lambda inputs: _losses(replace(it, inputs=inputs))),
        serves_never=True,
    ),
    Route(
        "one curve",
        "one step forecast and one C for all subjects: one antiderivative, read at each y",
        _has_one_curve,
        lambda it: squares(replace(it, inputs=replace(it.inputs, F=as_steps(it.inputs.F)))),
        serves_never=True,
    ),
    Route(
        "risk tables",
        "many forecasts with proportional hazards: tables at a few risks",
        lambda it: has_risks(it.inputs, it.below, it.beyond),
        lambda it: risk_losses(it.inputs, it.below, it.beyond, _otherwise(it)),
    ),
    Route(
        "risk tables of C",
        "step forecasts on common times, C with proportional hazards: tables at a few risks",
        lambda it: are_curves_under_risks(it.inputs) and it.one_end,
        lambda it: losses_under_risks(it.inputs, it.end, _otherwise(it)),
    ),
    Route(
        "jumps on panels",
        "step forecasts with many jumps, a smooth C: its antiderivative on shared panels",
        lambda it: it.end is None and panels_of_smooth(it.inputs),
        lambda it: losses_under_smooth(it.inputs, panels_of_smooth(it.inputs), _otherwise(it)),
    ),
    Route(
        "knots",
        "piecewise-linear forecasts with knots of their own, one step C: its moments",
        lambda it: it.end is None and are_knots(it.inputs),
        lambda it: knot_losses(it.inputs, _otherwise(it)),
    ),
    Route(
        "panels",
        "smooth forecasts, a smooth C or one step C: shared panels",
        lambda it: are_smooth(it.inputs, it.beyond),
        _on_panels,
    ),
    Route("sums", "step forecasts: sums over the jumps", _has_sums, by_sums, serves_never=True),
    Route(
        "lines",
        "piecewise-linear forecasts on one grid, one step C: moments of each panel",
        lambda it: line_kernel(it.inputs, it.below, it.beyond) is not None,
        lambda it: line_losses(it.inputs, it.below, it.beyond),
    ),
    Route("formula", "all else: closed forms, or quadrature by subject", lambda it: True, by_formula, True),
)


def _first(it: TimeIntegral, among: Sequence[Route] = ROUTES) -> Route:
    some_never = it.inputs.has_never
    return next(route for route in among if (route.serves_never or not some_never) and route.takes(it))


def _losses(it: TimeIntegral) -> Array:
    return _first(it).losses(it)


def integrated(inputs: ScoringInputs, end: PointMass | None = None) -> Array:
    """The CRPS of checked inputs, or up to an ``end`` the integrated Brier score on the ipcw scale, (n,)."""
    if end is not None:
        check_unreached_before(inputs, end.location)
    return check_infinite(_losses(TimeIntegral(inputs, end)), inputs)


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
        return "\n".join(f"{'>' if r.name in self.taken else ' '} {r.name:<17} {r.fits}" for r in ROUTES)


def routes(
    y: OutcomeLike,
    forecast: Distribution,
    censoring: Distribution | None = None,
    horizon: Array = None,
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
      groups            censoring distributions by group: each group on its own
      ...
    > sums              step forecasts: sums over the jumps
      ...
    """
    check_scale(scale)
    y, forecast, censoring = through_visits(y, forecast, censoring, horizon)
    inputs = scoring_inputs(y, forecast, censoring, horizon, one_cause=True)
    end = end_of(inputs) if scale == "ipcw" else None
    first = _first(TimeIntegral(inputs, end))
    if first is not ROUTES[0]:
        return Routes((first.name,))
    taken: list[str] = [first.name]

    def note(group: ScoringInputs) -> Array:
        taken.append(_first(TimeIntegral(group, end)).name)
        return group.y.time

    inputs.in_groups(note)
    return Routes(tuple(taken))
