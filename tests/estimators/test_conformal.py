"""Conformal lower bounds: coverage for any forecast, split conformal prediction without censoring."""

import numpy as np
import pytest

import censcore as cs
from censcore.exceptions import InvalidInputError


def draw(rng, n):
    x = rng.normal(size=n)
    return x, rng.weibull(1.5, n) * np.exp(0.6 * x)


FORECASTS = {
    "right": lambda x: cs.Weibull(1.5, np.exp(0.6 * x)),
    "too long": lambda x: cs.Weibull(1.5, 3 * np.exp(0.6 * x)),
    "without x": lambda x: cs.Weibull(1.0, np.full(len(x), 1.3)),
}


@pytest.mark.parametrize("forecast", FORECASTS)
def test_bounds_cover_whatever_the_forecast(forecast):
    F, covered = FORECASTS[forecast], []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x, T = draw(rng, 150)
        mean = 2.5 * np.exp(0.4 * x)
        C = np.minimum(rng.exponential(mean), 4.0)
        y = cs.RightCensored(np.minimum(T, C), T <= C)
        new, later = draw(rng, 2000)
        bound = cs.conformal_lower_bound(y, F(x), F(new), cs.Exponential(1 / mean).censor_at(4.0))
        covered.append((later >= bound).mean())
    assert 0.89 < np.mean(covered) < 0.94


def test_estimated_censoring():
    covered = []
    for seed in range(60):
        rng = np.random.default_rng(seed)
        x, T = draw(rng, 200)
        C = np.minimum(rng.exponential(2.5 * np.exp(0.4 * x)), 4.0)
        y = cs.RightCensored(np.minimum(T, C), T <= C)
        G = cs.Censoring(cs.CoxRegression()).fit(x[:, None], y).predict_distribution(x[:, None])
        new, later = draw(rng, 2000)
        F = FORECASTS["without x"]
        covered.append((later >= cs.conformal_lower_bound(y, F(x), F(new), G)).mean())
    assert 0.89 < np.mean(covered) < 0.94


def test_without_censoring_it_is_an_order_statistic(rng):
    T = rng.exponential(size=99)
    y = cs.RightCensored(T, np.ones(99, dtype=bool))
    bound = cs.conformal_lower_bound(y, cs.Exponential(3.0), cs.Exponential(3.0), level=0.9)
    np.testing.assert_allclose(bound, np.sort(T)[9])  # the tenth of 99: P(T < bound) = 10 / 100


def test_bounds_end_at_the_horizon(rng):
    T = rng.exponential(size=200)
    y = cs.RightCensored(np.minimum(T, 0.05), T <= 0.05, np.full(200, 0.05))
    F = cs.Exponential(1.0)
    early = cs.RightCensored(T, np.ones(200, dtype=bool))
    assert cs.conformal_lower_bound(early, F, F, level=0.9, horizon=0.01) == 0.01
    with pytest.raises(InvalidInputError, match="known censoring times, expected the distribution of C"):
        cs.conformal_lower_bound(y, F, F)


def test_too_few_subjects(rng):
    y = cs.RightCensored(rng.exponential(size=8), np.ones(8, dtype=bool))
    with pytest.raises(InvalidInputError, match=r"8 calibration subjects.*level=0\.9"):
        cs.conformal_lower_bound(y, cs.Exponential(1.0), cs.Exponential(1.0))
    bound = cs.conformal_lower_bound(y, cs.Exponential(1.0), cs.Exponential(1.0), level=0.5)
    assert bound.shape == (1,)


def test_an_ensemble_and_several_times(rng):
    T = rng.exponential(size=100)
    y = cs.RightCensored(T, np.ones(100, dtype=bool))
    draws = cs.Ensemble(rng.exponential(2.0, size=(100, 500)))
    bound = cs.conformal_lower_bound(y, draws, draws.take(np.arange(7)), level=0.8)
    assert bound.shape == (7,)
    with pytest.raises(InvalidInputError, match="one event time"):
        cs.conformal_lower_bound(cs.RightCensored(T.reshape(50, 2), np.ones((50, 2))), draws, draws)


def test_one_subject_and_distributions_of_several():
    y, C = cs.RightCensored([1.0], [1]), cs.Uniform(0.0, [3.0, 4.0])
    with pytest.raises(InvalidInputError, match="got 2 subjects, expected one distribution per calibration"):
        cs.conformal_lower_bound(y, cs.Exponential(1.0), cs.Exponential(1.0), C)
