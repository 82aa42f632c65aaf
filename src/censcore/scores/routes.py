"""The routes to the CRPS and to the integrated Brier score: which method an input takes, and which there are.

All routes to a loss agree to 1e-8. The first that fits is taken; the last three, which are exact or adaptive,
fit every input together, and serve the subjects whose error a faster route finds too large.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import NamedTuple

import numpy as np

from censcore._arrays import Array, ArrayLike
from censcore.distributions import Distribution, Grouped, PointMass, Univariate
from censcore.distributions.piecewise_linear import Polyline
from censcore.outcomes import OutcomeLike
from censcore.scores._knots import knots_method
from censcore.scores._lines import lines_method
from censcore.scores._proportional import (
    are_curves_under_risks,
    has_risks,
    losses_under_risks,
    risk_losses,
    with_risks,
)
from censcore.scores._shared_panels import Loss, Method
from censcore.scores._smooth import jumps_method, panels_method
from censcore.scores._squares import as_steps, is_shared
from censcore.scores._support import check_infinite, check_unreached_before
from censcore.scores._time_integral import TimeIntegral, by_formula, by_sums, squares
from censcore.scores.inputs import ScoringInputs, check_scale, scoring_inputs
from censcore.scores.interval import through_visits


class Route(NamedTuple):
    """A method, and the inputs that it is for."""

    name: str
    fits: str
    degrees: tuple[int | None, ...]  #: of the forecasts that it is for
    method: Callable[[TimeIntegral, Loss], Method]  #: given what serves subjects whose error is not small
    serves_never: bool = False  #: also subjects that are known never to have the event
    forecasts: type = Univariate
    on_both_scales: bool = True


STEPS, SMOOTH, LINES = (0,), (None,), (None, 1)


def _by_group(it: TimeIntegral, otherwise: Loss) -> Method:
    if not isinstance(it.inputs.C, Grouped) or not (it.end is None or len(it.end) == 1):
        return None
    return lambda: it.inputs.in_groups(lambda inputs: _first(replace(it, inputs=inputs))[1]())


def _by_one_curve(it: TimeIntegral, otherwise: Loss) -> Method:
    F, C = it.inputs.F, it.inputs.C
    if not is_shared(F, C) or not (it.end is None or (len(C) == 1 and C._degree == 0)):
        return None
    return lambda: squares(replace(it, inputs=replace(it.inputs, F=as_steps(F))))


def _by_risks(it: TimeIntegral, otherwise: Loss) -> Method:
    inputs = with_risks(it.inputs)
    if not has_risks(inputs, it.below, it.beyond):
        return None
    return lambda: risk_losses(inputs, it.below, it.beyond, otherwise)


def _by_risks_of_censoring(it: TimeIntegral, otherwise: Loss) -> Method:
    if not are_curves_under_risks(it.inputs) or not it.one_end:
        return None
    return lambda: losses_under_risks(it.inputs, it.end, otherwise)


def _by_sums(it: TimeIntegral, otherwise: Loss) -> Method:
    fits = it.end is None or (it.inputs.C._degree == 0 and it.has_finite_end)
    return partial(by_sums, it) if fits else None


def exactly(inputs: ScoringInputs, end: PointMass | None = None) -> Array:
    """The losses by the first of the last three routes, which serve every input."""
    return _first(TimeIntegral(inputs, end), ROUTES[-3:])[1]()


#: In the order in which they are tried.
ROUTES = (
    Route("groups", "censoring distributions by group: each group on its own", (0, 1, None), _by_group, True),
    Route(
        "one curve",
        "one step forecast and one C for all subjects: one antiderivative, read at each y",
        STEPS,
        _by_one_curve,
        serves_never=True,
    ),
    Route(
        "risk tables",
        "forecasts with proportional hazards, or one curve under such a C: tables at a few risks",
        STEPS,
        _by_risks,
    ),
    Route(
        "risk tables of C",
        "step forecasts on common times, C with proportional hazards: tables at a few risks",
        STEPS,
        _by_risks_of_censoring,
    ),
    Route(
        "jumps on panels",
        "step forecasts with many jumps, a smooth C: its antiderivative on shared panels",
        STEPS,
        jumps_method,
        on_both_scales=False,
    ),
    Route(
        "knots",
        "piecewise-linear forecasts with knots of their own, one step C: its moments",
        LINES,
        knots_method,
        forecasts=Polyline,
        on_both_scales=False,
    ),
    Route(
        "panels",
        "smooth forecasts, a smooth C, one step C or one with proportional hazards: shared panels",
        SMOOTH,
        panels_method,
        serves_never=True,
    ),
    Route("sums", "step forecasts: sums over the jumps", STEPS, _by_sums, serves_never=True),
    Route(
        "lines",
        "piecewise-linear forecasts on one grid, one step C: moments of each panel",
        LINES,
        lambda it, otherwise: lines_method(it.inputs, it.below, it.beyond),
        forecasts=Polyline,
    ),
    Route(
        "formula",
        "all else: closed forms, or quadrature by subject",
        (0, 1, None),
        lambda it, otherwise: partial(by_formula, it),
        serves_never=True,
    ),
)


def _first(it: TimeIntegral, among: Sequence[Route] = ROUTES) -> tuple[str, Callable[[], Array]]:
    """The name of the first route that is for the input, and its method."""
    F, otherwise = it.inputs.F, partial(exactly, end=it.end)
    for route in among:
        fits = F._degree in route.degrees and isinstance(F, route.forecasts)
        fits = fits and (route.on_both_scales or it.end is None)
        if fits and (route.serves_never or not it.inputs.has_never):
            method = route.method(it, otherwise)
            if method is not None:
                return route.name, method
    raise AssertionError("the last route serves every input")


def integrated(inputs: ScoringInputs, end: PointMass | None = None) -> Array:
    """The CRPS of checked inputs, or up to an ``end`` the integrated Brier score on the ipcw scale, (n,)."""
    if end is not None:
        check_unreached_before(inputs, end.location)
    return check_infinite(_first(TimeIntegral(inputs, end))[1](), inputs)


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
      groups            censoring distributions by group: each group on its own
      ...
    > sums              step forecasts: sums over the jumps
      ...
    """
    check_scale(scale)
    y, forecast, censoring = through_visits(y, forecast, censoring, horizon)
    inputs = scoring_inputs(y, forecast, censoring, horizon, one_cause=True)
    end = end_of(inputs) if scale == "ipcw" else None
    taken = [_first(TimeIntegral(inputs, end))[0]]

    def note(group: ScoringInputs) -> Array:
        taken.append(_first(TimeIntegral(group, end))[0])
        return group.y.time

    if taken == ["groups"]:
        inputs.in_groups(note)
    return Routes(tuple(taken))
