"""Uncensored and localized scores against the scoringrules package."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs

N, M = 60, 40


@pytest.fixture(scope="module")
def sr():
    """The package, which takes seconds to import: it compiles."""
    return pytest.importorskip("scoringrules")


@pytest.fixture
def ensemble(rng):
    return rng.weibull(1.3, N), rng.weibull(1.3, (N, M))


def seen(T):
    return cs.RightCensored(T, np.ones(len(T)))


@pytest.mark.parametrize("estimator", ["qd", "nrg"])
def test_ensemble_crps(sr, ensemble, estimator):
    T, x = ensemble
    expected = sr.crps_ensemble(T, x, estimator=estimator, backend="numpy")
    np.testing.assert_allclose(cs.crps(seen(T), cs.Ensemble(x)), expected, rtol=1e-10, atol=1e-14)


def test_weighted_ensemble_crps(sr, rng, ensemble):
    T, x = ensemble
    w = rng.random((N, M))
    expected = sr.crps_ensemble(T, x, ens_w=w, backend="numpy")
    np.testing.assert_allclose(cs.crps(seen(T), cs.Ensemble(x, w)), expected, rtol=1e-10, atol=1e-14)


def test_localized_crps_is_the_threshold_weighted_crps_below_c(sr, ensemble):
    T, x = ensemble
    for c in (0.4, 0.9, 2.0):
        y = seen(T).censor_at(c)
        expected = sr.twcrps_ensemble(T, x, b=c, backend="numpy")
        np.testing.assert_allclose(
            cs.crps(y, cs.Ensemble(x), cs.PointMass(c)), expected, rtol=1e-10, atol=1e-14
        )
        np.testing.assert_allclose(
            cs.crps(seen(T), cs.Ensemble(x), horizon=c), expected, rtol=1e-10, atol=1e-14
        )


def test_localized_crps_with_a_censoring_time_per_row(sr, rng, ensemble):
    T, x = ensemble
    c = rng.uniform(0.3, 2, N)
    y = cs.RightCensored(np.minimum(T, c), c >= T, censoring_time=c)
    # one c per row is a chaining function: cut observation and members at it
    expected = sr.crps_ensemble(np.minimum(T, c), np.minimum(x, c[:, None]), backend="numpy")
    np.testing.assert_allclose(cs.crps(y, cs.Ensemble(x)), expected, rtol=1e-10, atol=1e-14)


PARAMETRIC = {
    "gamma": (lambda a, b: cs.Gamma(a, b), lambda a, b: (a, b)),
    "lognormal": (lambda a, b: cs.LogNormal(np.log(a), b), lambda a, b: (np.log(a), b)),
    "loglogistic": (lambda a, b: cs.LogLogistic(1 / (0.3 * b), a), lambda a, b: (np.log(a), 0.3 * b)),
}


@pytest.mark.parametrize("name", PARAMETRIC)
def test_parametric_crps_and_log_score(sr, rng, ensemble, name):
    y = seen(ensemble[0])
    a, b = rng.uniform(0.5, 3, N), rng.uniform(0.5, 2, N)
    here, there = PARAMETRIC[name]
    F, parameters = here(a, b), there(a, b)
    np.testing.assert_allclose(cs.crps(y, F), getattr(sr, f"crps_{name}")(y.time, *parameters), rtol=1e-8)
    np.testing.assert_allclose(
        cs.log_score(y, F), getattr(sr, f"logs_{name}")(y.time, *parameters), rtol=1e-10
    )


def test_exponential_and_uniform_crps(sr, rng, ensemble):
    y = seen(ensemble[0])
    rate, high = rng.uniform(0.5, 3, N), rng.uniform(0.5, 3, N)
    np.testing.assert_allclose(cs.crps(y, cs.Exponential(rate)), sr.crps_exponential(y.time, rate), rtol=1e-9)
    np.testing.assert_allclose(
        cs.crps(y, cs.Uniform(0.0 * high, high)), sr.crps_uniform(y.time, 0.0, high), rtol=1e-9
    )


def test_quantile_score(sr, rng, ensemble):
    y, F = seen(ensemble[0]), cs.Weibull(rng.uniform(0.5, 3, N), 1.0)
    for level in (0.05, 0.5, 0.9):
        expected = sr.quantile_score(y.time, F.icdf(level), level)
        np.testing.assert_allclose(cs.pinball_score(y, F, None, level), expected, rtol=1e-12, atol=1e-15)


def test_energy_score_in_one_dimension_is_the_crps(rng, ensemble):
    T, x = ensemble
    C = cs.Uniform(0.0, 2.0)
    c = rng.uniform(0, 2, N)
    y = cs.RightCensored(np.minimum(T, c), c >= T)
    F = cs.Ensemble(x)
    np.testing.assert_allclose(cs.energy_score(seen(T), F, pairs="all"), cs.crps(seen(T), F), rtol=1e-10)
    np.testing.assert_allclose(cs.energy_score(y, F, C, pairs="all", draws=4000), cs.crps(y, F, C), atol=2e-3)


@pytest.mark.parametrize(("fair", "estimator"), [(False, "nrg"), (True, "fair")])
def test_energy_score(sr, rng, fair, estimator):
    z, T, c = rng.exponential(size=(4, 30, 3)), rng.exponential(size=(4, 3)), 1.1
    y = cs.RightCensored(T, np.ones_like(T))
    expected = sr.es_ensemble(T, z, estimator=estimator, backend="numpy")
    np.testing.assert_allclose(cs.energy_score(y, cs.Ensemble(z), fair=fair), expected, rtol=1e-10)
    chained = sr.twes_ensemble(T, z, lambda t: np.minimum(t, c), estimator=estimator, backend="numpy")
    loss = cs.energy_score(y.censor_at(c), cs.Ensemble(z), cs.PointMass(c), fair=fair)
    np.testing.assert_allclose(loss, chained, rtol=1e-10)
