"""Comparisons of subjects who drop out between visits of their own: defaults, standard errors, folds."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import KFold, cross_val_score
from tests.properness.drop_out import drop_outs, seen

import censcore as cs
from censcore.distributions.derived.dropout import LastVisit

H, TIMES = 6.0, [1.5, 3.0]
SCORES = ["crps", "brier_score", "brier_score:ipcw", "integrated_brier_score:ipcw", "log_score"]
FORECASTS = {"truth": cs.Weibull(1.5, 3.0), "late": cs.Weibull(1.5, 4.0)}


@pytest.fixture(scope="module")
def data():
    y = drop_outs(240, seed=4)
    return np.random.default_rng(0).normal(size=(len(y), 2)), y


def expected(y, F, C):
    return {
        "crps": cs.crps(y, F, C, horizon=H),
        "brier_score": cs.brier_score(y, F, C, times=TIMES[0], horizon=H),
        "brier_score:ipcw": cs.brier_score(y, F, C, times=TIMES[0], horizon=H, scale="ipcw"),
        "integrated_brier_score:ipcw": cs.integrated_brier_score(
            y, F, C, horizon=H, scale="ipcw", normalize=True
        ),
        "log_score": cs.log_score(y, F, horizon=H),
    }


def test_losses_are_those_of_the_scores(data):
    _, y = data
    found = cs.compare(FORECASTS, y, scores=SCORES, horizon=H, times=TIMES)
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    for name, F in FORECASTS.items():
        for score, losses in expected(y, F, C).items():
            np.testing.assert_allclose(found.losses.values[name, score][:, 0], losses, rtol=1e-6, atol=1e-12)
    assert "drop-out by the number of the visit" in found.settings["censoring distribution"]
    assert "first planned visit that it misses" in found.notes[0]


def test_nobody_dropped_out_gives_the_scores_of_known_ends():
    rng = np.random.default_rng(1)
    visits = np.cumsum(rng.uniform(1.0, 2.0, (150, 6)), axis=1)
    y = seen(3 * rng.weibull(1.5, 150), visits, np.full(150, 6))
    for horizon in (4.0, 11.0):
        known, estimated = (
            cs.compare(FORECASTS, y, C, scores=SCORES, horizon=horizon, times=TIMES).frame()["mean"]
            for C in (None, cs.Censoring(cs.KaplanMeier()))
        )
        np.testing.assert_allclose(known, estimated, rtol=1e-9)


def test_drop_out_after_the_horizon_does_not_count(data):
    _, y = data
    early = cs.compare(FORECASTS, y, scores="crps", horizon=1.0)
    assert early.settings["censoring distribution"].startswith("known")


@pytest.mark.parametrize("model", [cs.KaplanMeier(), cs.KaplanMeier(stratify=0), cs.CoxRegression()])
def test_standard_errors_hold_the_influence_on_drop_out(data, model):
    """The influence of a subject on a mean, through its own loss and through C, is a derivative."""
    x, y = data
    x = (x[:, :1] > 0).astype(float)
    found = cs.compare(FORECASTS, y, cs.Censoring(model), X=x, scores=SCORES[:4], horizon=H, times=TIMES[:1])

    def means(weight):
        C = cs.Censoring(model).fit(x, y, weight).predict_distribution(x)
        return {
            score: np.average(losses, weights=weight)
            for score, losses in expected(y, FORECASTS["late"], C).items()
        }

    base = means(np.ones(len(y)))
    for i in (3, 40, 101):
        weight = np.ones(len(y))
        weight[i] += 1e-4
        moved = means(weight)
        for score in SCORES[:4]:
            influence = found.estimate("late", score).influence[i, 0]
            tolerance = {"rel": 0.03, "abs": 2e-6}  # by n / (n - 1), and by the step of the derivative
            assert influence == pytest.approx((moved[score] - base[score]) / 1e-4, **tolerance), (score, i)


def test_an_estimate_made_before_is_recognised(data):
    x, y = data
    fitted = cs.Censoring(cs.KaplanMeier()).fit(x, y)
    here = cs.compare(FORECASTS, y, X=x, scores="crps", horizon=H).frame()
    for C in (fitted, fitted.predict_distribution(x), cs.Censoring(cs.KaplanMeier()).fit(x, y.detection())):
        found = cs.compare(FORECASTS, y, C, X=x, scores="crps", horizon=H)
        pd.testing.assert_frame_equal(found.frame(), here)
    half = cs.compare(FORECASTS, y[:120], fitted, X=x[:120], scores="crps", horizon=H)
    assert "120 of them scored" in half.settings["censoring distribution"]


def test_refits_of_an_estimator_without_influences(data):
    import lifelines

    _, y = data
    other = cs.Censoring(cs.Adapted(lifelines.KaplanMeierFitter()), refits=20)
    found = cs.compare(FORECASTS, y, other, scores="crps", horizon=4.0)
    ours = cs.compare(FORECASTS, y, scores="crps", horizon=4.0)
    np.testing.assert_allclose(found.frame()["mean"], ours.frame()["mean"], rtol=1e-6)
    np.testing.assert_allclose(found.frame()["standard_error"], ours.frame()["standard_error"], rtol=0.5)


def test_training_subjects_give_the_drop_out(data):
    _, y = data
    other = drop_outs(300, seed=6)
    found = cs.compare(FORECASTS, y, train=(None, other), scores="crps", horizon=H)
    C = cs.Censoring(cs.KaplanMeier()).fit(None, other).predict_distribution()
    mean = found.frame().set_index("model")["mean"]
    assert mean["late"] == pytest.approx(cs.crps(y, FORECASTS["late"], C, horizon=H).mean())
    assert "fitted to the training subjects" in found.settings["censoring distribution"]


# ---- folds -----------------------------------------------------------------------------------------


def test_cross_validation_estimates_drop_out_in_every_fold(data):
    x, y = data
    folds = list(KFold(3, shuffle=True, random_state=0).split(x))
    models = {"weibull": cs.WeibullRegression()}
    found = cs.cross_validate(models, x, y, cv=folds, scores=SCORES, horizon=H, times=TIMES)
    for train, test in folds:
        F = clone(models["weibull"]).fit(x[train], y[train]).predict_distribution(x[test])
        C = cs.Censoring(cs.KaplanMeier()).fit(None, y[train]).predict_distribution()
        for score, losses in expected(y[test], F, C).items():
            np.testing.assert_allclose(
                found.losses.values["weibull", score][test, 0], losses, rtol=1e-6, atol=1e-12
            )
    assert found.reference == "turnbull"
    assert np.isfinite(found.frame().query("score == 'crps'")["standard_error"]).all()
    assert "<html" in found.to_html().lower()


def test_the_defaults_of_cross_validation(data):
    x, y = data
    found = cs.cross_validate({"weibull": cs.WeibullRegression()}, x, y, cv=cs.Folds(5, repeats=2))
    assert 2.0 < found.horizon <= 8.0
    assert "drop-out by the number of the visit" in found.settings["censoring distribution"]
    assert "weibull" in str(found.verdict)


def test_fewer_visits_in_training_than_in_the_test_fold():
    """Nobody of the training fold reaches the visit numbers of the test fold."""
    y = drop_outs(120, seed=7, leave=0.3, often=0.2)
    number = y.detection().attendance.time
    late = np.argsort(number)[-10:]
    folds = [(np.setdiff1d(np.arange(120), late), late)]
    found = cs.cross_validate(
        {"weibull": cs.WeibullRegression()}, None, y, cv=folds, scores="crps", horizon=5.0
    )
    assert np.isfinite(found.frame()["mean"]).all()


def test_scorers_of_scikit_learn(data):
    x, y = data
    folds = list(KFold(3, shuffle=True, random_state=0).split(x))
    model = cs.WithCensoring(cs.WeibullRegression(), horizon=H)
    found = cross_val_score(model, x, y, cv=folds, scoring=cs.scorer("crps"), error_score="raise")
    for value, (train, test) in zip(found, folds, strict=True):
        F = cs.WeibullRegression().fit(x[train], y[train]).predict_distribution(x[test])
        C = cs.Censoring(cs.KaplanMeier()).fit(None, y[train]).predict_distribution()
        assert -value == pytest.approx(cs.crps(y[test], F, C, horizon=H).mean())
    automatic = cs.WithCensoring(cs.WeibullRegression()).fit(x, y)
    assert isinstance(automatic.predict_censoring(x), LastVisit)
    assert np.isfinite(automatic.score(x[:50], y[:50]))


# ---- whether covariates predict drop-out -------------------------------------------------------------


def test_drop_out_that_depends_on_covariates_is_a_warning():
    rng = np.random.default_rng(3)
    x = rng.normal(size=(600, 1))
    visits = np.cumsum(rng.uniform(1.2, 1.8, (600, 6)), axis=1)
    y = seen(3 * rng.weibull(1.5, 600), visits, rng.geometric(1 / (1 + np.exp(1.5 - 1.5 * x[:, 0]))))
    found = cs.compare(FORECASTS, y, X=x, scores="crps", horizon=H)
    assert any("censoring depends on covariates" in warning for warning in found.censoring.warnings)
    given = cs.compare(FORECASTS, y, cs.Censoring(cs.CoxRegression()), X=x, scores="crps", horizon=H)
    assert not any("depends on covariates" in warning for warning in given.censoring.warnings)
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    assert cs.censoring_diagnostic(y, C, x, horizon=H).covariates.p_value < 0.001


# ---- exact times -------------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def some_exact(data):
    x, y = data
    exact = (np.arange(len(y)) % 3 == 0) & y.found
    time = np.where(y.found, (y.lower + np.where(y.found, y.upper, 0.0)) / 2, 0.0)
    return x, cs.IntervalCensored(np.where(exact, time, y.lower), np.where(exact, time, y.upper))


def test_the_default_reference_has_no_log_score_at_exact_times(some_exact):
    x, y = some_exact
    models = {"weibull": cs.WeibullRegression(), "log-normal": cs.LogNormalRegression()}
    found = cs.cross_validate(models, x, y, cv=4)
    assert found.reference == "turnbull"
    assert any("Not available for turnbull" in note for note in found.notes)
    means = found.frame().set_index("model")["mean"]
    assert np.isfinite(means[list(models)]).all()
    assert np.isnan(means["turnbull"])
    assert "log score" in str(found.verdict)
    assert "<html" in found.to_html().lower()
    fitted = cs.compare(
        {"weibull": cs.WeibullRegression().fit(x[:100], y[:100])},
        y[100:],
        X=x[100:],
        train=(x[:100], y[:100]),
    )
    assert fitted.reference == "turnbull"


def test_steps_without_a_density_are_compared_by_the_other_scores(data):
    """Exact times at visits: the detection times are known, a density is not."""
    _, y = data
    first = np.where(np.arange(len(y)) % 4 == 0, y.upper, y.lower)
    at_visit = cs.IntervalCensored(np.where(y.found, first, y.lower), y.upper, y.visits)
    steps = {"steps": cs.Step([1.0, 2.0, 4.0], sf=[0.8, 0.5, 0.1])}
    found = cs.compare(steps, at_visit, scores=["log_score", "crps"], horizon=H)
    assert set(found.frame().dropna(subset="mean")["score"]) == {"crps"}


def test_a_case_places_drop_out_on_its_visits(data):
    _, y = data
    found = cs.compare(FORECASTS, y, scores="crps", horizon=H)
    case, C = found.cases["late"], cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    again = replace(case, C=C)
    np.testing.assert_array_equal(again.C.sf([[1.5, 3.0]]), case.C.sf([[1.5, 3.0]]))
