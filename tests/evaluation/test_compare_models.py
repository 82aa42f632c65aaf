"""Models of other libraries in comparisons: with the covariates of each, and baselines from training "
"subjects."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.exceptions import InvalidInputError

TRAIN, TEST = slice(0, 150), slice(150, 250)


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(2)
    X = rng.normal(size=(250, 2))
    T, C = rng.weibull(1.5, 250) * np.exp(0.6 * X[:, 0]), rng.uniform(0.1, 4.0, 250)
    return X, cs.RightCensored(np.minimum(T, C), T <= C)


def means(forecasts, data):
    X, y = data
    comparison = cs.compare(
        forecasts,
        y[TEST],
        cs.Censoring(cs.KaplanMeier()),
        X=X[TEST],
        train=(X[TRAIN], y[TRAIN]),
        scores="crps",
        discrimination=False,
    )
    return comparison.frame().set_index("model")["mean"]


def test_each_model_is_asked_with_its_own_covariates(data):
    X, y = data
    both = cs.CoxRegression().fit(X[TRAIN], y[TRAIN])
    one = cs.CoxRegression().fit(X[TRAIN, :1], y[TRAIN])
    found = means({"both": both, "one": (one, X[TEST, :1])}, data)
    apart = means({"one": one.predict_distribution(X[TEST, :1])}, data)
    assert found["one"] == apart["one"]
    assert found["both"] != found["one"]
    with pytest.raises(InvalidInputError, match=r"Forecast 'one': .*got 3 subjects, expected 100"):
        means({"one": (one, X[:3, :1])}, data)


def test_pairs_of_step_functions_are_forecasts(data):
    functions = pytest.importorskip("sksurv.functions")
    _, y = data
    times, curves = np.array([1.0, 2.0]), np.array([[0.5, 0.1], [0.9, 0.8]])
    pair = tuple(functions.StepFunction(times, sf) for sf in curves)
    comparison = cs.compare(
        {"pair": pair}, y[:2], cs.Uniform(0.0, 4.0), scores="crps", horizon=3.0, discrimination=False
    )
    assert np.isfinite(comparison.frame()["mean"]).all()


def test_risk_scores_get_their_baseline_from_the_training_subjects(data):
    xgboost = pytest.importorskip("xgboost")
    X, y = data
    labels = np.where(y.event, y.time, -y.time)
    settings = {"objective": "survival:cox", "n_estimators": 10, "max_depth": 2, "n_jobs": 1}
    both = xgboost.XGBRegressor(**settings).fit(X[TRAIN], labels[TRAIN])
    one = xgboost.XGBRegressor(**settings).fit(X[TRAIN, :1], labels[TRAIN])
    found = means({"both": both, "one": (one, X[TEST, :1], X[TRAIN, :1])}, data)
    margin = [model.predict(x, output_margin=True) for model, x in ((both, X), (one, X[:, :1]))]
    expected = {
        name: cs.from_risk(risk[TRAIN], y[TRAIN], risk[TEST])
        for name, risk in zip(("both", "one"), margin, strict=True)
    }
    apart = means(expected, data)
    assert found["both"] == pytest.approx(apart["both"], rel=1e-9)
    assert found["one"] == pytest.approx(apart["one"], rel=1e-9)
    with pytest.raises(InvalidInputError, match=r"Forecast 'one'.*train=\(X_train, y_train\)"):
        means({"one": (one, X[TEST, :1])}, data)


@pytest.mark.parametrize("objective", ["survival:cox", "survival:aft"])
def test_boosting_at_the_end_of_a_pipeline(data, objective):
    xgboost = pytest.importorskip("xgboost")
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import StandardScaler

    X, y = data
    last = xgboost.XGBRegressor(objective=objective, n_estimators=10, max_depth=2, n_jobs=1)
    pipeline = cs.Adapted(make_pipeline(StandardScaler(), last)).fit(X[TRAIN], y[TRAIN])
    scaler = StandardScaler().fit(X[TRAIN])
    apart = cs.Adapted(last).fit(scaler.transform(X[TRAIN]), y[TRAIN])
    t = np.array([[0.3, 1.0, 2.0]])
    expected = apart.predict_distribution(scaler.transform(X[TEST])).sf(t)
    np.testing.assert_allclose(pipeline.predict_distribution(X[TEST]).sf(t), expected, rtol=1e-9)
    found = means({"adapted": pipeline, "fitted": pipeline.model_}, data)
    assert found["adapted"] == pytest.approx(found["fitted"], rel=1e-9)
