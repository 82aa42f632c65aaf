"""Ensembles under smooth censoring distributions: one antiderivative equals the area at every member."""

import importlib

import numpy as np
import pytest

import censcore as cs
from censcore import _kernels
from censcore.scores.inputs.scoring_inputs import scoring_inputs
from censcore.scores.integration import step_sums as _step_sums

routes = importlib.import_module("censcore.scores.integration.routes")
N = 80


def censorings(rng):
    scale = np.exp(0.3 * rng.normal(size=N))
    return {
        "Weibull": cs.Weibull(rng.uniform(0.5, 4.0, N), scale),
        "one for all": cs.Weibull(1.3, 1.5),
        "narrow": cs.Weibull(40.0, 2.5 + 0.1 * scale),
        "steep": cs.Exponential(np.linspace(0.1, 12.0, N)),
        "log-normal": cs.LogNormal(0.3 * rng.normal(size=N), 0.7),
        "uniform": cs.Uniform(0.0, 2.4),
    }


@pytest.mark.parametrize("name", list(censorings(np.random.default_rng(0))))
@pytest.mark.parametrize("kind", ["equal weights", "weights", "members at infinity", "one ensemble"])
def test_equals_the_sum_of_areas(name, kind, monkeypatch):
    pytest.importorskip("numba")
    monkeypatch.setattr(_kernels, "WORTH_COMPILING", 0)
    rng = np.random.default_rng(1)
    members = rng.weibull(1.4, (N, 90))
    if kind == "members at infinity":
        members[:, :20] = np.inf
    weights = rng.dirichlet(np.ones(90), N) if kind == "weights" else None
    F = cs.Ensemble(members, weights) if weights is not None else cs.Ensemble(members)
    F = cs.Ensemble(members[:1]) if kind == "one ensemble" else F
    T, c = rng.weibull(1.4, N), rng.uniform(0.1, 2.4, N)
    y = cs.RightCensored(np.minimum(T, c), c >= T)
    inputs = scoring_inputs(y, F, censorings(rng)[name], 2.3)
    loss = _step_sums.jumps_on_panels(routes.TimeIntegral(inputs), routes.exactly)()
    np.testing.assert_allclose(loss, routes.exactly(inputs), rtol=1e-8)
    np.testing.assert_allclose(routes.integrated(inputs), loss, rtol=1e-8)
