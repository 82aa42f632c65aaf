"""Models of scikit-survival: Cox models without underflow, forests in little space."""

from __future__ import annotations

import numpy as np
import pytest
from tests.estimators.libraries.data import GRID, TEST, TRAIN

import censcore as cs
from censcore.distributions import CompactStep, ProportionalHazards, Step
from censcore.estimators import as_forecast
from censcore.estimators.libraries import scikit_survival

sksurv = pytest.importorskip("sksurv")


def structured(y):
    outcome = np.empty(len(y), dtype=[("event", bool), ("time", float)])
    outcome["event"], outcome["time"] = y.event, y.time
    return outcome


def cox_models():
    from sksurv.ensemble import ComponentwiseGradientBoostingSurvivalAnalysis as Componentwise
    from sksurv.ensemble import GradientBoostingSurvivalAnalysis as Boosting
    from sksurv.linear_model import CoxnetSurvivalAnalysis, CoxPHSurvivalAnalysis

    return {
        "cox": CoxPHSurvivalAnalysis(),
        "coxnet": CoxnetSurvivalAnalysis(fit_baseline_model=True),
        "boosting": Boosting(n_estimators=5, random_state=0),
        "componentwise": Componentwise(n_estimators=20, random_state=0),
    }


@pytest.mark.parametrize("name", ["cox", "coxnet", "boosting", "componentwise"])
def test_cox_models_keep_baseline_and_risk(data, name):
    X, y = data
    model = cox_models()[name].fit(X[TRAIN], structured(y[TRAIN]))
    F = as_forecast(model, X[TEST])
    assert isinstance(F, ProportionalHazards)
    expected = model.predict_survival_function(X[TEST], return_array=True)
    np.testing.assert_allclose(F.sf(model.unique_times_[None, :]), expected, rtol=1e-9)


def test_covariates_far_from_zero_do_not_make_survival_zero(data):
    from sksurv.linear_model import CoxPHSurvivalAnalysis

    X, y = data
    far = X + np.array([60.0, 0.0, 0.0])  # years since 1900, say
    model = CoxPHSurvivalAnalysis().fit(far[TRAIN], structured(y[TRAIN]))
    flipped = CoxPHSurvivalAnalysis().fit(-far[TRAIN], structured(y[TRAIN]))
    centred = CoxPHSurvivalAnalysis().fit(X[TRAIN], structured(y[TRAIN]))
    assert max(m.cum_baseline_hazard_.y.max() for m in (model, flipped)) > 745
    for m, sign in ((model, 1), (flipped, -1)):
        F = as_forecast(m, sign * far[TEST])
        np.testing.assert_allclose(F.sf(GRID), as_forecast(centred, X[TEST]).sf(GRID), rtol=1e-6)
    theirs = [
        m.predict_survival_function(s * far[TEST], return_array=True) for m, s in ((model, 1), (flipped, -1))
    ]
    assert any((sf[:, -1] == 0).all() for sf in theirs)  # what the library itself gives


@pytest.mark.filterwarnings("ignore:overflow", "ignore:divide by zero", "ignore:invalid value")
@pytest.mark.parametrize("shift", [-3000.0, 3000.0])
def test_baselines_that_overflow_are_estimated_again(data, shift):
    from sksurv.linear_model import CoxPHSurvivalAnalysis

    X, y = data
    far = X + np.array([shift, 0.0, 0.0])
    model = CoxPHSurvivalAnalysis().fit(X[TRAIN], structured(y[TRAIN]))
    expected = as_forecast(model, X[TEST]).sf(GRID)
    model._baseline_model.fit(far[TRAIN] @ model.coef_, y[TRAIN].event, y[TRAIN].time)
    with pytest.raises(cs.exceptions.InvalidInputError, match="Center the covariates, or pass train="):
        as_forecast(model, far[TEST])
    F = as_forecast(model, far[TEST], train=(far[TRAIN], y[TRAIN]))
    np.testing.assert_allclose(F.sf(GRID), expected, rtol=1e-9)


def forests():
    from sksurv.ensemble import ExtraSurvivalTrees, RandomSurvivalForest
    from sksurv.tree import SurvivalTree

    settings = {"min_samples_leaf": 10, "random_state": 0}
    return [
        RandomSurvivalForest(n_estimators=4, **settings),
        ExtraSurvivalTrees(n_estimators=4, **settings),
        SurvivalTree(**settings),
    ]


@pytest.mark.parametrize("which", range(3))
def test_forests_jump_at_event_times(data, which):
    X, y = data
    model = forests()[which].fit(X[TRAIN], structured(y[TRAIN]))
    F = as_forecast(model, X[TEST])
    assert isinstance(F, Step)
    assert F.breaks().shape[1] == len(np.unique(y[TRAIN].time[y[TRAIN].event]))
    expected = model.predict_survival_function(X[TEST], return_array=True)
    np.testing.assert_allclose(F.sf(model.unique_times_[None, :]), expected, rtol=1e-12)


def test_large_forests_are_stored_in_single_precision_and_scored_in_double(data, monkeypatch):
    X, y = data
    model = forests()[0].fit(X[TRAIN], structured(y[TRAIN]))
    exact = as_forecast(model, X[TEST])
    monkeypatch.setattr(scikit_survival, "_MANY_NUMBERS", 2000)
    F = as_forecast(model, X[TEST])
    assert isinstance(F, CompactStep)
    assert F._levels.dtype == np.float32
    C = cs.Censoring(cs.KaplanMeier()).fit(X[TRAIN], y[TRAIN]).predict_distribution(X[TEST])
    scores = [
        lambda F: cs.crps(y[TEST], F, C, horizon=5.0),
        lambda F: cs.brier_score(y[TEST], F, C, GRID[0, :4], horizon=5.0),
        lambda F: cs.integrated_brier_score(y[TEST], F, C, scale="ipcw", horizon=5.0),
        lambda F: cs.pinball_score(y[TEST], F, C, [0.1, 0.5], horizon=5.0),
    ]
    for score in scores:
        assert score(F).dtype == np.float64
        np.testing.assert_allclose(score(F), score(exact), rtol=2e-6, atol=1e-7)


def test_models_without_a_survival_function_say_what_to_do(data):
    from sksurv.svm import FastSurvivalSVM

    X, y = data
    model = FastSurvivalSVM(max_iter=20, random_state=0).fit(X[TRAIN], structured(y[TRAIN]))
    with pytest.raises(TypeError, match="from_risk"):
        as_forecast(model, X[TEST])
    F = cs.from_risk(model.predict(X[TRAIN]), y[TRAIN], model.predict(X[TEST]), slope="estimate")
    assert F.shape == (100,)
