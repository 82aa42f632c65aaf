"""The ipcw-scaled Brier score against scikit-survival and hazardous, on data without ties."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs

N = 400
TIMES = np.array([0.2, 0.5, 0.9, 1.3])


@pytest.fixture
def data(rng):
    """Training and test outcomes (test times inside the training range) and survival curves of a forecast."""

    def outcome(end):
        T, c = rng.weibull(1.4, N), np.minimum(rng.exponential(1.3, N), end)
        return cs.RightCensored(np.minimum(T, c), c >= T)

    train, test = outcome(2.2 + 0.1 * rng.random(N)), outcome(2.0 - 0.1 * rng.random(N))
    a = rng.uniform(0.8, 1.2, N)[:, None]
    return train, test, np.exp(-((TIMES / a) ** 1.4)), cs.Weibull(1.4, a[:, 0])


def structured(y):
    return pytest.importorskip("sksurv.util").Surv.from_arrays(y.event, y.time)


def censoring_distribution(train):
    return cs.Censoring(cs.KaplanMeier()).fit(None, train).predict_distribution(np.zeros((N, 1)))


def test_brier_score_equals_scikit_survival(data):
    metrics = pytest.importorskip("sksurv.metrics")
    train, test, S, F = data
    _, expected = metrics.brier_score(structured(train), structured(test), S, TIMES)
    C = censoring_distribution(train)
    for forecast in (cs.Step(TIMES, sf=S), F):
        loss = cs.brier_score(test, forecast, C, TIMES, scale="ipcw")
        np.testing.assert_allclose(loss.mean(axis=0), expected, rtol=1e-10)


def test_integrated_brier_score_tends_to_ours_on_finer_grids(data):
    metrics = pytest.importorskip("sksurv.metrics")
    train, test, _, F = data
    C = censoring_distribution(train)
    grid = np.linspace(1e-3, 1.3, 3001)  # it refuses times before the first of the test data
    S = F.sf(np.tile(grid, (N, 1)))
    trapezoid = metrics.integrated_brier_score(structured(train), structured(test), S, grid)
    exact = cs.integrated_brier_score(test, F, C, scale="ipcw", horizon=1.3).mean()
    assert exact == pytest.approx(trapezoid * (1.3 - 1e-3), rel=1e-4)


def test_brier_score_equals_hazardous_where_it_does_not_clip(data):
    metrics = pytest.importorskip("hazardous.metrics")
    train, test, S, _ = data
    frames = [{"event": y.event.astype(int), "duration": y.time} for y in (train, test)]
    pd = pytest.importorskip("pandas")
    expected = metrics.brier_score_survival(*(pd.DataFrame(frame) for frame in frames), S, TIMES)
    loss = cs.brier_score(test, cs.Step(TIMES, sf=S), censoring_distribution(train), TIMES, scale="ipcw")
    # it reads G at y instead of just before y, which untied data do not show
    np.testing.assert_allclose(loss.mean(axis=0), expected, rtol=1e-8)


def test_on_tied_data_left_limits_make_the_difference(rng):
    """scikit-survival overstates the Brier score by percents where events and censorings share times."""
    metrics = pytest.importorskip("sksurv.metrics")
    n, times = 20_000, np.array([2.0, 4.0, 6.0])
    T, c = rng.geometric(0.15, n).astype(float), np.minimum(rng.geometric(0.15, n), 10).astype(float)
    y = cs.RightCensored(np.minimum(T, c), c >= T)
    F = cs.Step(np.arange(1.0, 30), sf=0.8 ** np.arange(1, 30))
    S = np.tile(F.sf(times[None, :]), (n, 1))
    latent = cs.brier_score(cs.RightCensored(T, np.ones(n)), F, None, times).mean(axis=0)
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution(np.zeros((n, 1)))
    ours = cs.brier_score(y, F, C, times, scale="ipcw").mean(axis=0) / latent - 1
    theirs = metrics.brier_score(structured(y), structured(y), S, times)[1] / latent - 1
    assert (np.abs(ours) < 0.015).all()
    assert (theirs > [0.05, 0.03, 0.01]).all()
