"""Weibull regression against lifelines, its own first-order conditions, and data that have no answer."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone

import censcore as cs
from censcore.estimators import WeibullRegression
from censcore.exceptions import InvalidInputError, InvalidTypeError, NotFittedError


def weibull_data(n=400, p=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, p)) * np.array([1.0, 100.0, 0.01])[:p] + 5
    time = np.exp(1 + (X - 5) @ np.array([0.5, -0.004, 20.0])[:p]) * rng.weibull(1.7, size=n)
    c = np.quantile(time, 0.9) * rng.uniform(size=n)
    return X, cs.RightCensored(np.minimum(time, c), time <= c)


def log_likelihood(model, X, y, alpha=0.0):
    value = model.predict_distribution(X).log_likelihood(y.time, y.event).sum()
    return value - alpha / 2 * np.sum((model.shape_ * model.coef_) ** 2)


def test_equals_lifelines():
    lifelines = pytest.importorskip("lifelines")
    from lifelines.datasets import load_rossi

    frame = load_rossi()
    X, y = frame.drop(columns=["week", "arrest"]), cs.RightCensored(frame.week, frame.arrest)
    model = WeibullRegression().fit(X, y)
    peer = lifelines.WeibullAFTFitter().fit(frame, "week", "arrest")
    expected = peer.params_["lambda_"]
    np.testing.assert_allclose(model.coef_, expected[list(X.columns)], atol=5e-5)
    assert model.intercept_ == pytest.approx(expected["Intercept"], abs=1e-4)
    assert model.shape_ == pytest.approx(np.exp(peer.params_["rho_"]["Intercept"]), rel=1e-4)
    assert log_likelihood(model, X, y) >= peer.log_likelihood_ - 1e-9
    assert list(model.feature_names_in_) == list(X.columns)


def test_pooled_equals_lifelines():
    lifelines = pytest.importorskip("lifelines")
    _, y = weibull_data()
    model = WeibullRegression().fit(None, y)
    peer = lifelines.WeibullFitter().fit(y.time, y.event)
    distribution = model.predict_distribution()
    assert distribution.shape == (1,)
    assert float(distribution.parameters["shape"][0]) == pytest.approx(peer.rho_, rel=1e-4)
    assert float(distribution.parameters["scale"][0]) == pytest.approx(peer.lambda_, rel=1e-4)


@pytest.mark.parametrize("alpha", [0.0, 7.0])
def test_no_neighbour_has_a_higher_penalised_likelihood(alpha):
    X, y = weibull_data()
    model = WeibullRegression(alpha).fit(X, y)
    best = log_likelihood(model, X, y, alpha)
    for name in ("shape_", "intercept_"):
        for step in (-1e-3, 1e-3):
            other = clone(model)
            vars(other).update(vars(model))
            setattr(other, name, getattr(model, name) + step)
            assert log_likelihood(other, X, y, alpha) < best
    for j in range(3):
        for step in (-1e-3, 1e-3):
            other = clone(model)
            vars(other).update(vars(model), coef_=model.coef_ + step * np.eye(3)[j] / X.std(axis=0))
            other.intercept_ = model.intercept_ - (other.coef_ - model.coef_) @ X.mean(axis=0)
            assert log_likelihood(other, X, y, alpha) < best


def test_a_penalty_shrinks_towards_the_pooled_distribution():
    X, y = weibull_data()
    pooled = WeibullRegression().fit(None, y).predict_distribution()
    strong = WeibullRegression(alpha=1e12).fit(X, y).predict_distribution(X)
    np.testing.assert_allclose(strong.icdf(0.5), float(pooled.icdf(0.5)[0]), rtol=1e-5)


def test_weights_are_counts_and_the_unit_of_time_does_not_matter():
    X, y = weibull_data(n=120)
    count = np.random.default_rng(1).integers(0, 4, 120)
    repeated = np.repeat(np.arange(120), count)
    a = WeibullRegression().fit(X, y, sample_weight=count)
    b = WeibullRegression().fit(X[repeated], y[repeated])
    np.testing.assert_allclose(a.coef_, b.coef_, rtol=1e-8)
    assert a.shape_ == pytest.approx(b.shape_, rel=1e-9)
    days = WeibullRegression().fit(X, cs.RightCensored(y.time * 86400e3, y.event), sample_weight=count)
    np.testing.assert_allclose(days.coef_, a.coef_, rtol=1e-8)
    assert days.intercept_ - a.intercept_ == pytest.approx(np.log(86400e3), rel=1e-9)


def test_rows_censored_at_zero_say_nothing_and_events_there_are_before_the_next_time():
    X, y = weibull_data(n=100)
    time, event = np.append(y.time, 0.0), np.append(y.event, False)
    more = WeibullRegression().fit(np.vstack([X, X[:1]]), cs.RightCensored(time, event))
    np.testing.assert_allclose(more.predict_distribution(X).icdf(0.3), _median(X, y, 0.3), rtol=1e-8)
    event[-1] = True
    found = WeibullRegression().fit(np.vstack([X, X[:1]]), cs.RightCensored(time, event))
    assert found.notes_ == [
        f"1 events at time zero enter as events between 0 and {y.time.min():g}, the first time after it."
    ]
    upper = np.append(np.where(y.event, y.time, np.inf), y.time.min())
    expected = WeibullRegression().fit(np.vstack([X, X[:1]]), cs.IntervalCensored(time, upper))
    np.testing.assert_allclose(found.coef_, expected.coef_, rtol=1e-10)
    with pytest.raises(InvalidInputError, match="All 2 events are at the largest time, 0"):
        WeibullRegression().fit(None, cs.RightCensored([0.0, 0.0], [1, 1]))


def _median(X, y, p):
    return WeibullRegression().fit(X, y).predict_distribution(X).icdf(p)


def test_data_without_an_answer_are_refused_and_a_penalty_gives_one():
    X, y = weibull_data(n=200, p=1)
    twice = np.column_stack([X, 2 * X + 1])
    group = (np.arange(200) < 30).astype(float)
    event = np.where(group == 1, False, y.event)
    separated = np.column_stack([X, group])
    with pytest.raises(InvalidInputError, match=r"grows without bound in \['column 1'\]"):
        WeibullRegression().fit(separated, cs.RightCensored(y.time, event))
    WeibullRegression(alpha=1.0).fit(twice, y)
    mild = WeibullRegression(alpha=1.0).fit(separated, cs.RightCensored(y.time, event))
    assert mild.coef_[1] > 0.5
    with pytest.raises(InvalidInputError, match="No subject has an event"):
        WeibullRegression().fit(X, cs.RightCensored(y.time, np.zeros(200)))
    with pytest.raises(InvalidInputError, match="largest time"):
        WeibullRegression().fit(None, cs.RightCensored([1.0, 2.0, 2.0], [0, 1, 1]))


def test_estimates_the_distribution_of_censoring():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(3000, 1))
    c = np.exp(0.3 + 0.6 * X[:, 0]) * rng.weibull(2.0, 3000)
    t = rng.exponential(2.0, 3000)
    y = cs.RightCensored(np.minimum(t, c), t <= c)
    distribution = cs.Censoring(WeibullRegression()).fit(X, y).predict_distribution([[0.0], [1.0]])
    np.testing.assert_allclose(distribution.parameters["shape"], 2.0, rtol=0.08)
    np.testing.assert_allclose(np.log(distribution.parameters["scale"]), [0.3, 0.9], atol=0.08)


def test_frames_names_and_categories():
    pd = pytest.importorskip("pandas")
    X, y = weibull_data(n=60)
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    model = WeibullRegression().fit(frame, y)
    np.testing.assert_allclose(model.coef_, WeibullRegression().fit(X, y).coef_)
    with pytest.raises(ValueError, match="feature names"):
        model.predict_distribution(frame[["b", "a", "c"]])
    frame["grade"] = pd.Categorical(["I", "II"] * 30)
    with pytest.raises(InvalidTypeError, match=r"'grade'.*OneHotEncoder"):
        model.predict_distribution(frame)
    polars = pytest.importorskip("polars")
    other = polars.DataFrame({"a": X[:, 0], "b": X[:, 1], "c": X[:, 2]})
    np.testing.assert_allclose(WeibullRegression().fit(other, y).coef_, model.coef_)


def test_shapes_states_and_libraries():
    X, y = weibull_data(n=50)
    with pytest.raises(NotFittedError, match="fit"):
        WeibullRegression().predict_distribution(X)
    model = WeibullRegression().fit(X, y)
    with pytest.raises(ValueError, match="features"):
        model.predict_distribution(X[:, :2])
    with pytest.raises(InvalidInputError, match="got none"):
        model.predict_distribution(None)
    with pytest.raises(InvalidInputError, match="got 50 rows, expected 49"):
        WeibullRegression().fit(X, y[:49])
    with pytest.raises(InvalidInputError, match="alpha"):
        WeibullRegression(alpha=-1.0).fit(X, y)
    with pytest.raises(ValueError, match="infinity"):
        WeibullRegression().fit(np.where(X < 0, np.inf, X), y)
    assert len(model.predict_distribution(X[:7])) == 7
    torch = pytest.importorskip("torch")
    tensors = WeibullRegression().fit(torch.as_tensor(X), y.like(torch.zeros(1, dtype=torch.float64)))
    distribution = tensors.predict_distribution(torch.as_tensor(X))
    assert isinstance(distribution.sf(1.0), torch.Tensor)
    np.testing.assert_allclose(distribution.sf(1.0), model.predict_distribution(X).sf(1.0), rtol=1e-10)
