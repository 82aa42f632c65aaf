"""Step forecasts on common times: areas up to those times give what the jumps of C give, by every route."""

import importlib

import numpy as np
import pytest

import censcore as cs
from censcore import _kernels
from censcore.scores.inputs.scoring_inputs import scoring_inputs
from censcore.scores.integration.cdf_integrals import has_common_areas

routes = importlib.import_module("censcore.scores.integration.routes")
N = 120


def scene(kind):
    """Outcomes, curves with mass left at infinity, and one step distribution of C."""
    rng = np.random.default_rng(3)
    y = cs.RightCensored(rng.weibull(1.5, N), rng.random(N) < 0.6)
    grid = np.sort(rng.random(30) * 3)
    sf = np.exp(-grid[None] * rng.uniform(0.01, 4.0, (N, 1)))
    c, G = np.sort(rng.random(300) * 3.2), np.linspace(0.999, 0.2, 300)
    if kind == "ties":  # of jumps of F, jumps of C and observed times
        grid, c = np.arange(1, 31) / 10, np.arange(1, 301) / 90
        y = cs.RightCensored(np.ceil(y.time * 10) / 10, y.event)
    if kind == "flat":
        sf = np.where(grid > 1.0, sf[:, 5:6], np.minimum(sf, 1.0))
        sf = np.minimum.accumulate(sf, axis=1)
    if kind == "steep":
        G = np.geomspace(0.9, 1e-12, 300)
    return y, cs.Step(grid, sf=sf), cs.Step(c, sf=G)


def by_definition(inputs):
    r""":math:`\int_0^yF^2+\delta\int_y^hS^2G/G(y-)` of each subject, piece by piece between all jumps."""
    c, G = (values[0] for values in inputs.C.steps())
    t, sf = inputs.F.steps()
    found = np.empty(inputs.n)
    for i, y in enumerate(inputs.y.time):
        edges = np.unique(np.concatenate([[0.0, y], t[0], c]))
        a, width = edges[:-1], np.diff(edges)
        S = np.append(1.0, sf[i])[np.searchsorted(t[0], a, "right")]
        censored = np.append(1.0, G)[np.searchsorted(c, a, "right")]
        below, beyond = a < y, (a >= y) & inputs.y.event[i]
        found[i] = ((1 - S) ** 2 * width)[below].sum()
        found[i] += (S**2 * censored / inputs.reached[i] * width)[beyond].sum()
    return found


@pytest.mark.parametrize("route", ["formulas", "kernels"])
@pytest.mark.parametrize("kind", ["plain", "ties", "flat", "steep"])
def test_crps(monkeypatch, kind, route):
    y, F, C = scene(kind)
    inputs = scoring_inputs(y, F, C, 2.5)
    assert has_common_areas(inputs.F, inputs.C)
    if route == "kernels":
        monkeypatch.setattr(_kernels, "WORTH_COMPILING", 0)
    np.testing.assert_allclose(routes.integrated(inputs), by_definition(inputs), rtol=1e-10)


@pytest.mark.parametrize("kind", ["plain", "ties", "flat", "steep"])
def test_ipcw_scale_by_kernel_and_formula(monkeypatch, kind):
    y, F, C = scene(kind)
    formula = cs.integrated_brier_score(y, F, C, scale="ipcw", horizon=2.0)
    monkeypatch.setattr(_kernels, "WORTH_COMPILING", 0)
    kernel = cs.integrated_brier_score(y, F, C, scale="ipcw", horizon=2.0)
    np.testing.assert_allclose(kernel, formula, rtol=1e-10)


def test_the_curve_up_to_the_last_horizon_is_kept():
    y, F, C = scene("plain")
    first, again = (scoring_inputs(y, F, C, 2.5).C for _ in range(2))
    assert first is again
    assert scoring_inputs(y, F, C, 1.5).C.support_end() == 1.5
    assert scoring_inputs(y, F, C, 2.5).C.support_end() == 2.5
