"""The ipcw integrated Brier score of step forecasts under step censoring distributions is a finite sum."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore import _kernels

RNG = np.random.default_rng(0)
N = 40
X = RNG.normal(size=(N, 1))
T, LAST = RNG.weibull(1.5, N), RNG.uniform(0, 2, N)
Y = cs.RightCensored(np.minimum(T, LAST), T <= LAST)
DISTRIBUTIONS = {
    "one curve": cs.Censoring(cs.KaplanMeier()).fit(None, Y).predict_distribution(),
    "a curve per row": cs.Censoring(cs.CoxRegression()).fit(X, Y).predict_distribution(X),
    "a curve per fold": cs.Censoring(cs.KaplanMeier(), cv=4).fit_predict_distribution(None, Y),
}
TIMES = np.linspace(0.05, 1.8, 12)
FORECASTS = {
    "step": cs.Step(TIMES, sf=np.exp(-(TIMES**1.5) * np.exp(0.3 * X))),
    "one step for all": cs.Step(TIMES, sf=np.exp(-(TIMES**1.5))[None, :]),
    "ensemble": cs.Ensemble(RNG.weibull(1.5, (N, 15))),
    "ensemble with infinity": cs.Ensemble(
        np.append(RNG.weibull(1.5, (N, 15)), np.full((N, 1), np.inf), axis=1)
    ),
}


def by_pieces(F: cs.Distribution, C: cs.Distribution, i: int, h: float) -> float:
    """Between all jumps everything is constant, so the value in the middle of a piece is exact."""
    F, C = (distribution if len(distribution) == 1 else distribution.take([i]) for distribution in (F, C))
    edges = np.unique(np.concatenate([F.steps()[0][0], C.steps()[0][0], [0.0, h], Y.time[i : i + 1]]))
    edges = edges[edges <= h]
    middle = (edges[1:] + edges[:-1]) / 2
    G, S = (np.array([distribution.sf(t)[0] for t in middle]) for distribution in (C, F))
    y, event = Y.time[i], Y.event[i]
    alive = y > middle
    reach = C.sf_left(y)[0] if event else 1.0
    loss = np.where(alive, (1 - S) ** 2 / np.where(alive, G, 1.0), event * S**2 / reach)
    return float(loss @ np.diff(edges))


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("forecast", FORECASTS)
def test_finite_sum_is_the_definition(distribution, forecast):
    F, C = FORECASTS[forecast], DISTRIBUTIONS[distribution]
    h = min(1.4, 0.999 * float(C.isf(0.0).min()))
    found = cs.integrated_brier_score(Y, F, C, scale="ipcw", horizon=h)
    expected = [by_pieces(F, C, i, h) for i in range(N)]
    np.testing.assert_allclose(found, expected, rtol=1e-10, atol=1e-13)


@pytest.mark.parametrize("distribution", DISTRIBUTIONS)
@pytest.mark.parametrize("forecast", FORECASTS)
def test_compiled_kernel_is_the_formula(distribution, forecast, monkeypatch):
    pytest.importorskip("numba")
    F, C = FORECASTS[forecast], DISTRIBUTIONS[distribution]
    h = min(1.4, 0.999 * float(C.isf(0.0).min()))
    plain = cs.integrated_brier_score(Y, F, C, scale="ipcw", horizon=h)
    monkeypatch.setattr(_kernels, "WORTH_COMPILING", 0)
    fast = cs.integrated_brier_score(Y, F, C, scale="ipcw", horizon=h)
    np.testing.assert_allclose(fast, plain, rtol=1e-12, atol=1e-14)


def test_a_distribution_of_c_that_falls_below_the_smallest_floats_does_no_harm_before():
    """Far beyond y the distribution has denormal probabilities, whose inverse overflows."""
    jumps = np.linspace(0.05, 5, 100)
    C = cs.Step(jumps, sf=np.exp(-7.12 * np.arange(1, 101))[None, :])
    assert 0 < C.sf(5.0)[0] < 1e-308
    y = cs.RightCensored([0.12, 0.3], [0, 1])
    for F in (
        cs.Weibull(1.5, 1.0),
        cs.Step(jumps, sf=np.exp(-jumps)[None, :]),
        cs.PiecewiseLinear(jumps, sf=np.exp(-jumps)[None, :]),
    ):
        found = cs.integrated_brier_score(y, F, C, scale="ipcw", horizon=4.9)
        assert np.isfinite(found).all()
