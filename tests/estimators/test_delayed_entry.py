"""Estimators with delayed entry: risk sets from the definition, lifelines, weights, and what cannot do it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.feature_selection import SelectKBest
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import censcore as cs
from censcore.exceptions import RiskSetWarning, UnsupportedOutcomeError


def seen(n=500, step=0.0, seed=1):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(3 * n, 2))
    T = 3 * np.exp(0.4 * x[:, 0]) * rng.weibull(1.5, 3 * n)
    A = np.where(rng.random(3 * n) < 0.3, 0.0, rng.uniform(0.0, 3.0, 3 * n))
    C = rng.uniform(0.0, 7.0, 3 * n)
    rows = np.nonzero((T > A) & (C > A))[0][:n]
    time, entry = np.minimum(T, C)[rows], A[rows]
    if step:
        time, entry = np.ceil(time / step) * step, np.floor(entry / step) * step
    return x[rows], cs.RightCensored(time, (T <= C)[rows], entry=entry)


def at_risk(y, t):
    return ((y.entry < t) | (y.entry == 0)) & (y.time >= t)


def frame(X, y):
    return pd.DataFrame(X, columns=["u", "v"]).assign(time=y.time, event=y.event.astype(int), entry=y.entry)


@pytest.mark.parametrize("step", [0.0, 0.25])
def test_kaplan_meier_against_lifelines_and_the_definition(step):
    lifelines = pytest.importorskip("lifelines")
    _, y = seen(step=step)
    model = cs.KaplanMeier().fit(None, y)
    table = model.event_table_
    np.testing.assert_array_equal(table["at_risk"], [at_risk(y, t).sum() for t in table["time"]])
    theirs = lifelines.KaplanMeierFitter().fit(y.time, y.event, entry=y.entry)
    t = np.unique(y.time)
    sf = model.predict_distribution().sf(t[None, :])[0]
    np.testing.assert_allclose(sf, theirs.survival_function_at_times(t), rtol=1e-10)


def test_the_censoring_distribution_respects_entry_and_puts_events_first():
    _, y = seen(step=0.25)
    G = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    expected = 1.0
    for t in np.unique(y.time):
        risk = at_risk(y, t) & ((y.time > t) | ~y.event)  # an event at t comes before censoring at t
        censored = (y.time == t) & ~y.event
        expected *= 1 - censored.sum() / risk.sum() if censored.any() else 1.0
        assert G.sf(t)[0] == pytest.approx(expected, rel=1e-12)


@pytest.mark.parametrize(("step", "ties"), [(0.0, "product-limit"), (0.0, "efron"), (0.25, "efron")])
def test_cox_against_lifelines(step, ties):
    lifelines = pytest.importorskip("lifelines")
    X, y = seen(step=step)
    model = cs.CoxRegression(ties=ties).fit(X, y)
    precise = {"precision": 1e-12, "r_precision": 1e-14}
    theirs = lifelines.CoxPHFitter().fit(frame(X, y), "time", "event", entry_col="entry", fit_options=precise)
    np.testing.assert_allclose(model.coef_, theirs.params_, atol=1e-8)
    np.testing.assert_allclose(model.standard_errors_, theirs.standard_errors_, atol=1e-8)


@pytest.mark.parametrize("step", [0.0, 0.25])
def test_the_baseline_of_cox_is_breslows_sum_over_risk_sets(step):
    X, y = seen(step=step)
    model = cs.CoxRegression(ties="breslow").fit(X, y)
    r = np.exp((X - model.center_) @ model.coef_)
    jumps = [((y.time == t) & y.event).sum() / r[at_risk(y, t)].sum() for t in model.baseline_times_]
    np.testing.assert_allclose(model.baseline_hazard_, np.cumsum(jumps), rtol=1e-10)


def test_weibull_against_lifelines_and_its_likelihood():
    lifelines = pytest.importorskip("lifelines")
    X, y = seen()
    model = cs.WeibullRegression().fit(X, y)
    theirs = lifelines.WeibullAFTFitter().fit(frame(X, y), "time", "event", entry_col="entry")
    scale = theirs.params_["lambda_"]
    got = [*model.coef_, model.intercept_, np.log(model.shape_)]
    np.testing.assert_allclose(
        got, [*scale[["u", "v", "Intercept"]], theirs.params_["rho_"].iloc[0]], atol=2e-4
    )
    ours = -cs.log_score(y, model.predict_distribution(X)).sum()
    assert ours >= theirs.log_likelihood_ - 1e-9
    assert ours == pytest.approx(theirs.log_likelihood_, abs=1e-4)
    np.testing.assert_allclose(model.coefficient_influence().sum(axis=0), 0.0, atol=1e-8)


def test_weibull_finds_the_truth_from_late_entries_alone():
    rng = np.random.default_rng(0)
    T, A = 3 * rng.weibull(1.5, 60_000), rng.uniform(2.0, 6.0, 60_000)
    rows = np.nonzero(T > A)[0]
    model = cs.WeibullRegression().fit(None, cs.RightCensored(T[rows], np.ones(rows.size), entry=A[rows]))
    assert model.shape_ == pytest.approx(1.5, abs=0.1)
    assert np.exp(model.intercept_) == pytest.approx(3.0, abs=0.2)


ESTIMATORS = [
    cs.KaplanMeier(),
    cs.CoxRegression(),
    cs.CoxRegression(ties="efron"),
    cs.CoxRegression(ties="breslow"),
    cs.WeibullRegression(),
]


@pytest.mark.parametrize("step", [0.0, 0.25])
@pytest.mark.parametrize("estimator", ESTIMATORS, ids=str)
def test_weights_are_replications_and_entries_of_zero_are_none(estimator, step):
    X, y = seen(300, step)
    t = np.quantile(y.time, [[0.1, 0.5, 0.9]])

    def survival(rows, outcome, weight=None):
        return estimator.fit(X[rows], outcome, weight).predict_distribution(X[:5]).sf(t)

    if getattr(estimator, "ties", "") != "efron":  # whose weights are averaged over ties
        w = np.random.default_rng(0).integers(0, 4, len(y))
        rows = np.repeat(np.arange(len(y)), w)
        np.testing.assert_allclose(
            survival(slice(None), y, w.astype(float)), survival(rows, y.take(rows)), rtol=1e-9
        )
    plain, zero = cs.RightCensored(y.time, y.event), cs.RightCensored(y.time, y.event, entry=0.0)
    np.testing.assert_array_equal(survival(slice(None), plain), survival(slice(None), zero))


@pytest.mark.parametrize("step", [0.0, 0.25])
@pytest.mark.parametrize("estimator", ESTIMATORS[:4], ids=str)
def test_influence_is_the_derivative_by_the_weights(estimator, step):
    X, y = seen(200, step)
    model = estimator.fit(X, y)
    times = model.event_table_["time"] if hasattr(model, "event_table_") else model.baseline_times_
    center = getattr(model, "center_", None)
    influence = model.influence((times <= 2.0).astype(float)[:, None])[:, 0]
    assert influence.sum() == pytest.approx(0.0, abs=1e-9)

    def log_sf(w):
        fitted = type(estimator)(**estimator.get_params()).fit(X, y, w)
        if center is None:
            return float(fitted.predict_distribution().logsf(2.0)[0])
        last = np.searchsorted(fitted.baseline_times_, 2.0, side="right") - 1
        return -fitted.baseline_hazard_[last] * np.exp((center - fitted.center_) @ fitted.coef_)

    for i in (0, 7, 50, 120):
        if getattr(estimator, "ties", "") == "efron" and step:
            continue
        moved = [np.ones(len(y)) + h * (np.arange(len(y)) == i) for h in (1e-4, -1e-4)]
        slope = (log_sf(moved[0]) - log_sf(moved[1])) / 2e-4
        assert influence[i] == pytest.approx(slope, rel=1e-4, abs=1e-8)


@pytest.mark.parametrize("estimator", [cs.KaplanMeier(), cs.CoxRegression()], ids=str)
def test_an_early_risk_set_that_dies_out_is_a_warning(estimator):
    y = cs.RightCensored([1.0, 3.0, 4.0, 5.0], [1, 1, 0, 1], entry=[0.0, 1.5, 1.5, 2.0])
    X = None if isinstance(estimator, cs.KaplanMeier) else np.zeros((4, 0))
    with pytest.warns(RiskSetWarning, match=r"zero from 1 on.*3 subjects are followed beyond.*after\(s\)"):
        F = estimator.fit(X, y).predict_distribution(X)
    assert F.sf(1.0)[0] == 0
    later = estimator.fit(X[:3] if X is not None else None, y.after(2.0)).predict_distribution()
    assert later.sf(3.0)[0] == pytest.approx(2 / 3)


def test_many_subjects_take_moments():
    """Sorted sums, not a loop over risk sets: a quadratic risk set of 200,000 would not fit into memory."""
    rng = np.random.default_rng(0)
    A = rng.uniform(0.0, 2.0, 200_000)
    y = cs.RightCensored(A + rng.exponential(1.0, 200_000), np.ones(200_000), entry=A)
    F = cs.KaplanMeier().fit(None, y.after(0.1)).predict_distribution()
    assert F.sf(1.1)[0] == pytest.approx(np.exp(-1.0), abs=0.03)


def test_what_does_not_know_entry_says_so():
    lifelines = pytest.importorskip("lifelines")
    X, y = seen(60)
    sksurv = pytest.importorskip("sksurv.linear_model")
    for estimator in (
        cs.Adapted(sksurv.CoxPHSurvivalAnalysis()),
        cs.Adapted(lifelines.CoxPHFitter()),
        cs.CensoredEngression(epochs=1),
        cs.Adapted(make_pipeline(StandardScaler(), sksurv.CoxPHSurvivalAnalysis())),
        cs.Adapted(make_pipeline(StandardScaler(), cs.CensoredEngression(epochs=1))),
    ):
        with pytest.raises(UnsupportedOutcomeError, match="does not take delayed entry"):
            estimator.fit(X, y)


def test_adapted_models_of_lifelines_get_the_entry():
    lifelines = pytest.importorskip("lifelines")
    X, y = seen()
    curve = cs.Adapted(lifelines.KaplanMeierFitter()).fit(None, y).predict_distribution()
    ours = cs.KaplanMeier().fit(None, y).predict_distribution()
    np.testing.assert_allclose(curve.sf([[1.0, 2.0]]), ours.sf([[1.0, 2.0]]), rtol=1e-10)
    aft = cs.Adapted(lifelines.WeibullAFTFitter()).fit(X, y).predict_distribution(X[:3])
    ours = cs.WeibullRegression().fit(X, y).predict_distribution(X[:3])
    np.testing.assert_allclose(aft.sf(2.0), ours.sf(2.0), atol=0.01)


@pytest.mark.parametrize("step", [0.0, 0.25])
def test_the_last_step_of_a_pipeline_gets_the_entry(step):
    X, y = seen(200, step=step)
    weight = np.random.default_rng(3).uniform(0.5, 2.0, 200)
    Z, t = StandardScaler().fit_transform(X), np.array([[0.5, 1.0, 2.0]])
    piped = make_pipeline(StandardScaler(), cs.CoxRegression())
    search = GridSearchCV(piped, {"coxregression__alpha": [0.0]}, scoring=lambda *_: 0.0, cv=2)
    for kind in (cs.Adapted, cs.Censoring):
        bare = cs.CoxRegression() if kind is cs.Adapted else cs.Censoring(cs.CoxRegression())
        expected = bare.fit(Z, y, weight).predict_distribution(Z).sf(t)
        for model in (piped, make_pipeline(piped), search):
            found = kind(model).fit(X, y, weight).predict_distribution(X).sf(t)
            np.testing.assert_allclose(found, expected, rtol=1e-12)
        select = SelectKBest(lambda X, y: np.array([1.0, 2.0]), k=2)
        chosen = make_pipeline(StandardScaler(), select, cs.CoxRegression())
        found = (
            kind(chosen).fit(X, y, weight).predict_distribution(X).sf(t)
        )  # a step that looks at the outcome
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        ignored = bare.fit(Z, cs.RightCensored(y.time, y.event), weight).predict_distribution(Z).sf(t)
        assert np.abs(ignored - expected).max() > 0.01
