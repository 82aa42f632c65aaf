"""Weibull, log-normal and log-logistic regression with strata: a scale for each, shared coefficients."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from scipy.optimize import minimize
from sklearn.base import clone

import censcore as cs
from censcore.exceptions import InvalidInputError

REGRESSIONS = [cs.WeibullRegression, cs.LogNormalRegression, cs.LogLogisticRegression]


def drawn(n: int = 150) -> tuple[pd.DataFrame, cs.RightCensored]:
    rng = np.random.default_rng(0)
    frame = pd.DataFrame({"x": rng.normal(size=n), "site": rng.choice(["a", "b", "c"], n)})
    spread = frame["site"].map({"a": 0.4, "b": 1.0, "c": 2.0}).to_numpy()
    T, C = np.exp(0.5 * frame["x"].to_numpy() + spread * rng.normal(size=n)), rng.exponential(3.0, n)
    return frame, cs.RightCensored(np.minimum(T, C), T <= C, entry=np.minimum(T, C) * rng.uniform(0, 0.5, n))


@pytest.mark.parametrize("regression", REGRESSIONS)
def test_it_maximises_the_likelihood(regression):
    """By brute force, with delayed entry and weights."""
    frame, y = drawn()
    weight = np.random.default_rng(1).uniform(0.5, 2.0, len(y))
    model = regression(strata="site").fit(frame, y, weight)
    number = frame["site"].map({"a": 0, "b": 1, "c": 2}).to_numpy()
    kinds = {"Weibull": cs.Weibull, "LogLogistic": cs.LogLogistic}
    name = regression.__name__.removesuffix("Regression")

    def loss(phi):
        eta, scale = phi[1] + phi[0] * frame["x"].to_numpy(), np.exp(phi[2:])[number]
        F = kinds[name](scale, np.exp(eta)) if name in kinds else cs.LogNormal(eta, scale)
        return weight @ cs.log_score(y, F)

    names, values = model.estimates()
    best = minimize(loss, values + 0.05, tol=1e-9)
    assert values == pytest.approx(best.x, abs=2e-4)
    assert loss(values) <= best.fun + 1e-9
    assert weight @ cs.log_score(y, model.predict_distribution(frame)) == pytest.approx(
        loss(values), rel=1e-12
    )
    scale = "sigma" if name == "LogNormal" else "shape"
    assert names == ["x", "intercept", *(f"log {scale} of {site}" for site in "abc")]
    assert getattr(model, f"{scale}_").shape == (3,)


@pytest.mark.parametrize("regression", REGRESSIONS)
@pytest.mark.parametrize("alpha", [0.0, 5.0])
def test_influences_are_derivatives_by_the_weights(regression, alpha):
    frame, y = drawn(60)

    def values(weight):
        return regression(alpha, strata="site").fit(frame, y, weight).estimates()[1]

    influence = regression(alpha, strata="site").fit(frame, y).coefficient_influence()
    for i in range(0, 60, 13):
        up, down = (values(1 + sign * 1e-4 * (np.arange(60) == i)) for sign in (1, -1))
        assert influence[i] == pytest.approx((up - down) / 2e-4, abs=1e-5)


@pytest.mark.parametrize("regression", REGRESSIONS)
def test_one_stratum_is_none(regression):
    frame, y = drawn()
    plain = regression(alpha=0.5).fit(frame[["x"]], y)
    model = regression(alpha=0.5, strata=1).fit(np.column_stack([frame["x"], np.ones(len(y))]), y)
    np.testing.assert_allclose(model.covariance_, plain.covariance_, rtol=1e-10)
    np.testing.assert_allclose(model.estimates()[1], plain.estimates()[1], rtol=1e-10)
    only = regression(strata="site").fit(frame[["site"]], y).predict_distribution(frame[["site"]])
    assert only.sf(1.0).shape == (len(y),)
    assert len(np.unique(only.sf(1.0).round(12))) == 3


def test_strata_without_events_and_unknown_ones():
    frame, y = drawn()
    quiet = cs.RightCensored(y.time, y.event & (frame["site"] != "b").to_numpy())
    with pytest.raises(InvalidInputError, match="strata: got no event in b"):
        cs.WeibullRegression(strata="site").fit(frame, quiet)
    model = cs.WeibullRegression(strata="site").fit(frame, y)
    with pytest.raises(InvalidInputError, match="not seen in fitting"):
        model.predict_distribution(frame.assign(site="d"))
    with pytest.raises(InvalidInputError, match="no column 'center'"):
        clone(model).set_params(strata="center").fit(frame, y)
