"""Scores of piecewise-linear forecasts: moments of the censoring distribution against quadrature."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore import _kernels
from censcore.scores.integration import cdf_integrals as _squares


def sample(tail: str, span: float, n: int = 60):
    rng = np.random.default_rng(3)
    t = np.unique(np.concatenate([[0.0, 1.0, 1.0 + 1e-6], rng.gamma(2, 1, 20)])) * span
    sf = np.sort(rng.uniform(size=(n, len(t))), axis=1)[:, ::-1]
    y = np.minimum(rng.gamma(2, 1, n), 4) * span
    y[:10], y[10:15] = t[:10], 0.0
    jumps = np.sort(rng.gamma(2, 1, 100)) * span
    C = cs.Step(jumps, sf=np.linspace(1, 0, 102)[1:-1]).censor_at(4 * span)
    return cs.PiecewiseLinear(t, sf=sf, tail=tail), np.minimum(y, 4 * span)[:, None], C


@pytest.mark.parametrize("tail", ["infinity", "last"])
@pytest.mark.parametrize("span", [1.0, 1e3, 1e-4])
def test_moments_agree_with_quadrature(monkeypatch, tail, span):
    F, y, C = sample(tail, span)
    end = cs.PointMass(4 * span)

    def integrals():
        return [
            _squares.square_below(F, y),
            _squares.square_below(F, y, C),
            _squares.square_beyond(F, y, C),
            _squares.square_beyond(F, y, end),
        ]

    by_moments = integrals()
    monkeypatch.setattr(_squares, "are_lines", lambda *_: False)
    for found, expected in zip(by_moments, integrals(), strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-11, atol=1e-13 * span)


@pytest.mark.parametrize("tail", ["infinity", "last"])
@pytest.mark.parametrize("cdf", [False, True])
def test_the_kernel_agrees_with_the_moments(monkeypatch, tail, cdf):
    pytest.importorskip("numba")
    F, y, C = sample(tail, 1e3)
    rng = np.random.default_rng(4)
    levels = np.sort(rng.uniform(size=(60, 15)), axis=1)
    grid = np.linspace(10.0, 3000.0, 15)
    F = cs.PiecewiseLinear(grid, cdf=levels, tail=tail) if cdf else F
    outcome = cs.RightCensored(y[:, 0], rng.random(len(y)) < 0.7)

    def losses():
        one, end = cs.PiecewiseLinear(grid, sf=1 - levels[0], tail=tail), {"horizon": 2500.0}
        parts = [
            (cs.crps(outcome, forecast, C), cs.crps(outcome, forecast, C, **end)) for forecast in (F, one)
        ]
        ipcw = [cs.integrated_brier_score(outcome, G, C, scale="ipcw", **end) for G in (F, one)]
        return [*parts[0], *parts[1], *ipcw]

    formulas = losses()
    monkeypatch.setattr(_kernels, "WORTH_COMPILING", 1)
    monkeypatch.setenv("CENSCORE_KERNELS", "always")
    for found, expected in zip(losses(), formulas, strict=True):
        np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-9)
        assert (found != expected).any()  # it was another route


def test_one_curve_for_all_and_mass_that_is_never_censored():
    y = cs.RightCensored([1.0, 2.0], [1, 1])
    shared, both = cs.PiecewiseLinear([1.0, 3.0], sf=[0.5, 0.0]), [[0.5, 0.0]] * 2
    C = cs.Step([2.5], sf=[0.4])
    np.testing.assert_allclose(cs.crps(y, shared, C), cs.crps(y, cs.PiecewiseLinear([1.0, 3.0], sf=both), C))
    t = np.linspace(0, 3, 300_001)
    S, G = shared.sf(t[None, :])[0], C.sf(t[None, :])[0]
    first = np.trapezoid(np.where(t <= 1, (1 - S) ** 2, G * S**2), t)
    assert cs.crps(y, shared, C)[0] == pytest.approx(first, rel=1e-4)
    cured = cs.PiecewiseLinear([1.0, 3.0], sf=[[0.5, 0.2], [0.5, 0.0]])
    with pytest.raises(cs.exceptions.PositivityError):
        cs.crps(y, cured, C)  # P(T = inf) > 0 and P(C = inf) > 0
