"""Every marginalized score is the mean of localized scores over the C that the observation allows."""

from __future__ import annotations

import numpy as np
import pytest
from tests.scores.scenarios import SCORES, censoring_distributions, outcome_under

import censcore as cs

DRAWS = 1500
FORECASTS = {
    "smooth": lambda rng, n: cs.Weibull(rng.uniform(0.6, 3, n), rng.uniform(0.5, 2, n)),
    "ensemble": lambda rng, n: cs.Ensemble(rng.weibull(1.5, (n, 12))),
    "piecewise linear": lambda rng, n: cs.PiecewiseLinear(
        [0.2, 0.5, 1.0, 2.0, 8.0], sf=-np.sort(-rng.random((n, 5)), axis=1) * [1, 1, 1, 1, 0]
    ),
}
HAS_LOCALIZED = [name for name in SCORES if "ipcw" not in name]


def localized_losses(score, y, F, C, rng):
    """Scores under PointMass(c) for draws of c given the observation, (n, DRAWS)."""
    n = len(y)
    c = C.icdf_beyond(y.time, rng.random((n, DRAWS)))
    c = np.where(y.event[:, None], c, y.time[:, None])
    rows = np.repeat(np.arange(n), DRAWS)
    losses = score(y.take(rows), F.take(rows), cs.PointMass(c.reshape(-1)), horizon=20.0)
    return losses.reshape(n, DRAWS)


@pytest.mark.parametrize("kind", ["uniform", "smooth", "ends", "many jumps", "mass at infinity"])
@pytest.mark.parametrize("forecast", FORECASTS)
def test_marginalized_is_the_mean_of_localized(rng, forecast, kind):
    C = censoring_distributions(rng)[kind]
    F = FORECASTS[forecast](rng, 4)
    y = outcome_under(C, 4, rng)
    for name in HAS_LOCALIZED:
        if name == "log" and not F.has_density:
            continue
        score = SCORES[name]
        draws = localized_losses(score, y, F, C, rng)
        error = draws.std(axis=1, ddof=1) / np.sqrt(DRAWS)
        off = np.abs(score(y, F, C, horizon=20.0) - draws.mean(axis=1))
        assert (off <= 5 * error + 1e-12).all(), (name, off / error)


@pytest.mark.parametrize("name", [name for name in SCORES if name != "log"])
def test_the_distribution_of_c_matters_to_all_but_the_log_score(rng, name):
    y = outcome_under(cs.Uniform(0.0, 3.0), 200, rng)
    F = cs.Weibull(1.0, 1.0)
    right, wrong = (SCORES[name](y, F, C) for C in (cs.Uniform(0.0, 3.0), cs.Exponential(2.0)))
    assert np.abs(right - wrong).max() > 1e-3


def test_the_log_score_is_the_same_under_every_distribution_of_c(rng):
    y = outcome_under(cs.Uniform(0.0, 3.0), 20, rng)
    losses = [
        cs.log_score(y, cs.Weibull(1.0, 1.0), C) for C in (None, cs.Uniform(0.0, 3.0), cs.Exponential(2.0))
    ]
    np.testing.assert_array_equal(losses[0], losses[1])
    np.testing.assert_array_equal(losses[0], losses[2])


@pytest.mark.parametrize("name", HAS_LOCALIZED)
def test_a_horizon_is_administrative_censoring(rng, name):
    C = cs.Weibull(1.2, 1.5)
    y, F = outcome_under(C, 30, rng), cs.Weibull(rng.uniform(0.6, 3, 30), 1.0)
    by_hand = SCORES[name](y.censor_at(0.9), F, C.censor_at(0.9))
    np.testing.assert_allclose(SCORES[name](y, F, C, horizon=0.9), by_hand, rtol=1e-13)
    each = np.linspace(0.85, 2.0, 30)
    by_hand = SCORES[name](y.censor_at(each), F, C.censor_at(each))
    np.testing.assert_allclose(SCORES[name](y, F, C, horizon=each), by_hand, rtol=1e-13)


@pytest.mark.parametrize("name", [name for name in HAS_LOCALIZED if name != "log"])
def test_what_a_forecast_says_beyond_the_horizon_does_not_count(rng, name):
    times, end = np.linspace(0.1, 3, 30), 1.55
    sf = np.exp(-times)
    forecasts = [cs.Step(times, sf=s) for s in (sf, np.where(times < end, sf, sf**3))]
    C = cs.Weibull(1.2, 1.5)
    y = outcome_under(C, 20, rng)
    one, other = (SCORES[name](y, F, C, horizon=end) for F in forecasts)
    np.testing.assert_allclose(one, other, rtol=1e-12)
    if name in ("crps", "integrated brier", "pinball"):  # without the horizon it does
        assert not np.allclose(*(SCORES[name](y, F, C) for F in forecasts), rtol=1e-6)


@pytest.mark.parametrize("name", HAS_LOCALIZED)
def test_known_censoring_times_need_no_distribution(rng, name):
    c, T = rng.uniform(0.9, 2, 20), rng.weibull(1.3, 20)
    y = cs.RightCensored(np.minimum(T, c), c >= T, censoring_time=c)
    F = cs.Weibull(1.5, 1.0)
    np.testing.assert_array_equal(SCORES[name](y, F, None), SCORES[name](y, F, cs.PointMass(c)))


@pytest.mark.parametrize("name", SCORES)
def test_without_censoring_nothing_is_divided_or_cut(rng, name):
    y = cs.RightCensored(rng.weibull(1.3, 20), np.ones(20))
    F = cs.Weibull(1.5, 1.0)
    nearly_never = cs.PointMass(np.inf)
    np.testing.assert_array_equal(SCORES[name](y, F, None), SCORES[name](y, F, nearly_never))
    late = cs.Uniform(1e12, 2e12)
    np.testing.assert_allclose(SCORES[name](y, F, late), SCORES[name](y, F, nearly_never), rtol=1e-9)
