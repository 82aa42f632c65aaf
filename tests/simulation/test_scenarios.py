"""Scenarios draw from the distributions they state, and keep T and C independent given the covariates."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

import censcore as cs
from censcore.exceptions import InvalidInputError
from censcore.simulation import (
    DataScenario,
    LogNormalScenario,
    SimulatedData,
    TargetedScenario,
    WeibullScenario,
)
from censcore.testing import check_distribution

UNIVARIATE = [
    WeibullScenario("administrative"),
    WeibullScenario("uniform"),
    WeibullScenario("conditional"),
    WeibullScenario("uniform", severity=3.0),
    WeibullScenario("none"),
    TargetedScenario(),
]


def uniforms(distribution: cs.Distribution, times: np.ndarray, seed: int) -> np.ndarray:
    """F(T-) + U P(T = t): uniform whenever the times come from the distribution, atoms or not."""
    u = np.random.default_rng(seed).random(len(times))
    left, right = distribution.sf_left(times), distribution.sf(times)
    return 1 - left + u * (left - right)


@pytest.mark.parametrize("scenario", UNIVARIATE, ids=repr)
def test_event_and_censoring_times_follow_the_stated_distributions(scenario):
    data = scenario.sample(4000, seed=3)
    assert stats.kstest(uniforms(scenario.event_distribution(data.X), data.T, 0), "uniform").pvalue > 1e-3
    C = scenario.censoring_distribution(data.X)
    if isinstance(C, cs.PointMass):
        np.testing.assert_array_equal(data.C, np.broadcast_to(C.location, data.C.shape))
    else:
        assert stats.kstest(uniforms(C, data.C, 1), "uniform").pvalue > 1e-3


@pytest.mark.parametrize("scenario", UNIVARIATE[1:4], ids=repr)
def test_event_and_censoring_times_are_independent_given_the_covariates(scenario):
    data = scenario.sample(4000, seed=4)
    u = uniforms(scenario.event_distribution(data.X), data.T, 0)
    v = uniforms(scenario.censoring_distribution(data.X), data.C, 1)
    assert abs(stats.spearmanr(u, v).statistic) < 4 / np.sqrt(4000)


def test_covariates_are_standard_normal_and_move_the_distribution():
    scenario = WeibullScenario()
    X = scenario.sample(4000, seed=0).X
    assert stats.kstest(X.ravel(), "norm").pvalue > 1e-3
    x = np.array([[1.0, 0, 0], [0, 1.0, 0], [0, 0, 1.0], [0, 0, 0]])
    np.testing.assert_allclose(np.log(scenario.scale(x)), [1.1, -0.2, 0.6, 0.3])
    scale = WeibullScenario("conditional").censoring_distribution(x).parameters["scale"]
    np.testing.assert_allclose(np.log(scale), [-0.1, 0.2, 0.6, 0.2])


def test_severity_divides_censoring_times():
    X = np.zeros((1, 3))
    for kind in ("administrative", "uniform", "conditional"):
        light, heavy = (WeibullScenario(kind, severity=s).censoring_distribution(X) for s in (1.0, 4.0))
        np.testing.assert_allclose(heavy.icdf(0.4), light.icdf(0.4) / 4)


@pytest.mark.parametrize(("k", "mixture"), [(2, True), (3, True), (3, False), (1, True)])
def test_lognormal_coordinates_follow_their_margins(k, mixture):
    scenario = LogNormalScenario(k, mixture, "conditional")
    data = scenario.sample(4000, seed=5)
    distribution = scenario.event_distribution(data.X)
    for j in range(k):
        u = uniforms(distribution.marginal(j), data.T[:, j], j)
        assert stats.kstest(u, "uniform").pvalue > 1e-3
    assert stats.kstest(uniforms(scenario.censoring_distribution(data.X), data.C, 9), "uniform").pvalue > 1e-3


def test_mixture_has_the_stated_regimes():
    """Mean and covariance of the log-times at one x follow from shifts, spreads, correlations and pi(x)."""
    scenario, x = LogNormalScenario(2, True), np.array([[0.3, -0.2, 0.5, 1.0]])
    log_T = np.log(scenario.event_distribution(x).sample(200_000, 0)[0])
    late = 1 / (1 + np.exp(-(0.8 * 0.3 + 0.6 * 0.2 + 0.4 * np.sin(0.5))))
    assert scenario.late_probability(x)[0] == pytest.approx(late)
    mu, sigma, shift = scenario.location(x)[0], scenario.spread(x)[0], 1.15 * np.array([0.85, 1.15])
    regimes = [(1 - late, mu - shift, 0.85 * sigma, 0.70), (late, mu + shift, 1.15 * sigma, 0.20)]
    mean = sum(p * m for p, m, _, _ in regimes)
    second = sum(
        p * (np.outer(s, s) * np.array([[1, rho], [rho, 1]]) + np.outer(m, m)) for p, m, s, rho in regimes
    )
    np.testing.assert_allclose(log_T.mean(axis=0), mean, atol=0.015)
    np.testing.assert_allclose(np.cov(log_T.T), second - np.outer(mean, mean), atol=0.02)


def test_location_and_spread_are_the_stated_formulas():
    scenario, x = LogNormalScenario(3), np.array([[0.5, -1.0, 2.0, 0.1]])
    b = np.array([-0.6, -0.2, 0.2, 0.6])
    for j in range(3):
        beta = (0.35 + 0.08 * j) * np.cos(b + 0.7 * j)
        gamma = 0.10 * np.sin(b - 0.7 * j)
        assert scenario.location(x)[0, j] == pytest.approx(0.35 + x[0] @ beta)
        assert scenario.spread(x)[0, j] == pytest.approx(0.35 + 0.15 / (1 + np.exp(-x[0] @ gamma)))


def test_shared_and_componentwise_censoring():
    shared = LogNormalScenario(3, censoring="uniform").sample(300, 0)
    assert shared.C.shape == (300,)
    assert shared.y.shares_censoring
    apart = LogNormalScenario(3, censoring="componentwise").sample(300, 0)
    assert apart.C.shape == (300, 3)
    np.testing.assert_array_equal(apart.y.event, apart.C >= apart.T)
    assert not apart.y.shares_censoring


def test_clip_cuts_the_latent_times_and_their_distribution():
    cut, free = LogNormalScenario(2, clip=5.0), LogNormalScenario(2)
    data = cut.sample(500, 1)
    assert data.T.max() == 5.0
    np.testing.assert_array_equal(data.T, np.minimum(free.sample(500, 1).T, 5.0))
    distribution = cut.event_distribution(data.X[:4])
    assert (distribution.marginal(0).sf(5.0) == 0).all()
    assert (distribution.marginal(0).sf_left(5.0) > 0).any()


def test_targeted_scenario_has_the_printed_constants():
    scenario = TargetedScenario()
    np.testing.assert_allclose(
        scenario.grid[[24, 25, 49, 50]], [9.8626, 10.2736, 20.1362, 20.5471], atol=6e-5
    )
    np.testing.assert_allclose(scenario.interior, [9.8626, 9.9653, 10.0681, 10.2736], atol=6e-5)
    distribution = scenario.event_distribution(np.zeros((1, 3)))
    np.testing.assert_allclose(
        distribution.cdf([[10.0681, 10.2736, 20.1362, 20.5471]]), [[0, 0.5, 0.5, 1]], atol=2e-4
    )
    check_distribution(scenario.censoring_distribution(np.zeros((1, 3))))


def test_a_scenario_like_data_has_their_covariates_rates_and_follow_up():
    study = WeibullScenario("conditional").sample(400, seed=2)
    T = cs.WeibullRegression().fit(study.X, study.y)
    C = cs.Censoring(cs.CoxRegression()).fit(study.X, study.y)
    end = float(study.y.time.max())
    scenario = DataScenario(study.X, T, C, end=end)
    data = scenario.sample(5000, seed=0)
    assert set(map(tuple, data.X)) <= set(map(tuple, study.X))
    assert data.C.max() <= end
    assert data.y.event.mean() == pytest.approx(study.y.event.mean(), abs=0.04)
    assert stats.kstest(uniforms(scenario.event_distribution(data.X), data.T, 0), "uniform").pvalue > 1e-3
    assert stats.kstest(uniforms(scenario.censoring_distribution(data.X), data.C, 1), "uniform").pvalue > 1e-3
    shorter = DataScenario(study.X, T, C, end=end, severity=2.0).sample(500, seed=0)
    assert shorter.C.max() <= end / 2


def test_the_same_seed_gives_the_same_data_and_another_seed_other_data():
    scenario = LogNormalScenario(3)
    one, same, other = scenario.sample(50, [1, 2]), scenario.sample(50, [1, 2]), scenario.sample(50, [1, 3])
    np.testing.assert_array_equal(one.T, same.T)
    np.testing.assert_array_equal(one.C, same.C)
    assert (one.T != other.T).any()


def test_a_sample_says_what_the_analyst_sees():
    sample = SimulatedData(np.zeros((3, 1)), np.array([1.0, 2.0, 3.0]), np.array([2.0, 2.0, 1.0]))
    np.testing.assert_array_equal(sample.y.time, [1, 2, 1])
    np.testing.assert_array_equal(sample.y.event, [True, True, False])  # T <= C is an event
    np.testing.assert_array_equal(sample.y_known.censoring_time, [2, 2, 1])
    np.testing.assert_array_equal(sample.latent.time, [1, 2, 3])
    assert len(sample) == 3
    assert len(sample[1:]) == 2


FITTED = cs.KaplanMeier().fit(None, cs.RightCensored([1.0, 2.0], [1, 0]))


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: WeibullScenario("left"), "censoring must be one of"),
        (lambda: LogNormalScenario(2, censoring="left"), "censoring must be one of"),
        (lambda: LogNormalScenario(0), "k must be a whole number from 1"),
        (lambda: WeibullScenario().sample(0), "n must be a whole number from 1"),
        (lambda: DataScenario(np.zeros(3), None, None), "X must be"),
        (lambda: DataScenario(np.zeros((3, 1)), FITTED, FITTED, end=0.0), "end must be a number above 0"),
    ],
)
def test_wrong_input_is_refused(make, message):
    with pytest.raises(InvalidInputError, match=message):
        make()


def test_samples_and_scenarios_compare_to_a_bool():
    scenario = WeibullScenario()
    data = scenario.sample(5, seed=1)
    assert data == scenario.sample(5, seed=1)
    assert data != scenario.sample(5, seed=2)
    assert data != scenario.sample(6, seed=1)
    assert data != "a sample"
    model = cs.WeibullRegression().fit(None, data.y)
    one, other = (DataScenario(data.X, model, model) for _ in range(2))
    assert (one == one, one == other) == (True, False)
