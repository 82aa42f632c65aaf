"""Penalties that the data choose, against the marginal likelihood by quadrature."""

import numpy as np
import pandas as pd
import pytest
from scipy.integrate import quad
from scipy.optimize import minimize_scalar

import censcore as cs
from censcore.exceptions import InvalidTypeError

REGRESSIONS = [
    cs.CoxRegression,
    cs.WeibullRegression,
    cs.LogNormalRegression,
    cs.LogLogisticRegression,
    cs.PiecewiseExponentialRegression,
]


def sample(n, p, effect=0.7, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p))
    T, C = rng.exponential(np.exp(-effect * X[:, 0])), rng.uniform(0, 3, n)
    return X, cs.RightCensored(np.minimum(T, C), T <= C)


def test_it_maximises_the_marginal_likelihood():
    X, y = sample(300, 1, effect=0.3)
    order = np.argsort(y.time)
    z, event = ((X - X.mean()) / X.std())[order, 0], y.event[order]

    def log_likelihood(gamma):
        risk = np.cumsum(np.exp(gamma * z)[::-1])[::-1]
        return np.sum(event * (gamma * z - np.log(risk)))

    def minus_marginal(log_alpha):
        alpha = np.exp(log_alpha)
        largest = log_likelihood(0.3)

        def joint(gamma):
            return np.exp(log_likelihood(gamma) - largest - alpha * gamma**2 / 2)

        return -np.log(quad(joint, -1, 2, points=[0.3])[0] * np.sqrt(alpha))

    best = minimize_scalar(minus_marginal, bounds=(-3, 8), method="bounded").x
    assert cs.CoxRegression(alpha="auto").fit(X, y).alpha_ == pytest.approx(np.exp(best), rel=0.02)


@pytest.mark.parametrize("kind", REGRESSIONS)
def test_units_do_not_matter_and_weights_are_counts(kind):
    X, y = sample(120, 3)
    model = kind(alpha="auto").fit(X, y)
    other = kind(alpha="auto").fit(X * [1e-3, 1.0, 50.0] + 7.0, y)
    assert other.alpha_ == pytest.approx(model.alpha_, rel=1e-6)
    np.testing.assert_allclose(other.coef_ * [1e-3, 1.0, 50.0], model.coef_, rtol=1e-5, atol=1e-7)
    count = np.random.default_rng(1).integers(0, 4, 120)
    rows = np.repeat(np.arange(120), count)
    weighted, repeated = kind(alpha="auto").fit(X, y, count), kind(alpha="auto").fit(X[rows], y.take(rows))
    assert weighted.alpha_ == pytest.approx(repeated.alpha_, rel=1e-5)
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("kind", REGRESSIONS)
def test_the_penalty_is_that_of_standardised_columns(kind):
    X, y = sample(200, 4)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    model = kind(alpha="auto").fit(X, y)
    assert 1 < model.alpha_ < 100
    np.testing.assert_allclose(kind(alpha=model.alpha_).fit(X, y).coef_, model.coef_, rtol=1e-8)


@pytest.mark.parametrize("kind", REGRESSIONS)
def test_many_covariates_without_effect_do_no_harm(kind):
    X, y = sample(100, 40, effect=0.0)
    model = kind(alpha="auto").fit(X, y)
    assert model.alpha_ > 100
    risk = model.predict_distribution(X).sf(np.float64(1.0))
    assert np.std(risk) < 0.1 * np.std(kind(alpha=1.0).fit(X, y).predict_distribution(X).sf(np.float64(1.0)))


@pytest.mark.parametrize("kind", REGRESSIONS[:4])
def test_a_strong_effect_beside_columns_without_one_is_not_lost(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 3))
    T = np.exp(3 * X[:, 0] + 0.1 * rng.normal(size=60))
    model = kind(alpha="auto").fit(X, cs.RightCensored(T, np.ones(60, dtype=bool)))
    assert model.alpha_ < 0.1
    assert np.corrcoef(model.predict_distribution(X).sf(1.0) > 0.5, T > 1)[0, 1] > 0.9


def test_strata_categories_causes_and_no_covariates():
    X, y = sample(200, 2)
    frame = pd.DataFrame(X, columns=["a", "b"]).assign(
        kind=np.where(X[:, 1] > 0.5, "x", "y"), side=np.arange(200) % 2
    )
    for model in (cs.CoxRegression(alpha="auto", strata="side"), cs.WeibullRegression(alpha="auto")):
        model.fit(frame, y)
        assert model.alpha_ > 0
        assert np.isfinite(model.standard_errors_).all()
    cause = np.where(y.event, 1 + np.arange(200) % 2, 0)
    assert cs.FineGray(alpha="auto").fit(X, cs.CompetingRisks(y.time, cause)).alpha_ > 0
    alone = cs.CoxRegression(alpha="auto").fit(None, y).predict_distribution()
    np.testing.assert_allclose(alone.sf(0.5), cs.KaplanMeier().fit(None, y).predict_distribution().sf(0.5))


def test_other_words_are_an_error():
    with pytest.raises(InvalidTypeError, match="alpha, unless it is 'auto'"):
        cs.CoxRegression(alpha="large").fit(*sample(30, 1))
