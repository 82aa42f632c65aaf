"""Losses of proportional-hazards forecasts from tables at a few risks equal the sums over all jumps."""

import importlib

import numpy as np
import pytest

import censcore as cs
from censcore._risk_tables import risk_groups
from censcore.distributions import ProportionalHazards
from censcore.scores.inputs.scoring_inputs import scoring_inputs
from censcore.scores.integration import chebyshev_in_risk as _proportional
from censcore.scores.integration import panel_quadrature as _smooth

routes = importlib.import_module("censcore.scores.integration.routes")

N, JUMPS = 400, 300


@pytest.fixture(autouse=True)
def tables_for_few(monkeypatch):
    monkeypatch.setattr(_proportional, "WORTH_TABLES", 0)
    monkeypatch.setattr(_proportional, "FEW", 1)
    monkeypatch.setattr(_smooth, "WORTH_TABLES", 0)


def subjects(seed=0, n=N):
    rng = np.random.default_rng(seed)
    T, c = rng.weibull(1.5, n), rng.exponential(1.5, n)
    return rng, cs.RightCensored(np.minimum(T, c), c >= T)


def forecasts(rng, spread=1.0, top=3.0, n=N):
    times = np.sort(rng.weibull(1.5, JUMPS))
    return ProportionalHazards(times, np.linspace(0.001, top, JUMPS), np.exp(spread * rng.normal(size=n)))


def censorings(rng, n=N):
    times = np.sort(rng.exponential(1.5, 200))
    return {
        "Kaplan-Meier": cs.Step(times, sf=np.linspace(0.99, 0.01, 200)),
        "one Weibull": cs.Weibull(1.2, 1.5),
        "Weibull of each": cs.Weibull(rng.uniform(0.7, 2.0, n), np.exp(0.3 * rng.normal(size=n))),
        "log-normal of each": cs.LogNormal(0.3 * rng.normal(size=n), 0.8),
        "Cox": ProportionalHazards(times, np.linspace(0.001, 2.0, 200), np.exp(0.6 * rng.normal(size=n))),
    }


NAMES = list(censorings(np.random.default_rng(0)))
FORECASTS = {
    "usual": {},
    "spread over many decades": {"spread": 6.0},
    "certain in the end": {"top": np.inf},
    "rare": {"top": 1e-3},
}


def drawn(rng, kind):
    options = FORECASTS[kind]
    F = forecasts(rng, options.get("spread", 1.0), min(options.get("top", 3.0), 5.0))
    if np.isinf(options.get("top", 0.0)):
        hazard = F._hazard[0].copy()
        hazard[-1] = np.inf
        F = ProportionalHazards(F._times[0], hazard, F.risk)
    return F


@pytest.mark.parametrize("kind", FORECASTS)
@pytest.mark.parametrize("name", NAMES)
def test_crps_equals_sums(name, kind):
    rng, y = subjects()
    inputs = scoring_inputs(y, drawn(rng, kind), censorings(rng)[name], 1.4)
    assert _proportional.has_risks(inputs, None, inputs.C)
    np.testing.assert_allclose(routes.integrated(inputs), routes.exactly(inputs), rtol=1e-8)


@pytest.mark.parametrize("kind", FORECASTS)
@pytest.mark.parametrize("name", NAMES)
def test_ipcw_scale_equals_sums(name, kind):
    rng, y = subjects(1)
    F, C, end = drawn(rng, kind), censorings(rng)[name], cs.PointMass(1.1)
    inputs = scoring_inputs(y, F, C, 1.1)
    loss = cs.integrated_brier_score(y, F, C, scale="ipcw", horizon=1.1)
    np.testing.assert_allclose(loss, routes.exactly(inputs, end), rtol=1e-8)


@pytest.mark.filterwarnings("error")
def test_without_censoring_a_certain_end_is_needed():
    rng, y = subjects(3)
    y = cs.RightCensored(y.time, np.ones(N))
    F = drawn(rng, "certain in the end")
    inputs = scoring_inputs(y, F, cs.PointMass(np.inf), None)
    assert _proportional.has_risks(inputs, None, inputs.C)
    np.testing.assert_allclose(routes.integrated(inputs), routes.exactly(inputs), rtol=1e-8)
    with pytest.raises(cs.exceptions.PositivityError, match="infinite"):
        cs.crps(y, drawn(rng, "usual"), cs.PointMass(np.inf))


def test_a_loss_does_not_depend_on_the_other_subjects():
    rng, y = subjects(2)
    F, C = forecasts(rng), censorings(rng)["Kaplan-Meier"]
    some = np.arange(0, N, 3)
    alone = cs.crps(y.take(some), F.take(some), C, horizon=1.4)
    np.testing.assert_allclose(alone, cs.crps(y, F, C, horizon=1.4)[some], rtol=1e-13)


def test_groups_hold_every_subject_once_and_interpolate_at_nodes_too():
    risk = np.concatenate([np.random.default_rng(0).lognormal(0, 3, 200), [0.5, 1.0, 2.0]])
    risk = np.concatenate([risk, next(iter(risk_groups(np.ones(1)))).risks])
    value = np.full(len(risk), np.nan)
    for group in risk_groups(risk):
        value[group.rows], error = group.read(np.exp(-group.risks[:, None] * np.ones(len(group.rows))))
        assert error.max() < 1e-8
    np.testing.assert_allclose(value, np.exp(-risk), rtol=1e-9, atol=1e-11)
