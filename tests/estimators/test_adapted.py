"""Estimators of other libraries fitted and asked through this one."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, clone

import censcore as cs
from censcore.estimators import Adapted
from censcore.exceptions import InvalidInputError, NotFittedError


@pytest.fixture(scope="module")
def data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 2))
    time = rng.exponential(np.exp(-X[:, 0]))
    c = rng.uniform(0.1, 3.0, 150)
    return X, cs.RightCensored(np.minimum(time, c), time <= c)


def test_scikit_survival(data):
    linear_model = pytest.importorskip("sksurv.linear_model")
    X, y = data
    theirs = linear_model.CoxPHSurvivalAnalysis(ties="efron")
    estimator = Adapted(theirs).fit(X, y)
    assert not hasattr(theirs, "coef_")
    ours = cs.CoxRegression(ties="efron").fit(X, y).predict_distribution(X)
    t = np.array([[0.1, 0.5, 1.5]])
    np.testing.assert_allclose(estimator.predict_distribution(X).sf(t), ours.sf(t), rtol=1e-6)


def test_lifelines_regressions_with_weights_frames_and_arrays(data):
    lifelines = pytest.importorskip("lifelines")
    pd = pytest.importorskip("pandas")
    X, y = data
    weight = np.random.default_rng(1).integers(1, 4, 150)
    t = np.array([[0.1, 0.5, 1.5]])
    ours = cs.CoxRegression(ties="efron").fit(X, y, sample_weight=weight).predict_distribution(X)
    for table in (X, pd.DataFrame(X, columns=["time", "event"])):  # names that the outcome would take
        estimator = Adapted(lifelines.CoxPHFitter()).fit(table, y, sample_weight=weight)
        np.testing.assert_allclose(estimator.predict_distribution(table).sf(t), ours.sf(t), rtol=1e-5)
    weibull = Adapted(lifelines.WeibullAFTFitter(), interpolation="linear").fit(X, y)
    exact = cs.WeibullRegression().fit(X, y).predict_distribution(X)
    np.testing.assert_allclose(weibull.predict_distribution(X).sf(t), exact.sf(t), atol=5e-3)


def test_lifelines_without_covariates(data):
    lifelines = pytest.importorskip("lifelines")
    X, y = data
    estimator = Adapted(lifelines.KaplanMeierFitter()).fit(None, y)
    ours = cs.KaplanMeier().fit(None, y).predict_distribution()
    t = np.linspace(0, 3, 20)[None, :]
    np.testing.assert_allclose(estimator.predict_distribution(X).sf(t), ours.sf(t), rtol=1e-12)
    with pytest.raises(InvalidInputError, match="needs X"):
        Adapted(lifelines.CoxPHFitter()).fit(None, y)


class Halving(BaseEstimator):
    """Forecasts halving at multiples of the mean time, times a factor."""

    def __init__(self, factor=1.0):
        self.factor = factor

    def fit(self, X, y):
        self.unique_times_ = self.factor * y["time"].mean() * np.arange(1, 6)
        self.n_events_ = int(y["event"].sum())
        return self

    def predict_survival_function(self, X):
        return np.broadcast_to(0.5 ** np.arange(1, 6), (len(X), 5))


def test_estimators_of_your_own(data):
    X, y = data
    estimator = Adapted(Halving(2.0)).fit(X, y)
    assert estimator.model_.n_events_ == int(y.event.sum())
    distribution = estimator.predict_distribution(X[:4])
    assert distribution.shape == (4,)
    np.testing.assert_allclose(distribution.sf(4.1 * y.time.mean()), 0.25)
    with pytest.raises(InvalidInputError, match="no sample_weight"):
        Adapted(Halving()).fit(X, y, sample_weight=np.ones(150))


def test_parameters_clones_and_nested_parameters():
    estimator = Adapted(Halving(3.0), interpolation="linear")
    assert clone(estimator).set_params(model__factor=5.0).model.factor == 5.0
    assert estimator.get_params()["model__factor"] == 3.0


def test_fitted_models_need_no_fit_and_unfitted_ones_say_so(data):
    linear_model = pytest.importorskip("sksurv.linear_model")
    lifelines = pytest.importorskip("lifelines")
    X, y = data
    structured = np.array(list(zip(y.event, y.time, strict=True)), dtype=[("event", bool), ("time", float)])
    fitted = linear_model.CoxPHSurvivalAnalysis().fit(X, structured)
    assert len(Adapted(fitted).predict_distribution(X[:3])) == 3
    for model in (
        linear_model.CoxPHSurvivalAnalysis(),
        lifelines.KaplanMeierFitter(),
        lifelines.CoxPHFitter(),
    ):
        with pytest.raises(NotFittedError, match="not fitted"):
            Adapted(model).predict_distribution(X)


def test_estimates_the_distribution_of_censoring_out_of_fold(data):
    ensemble = pytest.importorskip("sksurv.ensemble")
    X, y = data
    forest = ensemble.RandomSurvivalForest(n_estimators=5, min_samples_leaf=10, random_state=0)
    distribution = cs.Censoring(Adapted(forest), cv=3).fit_predict_distribution(X, y)
    assert len(distribution) == 150
    G = distribution.sf_left(y.time)
    assert ((G >= 0) & (G <= 1)).all()
    assert float(G.mean()) > 0.4


def test_outcomes_in_torch_get_distributions_in_torch(data):
    torch = pytest.importorskip("torch")
    X, y = data
    distribution = Adapted(Halving()).fit(X, y.like(torch.zeros(1))).predict_distribution(X)
    assert distribution.sf(1.0).dtype == torch.float32


class Jumps(BaseEstimator):
    """A step model of no known library, which gives a frame at the times of its jumps, or on a grid."""

    def __init__(self, grid=None):
        self.grid = grid

    def fit(self, X, y):
        self.curve_ = (
            cs.KaplanMeier().fit(None, cs.RightCensored(y["time"], y["event"])).predict_distribution()
        )
        return self

    def predict_survival_function(self, X):
        times = self.curve_.steps()[0][0] if self.grid is None else self.grid
        return pd.DataFrame(np.repeat(self.curve_.sf(times[None, :]), len(X), axis=0).T, index=times)


def test_the_training_outcomes_tell_whether_curves_have_steps():
    rng = np.random.default_rng(0)
    y = cs.RightCensored(rng.exponential(1.0, 80), rng.random(80) < 0.6)
    X = np.zeros((80, 1))
    assert isinstance(Adapted(Jumps()).fit(X, y).predict_distribution(X), cs.Step)
    assert isinstance(
        Adapted(Jumps(np.linspace(0.1, 2, 9))).fit(X, y).predict_distribution(X), cs.PiecewiseLinear
    )
    C = cs.Censoring(Adapted(Jumps())).fit(X, y).predict_distribution(X)
    exact = cs.Censoring(cs.KaplanMeier()).fit(X, y).predict_distribution(X)
    t = np.linspace(0, 2, 50)[None, :]
    np.testing.assert_allclose(C.sf(t), np.repeat(exact.sf(t), 80, axis=0))


def test_a_search_sets_options_of_a_lifelines_model(data):
    lifelines = pytest.importorskip("lifelines")
    fitter = lifelines.CoxPHFitter(penalizer=0.5)
    adapted = cs.Adapted(fitter)
    assert adapted.get_params()["model__penalizer"] == 0.5
    changed = clone(adapted).set_params(model__penalizer=2.0)
    assert (changed.model.penalizer, fitter.penalizer) == (2.0, 0.5)
    with pytest.raises(cs.exceptions.InvalidInputError, match="expected one of"):
        adapted.set_params(model__penaliser=1.0)
