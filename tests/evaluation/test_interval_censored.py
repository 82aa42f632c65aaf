"""Comparisons of forecasts of interval-censored data."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import censcore as cs
from censcore.evaluation.measures.concordance import concordance
from censcore.exceptions import (
    FoldError,
    InvalidInputError,
    InvalidTypeError,
    MissingVisitsError,
    UnsupportedOutcomeError,
)

INF = np.inf


def data(n=400, seed=0, visits=None):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1))
    T = np.exp(1 + 0.6 * x[:, 0]) * rng.weibull(1.5, n)
    visits = np.sort(rng.uniform(0.3, 8.0, (n, 6)), axis=1) if visits is None else visits
    before = np.broadcast_to(visits, (n, np.shape(visits)[-1])) < T[:, None]
    lower = np.max(np.where(before, visits, 0.0), axis=1)
    return x, cs.IntervalCensored(lower, np.min(np.where(before, INF, visits), axis=1), visits)


@pytest.fixture(scope="module")
def comparison():
    x, y = data()
    train, test = slice(0, 200), slice(200, 400)
    model = cs.WeibullRegression().fit(x[train], y[train])
    pooled = cs.WeibullRegression().fit(None, y[train])
    models = {"weibull": model, "pooled": pooled.predict_distribution()}
    found = cs.compare(models, y[test], X=x[test], train=(x[train], y[train]), horizon=8.0, times=[1.0, 3.0])
    return x[test], y[test], models, found


def row_of(found, score):
    return found.frame().query(f"score == {score!r} and model == 'weibull'").iloc[0]


def test_means_are_those_of_the_scores(comparison):
    x, y, models, found = comparison
    F = models["weibull"].predict_distribution(x)
    expected = {
        "log_score": cs.log_score(y, F),
        "crps": cs.crps(y, F, horizon=8.0),
    }
    for score, losses in expected.items():
        row = row_of(found, score)
        assert float(row["mean"]) == pytest.approx(losses.mean(), rel=1e-9)
        assert float(row["standard_error"]) == pytest.approx(losses.std(ddof=1) / np.sqrt(200), rel=1e-2)
    briers = found.frame().query("score == 'brier_score' and model == 'weibull'")
    np.testing.assert_allclose(briers["mean"], cs.brier_score(y, F, times=[1.0, 3.0]).mean(axis=0), rtol=1e-9)


def test_the_reference_is_turnbulls_estimate_and_covariates_help(comparison):
    found = comparison[3]
    assert found.reference == "turnbull"
    assert float(row_of(found, "crps")["skill"]) > 0.1
    assert "detection time" in found.notes[0]
    assert found.differences().shape[0] > 0
    assert "<html" in found.to_html().lower()


def test_subgroups_groups_and_weights():
    x, y = data(120)
    F = cs.Weibull(1.5, np.exp(1 + 0.6 * x[:, 0]))
    found = cs.compare(
        {"truth": F},
        y,
        by={"side": x[:, 0] > 0},
        groups=np.arange(120) // 2,
        sample_weight=np.ones(120),
        scores=["crps", "log_score"],
        horizon=8.0,
    )
    inside = x[:, 0] > 0
    row = found.frame().query("score == 'log_score' and group == 'True'")
    assert float(row["mean"].iloc[0]) == pytest.approx(cs.log_score(y, F)[inside].mean())


def test_without_visits_there_is_the_log_score_alone():
    x, y = data(100)
    F = cs.Weibull(1.5, np.exp(1 + 0.6 * x[:, 0]))
    plain = cs.IntervalCensored(y.lower, y.upper)
    found = cs.compare({"truth": F, "flat": cs.Weibull(1.2, 3.0)}, plain)
    assert set(found.frame()["score"]) == {"log_score"}
    assert float(found.frame()["mean"].iloc[0]) == pytest.approx(cs.log_score(plain, F).mean())
    with pytest.raises(MissingVisitsError, match="visits=None"):
        cs.compare({"truth": F}, plain, scores="crps")
    exact = cs.IntervalCensored([1.0, 2.0, 3.0], [1.0, 2.5, INF])
    mean = cs.compare({"flat": cs.Weibull(1.2, 3.0)}, exact).frame()["mean"].iloc[0]
    assert float(mean) == pytest.approx(cs.log_score(exact, cs.Weibull(1.2, 3.0)).mean())


def test_dropout_is_estimated_where_nothing_is_said_of_it():
    visits = np.arange(1.0, 9.0)
    x, full = data(300, visits=visits)
    last = np.random.default_rng(3).integers(1, 9, 300).astype(float)
    gone = full.upper > last
    y = cs.IntervalCensored(
        np.where(gone, np.minimum(full.lower, last), full.lower), np.where(gone, INF, full.upper), visits
    )
    F = cs.Weibull(1.5, np.exp(1 + 0.6 * x[:, 0]))
    with pytest.raises(MissingVisitsError, match="dropped out"):
        cs.crps(y, F)
    censoring = cs.Censoring(cs.KaplanMeier())
    found = cs.compare({"truth": F}, y, censoring, scores=["crps", "log_score"], horizon=6.0)
    default = cs.compare({"truth": F}, y, scores=["crps", "log_score"], horizon=6.0)
    pd.testing.assert_frame_equal(found.frame(), default.frame())
    C = censoring.fit(None, y.detection()).predict_distribution()
    means = found.frame().query("model == 'truth'").set_index("score")["mean"]
    assert float(means["crps"]) == pytest.approx(cs.crps(y, F, C, horizon=6.0).mean(), rel=1e-9)
    assert float(means["log_score"]) == pytest.approx(cs.log_score(y, F, horizon=6.0).mean(), rel=1e-9)


# ---- cross-validation and scorers ------------------------------------------------------------------


def dropped_out(n=240, seed=0):
    """Visits at whole times, which some subjects stop attending."""
    visits = np.arange(1.0, 9.0)
    x, full = data(n, seed, visits)
    last = np.random.default_rng(seed + 3).integers(3, 12, n).astype(float)
    gone = full.upper > last
    lower = np.where(gone, np.minimum(full.lower, last), full.lower)
    return x, cs.IntervalCensored(lower, np.where(gone, INF, full.upper), visits)


FOLDS = list(KFold(3, shuffle=True, random_state=0).split(np.zeros((240, 1))))


def by_hand(model, x, y, weight=None, dropout=False, horizon=6.0):
    """Losses of every subject under the model, and the censoring distribution, of the other folds."""
    losses = {"log_score": np.zeros(len(y)), "crps": np.zeros(len(y)), "brier_score": np.zeros(len(y))}
    for train, test in FOLDS:
        w = None if weight is None else weight[train]
        F = clone(model).fit(x[train], y[train], w).predict_distribution(x[test])
        C = None
        if dropout:
            followed = y[train].detection()
            C = cs.Censoring(cs.KaplanMeier()).fit(x[train], followed, w).predict_distribution(x[test])
        losses["log_score"][test] = cs.log_score(y[test], F, horizon=horizon)
        losses["crps"][test] = cs.crps(y[test], F, C, horizon=horizon)
        losses["brier_score"][test] = cs.brier_score(y[test], F, C, times=[3.0], horizon=horizon)[:, 0]
    return losses


@pytest.mark.parametrize(("dropout", "weighted"), [(False, True), (True, False)])
def test_cross_validation_is_that_of_the_folds_by_hand(dropout, weighted):
    x, y = dropped_out() if dropout else data(240)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 240) if weighted else None
    censoring = cs.Censoring(cs.KaplanMeier()) if dropout else None
    found = cs.cross_validate(
        {"weibull": cs.WeibullRegression(), "piped": make_pipeline(StandardScaler(), cs.WeibullRegression())},
        x,
        y,
        cv=FOLDS,
        sample_weight=weight,
        horizon=6.0,
        times=[3.0],
        scores=["log_score", "crps", "brier_score"],
        groups=np.arange(240) // 2,
        censoring=censoring,
    )
    assert found.reference == "turnbull"
    assert any("detection time" in note for note in found.notes)
    for score, losses in by_hand(cs.WeibullRegression(), x, y, weight, dropout).items():
        for model in ("weibull", "piped"):
            np.testing.assert_allclose(found.losses.values[model, score][:, 0], losses, rtol=1e-6)
        row = found.frame().query(f"score == {score!r} and model == 'weibull'").iloc[0]
        assert row["mean"] == pytest.approx(np.average(losses, weights=weight))
        assert np.isfinite(row["standard_error"])
    assert len(found.folds()) == 3 * 3 * 3
    assert "<html" in found.to_html().lower()


def test_repeats_and_the_default_horizon():
    x, y = dropped_out()
    found = cs.cross_validate(
        {"weibull": cs.WeibullRegression()},
        x,
        y,
        cv=cs.Folds(3, repeats=2),
        scores="crps",
        censoring=cs.KaplanMeier(),
    )
    assert 1.0 < found.horizon <= 8.0
    assert any("chosen by follow-up" in note for note in found.notes)
    planned = cs.cross_validate({"weibull": cs.WeibullRegression()}, *data(120), cv=3, scores="crps")
    assert planned.horizon == data(120)[1].last_visit.max()


def test_delayed_entry_and_dropout_together():
    x, y = dropped_out()
    entry = np.where(y.lower > 0, 0.5 * np.minimum(y.lower, 2.0), 0.0)
    late = cs.IntervalCensored(y.lower, y.upper, y.visits[0], entry=entry)
    found = cs.cross_validate(
        {"weibull": cs.WeibullRegression()},
        x,
        late,
        cv=FOLDS,
        horizon=6.0,
        scores=["log_score", "crps"],
        reference=None,
        censoring=cs.KaplanMeier(),
    )
    for score, losses in by_hand(cs.WeibullRegression(), x, late, dropout=True).items():
        if score != "brier_score":
            np.testing.assert_allclose(found.losses.values["weibull", score][:, 0], losses, rtol=1e-6)


def test_without_visits_the_log_score_is_cross_validated():
    x, y = data(120)
    plain, models = cs.IntervalCensored(y.lower, y.upper), {"weibull": cs.WeibullRegression()}
    found = cs.cross_validate(models, x, plain, cv=3, reference=None)
    assert set(found.frame()["score"]) == {"log_score"}
    with pytest.raises(MissingVisitsError, match="visits=None"):
        cs.cross_validate(models, x, plain, cv=3, scores="crps")
    exact = cs.IntervalCensored([1.0, 2.0, 3.0], [1.0, 2.0, INF])
    with pytest.raises(UnsupportedOutcomeError, match=r"crps: got exact .* Pass y.detection\(\)"):
        cs.compare({"flat": cs.Weibull(1.2, 3.0)}, exact, scores=["log_score", "crps"])
    every = cs.compare({"flat": cs.Weibull(1.2, 3.0)}, exact, scores="all")
    assert set(every.frame()["score"]) == {"log_score"}


@pytest.mark.parametrize("dropout", [False, True])
def test_scorers_are_means_of_the_scores(dropout):
    x, y = dropped_out() if dropout else data(240)
    censoring = cs.Censoring(cs.KaplanMeier()) if dropout else None
    model = cs.WithCensoring(cs.WeibullRegression(), censoring, horizon=6.0)
    losses = by_hand(cs.WeibullRegression(), x, y, dropout=dropout)
    for score in ("log_score", "crps"):
        found = cross_val_score(model, x, y, cv=FOLDS, scoring=cs.scorer(score), error_score="raise")
        np.testing.assert_allclose(found, [-losses[score][test].mean() for _, test in FOLDS], rtol=1e-8)
    brier = cross_val_score(model, x, y, cv=FOLDS, scoring=cs.scorer("brier_score", times=[3.0]))
    np.testing.assert_allclose(brier, [-losses["brier_score"][test].mean() for _, test in FOLDS], rtol=1e-8)
    weight = np.arange(240) % 3
    fitted = model.fit(x, y)
    F = fitted.predict_distribution(x)
    expected = np.average(cs.log_score(y, F, horizon=6.0), weights=weight)
    assert cs.scorer("log_score")(fitted, x, y, sample_weight=weight) == pytest.approx(-expected)
    assert fitted.score(x, y) == cs.scorer("crps")(fitted, x, y)


def test_a_search_inside_a_cross_validation():
    x, y = data(150)
    search = GridSearchCV(
        cs.WithCensoring(make_pipeline(StandardScaler(), cs.WeibullRegression())),
        {"model__weibullregression__alpha": [0.0, 1e6]}, scoring=cs.scorer("log_score"), cv=3,
    )  # fmt: skip
    assert search.fit(x, y).best_params_ == {"model__weibullregression__alpha": 0.0}
    found = cs.cross_validate({"tuned": search, "weibull": cs.WeibullRegression()}, x, y, cv=3, scores="crps")
    means = found.frame().set_index("model")["mean"]
    assert means["tuned"] == pytest.approx(means["weibull"])


def test_horizons_of_scorers():
    x, y = data(120)
    fitted = cs.WithCensoring(cs.WeibullRegression()).fit(x, y)
    assert fitted.horizon_ == y.last_visit.max()
    with pytest.raises(InvalidInputError, match="all planned visits"):
        fitted.predict_censoring(x)
    plain = cs.WithCensoring(cs.WeibullRegression()).fit(x, cs.IntervalCensored(y.lower, y.upper))
    found = cs.scorer("log_score")(plain, x, cs.IntervalCensored(y.lower, y.upper))
    assert found == pytest.approx(-cs.log_score(y, plain.predict_distribution(x)).mean())
    dropout = cs.WithCensoring(cs.WeibullRegression(), cs.KaplanMeier()).fit(*dropped_out())
    assert 1.0 < dropout.horizon_ <= 8.0
    assert 1.0 < cs.scorers(["crps"])["horizon"](dropout, *dropped_out(seed=1)) <= 8.0


def test_intervals_in_torch_have_the_same_scores():
    torch = pytest.importorskip("torch")
    x, y = data(60)
    model, tensors = cs.WithCensoring(cs.WeibullRegression(), horizon=6.0), y.to(torch.float64)
    expected = cs.scorer("crps")(model.fit(x, y), x, y)
    assert cs.scorer("crps")(model.fit(x, tensors), x, tensors) == pytest.approx(expected)
    found = [
        cs.cross_validate(
            {"weibull": cs.WeibullRegression()}, x, outcome, cv=3, horizon=6.0, scores="crps"
        ).frame()
        for outcome in (y, tensors)
    ]
    np.testing.assert_allclose(found[0]["mean"], found[1]["mean"])


def test_what_is_not_defined_for_intervals_says_so():
    x, y = data(60)
    fitted = cs.WithCensoring(cs.WeibullRegression()).fit(x, y)
    with pytest.raises(InvalidInputError, match=r"energy_score: got an interval-censored .*scorer\('crps'\)"):
        cs.scorer("energy_score")(fitted, x, y)
    plain = cs.IntervalCensored(y.lower, y.upper)
    with pytest.raises(MissingVisitsError, match="visits=None"):
        cs.scorer("crps")(fitted, x, plain)
    with pytest.raises(MissingVisitsError, match="visits=None"):
        cs.Censoring(cs.KaplanMeier()).fit(None, plain)
    with pytest.raises(InvalidInputError, match="no score called 'concordance'"):
        cs.cross_validate({"weibull": cs.WeibullRegression()}, x, y, cv=3, scores="concordance")
    with pytest.raises(FoldError, match=r"'cox' failed in fold 1.*got IntervalCensored"):
        cs.cross_validate({"cox": cs.CoxRegression()}, x, y, cv=3)
    with pytest.raises(UnsupportedOutcomeError, match="got IntervalCensored"):
        concordance(y, x[:, 0])


def test_the_censoring_distribution_is_that_of_the_last_visit():
    _, y = dropped_out()
    one, two = (
        cs.Censoring(cs.KaplanMeier()).fit(None, z).predict_distribution() for z in (y, y.detection())
    )
    np.testing.assert_array_equal(one.numbers.sf([[2.0, 5.0]]), two.numbers.sf([[2.0, 5.0]]))
    placed = one.on(y.visits)  # who would not come to visit 5 is followed up to it
    np.testing.assert_array_equal(placed.sf([[4.9, 5.0]]), one.numbers.sf([[3.0, 4.0]]))
    with pytest.raises(InvalidTypeError, match=r"number of the last visit .* IntervalCensored"):
        cs.crps(y.detection(), cs.Exponential(0.5), two)


def test_a_flat_curve_has_an_infinite_log_score_and_no_nan():
    """Survival on a flat piece may differ by rounding."""
    flat = cs.PiecewiseLinear([0.3, 0.7, 1.1], sf=[1 / 3, 1 / 3, 0.1])
    t = np.linspace(0.31, 0.69, 500)
    y = cs.IntervalCensored(t[:-1], t[1:])
    assert np.isposinf(cs.log_score(y, flat)).all()
