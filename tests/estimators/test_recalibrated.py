"""Rungs of an update: each equals its definition, with weights and for any model."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import censcore as cs
from censcore.distributions.univariate.at_one_time import AtOneTime
from censcore.estimators.regression.closed_test import closed_test
from censcore.estimators.regression.recalibrated import RUNGS, Recalibrated, shrunken_coefficients
from censcore.exceptions import InvalidInputError, NotFittedError, UnsupportedOutcomeError

TIME = 1.0


def data(
    n: int = 300, seed: int = 0, effects: tuple[float, ...] = (0.8, 0.3)
) -> tuple[pd.DataFrame, cs.RightCensored]:
    rng = np.random.default_rng(seed)
    X = pd.DataFrame({"a": rng.normal(size=n), "b": rng.normal(size=n)})
    T = rng.exponential(np.exp(-X.to_numpy() @ np.array(effects)))
    C = rng.uniform(0.3, 3.0, n)
    return X, cs.RightCensored(np.minimum(T, C), T <= C)


X, Y = data()
PUBLISHED = cs.PublishedCox({"a": 0.5, "b": -0.2}, baseline={TIME: 0.6}, center=0.3)
WEIGHT = np.random.default_rng(5).integers(0, 4, len(Y)).astype(float)


def risk(model, X):
    return model.predict_distribution(X).cdf(TIME)


class TestRungs:
    def test_the_intercept_gives_the_observed_risk(self):
        for weight in (None, WEIGHT):
            rung = Recalibrated(PUBLISHED, TIME, "intercept").fit(X, Y, weight)
            observed = cs.KaplanMeier().fit(None, Y, weight).predict_distribution().cdf(TIME)[0]
            assert np.average(risk(rung, X), weights=weight) == pytest.approx(observed, abs=1e-12)
            shift = np.log(np.log1p(-risk(rung, X)) / np.log1p(-risk(PUBLISHED, X)))
            assert np.ptp(shift) == pytest.approx(0, abs=1e-10)

    def test_baseline_and_slope_are_those_of_cox_regression(self):
        eta, cut = np.log(-np.log1p(-risk(PUBLISHED, X))), Y.censor_at(TIME)
        for rung, slope in (("baseline", 1.0), ("slope", "estimate")):
            mine = Recalibrated(PUBLISHED, TIME, rung).fit(X, Y, WEIGHT).predict_distribution(X)
            theirs = cs.from_risk(eta, cut, eta, slope=slope, sample_weight=WEIGHT)
            t = np.array([[0.2, 0.6, 1.0]])
            assert mine.sf(t) == pytest.approx(theirs.sf(t), abs=1e-9)

    def test_a_refit_of_a_model_without_slope_is_the_penalised_cox_regression(self):
        cut = Y.censor_at(TIME)
        slope, coef = shrunken_coefficients(np.zeros(len(Y)), X.to_numpy(), cut, np.ones(len(Y)))
        model = cs.CoxRegression(alpha="auto", ties="breslow").fit(X, cut)
        assert slope == 1.0
        assert coef == pytest.approx(model.coef_, rel=1e-3)

    def test_a_refit_with_many_subjects_finds_other_effects(self):
        many, y = data(4000, 1, (0.8, 0.9))
        rung = Recalibrated(PUBLISHED, TIME, "refit").fit(many, y)
        assert rung.updated_.coef_ == pytest.approx([0.8, 0.9], abs=0.06)
        assert risk(rung, many).mean() == pytest.approx(
            risk(cs.CoxRegression().fit(many, y), many).mean(), abs=5e-3
        )

    def test_few_subjects_stay_near_the_model(self):
        moved = []
        for seed in range(20):
            few, y = data(80, seed, (0.5, -0.2))  # the model is right
            rung = Recalibrated(PUBLISHED, TIME, "refit").fit(few, y)
            free = cs.CoxRegression().fit(few, y.censor_at(TIME))
            moved.append([((c - PUBLISHED.coef_) ** 2).sum() for c in (rung.updated_.coef_, free.coef_)])
        shrunken, plain = np.mean(moved, axis=0)
        assert shrunken < 0.8 * plain

    @pytest.mark.parametrize("rung", RUNGS)
    @pytest.mark.parametrize(
        "baseline",
        [{TIME: 0.6}, {0.5: 0.8, 1.0: 0.6}, ([0.1, 0.5, 1.0], [0.9, 0.8, 0.6]), cs.Weibull(1.1, 2.0)],
    )
    def test_a_published_model_stays_one(self, rung, baseline):
        model = cs.PublishedCox({"a": 0.5, "b": -0.2}, baseline, center={"a": 0.7, "b": 0.1})
        fitted = Recalibrated(model, TIME, rung).fit(X, Y)
        assert risk(fitted.updated_, X) == pytest.approx(risk(fitted, X), abs=1e-13)
        assert fitted.equation == fitted.updated_.equation
        new, _ = data(5, 9)
        assert risk(fitted.updated_, new) == pytest.approx(risk(fitted, new), abs=1e-13)

    @pytest.mark.parametrize("rung", RUNGS)
    def test_any_model(self, rung):
        wide = X.assign(group=np.where(X.a > 0, "x", "y")).mask(X.b > 2)
        wide["group"] = wide.group.fillna("y")
        models = {
            "cox": (cs.CoxRegression().fit(wide, Y), wide),
            "log-normal": (cs.LogNormalRegression().fit(X, Y), X),
            "pipeline": (make_pipeline(StandardScaler(), cs.WeibullRegression()).fit(X, Y), X),
            "aft": (cs.PublishedAFT({"a": -0.4}, 0.3, 0.9), X),
        }
        for model, columns in models.values():
            fitted = Recalibrated(model, TIME, rung).fit(columns, Y)
            assert ((risk(fitted, columns) > 0) & (risk(fitted, columns) < 1)).all()
            assert "L" in fitted.equation or "log T" in fitted.equation

    def test_one_distribution_for_all(self):
        pooled = cs.KaplanMeier().fit(None, data(200, 3)[1])
        for rung in ("intercept", "baseline"):
            fitted = Recalibrated(pooled, TIME, rung).fit(None, Y)
            observed = cs.KaplanMeier().fit(None, Y).predict_distribution().cdf(TIME)
            assert fitted.predict_distribution().cdf(TIME) == pytest.approx(observed, abs=0.01)

    def test_a_curve_becomes_a_forecast_of_the_time_by_one_intercept(self):
        fitted = Recalibrated(cs.CoxRegression().fit(X, Y), TIME, "intercept").fit(X, Y)
        assert isinstance(fitted.predict_distribution(X), AtOneTime)

    def test_copies_keep_the_model_and_forget_the_rest(self):
        fitted = Recalibrated(cs.CoxRegression().fit(X, Y), TIME, "slope").fit(X, Y)
        copy = clone(fitted)
        assert copy.model is fitted.model
        with pytest.raises(NotFittedError):
            copy.predict_distribution(X)


class TestErrors:
    @pytest.mark.parametrize(
        ("given", "words"),
        [
            ({"time": 5.0}, "expected one that follow-up reaches; the last observed time is"),
            ({"time": 1e-5}, "no event by time 1e-05"),
            ({"rung": "third"}, "rung"),
            ({"time": -1.0}, "time"),
            ({"model": cs.Weibull(1.0, np.full(300, 1e-90))}, "a risk of 0 or 1 by time 1 for 300 subjects"),
        ],
    )
    def test_what_cannot_be_updated(self, given, words):
        with pytest.raises(InvalidInputError, match=words):
            Recalibrated(**({"model": PUBLISHED, "time": TIME, "rung": "slope"} | given)).fit(X, Y)

    def test_a_refit_needs_covariates(self):
        with pytest.raises(InvalidInputError, match="X: got None"):
            Recalibrated(cs.Weibull(1.0, np.linspace(1, 2, 300)), TIME, "refit").fit(None, Y)

    def test_several_times_and_delayed_entry(self):
        with pytest.raises(InvalidInputError, match="one event time per subject"):
            Recalibrated(PUBLISHED, TIME).fit(X, cs.RightCensored(np.ones((300, 2)), np.ones((300, 2))))
        with pytest.raises(UnsupportedOutcomeError, match="entry"):
            Recalibrated(PUBLISHED, TIME).fit(X, cs.RightCensored(Y.time, Y.event, entry=Y.time / 2))


class TestClosedTest:
    def test_the_covariance_is_that_of_the_jackknife(self):
        few, y = data(400, 2, (0.5, -0.2))
        cut = y.censor_at(TIME)
        eta = np.log(-np.log1p(-risk(PUBLISHED, few)))

        def theta(rows):
            model = cs.CoxRegression(ties="breslow").fit(np.column_stack([eta, few.b])[rows], cut.take(rows))
            point = np.array([eta.mean(), few.b.mean()])
            log_hazard = np.log(model.baseline_hazard_[-1]) + (point - model.center_) @ model.coef_
            return np.array([log_hazard - eta.mean(), model.coef_[0] - 1, model.coef_[1]])

        everyone = np.arange(400)
        left_out = np.array([theta(np.delete(everyone, i)) for i in everyone])
        covariance = 399 / 400 * (left_out - left_out.mean(axis=0)).T @ (left_out - left_out.mean(axis=0))
        all_of_them = theta(everyone)
        lines = closed_test(PUBLISHED, few, y, TIME)
        for first, line in enumerate(lines):
            rest = all_of_them[first:]
            W = rest @ np.linalg.solve(covariance[first:, first:], rest)
            assert line["statistic"] == pytest.approx(W, rel=0.06)
        assert [line["degrees_of_freedom"] for line in lines] == [3, 2, 1]

    def test_its_level_and_its_power(self):
        def shares(effects):
            p = []
            for seed in range(150):
                some, y = data(400, 100 + seed, effects)
                model = cs.PublishedCox({"a": 0.5, "b": -0.2}, cs.Exponential(1.0))
                p.append([line["p_value"] for line in closed_test(model, some, y, TIME)])
            return (np.array(p) < 0.05).mean(axis=0)

        assert (shares((0.5, -0.2)) < 0.12).all()
        assert (shares((0.5, 0.3)) > 0.9).all()

    def test_groups_count_as_subjects(self):
        labels = np.repeat(np.arange(len(Y)), 2)
        twice = closed_test(PUBLISHED, X.loc[labels], Y.take(labels), TIME, groups=labels)
        once = closed_test(PUBLISHED, X, Y, TIME)
        for a, b in zip(once, twice, strict=True):
            assert a["statistic"] == pytest.approx(b["statistic"], rel=1e-6)

    def test_one_risk_for_all_has_no_slope(self):
        with pytest.raises(InvalidInputError, match="no slope to test"):
            closed_test(cs.PublishedCox({"a": 0.0}, {TIME: 0.6}), X, Y, TIME)
