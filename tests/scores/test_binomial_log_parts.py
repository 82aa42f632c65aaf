"""The binomial log score of NumPy arrays, at common times: equal to its formula, little memory."""

import importlib
import tracemalloc

import numpy as np
import pytest

import censcore as cs
from censcore import _kernels
from censcore.distributions import ProportionalHazards
from censcore.scores.inputs.scoring_inputs import scoring_inputs

module = importlib.import_module("censcore.scores.rules.binomial_log")
N = 60
TIMES = np.array([0.0, 0.2, 0.7, 1.1, 1.9])


def forecasts(rng):
    grid = np.linspace(0.1, 2.5, 20)
    curves = cs.Weibull(1.4, np.exp(rng.normal(size=N))).sf(grid[None, :])
    return {
        "steps": cs.Step(grid, sf=curves),
        "steps given as a CDF": cs.Step(grid, cdf=1 - curves),
        "ensemble": cs.Ensemble(rng.weibull(1.5, (N, 30))),
        "lines": cs.PiecewiseLinear(grid, sf=curves),
        "Cox": ProportionalHazards(grid, np.linspace(1e-12, 3.0, 20), np.exp(rng.normal(size=N))),
        "far beyond": cs.Weibull(9.0, 0.1),
        "cured": cs.Mixture([cs.Weibull(1.2, 1.0), cs.PointMass(float("inf"))], [0.5, 0.5]),
        "one for all": cs.Step([0.5, 1.0], sf=[0.6, 0.0]),
    }


@pytest.mark.parametrize("name", list(forecasts(np.random.default_rng(0))))
@pytest.mark.parametrize("each", [False, True])
@pytest.mark.parametrize("compiled", [False, True])
def test_equals_the_formula(name, each, compiled, monkeypatch):
    if compiled:
        pytest.importorskip("numba")
        monkeypatch.setenv("CENSCORE_KERNELS", "always")
        monkeypatch.setattr(_kernels, "WORTH_COMPILING", 0)
    rng = np.random.default_rng(1)
    T, c = rng.weibull(1.5, N), rng.exponential(1.5, N)
    y = cs.RightCensored(np.minimum(T, c), c >= T)
    C = cs.Step(np.linspace(0.1, 2.0, 30), sf=np.linspace(0.98, 0.05, 30))
    t = np.tile(TIMES, (N, 1)) if each else TIMES
    F = forecasts(rng)[name]
    expected = module._binomial_log(scoring_inputs(y, F, C, 2.0), np.atleast_2d(t))
    np.testing.assert_allclose(cs.binomial_log_score(y, F, C, t, horizon=2.0), expected, rtol=1e-12)


def test_peak_memory_is_little_more_than_the_result():
    n, grid = 20_000, np.linspace(0.05, 2.5, 50)
    F = cs.Step(grid, sf=np.repeat(np.exp(-grid)[None], n, axis=0))
    y = cs.RightCensored(np.linspace(0.1, 1.9, n), np.arange(n) % 2)
    C = cs.Exponential(0.3)
    cs.binomial_log_score(y[:10], F.take(slice(0, 10)), C, grid[:-1])
    tracemalloc.start()
    loss = cs.binomial_log_score(y, F, C, grid[:-1])
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 2.5 * loss.nbytes
