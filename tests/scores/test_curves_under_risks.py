"""Step forecasts and areas under proportional hazards of C from tables equal those from every curve."""

import importlib

import numpy as np
import pytest

import censcore as cs
from censcore import _kernels
from censcore.distributions import Grouped, ProportionalHazards
from censcore.distributions.univariate import proportional_hazards
from censcore.scores.inputs.scoring_inputs import scoring_inputs
from censcore.scores.integration import chebyshev_in_risk as _proportional
from censcore.scores.integration import panel_quadrature as _smooth

routes = importlib.import_module("censcore.scores.integration.routes")
N = 300


@pytest.fixture(params=["formulas", "kernels"])
def tables_for_few(request, monkeypatch):
    if request.param == "kernels":
        monkeypatch.setattr(_kernels, "WORTH_COMPILING", 0)
    monkeypatch.setattr(_proportional, "WORTH_TABLES", 0)
    monkeypatch.setattr(_proportional, "FEW_CURVES", 1)
    monkeypatch.setattr(proportional_hazards, "WORTH_TABLES", 0)


def scene(spread, top, seed=0):
    """An outcome, forecasts on common times with mass left at infinity, and a Cox model of C."""
    rng = np.random.default_rng(seed)
    T, c = rng.weibull(1.5, N), rng.exponential(1.5, N)
    y = cs.RightCensored(np.minimum(T, c), c >= T)
    grid = np.linspace(0.1, 3.0, 25)
    F = cs.Step(grid, sf=cs.Weibull(1.4, np.exp(0.4 * rng.normal(size=N))).sf(grid[None, :]))
    times = np.sort(rng.exponential(1.0, 400))
    C = ProportionalHazards(times, np.linspace(0.001, top, 400), np.exp(spread * rng.normal(size=N)))
    return y, F, C


CASES = [(0.3, 1.0), (1.0, 3.0), (3.0, 0.02), (1.0, 1e-3)]


@pytest.mark.parametrize(("spread", "top"), CASES)
def test_crps(tables_for_few, spread, top):
    y, F, C = scene(spread, top)
    inputs = scoring_inputs(y, F, C, 1.6)
    assert _proportional.are_curves_under_risks(inputs)
    np.testing.assert_allclose(routes.integrated(inputs), routes.exactly(inputs), rtol=1e-8)


@pytest.mark.parametrize(("spread", "top"), CASES)
def test_ipcw_scale(tables_for_few, spread, top):
    y, F, C = scene(spread, top, 1)
    inputs = scoring_inputs(y, F, C, 1.2)
    loss = cs.integrated_brier_score(y, F, C, scale="ipcw", horizon=1.2)
    expected = routes.exactly(inputs, cs.PointMass(1.2))
    np.testing.assert_allclose(loss, expected, rtol=1e-8)


@pytest.mark.parametrize("scale", ["localized", "ipcw"])
@pytest.mark.parametrize("given", [False, True], ids=["groups", "groups given survival"])
def test_step_curves_of_groups_have_times_of_their_own(tables_for_few, given, scale):
    y, _, C = scene(1.0, 3.0, 6)
    early, late = np.linspace(0.1, 2.0, 20), np.linspace(0.15, 3.0, 20)
    site = np.arange(N) % 2
    F = Grouped([cs.Step(times, sf=np.linspace(0.95, 0.1, 20)) for times in (early, late)], site)
    times = np.union1d(early, late)
    own = cs.Step(times, sf=F.sf(times[None, :]))
    F = F.given_survival(0.05) if given else F
    loss, expected = (cs.integrated_brier_score(y, G, C, scale=scale, horizon=1.2) for G in (F, own))
    np.testing.assert_allclose(loss, expected, rtol=1e-8)


FORECASTS = {
    "smooth": (cs.Weibull(1.4, np.exp(0.4 * np.random.default_rng(3).normal(size=N))), "panels"),
    "one curve": (cs.Step(np.linspace(0.01, 3.0, 300), sf=np.linspace(0.99, 0.0, 300)), "risk tables"),
    "one curve that ends late": (cs.Step(np.linspace(0.01, 1.0, 50), sf=np.full(50, 0.5)), "risk tables"),
}


@pytest.mark.parametrize("name", FORECASTS)
@pytest.mark.parametrize("scale", ["localized", "ipcw"])
@pytest.mark.parametrize(("spread", "top"), CASES)
def test_smooth_and_shared_forecasts(tables_for_few, monkeypatch, spread, top, scale, name):
    for module in (_proportional, _smooth):
        monkeypatch.setattr(module, "FEW", 1)
    monkeypatch.setattr(_smooth, "WORTH_TABLES", 0)
    (F, route), (y, _, C) = FORECASTS[name], scene(spread, top, 2)
    assert cs.scores.routes(y, F, C, 1.2, scale=scale).taken == (route,)
    inputs = scoring_inputs(y, F, C, 1.2)
    end = routes.end_of(inputs) if scale == "ipcw" else None
    np.testing.assert_allclose(routes.integrated(inputs, end), routes.exactly(inputs, end), rtol=1e-8)


@pytest.mark.parametrize(("spread", "top"), CASES)
def test_areas_of_any_times(monkeypatch, spread, top):
    rng = np.random.default_rng(2)
    _, _, C = scene(spread, top)
    a = rng.uniform(0, 4, (N, 5))
    b = a + rng.exponential(0.5, (N, 5)) * (rng.random((N, 5)) < 0.8)
    expected = C.integrated_sf(a, b)
    monkeypatch.setattr(proportional_hazards, "WORTH_TABLES", 0)
    np.testing.assert_allclose(C.integrated_sf(a, b), expected, rtol=1e-8, atol=1e-14)


def test_pinball(monkeypatch):
    y, _, C = scene(1.0, 2.0, 3)
    F = cs.Weibull(1.3, np.linspace(0.5, 2.0, N))
    expected = cs.pinball_score(y, F, C, [0.1, 0.5, 0.9], horizon=1.6)
    monkeypatch.setattr(proportional_hazards, "WORTH_TABLES", 0)
    np.testing.assert_allclose(cs.pinball_score(y, F, C, [0.1, 0.5, 0.9], horizon=1.6), expected, rtol=1e-8)


@pytest.mark.parametrize("kind", ["steps", "Cox", "one curve", "ensemble"])
def test_delayed_entry(tables_for_few, kind):
    y, F, C = scene(1.0, 2.0, 4)
    rng = np.random.default_rng(5)
    times = np.sort(rng.exponential(1.0, 30))
    F = {
        "steps": F,
        "Cox": ProportionalHazards(times, np.linspace(0.01, 2.0, 30), rng.lognormal(size=N)),
        "one curve": cs.Step([0.3, 0.9, 1.8], sf=[0.8, 0.5, 0.2]),
        "ensemble": cs.Ensemble(rng.weibull(1.5, (N, 20))),
    }[kind]
    late = cs.RightCensored(y.time + 0.1, y.event, entry=rng.uniform(0, 0.1, N))
    inputs = scoring_inputs(late, F, C, 1.5)
    np.testing.assert_allclose(routes.integrated(inputs), routes.exactly(inputs), rtol=1e-8)
    loss = cs.integrated_brier_score(late, F, C, scale="ipcw", horizon=1.2)
    inputs = scoring_inputs(late, F, C, 1.2)
    expected = routes.exactly(inputs, cs.PointMass(1.2)) * inputs.followed_to_entry
    np.testing.assert_allclose(loss, expected, rtol=1e-8)
