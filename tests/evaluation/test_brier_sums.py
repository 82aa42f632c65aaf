"""Sums of Brier losses in cells, some subjects at a time, against the sums of all losses."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.evaluation.measures import case as module
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
def test_sums_of_some_subjects_at_a_time(monkeypatch, name, late):
    y = cs.RightCensored(Y.time, Y.event, entry=np.where(Y.time > 60, 20.0, 0.0)) if late else Y
    weight = rng.random((n, 2)) * (rng.random((n, 2)) < 0.8)
    case = Case(y, FORECASTS[name], C, 540.0, np.zeros(0), np.zeros(0))
    middle = (case.cells[:-1] + case.cells[1:]) / 2
    losses = cs.brier_score(y, FORECASTS[name], C, middle, horizon=540.0)
    first = np.searchsorted(case.cells, np.minimum(Y.time, 540.0))
    expected = np.zeros((2, len(case.cells) + 1, len(middle)))
    for i in range(n):
        expected[:, first[i]] += weight[i, :, None] * losses[i]
    np.testing.assert_allclose(case.brier_sums(weight), expected, rtol=1e-12, atol=1e-13)
    monkeypatch.setattr(module, "CHUNK", 30)
    again = Case(y, FORECASTS[name], C, 540.0, np.zeros(0), np.zeros(0)).brier_sums(weight)
    np.testing.assert_allclose(again, expected, rtol=1e-12, atol=1e-13)
