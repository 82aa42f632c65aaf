"""Censoring times with atoms: represented, treated, or an error; never a silent wrong number."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.estimators import SurvivalEstimator
from censcore.exceptions import InvalidInputError, PositivityError

END = 2.0


def data(n=2000, seed=0):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(n, 1))
    T = 2 * rng.exponential(np.exp(-0.5 * x[:, 0]))
    C = rng.exponential(2 * np.exp(-0.7 * x[:, 0]))
    return x, T, C


def outcome(T, C):
    return cs.RightCensored(np.minimum(T, C), T <= C)


def smooth_estimators():
    yield cs.WeibullRegression()
    yield cs.CoxRegression(ties="efron")
    linear_model = pytest.importorskip("sksurv.linear_model")
    lifelines = pytest.importorskip("lifelines")
    yield cs.Adapted(linear_model.CoxPHSurvivalAnalysis(ties="efron"))
    yield cs.Adapted(lifelines.CoxPHFitter())


def test_a_common_end_is_treated_for_smooth_estimators():
    x, T, C = data()
    y = outcome(T, np.minimum(C, END))
    at = np.array([[-1.0], [0.0], [1.0]])
    for estimator in smooth_estimators():
        model = cs.Censoring(estimator).fit(x, y)
        assert model.ends_ == [END]
        G = model.predict_distribution(at)
        np.testing.assert_array_equal(G.sf(END), 0.0)
        for t in (0.5, 1.0, 1.9):
            np.testing.assert_allclose(G.sf_left(t), np.exp(-t / 2 * np.exp(0.7 * at[:, 0])), atol=0.05)
        F = cs.Exponential(2 * np.exp(-0.5 * x[:, 0]))
        cs.crps(y, F, model.predict_distribution(x))
        late = outcome(T, np.minimum(C, 2 * END))
        with pytest.raises(PositivityError):
            cs.crps(late, F, model.predict_distribution(x))


def test_an_end_without_other_censoring_needs_no_estimator():
    x, T, _ = data(300)
    y = outcome(T, np.full(300, END))
    G = cs.Censoring(cs.WeibullRegression()).fit(x, y).predict_distribution(x)
    np.testing.assert_array_equal(G.sf(END), 0.0)
    np.testing.assert_array_equal(G.sf_left(END), 1.0)


@pytest.mark.parametrize("kind", ["visits", "closing dates"])
def test_other_atoms_are_an_error_with_a_remedy_or_represented(kind):
    x, T, C = data()
    first = np.where(np.arange(len(T)) % 2, 1.0, END)
    C = np.ceil(2 * C) / 2 if kind == "visits" else np.minimum(C, first)
    y = outcome(np.roll(T, 1), C)  # independent of x, so that Kaplan-Meier is right as well
    for estimator in [cs.CoxRegression(ties="breslow"), *smooth_estimators()]:
        if getattr(estimator, "ties", "") == "efron":
            continue
        with pytest.raises(InvalidInputError, match=r"subjects censored at .*KaplanMeier.*CoxRegression"):
            cs.Censoring(estimator).fit(x, y)
    forest = pytest.importorskip("sksurv.ensemble").RandomSurvivalForest(
        20, min_samples_leaf=60, random_state=0
    )
    near = cs.CoxRegression(ties="efron")
    for estimator in (cs.KaplanMeier(), cs.CoxRegression(), near, cs.Adapted(forest)):
        G = cs.Censoring(estimator).fit(x, y).predict_distribution(x)
        for t in (0.5, 1.0, 1.5):
            assert abs(np.mean(G.sf(t)) - np.mean(t < C)) < 0.04
            assert abs(np.mean(G.sf_left(t)) - np.mean(t <= C)) < 0.04


def test_continuous_and_finely_rounded_times_are_left_alone():
    x, T, C = data(500)
    for digits in (None, 2):
        y = outcome(T, C) if digits is None else outcome(np.round(T, digits), np.round(C, digits) + 0.01)
        model = cs.Censoring(cs.WeibullRegression()).fit(x, y)
        assert model.ends_ == [None]


def test_subjects_with_an_event_at_zero_are_named():
    y = cs.RightCensored([0.0, 2.0, 3.0, 0.0], [1, 1, 0, 0])
    (subjects,) = cs.Censoring(cs.KaplanMeier()).fit(None, y).subjects_
    np.testing.assert_array_equal(subjects, [1, 2, 3])


def test_subjects_of_weight_zero_make_no_end():
    x, T, C = data(300)
    y = outcome(T, C)
    y = cs.RightCensored(np.append(y.time, [90.0, 90.0]), np.append(y.event, [False, False]))
    weight = np.append(np.ones(300), [0.0, 0.0])
    model = cs.Censoring(cs.WeibullRegression()).fit(np.vstack([x, x[:2]]), y, sample_weight=weight)
    assert model.ends_ == [None]


class Declared(SurvivalEstimator):
    represents_atoms = True

    def fit(self, X, y, sample_weight=None):
        self.y_ = y
        return self

    def predict_distribution(self, X=None):
        return cs.Exponential(1.0)


def test_an_estimator_says_by_an_attribute_that_it_represents_atoms():
    x, T, C = data()
    y = outcome(T, np.ceil(C))
    np.testing.assert_array_equal(cs.Censoring(Declared()).fit(x, y).estimators_[0].y_.event, ~y.event)
    assert not cs.WeibullRegression().represents_atoms
    assert cs.KaplanMeier().represents_atoms
    assert cs.CoxRegression().represents_atoms
    assert not cs.CoxRegression(ties="efron").represents_atoms


def test_out_of_fold_distributions_have_the_end_too():
    x, T, C = data(400)
    y = outcome(T, np.minimum(C, END))
    G = cs.Censoring(cs.WeibullRegression(), cv=3).fit_predict_distribution(x, y)
    np.testing.assert_array_equal(G.sf(END), 0.0)
