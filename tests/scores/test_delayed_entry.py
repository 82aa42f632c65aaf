"""Scores with delayed entry: the forecast given survival to the entry, scored as it stands."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.exceptions import ImpossibleForecastError, UnsupportedOutcomeError
from censcore.published import ipcw_brier, survival_crps

RNG = np.random.default_rng(3)
N = 60
ENTRY = np.where(RNG.random(N) < 0.3, 0.0, RNG.uniform(0.0, 1.0, N))
T = ENTRY + RNG.weibull(1.5, N) * 2 + 0.01
C = ENTRY + RNG.uniform(0.01, 4.0, N)
Y = cs.RightCensored(np.minimum(T, C), T <= C, entry=ENTRY)
PLAIN = cs.RightCensored(Y.time, Y.event)
A = np.where(ENTRY > 0, ENTRY, -1.0)
G = cs.Uniform(0.0, 6.0)
TIMES = np.array([0.5, 1.0, 2.0])
SCORES = {
    "log": lambda y, F, C: cs.log_score(y, F, C),
    "crps": lambda y, F, C: cs.crps(y, F, C),
    "brier": lambda y, F, C: cs.brier_score(y, F, C, TIMES),
    "integrated brier": lambda y, F, C: cs.integrated_brier_score(y, F, C, horizon=3.0),
    "binomial log": lambda y, F, C: cs.binomial_log_score(y, F, C, TIMES),
    "pinball": lambda y, F, C: cs.pinball_score(y, F, C, [0.2, 0.7]),
    "energy": lambda y, F, C: cs.energy_score(y, F, C),
    "energy, beta": lambda y, F, C: cs.energy_score(y, F, C, beta=0.7, members=20, draws=2),
}
IPCW = {
    "brier": lambda y, F, C: cs.brier_score(y, F, C, TIMES, scale="ipcw"),
    "integrated brier": lambda y, F, C: cs.integrated_brier_score(y, F, C, scale="ipcw", horizon=3.0),
}
GRID = np.linspace(0.05, 8.0, 90)
WEIBULL = cs.Weibull(1.5, np.linspace(1.5, 3.0, N))
FORECASTS = {
    "Weibull": WEIBULL,
    "Step": cs.Step(GRID, sf=WEIBULL.sf(GRID[None, :])),
    "Step, shared": cs.Step(GRID, sf=cs.Weibull(1.5, 2.0).sf(GRID[None, :])[0]),
    "Ensemble": cs.Ensemble(RNG.weibull(1.5, (N, 80)) * 2 + 0.2),
    "Quantiles": cs.Quantiles(np.linspace(0.1, 0.9, 9), WEIBULL.icdf(np.linspace(0.1, 0.9, 9)[None, :])),
    "cured": cs.Mixture([WEIBULL, cs.PointMass(np.inf)], [0.8, 0.2]),
}
NO_DENSITY = ("Step", "Step, shared", "Ensemble")


def pairs(scores):
    return [(s, f) for s in scores for f in FORECASTS if not (s == "log" and f in NO_DENSITY)]


@pytest.mark.parametrize(("score", "name"), pairs(SCORES))
def test_a_score_is_that_of_the_forecast_given_survival(score, name):
    F, function = FORECASTS[name], SCORES[score]
    expected = function(PLAIN, F.given_survival(A), G)
    np.testing.assert_allclose(function(Y, F, G), expected, rtol=1e-10, atol=1e-12)
    assert np.abs(expected - function(PLAIN, F, G)).max() > 1e-3


@pytest.mark.parametrize(("score", "name"), pairs(IPCW))
def test_ipcw_weights_are_given_follow_up_to_the_entry(score, name):
    F, function = FORECASTS[name], IPCW[score]
    expected = function(PLAIN, F.given_survival(A), G.given_survival(A))
    np.testing.assert_allclose(function(Y, F, G), expected, rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize(("score", "name"), pairs(SCORES | {f"{s}, ipcw": f for s, f in IPCW.items()}))
def test_entries_of_zero_are_none(score, name):
    function = (SCORES | {f"{s}, ipcw": f for s, f in IPCW.items()})[score]
    zero = cs.RightCensored(Y.time, Y.event, entry=0.0)
    np.testing.assert_array_equal(function(zero, FORECASTS[name], G), function(PLAIN, FORECASTS[name], G))


def test_the_log_score_gains_the_log_of_survival():
    gained = cs.log_score(Y, WEIBULL) - cs.log_score(PLAIN, WEIBULL)
    np.testing.assert_allclose(gained, WEIBULL.logsf(ENTRY), rtol=1e-10, atol=1e-14)


def test_an_atom_at_zero_is_kept_without_delayed_entry():
    y = cs.RightCensored([0.0, 2.0], [1, 1], entry=0.0)
    F = cs.Ensemble([[0.0, 1.0], [0.0, 3.0]])
    np.testing.assert_array_equal(cs.crps(y, F), cs.crps(cs.RightCensored([0.0, 2.0], [1, 1]), F))


def test_who_enters_after_the_horizon_scores_zero():
    late = ENTRY > 0.4
    for function in (cs.crps, cs.log_score):
        loss = function(Y, WEIBULL, G, horizon=0.4)
        np.testing.assert_array_equal(loss[late], 0.0)
        assert (loss[~late] != 0).any()


def test_augmented_scores_condition_all_three_distributions():
    W = cs.Exponential(0.4)
    got = cs.augmented_brier_score(Y, WEIBULL, G, times=TIMES, event_model=W)
    expected = cs.augmented_brier_score(
        PLAIN, WEIBULL.given_survival(A), G.given_survival(A), times=TIMES, event_model=W.given_survival(A)
    )
    np.testing.assert_allclose(got, expected, rtol=1e-10)


def test_several_event_times_with_one_entry():
    time = np.stack([Y.time, np.where(Y.event, Y.time + 0.1, Y.time)], axis=1)
    event = np.stack([Y.event, Y.event], axis=1)
    y = cs.RightCensored(time, event, entry=ENTRY)
    F = cs.Copula("clayton", [cs.Weibull(1.5, 2.0), cs.Exponential(0.5)], theta=2.0)
    gained = cs.log_score(y, F) - cs.log_score(cs.RightCensored(time, event), F)
    np.testing.assert_allclose(gained, F.logsf(np.stack([ENTRY, ENTRY], axis=1)), atol=1e-12)
    E = cs.Ensemble(F.sample(200, seed=1))
    exact, sampled = (cs.energy_score(y, D, G, members=200, draws=2).mean() for D in (E, F))
    assert abs(exact - sampled) < 0.03
    ignoring = cs.energy_score(cs.RightCensored(time, event), E, G, draws=2).mean()
    assert abs(exact - ignoring) > 0.05


def test_impossible_forecasts_are_named():
    F = cs.Step([0.2, 0.5], sf=[0.5, 0.0])
    with pytest.raises(ImpossibleForecastError, match=r"P\(T > a\) = 0 in") as error:
        cs.crps(Y, F, G)
    assert list(error.value.rows) == np.nonzero(ENTRY >= 0.5)[0].tolist()


def test_scores_as_published_do_not_know_delayed_entry():
    with pytest.raises(UnsupportedOutcomeError, match="delayed entry"):
        survival_crps(Y, WEIBULL)
    with pytest.raises(UnsupportedOutcomeError, match="delayed entry"):
        ipcw_brier(Y, WEIBULL, G, TIMES)


def test_torch_gives_the_same_losses_and_gradients():
    torch = pytest.importorskip("torch")
    shape = torch.tensor(1.5, dtype=torch.float64, requires_grad=True)
    scale = torch.tensor(2.0, dtype=torch.float64, requires_grad=True)
    y = cs.RightCensored(*(torch.as_tensor(part) for part in (Y.time, Y.event)), entry=torch.as_tensor(ENTRY))
    for function in (cs.crps, cs.log_score):
        loss = function(y, cs.Weibull(shape, scale), cs.Uniform(0.0, 6.0)).mean()
        at = {h: function(Y, cs.Weibull(1.5, 2.0 + h), G).mean() for h in (-1e-5, 0.0, 1e-5)}
        assert loss.item() == pytest.approx(at[0.0], rel=1e-9)
        slope = torch.autograd.grad(loss, [scale, shape])
        assert slope[0].item() == pytest.approx((at[1e-5] - at[-1e-5]) / 2e-5, rel=1e-5)
        assert np.isfinite(slope[1].item())
