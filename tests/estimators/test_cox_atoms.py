"""Cox regression where the time has atoms: its equations, its consistency, what each subject adds."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import brentq

import censcore as cs
from censcore.estimators import CoxRegression
from censcore.exceptions import InvalidInputError, PositivityError

GAMMA = 1.0


def discrete(rng, x, jumps):
    """Times 1, 2, ... from P(T = k | T >= k, x) = 1 - exp(-h_k e^x); infinite beyond the last."""
    t = np.full(len(x), np.inf)
    for k, h in enumerate(jumps, 1):
        fails = np.isinf(t) & (rng.random(len(x)) < -np.expm1(-h * np.exp(GAMMA * x)))
        t[fails] = k
    return t


def continuous(rng, x, rate):
    return rng.exponential(np.exp(-GAMMA * x) / rate)


SCENARIOS = {
    "continuous": lambda rng, x: continuous(rng, x, 0.3),
    "administrative end": lambda rng, x: np.minimum(continuous(rng, x, 0.3), 2.0),
    "two closing dates": lambda rng, x: np.minimum(
        continuous(rng, x, 0.1), discrete(rng, x, [0.0, 1.0, 0.0, 0.0, np.inf])
    ),
    "visit grid": lambda rng, x: discrete(rng, x, [0.15] * 11 + [np.inf]),
    "large ties": lambda rng, x: discrete(rng, x, [0.7, 0.7, 0.7]),
    "mixture": lambda rng, x: np.minimum(
        continuous(rng, x, 0.1), discrete(rng, x, [0.1, 0.1, 0.8, 0.1, 0.1, np.inf])
    ),
    "rounded": lambda rng, x: np.ceil(continuous(rng, x, 0.3)),
}


def censored_by(name, n, seed):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    C, T = SCENARIOS[name](rng, x), rng.exponential(4.0, n)
    return x[:, None], T, cs.RightCensored(np.minimum(T, C), T <= C), C


def truth(name, x, t):
    """P(C > t | x) in the scenarios."""
    r = np.exp(GAMMA * x)
    hazard = {
        "continuous": 0.3 * t,
        "administrative end": 0.3 * t if t < 2 else np.inf,
        "two closing dates": 0.1 * t + 1.0 * (t >= 2) + (np.inf if t >= 5 else 0),
        "visit grid": 0.15 * np.floor(t) if t < 12 else np.inf,
        "large ties": 0.7 * min(np.floor(t), 3),
        "mixture": 0.1 * t + [0, 0.1, 0.2, 1.0, 1.1, 1.2, np.inf][min(int(t), 6)],
        "rounded": 0.3 * np.floor(t),
    }[name]
    return np.exp(-r * hazard)


@pytest.mark.parametrize("name", SCENARIOS)
def test_coefficient_and_curve_are_consistent(name):
    X, _, y, _ = censored_by(name, 20_000, seed=3)
    model = CoxRegression().fit(X, y.flip())
    assert abs(model.coef_[0] - GAMMA) < 4 * model.standard_errors_[0]
    assert model.standard_errors_[0] < 0.02
    assert np.sqrt(model.robust_covariance()[0, 0]) == pytest.approx(model.standard_errors_[0], rel=0.1)
    x = np.array([[-1.0], [0.0], [1.0]])
    G = cs.Censoring(CoxRegression()).fit(X, y).predict_distribution(x)
    for t in (0.9, 1.0, 1.9, 2.0, 3.0, 5.0):
        np.testing.assert_allclose(G.sf(t), truth(name, x[:, 0], t), atol=0.02)


def test_everyone_censored_at_one_time():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(400, 1))
    T = 12 * rng.exponential(np.exp(-x[:, 0] / 2))
    y = cs.RightCensored(T, np.ones(400)).censor_at(8.0)
    model = cs.Censoring(CoxRegression()).fit(x, y)
    G = model.predict_distribution(x)
    np.testing.assert_array_equal(G.sf(8.0), 0.0)
    np.testing.assert_array_equal(G.sf_left(8.0), 1.0)
    assert not model.estimators_[0].coef_.any()
    assert np.isinf(model.estimators_[0].standard_errors_).all()
    F = cs.Exponential(12 * np.exp(-x[:, 0] / 2))
    known = cs.crps(y, F, cs.PointMass(8.0))
    np.testing.assert_allclose(cs.crps(y, F, G), known, rtol=1e-8)
    later = cs.RightCensored(T, np.ones(400)).censor_at(9.0)
    with pytest.raises(PositivityError):
        cs.crps(later, F, G)


@pytest.mark.parametrize(("name", "t"), [("visit grid", 6.0), ("two closing dates", 4.0)])
def test_inverse_probability_weights_restore_the_uncensored_brier_score(name, t):
    X, T, y, _ = censored_by(name, 20_000, seed=5)
    F = cs.Exponential(4.0)
    G = cs.Censoring(CoxRegression()).fit(X, y).predict_distribution(X)
    found = cs.brier_score(y, F, G, [t], scale="ipcw")[:, 0]
    seen = (F.cdf(t) - (t >= T)) ** 2
    assert abs((found - seen).mean()) < 3 * (found - seen).std() / np.sqrt(len(T))
    assert (found - seen).std() / np.sqrt(len(T)) < 0.03


def tied(n=80, seed=1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 2))
    T = np.ceil(3 * rng.exponential(np.exp(-X @ [0.7, -0.4]))) / 3
    C = np.ceil(6 * rng.uniform(size=n)) / 3
    return X, cs.RightCensored(np.minimum(T, C), T <= C), rng.uniform(0.2, 3.0, n)


def test_baseline_solves_kalbfleisch_and_prentice():
    X, y, w = tied()
    model = CoxRegression().fit(X, y, sample_weight=w)
    r = np.exp((X - model.center_) @ model.coef_)
    jumps = np.diff(np.append(0.0, model.baseline_hazard_))
    for u, h in zip(model.baseline_times_, jumps, strict=True):
        D, R = (y.time == u) & y.event, y.time >= u
        if np.isinf(h):
            assert (D == R).all()
            continue
        equation = lambda a: (w * r / (1 - a**r))[D].sum() - (w * r)[R].sum()  # noqa: B023, E731
        assert np.exp(-h) == pytest.approx(brentq(equation, 1e-12, 1 - 1e-12, xtol=1e-15), abs=1e-10)


def test_coefficients_solve_their_equation():
    X, y, w = tied()
    model = CoxRegression().fit(X, y, sample_weight=w)
    r = np.exp((X - model.center_) @ model.coef_)
    total = np.zeros(2)
    for u, h in zip(model.baseline_times_, np.diff(np.append(0.0, model.baseline_hazard_)), strict=True):
        D, R = (y.time == u) & y.event, y.time >= u
        if np.isfinite(h):
            phi = w[D] * h * r[D] / -np.expm1(-h * r[D])
            total += w[D].sum() * (np.average(X[D], 0, phi) - np.average(X[R], 0, (w * r)[R]))
    np.testing.assert_allclose(total, 0, atol=1e-8)


def test_a_time_at_which_everybody_fails_says_nothing_of_the_coefficients():
    X, y, _ = tied()
    end = 1.0
    cut = cs.RightCensored(np.minimum(y.time, end), y.event | (y.time >= end))
    without = cs.RightCensored(cut.time, cut.event & (cut.time < end))
    a, b = CoxRegression().fit(X, cut), CoxRegression().fit(X, without)
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-9)
    np.testing.assert_allclose(a.standard_errors_, b.standard_errors_, rtol=1e-9)
    np.testing.assert_array_equal(a.predict_distribution(X).sf(end), 0.0)


# ---- influence -----------------------------------------------------------------------------------


def log_survival(model, x, t):
    return model.predict_distribution(x).logsf(t[None, :]).ravel()


def parts(model, x, t):
    risk = np.exp((x - model.center_) @ model.coef_)
    logsf = model.predict_distribution(x).logsf(t[None, :])
    D = (model.baseline_times_[:, None, None] <= t) * risk[:, None]
    E = (x - model.center_).T[:, :, None] * logsf
    return model.influence(D.reshape(len(D), -1), E.reshape(len(E), -1))


@pytest.mark.parametrize("ties", ["product-limit", "efron", "breslow"])
@pytest.mark.parametrize("alpha", [0.0, 3.0])
@pytest.mark.parametrize("rounded", [True, False])
def test_influence_is_the_derivative_by_the_weight(ties, alpha, rounded):
    X, y, w = tied()
    if not rounded:
        y = cs.RightCensored(y.time + np.random.default_rng(2).uniform(0, 0.01, len(y)), y.event)
    w[3] = 0.0
    x, t = X[:3], np.array([0.4, 0.7, 1.1])
    fit = lambda weight: CoxRegression(alpha, ties).fit(X, y, sample_weight=weight)  # noqa: E731
    model = fit(w)
    found = parts(model, x, t)
    assert found.shape == (len(y), 9)
    assert not found[3].any()
    if not alpha:
        np.testing.assert_allclose(found.sum(axis=0), 0, atol=1e-10)
    for i in range(0, 80, 9):
        step = 1e-4 * w[i] * (np.arange(80) == i)
        change = (log_survival(fit(w + step), x, t) - log_survival(fit(w - step), x, t)) / 2e-4
        np.testing.assert_allclose(found[i], change, rtol=1e-4, atol=1e-7 * np.abs(found).max())


def test_influence_gives_the_bootstrap_variance():
    rng = np.random.default_rng(8)
    x = rng.normal(size=400)
    C, T = SCENARIOS["mixture"](rng, x), rng.exponential(4.0, 400)
    X, y = x[:, None], cs.RightCensored(np.minimum(T, C), C < T)
    at, t = np.array([[-0.5], [0.8]]), np.array([1.0, 2.5, 3.0])
    error = np.sqrt((parts(CoxRegression().fit(X, y), at, t) ** 2).sum(axis=0))
    draws = [
        log_survival(
            CoxRegression().fit(X, y, sample_weight=rng.multinomial(400, np.full(400, 1 / 400))), at, t
        )
        for _ in range(150)
    ]
    np.testing.assert_allclose(error, np.std(draws, axis=0), rtol=0.2)


def test_influence_of_data_that_say_nothing_is_zero_and_shapes_are_checked():
    X, y, _ = tied()
    none = CoxRegression().fit(X, cs.RightCensored(y.time, np.zeros(80)))
    assert not none.influence(np.ones((1, 2))).any()
    model = CoxRegression().fit(X, y)
    with pytest.raises(InvalidInputError, match="one row per baseline time"):
        model.influence(np.ones((2, 1)))
    J = len(model.baseline_times_)
    with pytest.raises(InvalidInputError, match=r"coef_derivative: got shape \(1, 1\), expected \(2, 1\)"):
        model.influence(np.ones((J, 1)), np.ones((1, 1)))
