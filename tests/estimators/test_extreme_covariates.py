"""Covariates far from those of fit: a finite forecast, or an error that names the subject and the column."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.learning.small_trainings import engression

import censcore as cs
from censcore.exceptions import InvalidInputError

N = 60
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 2))
T, C = RNG.weibull(1.3, N) * np.exp(0.5 * X[:, 0]), RNG.uniform(0.2, 3.0, N)
Y = cs.RightCensored(np.minimum(T, C), C >= T)
REGRESSIONS = {
    "weibull": cs.WeibullRegression(),
    "log-normal": cs.LogNormalRegression(),
    "log-logistic": cs.LogLogisticRegression(),
    "cox": cs.CoxRegression(),
    "piecewise exponential": cs.PiecewiseExponentialRegression(breaks=2),
    "censoring": cs.Censoring(cs.CoxRegression()),
}


@pytest.mark.parametrize("size", [1e4, -1e4, 1e300])
@pytest.mark.parametrize("name", REGRESSIONS)
def test_a_regression_names_the_subject_and_the_covariate(name, size):
    model = REGRESSIONS[name].fit(pd.DataFrame(X, columns=["age", "dose"]), Y)
    far = pd.DataFrame([[0.0, 0.0], [size, 0.0], [0.0, 1.0]], columns=["age", "dose"])
    with pytest.raises(InvalidInputError, match=r"1 subject \(1\).*age = .*where fit had.*Check its unit"):
        model.predict_distribution(far)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", [name for name in REGRESSIONS if name != "censoring"])
def test_forecasts_that_are_made_have_digits(name, dtype):
    """Single precision ends earlier, and says so where means were NaN."""
    model = REGRESSIONS[name].fit(X, cs.RightCensored(Y.time.astype(dtype), Y.event))
    told = 0
    for size in (20.0, -20.0, 120.0, -120.0, 250.0, -250.0):
        try:
            F = model.predict_distribution([[size, 0.0], [0.0, 0.0]])
        except InvalidInputError:
            told += 1
            continue
        for values in (F.sf([[0.0, 0.5, 1.0]]), F.integrated_sf(0.0, 1.0), F.icdf([[0.1, 0.5]])):
            assert not np.isnan(values).any()
    assert told <= (0 if dtype == np.float64 else 4)


@pytest.mark.parametrize("name", REGRESSIONS)
def test_an_origin_far_from_all_subjects_changes_nothing(name):
    """Such as dates in seconds: rates at x = 0 are beyond the range of floats, those of subjects are not."""
    here = REGRESSIONS[name].fit(X, Y).predict_distribution(X[:4]).sf([[0.5, 1.0]])
    there = REGRESSIONS[name].fit(X * 1e5 + 1.6e9, Y).predict_distribution(X[:4] * 1e5 + 1.6e9)
    np.testing.assert_allclose(there.sf([[0.5, 1.0]]), here, rtol=1e-5)


def test_rates_at_an_origin_far_away_have_logarithms():
    model = cs.PiecewiseExponentialRegression(breaks=1).fit(X * 1e5 + 1.6e9, Y)
    assert np.isfinite(model.estimates()[1]).all()


def test_a_scale_out_of_range_says_what_to_check():
    with pytest.raises(InvalidInputError, match=r"got inf, in 1 subject.*the covariates that it was"):
        cs.Weibull(1.0, [1.0, np.inf])


def test_models_of_lifelines_name_the_subject():
    lifelines = pytest.importorskip("lifelines")
    frame = pd.DataFrame(X, columns=["a", "b"])
    far = pd.DataFrame([[0.0, 0.0], [1e300, 0.0], [0.0, 1.0]], columns=["a", "b"])
    for fitter in (lifelines.WeibullAFTFitter(), lifelines.CoxPHFitter()):
        model = cs.Adapted(fitter).fit(frame, Y)
        with pytest.raises(InvalidInputError, match=r"1 subject \(1\).*Check the"):
            model.predict_distribution(far)


def test_what_another_library_says_of_its_covariates_is_passed_on():
    ensemble = pytest.importorskip("sksurv.ensemble")
    forest = cs.Adapted(ensemble.RandomSurvivalForest(n_estimators=2, random_state=0)).fit(X, Y)
    with pytest.raises(InvalidInputError, match=r"gives no forecast.*number 1 of subject 0: 1e\+300"):
        forest.predict_distribution(np.array([[0.0, 1e300]]))


@pytest.mark.parametrize("kind", ["engression", "copula", "grid"])
def test_networks_say_what_single_precision_cannot_hold(kind):
    two = cs.RightCensored(np.column_stack([Y.time, Y.time]), np.column_stack([Y.event, Y.event]))
    tiny = {"random_state": 0, "epochs": 1}
    model, y = {
        "engression": (engression(width=4, depth=1, n_networks=1, **tiny), Y),
        "copula": (cs.CopulaWeibull(hidden=(4,), **tiny), two),
        "grid": (cs.JointGridModel(bins=3, hidden=(4,), **tiny), two),
    }[kind]
    with pytest.raises(InvalidInputError, match=r"1e\+300 in column 0 of 1 subject \(0\).*largest number"):
        model.fit(np.where(np.arange(N)[:, None] == 0, [1e300, 0.0], X), y)
    with pytest.raises(InvalidInputError, match="cannot tell apart"):
        model.fit(X + 1.6e9, y)
    X_wild = X.copy()
    X_wild[::7, 0], X_wild[3::7, 0] = 1e20, -1e20
    F = model.fit(X_wild, y).predict_distribution(X_wild)
    assert not np.isnan(F.marginal(0).sf([[0.5, 1.0]])).any()


@pytest.mark.parametrize("family", ["clayton", "gumbel"])
def test_the_dependence_of_a_network_stays_within_what_has_digits(family):
    import torch

    model = cs.CopulaWeibull(copula=family, dependence="conditional", hidden=(4,))
    model.k_ = 2
    raw = torch.tensor([[0.0, 0.0, 0.0, 0.0, 1e12], [90.0, -90.0, 1e9, -1e9, -1e12]], dtype=torch.float64)
    F = model._distribution(raw, 1.0)
    assert torch.isfinite(F.log_likelihood(torch.ones(2, 2), torch.zeros(2, 2))).all()
    with pytest.raises(InvalidInputError, match=r"theta: got 1e.10, expected at most 1e.08"):
        cs.Copula(family, [cs.Exponential(1.0), cs.Exponential(2.0)], 1e10)
