"""Every route to the integrated scores is taken by some input, and gives what the last routes give."""

from __future__ import annotations

from importlib import import_module

import numpy as np
import pytest

import censcore as cs
from censcore import _kernels
from censcore.distributions import Grouped, ProportionalHazards
from censcore.exceptions import InvalidInputError
from censcore.scores.inputs.scoring_inputs import scoring_inputs
from censcore.scores.integration import chebyshev_in_risk as _proportional

module = import_module("censcore.scores.integration.routes")
N = 500
RNG = np.random.default_rng(0)
X = RNG.normal(size=N)
T, END = RNG.weibull(1.4, N), RNG.uniform(0.0, 3.0, N)
Y = cs.RightCensored(np.minimum(T, END), T <= END)
GRID = np.linspace(0.01, 2.9, 300)
CURVES = np.exp(-GRID[None, :] * np.exp(0.3 * X)[:, None])
JUMPS = cs.Step(GRID, sf=np.append(np.linspace(0.99, 0.1, 299), 0.0))
HAZARD = np.append(GRID[:-1] / 4, np.inf)

CASES = {
    "groups": (cs.Weibull(1.4, np.exp(0.3 * X)), Grouped([cs.Uniform(0.0, 3.0), JUMPS], (X > 0).astype(int))),
    "one curve": (cs.Step(GRID, sf=CURVES[0]), JUMPS),
    "risk tables": (ProportionalHazards(GRID, HAZARD, np.exp(0.3 * X)), JUMPS),
    "risk tables of C": (
        cs.Step(GRID[::10], sf=CURVES[:, ::10]),
        ProportionalHazards(GRID, HAZARD, np.exp(0.3 * X)),
    ),
    "jumps on panels": (cs.Ensemble(RNG.weibull(1.4, (N, 90))), cs.Exponential(0.5)),
    "knots": (cs.Quantiles([0.2, 0.5, 0.8], np.cumsum(RNG.uniform(0.2, 1.0, (N, 3)), axis=1)), JUMPS),
    "panels": (cs.Weibull(1.4, np.exp(0.3 * X)), JUMPS),
    "sums": (cs.Step(GRID, sf=CURVES), JUMPS),
    "lines": (cs.PiecewiseLinear(GRID, sf=np.append(CURVES[:, :-1], np.zeros((N, 1)), axis=1)), JUMPS),
    "formula": (cs.Weibull(1.4, np.exp(0.3 * X)), cs.PointMass(END)),
}
ROUTES = {
    "groups": "panels",
    "one curve": "sums",
    "risk tables of C": "risk tables",
    "jumps on panels": "sums",
    "knots": "lines",
}  # of the cases that have not the name of their route
LOCALIZED = ("jumps on panels", "knots")  # on the ipcw scale the formula serves these


def test_every_route_has_a_case():
    assert {route.name for route in module.ROUTES} == {ROUTES.get(name, name) for name in CASES}
    assert len(module.ROUTES) <= 6


@pytest.mark.parametrize("scale", ["localized", "ipcw"])
@pytest.mark.parametrize("name", CASES)
def test_routes_are_taken_and_agree(name, scale, monkeypatch):
    F, C = CASES[name]
    monkeypatch.setattr(_proportional, "WORTH_TABLES", 0)
    if name == "lines":
        pytest.importorskip("numba")
        monkeypatch.setattr(_kernels, "WORTH_COMPILING", 0)
    horizon = 1.2 if name != "formula" else None if scale == "localized" else float(END.min() / 2)
    taken = cs.scores.routes(Y, F, C, horizon, scale=scale).taken
    expected = "formula" if scale == "ipcw" and name in LOCALIZED else ROUTES.get(name, name)
    assert taken == (expected,) * (2 if name == "groups" else 1)
    loss = cs.integrated_brier_score(Y, F, C, scale=scale, horizon=horizon)
    inputs = scoring_inputs(Y, F, C, horizon)
    exact = module.exactly(inputs, module.end_of(inputs) if scale == "ipcw" else None)
    np.testing.assert_allclose(loss, exact, rtol=1e-8, atol=1e-12)


def test_the_table_marks_what_is_taken():
    table = repr(cs.scores.routes(Y, *CASES["sums"], 1.2)).splitlines()
    assert [line[2:14].strip() for line in table] == [route.name for route in module.ROUTES]
    assert [line[2:14].strip() for line in table if line[0] == ">"] == ["sums"]


def test_one_cause_and_visits_have_routes_and_an_unknown_scale_is_an_error():
    y = cs.CompetingRisks(Y.time, np.where(Y.event, 1 + (X > 0), 0)).cause(1)
    assert cs.scores.routes(y, cs.Weibull(1.4, 1.0), JUMPS, 1.2).taken == ("panels",)
    visits = cs.IntervalCensored([0.0, 2.0], [2.0, 4.0], visits=[2.0, 4.0, 6.0])
    assert cs.scores.routes(visits, cs.Exponential([0.5, 0.6])).taken == ("sums",)
    with pytest.raises(InvalidInputError, match="scale"):
        cs.scores.routes(Y, cs.Weibull(1.4, 1.0), JUMPS, 1.2, scale="both")
