"""Sums of Brier losses in cells by a kernel, against the sums of the losses."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore import _kernels
from censcore.evaluation.measures.case import Case

rng = np.random.default_rng(0)
n, GRID = 200, np.linspace(30.0, 700.0, 15)
LEVELS = np.sort(rng.random((n, 15)), axis=1)
Y = cs.RightCensored(np.ceil(rng.weibull(1.3, n) * 200), rng.random(n) < 0.7)
C = cs.Censoring(cs.KaplanMeier()).fit(None, Y).predict_distribution(None)
FORECASTS = {
    "lines": cs.PiecewiseLinear(GRID, cdf=LEVELS),
    "lines to the last time": cs.PiecewiseLinear(GRID, sf=1 - LEVELS, tail="last"),
    "one line for all": cs.PiecewiseLinear(GRID, sf=1 - LEVELS[:1]),
    "steps": cs.Step(GRID, cdf=LEVELS),
    "steps at other times": cs.Step(np.sort(rng.random((n, 8)) * 500, axis=1), sf=np.linspace(0.9, 0, 8)),
    "ensembles": cs.Ensemble(rng.weibull(1.3, (n, 20)) * 200),
    "no steps": cs.Weibull(1.3, 200.0),
}


@pytest.mark.parametrize("name", FORECASTS)
@pytest.mark.parametrize("late", [False, True], ids=["", "delayed entry"])
def test_kernel_agrees_with_the_losses(monkeypatch, name, late):
    pytest.importorskip("numba")
    y = cs.RightCensored(Y.time, Y.event, entry=np.where(Y.time > 60, 20.0, 0.0)) if late else Y
    weight = rng.random((n, 2)) * (rng.random((n, 2)) < 0.8)
    known = cs.Step(C._steps()[0][0], sf=C._steps()[1][0])

    def sums():
        return Case(y, FORECASTS[name], known, 540.0, np.zeros(0), np.zeros(0)).brier_sums(weight)

    expected = sums()
    monkeypatch.setattr(_kernels, "WORTH_COMPILING", 1)
    monkeypatch.setenv("CENSCORE_KERNELS", "always")
    found = sums()
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-13)
    if name != "no steps" and not late:
        assert (found != expected).any()  # it was another route
