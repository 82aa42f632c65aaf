"""Product integration on shared panels equals quadrature subject by subject."""

import importlib

import numpy as np
import pytest

import censcore as cs
from censcore.distributions import ProportionalHazards
from censcore.scores.inputs.scoring_inputs import scoring_inputs

routes = importlib.import_module("censcore.scores.integration.routes")

N = 60


def subjects(seed=0, n=N, jumps=300):
    """Times of three decades, and a Kaplan-Meier curve with many jumps."""
    rng = np.random.default_rng(seed)
    T, c = rng.weibull(0.7, n) + 1e-6, rng.exponential(2.0, n)
    other = rng.weibull(0.7, jumps), rng.exponential(2.0, jumps)
    train = cs.RightCensored(np.minimum(*other), other[0] <= other[1])
    C = cs.Censoring(cs.KaplanMeier()).fit(None, train).predict_distribution()
    return rng, cs.RightCensored(np.minimum(T, c), c >= T), C


def forecasts(rng, n=N):
    """Smooth ones, among them narrow, heavy-tailed, tiny and huge ones, with mass at infinity and kinks."""
    scale = np.exp(rng.normal(size=n))
    weibull = cs.Weibull(rng.uniform(0.3, 3.0, n), scale)
    return {
        "Weibull": weibull,
        "one for all": cs.Weibull(1.3, 0.8),
        "narrow": cs.Weibull(rng.uniform(20.0, 200.0, n), scale),
        "tiny": cs.Weibull(1.5, 1e-9 * scale),
        "huge": cs.Weibull(1.5, 1e7 * scale),
        "log-normal": cs.LogNormal(rng.normal(size=n), rng.uniform(0.05, 3.0, n)),
        "log-logistic": cs.LogLogistic(rng.uniform(0.2, 8.0, n), scale),
        "gamma": cs.Gamma(rng.uniform(0.1, 20.0, n), scale),
        "cured": cs.Mixture([weibull, cs.PointMass(float("inf"))], [0.6, 0.4]),
        "two humps": cs.Mixture([weibull, cs.Weibull(80.0, 0.9)], [0.7, 0.3]),
        "hazard in pieces": cs.PiecewiseExponential([0.3, 1.1], rng.uniform(0.1, 3.0, (n, 3))),
        "with an atom": cs.Mixture([weibull, cs.PointMass(0.5)], [0.7, 0.3]),
    }


NAMES = list(forecasts(np.random.default_rng(0)))


@pytest.mark.parametrize("name", NAMES)
def test_crps_equals_quadrature_of_each_subject(name):
    rng, y, C = subjects()
    inputs = scoring_inputs(y, forecasts(rng)[name], C, 3.0)
    np.testing.assert_allclose(routes.integrated(inputs), routes.exactly(inputs), rtol=1e-8, atol=1e-300)


@pytest.mark.parametrize("name", NAMES)
def test_ipcw_scale_equals_quadrature_of_each_subject(name):
    rng, y, C = subjects(1)
    F, end = forecasts(rng)[name], cs.PointMass(1.5)
    inputs = scoring_inputs(y, F, C, 1.5)
    expected = routes.exactly(inputs, end)
    loss = cs.integrated_brier_score(y, F, C, scale="ipcw", horizon=1.5)
    np.testing.assert_allclose(loss, expected, rtol=1e-8, atol=1e-300)


@pytest.mark.parametrize("end", [None, 1.5])
@pytest.mark.parametrize("hazards", ["two", "three", "with a cure"])
def test_after_an_event_of_another_cause_it_equals_quadrature_of_each_subject(hazards, end):
    rng, y, C = subjects(2)
    F = forecasts(rng)
    parts = [F["Weibull"], F["log-normal"], F["gamma"] if hazards == "three" else F["cured"]]
    F = cs.CauseSpecificHazards(parts[:2] if hazards == "two" else parts)
    causes = cs.CompetingRisks(y.time, np.where(y.event, 1 + rng.integers(0, 2, N), 0))
    point = None if end is None else cs.PointMass(end)
    for G in (C, cs.Exponential(0.5), cs.Weibull(1.2, np.exp(0.3 * rng.normal(size=N)))):
        for j in (1, 2):
            inputs = scoring_inputs(causes.cause(j), F.cause(j), G, end or 3.0, one_cause=True)
            assert inputs.has_never
            loss = routes.integrated(inputs, point)
            np.testing.assert_allclose(loss, routes.exactly(inputs, point), rtol=1e-8, atol=1e-300)


def smooth_censoring(rng, n=N):
    """One for all or one per subject; with kinks, cusps at zero, a heavy tail and G below 1e-100."""
    scale = np.exp(0.3 * rng.normal(size=n))
    return {
        "one exponential": cs.Exponential(0.5),
        "Weibull": cs.Weibull(rng.uniform(0.4, 2.0, n), 2 * scale),
        "steep": cs.Weibull(rng.uniform(2.0, 5.0, n), 0.3 + scale),
        "log-normal": cs.LogNormal(0.5 + rng.normal(size=n), rng.uniform(0.3, 2.0, n)),
        "uniform": cs.Uniform(0.2, 30.0),
        "hazard in pieces": cs.PiecewiseExponential([0.3, 1.1], rng.uniform(0.1, 1.0, (n, 3))),
        "with an atom": cs.Mixture([cs.Weibull(1.2, 2 * scale), cs.PointMass(0.7)], [0.7, 0.3]),
    }


SMOOTH = list(smooth_censoring(np.random.default_rng(0)))


@pytest.mark.parametrize("censoring", SMOOTH)
@pytest.mark.parametrize("name", ["Weibull", "one for all", "narrow", "log-normal", "two humps"])
def test_smooth_censoring_distributions(name, censoring):
    rng, y, _ = subjects(7)
    y = cs.RightCensored(np.maximum(y.time, 0.21), y.event)
    F, C, end = forecasts(rng)[name], smooth_censoring(rng)[censoring], cs.PointMass(1.5)
    inputs = scoring_inputs(y, F, C, 1.5)
    np.testing.assert_allclose(routes.integrated(inputs), routes.exactly(inputs), rtol=1e-8)
    loss = cs.integrated_brier_score(y, F, C, scale="ipcw", horizon=1.5)
    np.testing.assert_allclose(loss, routes.exactly(inputs, end), rtol=1e-8)


def test_one_subject_is_scored_as_among_others():
    rng, y, C = subjects(8)
    F = forecasts(rng)["Weibull"]
    for censoring in (C, cs.Exponential(0.5)):
        together = cs.crps(y, F, censoring, horizon=3.0)
        alone = [cs.crps(y[i : i + 1], F[i], censoring, horizon=3.0)[0] for i in range(10)]
        np.testing.assert_allclose(alone, together[:10], rtol=1e-12)


def test_times_in_the_far_tails_of_the_forecast():
    rng, _, C = subjects(2)
    y = cs.RightCensored(3.0 * 10.0 ** -rng.uniform(0, 12, N), np.ones(N))
    F = cs.Weibull(rng.uniform(0.5, 4.0, N), 10.0 ** rng.uniform(-3, 1, N))
    inputs = scoring_inputs(y, F, C, 3.0)
    np.testing.assert_allclose(routes.integrated(inputs), routes.exactly(inputs), rtol=1e-8)


def test_delayed_entry():
    rng, y, C = subjects(3)
    late = cs.RightCensored(y.time + 0.2, y.event, entry=rng.uniform(0, 0.2, N))
    inputs = scoring_inputs(late, cs.Weibull(1.5, np.exp(rng.normal(size=N))), C, 3.0)
    np.testing.assert_allclose(routes.integrated(inputs), routes.exactly(inputs), rtol=1e-8)


@pytest.mark.parametrize("smooth", [False, True])
def test_single_precision(smooth):
    rng, y, C = subjects(4)
    C = cs.Weibull(rng.uniform(0.5, 2.0, N), 2.0) if smooth else C
    F = cs.Weibull(rng.uniform(0.5, 3.0, N), np.exp(rng.normal(size=N)))
    like = np.zeros(1, np.float32)
    loss = cs.crps(y.like(like), F.like(like), C.like(like), horizon=3.0)
    assert loss.dtype == np.float32
    np.testing.assert_allclose(loss, cs.crps(y, F, C, horizon=3.0), rtol=2e-5)


@pytest.mark.parametrize("smooth", [False, True])
def test_gradients_equal_those_of_quadrature(smooth):
    torch = pytest.importorskip("torch")
    rng, y, C = subjects(5)
    like = torch.zeros(1, dtype=torch.float64)
    shape, scale = (
        torch.tensor(a, requires_grad=True) for a in (rng.uniform(0.5, 3.0, N), np.exp(rng.normal(size=N)))
    )
    rate = torch.tensor(0.5, dtype=torch.float64, requires_grad=True)
    C = cs.Exponential(rate) if smooth else C.like(like)
    parameters = [shape, scale, rate] if smooth else [shape, scale]
    gradients = [
        torch.autograd.grad(
            route(scoring_inputs(y.like(like), cs.Weibull(shape, scale), C, 3.0)).sum(), parameters
        )
        for route in (routes.integrated, routes.exactly)
    ]
    for ours, theirs in zip(*gradients, strict=True):
        torch.testing.assert_close(ours, theirs, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("smooth", [False, True])
def test_most_subjects_need_no_quadrature_of_their_own(monkeypatch, smooth):
    rng, y, C = subjects(6, n=500)
    C = cs.Weibull(1.2, 2 * np.exp(0.3 * rng.normal(size=500))) if smooth else C
    asked = []
    exactly = routes.exactly
    monkeypatch.setattr(routes, "exactly", lambda part, end: asked.append(part.n) or exactly(part, end))
    cs.crps(y, cs.Weibull(rng.uniform(0.7, 3.0, 500), np.exp(rng.normal(size=500))), C, horizon=3.0)
    assert sum(asked) <= 25


@pytest.mark.parametrize("beyond", [False, True])
@pytest.mark.parametrize("K", [1, 3])
def test_compiled_sums_of_moments_equal_the_formula(beyond, K):
    pytest.importorskip("numba")
    from censcore.scores.integration.shared_panels import Panels, Pieces, _sum_pieces
    from censcore.scores.kernels.panels_numba import sum_pieces

    rng = np.random.default_rng(9)
    pieces = Pieces(Panels(2.0, 2.0, (0.3,)), np.sort(rng.uniform(0.0, 3.0, 80)))
    first = np.searchsorted(pieces.panel, np.arange(len(pieces.panels.edges)))
    n = len(pieces.start)
    for kept in (np.arange(n), np.sort(rng.choice(n, 7, replace=False)), np.array([0]), np.array([n - 1])):
        arguments = rng.random((n, K)), pieces.Q_start, pieces.Q_stop, first, kept, beyond
        for ours, theirs in zip(sum_pieces(*arguments), _sum_pieces(*arguments), strict=True):
            np.testing.assert_allclose(ours, theirs, rtol=1e-12, atol=1e-14)


def test_errors_of_narrow_forecasts_are_not_underestimated():
    """Coefficients that fall slowly, or are a small share of a broad hump, made errors of 3e-8 look small."""
    n = 800
    rng, y, C = subjects(3, n=n, jumps=3000)
    y = cs.RightCensored(np.maximum(y.time, 0.21), y.event)
    F, end = forecasts(rng, n)["narrow"], cs.PointMass(1.5)
    loss = cs.integrated_brier_score(y, F, C, scale="ipcw", horizon=1.5)
    expected = routes.exactly(scoring_inputs(y, F, C, 1.5), end)
    np.testing.assert_allclose(loss, expected, rtol=1e-8, atol=1e-300)


@pytest.mark.parametrize("shared", [False, True])
def test_weights_beyond_all_floats_are_left_to_another_route(shared):
    # P(C > t) falls below the smallest number whose inverse is finite before it is zero
    n = 600
    rng = np.random.default_rng(0)
    risk, jumps = rng.uniform(0.5, 2.0, n), np.linspace(0.01, 3.0, 1000)
    forecast = ProportionalHazards(jumps, jumps, risk) if shared else cs.Weibull(1.5, 1 / risk)
    y = cs.RightCensored(rng.weibull(1.5, n), np.ones(n))
    C = cs.Exponential(np.full(n, 2.9))
    loss = cs.integrated_brier_score(y, forecast, C, scale="ipcw", horizon=250.0)
    few = slice(0, 20)
    inputs = scoring_inputs(y.take(few), forecast.take(few), C.take(few), 250.0)
    np.testing.assert_allclose(loss[few], routes.exactly(inputs, routes.end_of(inputs)), rtol=1e-8)
