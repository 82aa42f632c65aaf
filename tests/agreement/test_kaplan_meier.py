"""Kaplan-Meier curves and what is made of them, against lifelines and scikit-survival."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs


@pytest.fixture(params=["untied", "tied"])
def y(request, rng):
    if request.param == "tied":
        T, C = rng.geometric(0.1, 400).astype(float), rng.geometric(0.1, 400).astype(float)
    else:
        T, C = rng.weibull(1.3, 400), rng.exponential(1.0, 400)
    return cs.RightCensored(np.minimum(T, C), T <= C)


def test_curve_and_greenwood_equal_those_of_the_peers(y):
    nonparametric = pytest.importorskip("sksurv.nonparametric")
    model = cs.KaplanMeier().fit(None, y)
    time, theirs = nonparametric.kaplan_meier_estimator(y.event, y.time)
    np.testing.assert_allclose(model.predict_distribution().sf(time[None, :])[0], theirs, rtol=1e-12)
    jumps, errors = np.unique(y.time[y.event]), model.event_table_["variance"]
    np.testing.assert_array_equal(model.event_table_["time"], jumps)
    fitters = pytest.importorskip("lifelines")
    with np.errstate(divide="ignore"):
        lifelines = fitters.KaplanMeierFitter().fit(y.time, y.event)
    summed = lifelines._cumulative_sq_.loc[jumps].to_numpy()
    finite = np.isfinite(summed)
    np.testing.assert_allclose(
        errors[finite], (model.event_table_["sf"] ** 2 * summed)[finite], rtol=1e-10, atol=1e-15
    )


def test_weighted_curve_equals_that_of_lifelines(y, rng):
    fitters = pytest.importorskip("lifelines")
    weights = rng.integers(1, 5, len(y))
    distribution = cs.KaplanMeier().fit(None, y, sample_weight=weights).predict_distribution()
    theirs = fitters.KaplanMeierFitter().fit(y.time, y.event, weights=weights)
    times = np.quantile(y.time, [0.1, 0.5, 0.9])
    np.testing.assert_allclose(
        distribution.sf(times[None, :])[0], theirs.survival_function_at_times(times), rtol=1e-10
    )


def test_distribution_of_c_equals_that_of_scikit_survival_without_ties(rng):
    nonparametric = pytest.importorskip("sksurv.nonparametric")
    T, C = rng.weibull(1.3, 400), rng.exponential(1.0, 400)
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    distribution = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    time, theirs = nonparametric.kaplan_meier_estimator(y.event, y.time, reverse=True)
    np.testing.assert_allclose(distribution.sf(time[None, :])[0], theirs, rtol=1e-12)


def test_on_ties_ours_is_unbiased_and_scikit_survival_is_not():
    """T, C geometric(0.15), C capped at 10; the Brier score of the true distribution is S(1 - S).

    Dividing by P(C > y) where P(C >= y) is due makes the share S of the score that events have too large by
    1 / 0.85: 13, 9 and 7 % of the score for the true distribution.
    """
    metrics, util = pytest.importorskip("sksurv.metrics"), pytest.importorskip("sksurv.util")
    rng = np.random.default_rng(7)
    times = np.array([2.0, 4.0, 6.0])
    S = 0.85**times
    truth = cs.Step(times, sf=S)
    ours, theirs = [], []
    for _ in range(200):
        T, C = rng.geometric(0.15, 2000), np.minimum(rng.geometric(0.15, 2000), 10)
        y = cs.RightCensored(np.minimum(T, C).astype(float), T <= C)
        distribution = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
        ours.append(cs.brier_score(y, truth, distribution, times, scale="ipcw").mean(axis=0))
        structured = util.Surv.from_arrays(y.event, y.time)
        theirs.append(metrics.brier_score(structured, structured, np.tile(S, (2000, 1)), times)[1])
    relative = [np.mean(part, axis=0) / (S * (1 - S)) - 1 for part in (ours, theirs)]
    assert np.abs(relative[0]).max() < 0.005
    np.testing.assert_allclose(relative[1], S * (1 / 0.85 - 1), atol=0.005)
