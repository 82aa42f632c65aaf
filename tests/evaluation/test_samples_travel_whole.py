"""Weights and groups reach every fit: models, their inner folds, C, and the reference."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator
from sklearn.model_selection import GridSearchCV, GroupKFold
from sklearn.neighbors import NearestNeighbors
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer

import censcore as cs
from censcore.estimators.folds import completed_folds

PLAIN = {"scores": "crps", "discrimination": False}


class Recording(cs.WeibullRegression):
    """Takes groups, and notes with which subjects (first column of X) and weights (second) it got them."""

    seen: list[tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]] = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None, *, groups=None):
        X = np.asarray(X)
        self.seen.append((X[:, 0], np.asarray(groups), X[:, 1], np.asarray(sample_weight)))
        return super().fit(X[:, 2:], y, sample_weight)

    def predict_distribution(self, X=None):
        return super().predict_distribution(np.asarray(X)[:, 2:])


class Structured(BaseEstimator):
    """A model as those of other libraries are: fitted to a structured array, with groups."""

    def fit(self, X, y, sample_weight=None, groups=None):
        self.model_ = Recording().fit(X, cs.RightCensored.from_structured(y), sample_weight, groups=groups)
        return self

    def predict_survival_function(self, X):
        times = np.linspace(0.0, 6.0, 50)
        sf = self.model_.predict_distribution(X).sf(times[None, :])
        return pd.DataFrame(sf.T, index=times)


@pytest.fixture(autouse=True)
def _forget() -> Iterator[None]:
    Recording.seen.clear()
    yield
    Recording.seen.clear()


def visits(patients: int = 40, each: int = 4, seed: int = 0) -> cs.Sample:
    """Visits of patients, whose label and weight are the first two covariates."""
    rng = np.random.default_rng(seed)
    patient, n = np.repeat(np.arange(patients), each), patients * each
    x, weight = rng.normal(size=n), rng.uniform(0.5, 2, n)
    T, C = rng.weibull(1.5, n) * np.exp(0.5 * x), rng.uniform(0.5, 4, n)
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    return cs.Sample(np.column_stack([patient, weight, x]), y, weight, 100 + patient)


def check_seen(least: int, shift: int = 100) -> None:
    assert len(Recording.seen) >= least
    for patient, groups, weight, passed in Recording.seen:
        np.testing.assert_array_equal(groups, patient + shift)
        np.testing.assert_array_equal(passed, weight)


def same() -> FunctionTransformer:
    return FunctionTransformer()


def search(model, parameter: str) -> GridSearchCV:
    return GridSearchCV(model, {parameter: [0.0, 1.0]}, cv=GroupKFold(3), scoring=cs.scorer("crps"))


MODELS = {
    "alone": (Recording(), 3),
    "adapted": (cs.Adapted(Recording()), 3),
    "pipeline": (make_pipeline(same(), Recording()), 3),
    "with C": (cs.WithCensoring(Recording(), cs.Censoring(Recording())), 6),
    "margins": (cs.JointFromMargins(Recording()), 3),
    "stack": (cs.Stacking([("a", Recording()), ("b", cs.KaplanMeier())], random_state=0), 18),
    "search": (search(cs.WithCensoring(Recording()), "model__alpha"), 3 * 7),
    "pipeline of a search": (
        make_pipeline(same(), search(cs.WithCensoring(Recording()), "model__alpha")),
        21,
    ),
    "search of a pipeline": (
        search(make_pipeline(same(), cs.WithCensoring(Recording())), "withcensoring__model__alpha"),
        21,
    ),
    "stack in a search": (
        search(cs.WithCensoring(cs.Stacking([("a", Recording())], random_state=0)), "model__a__alpha"),
        21 * 6,
    ),
    "search in a stack": (
        cs.Stacking([("a", search(cs.WithCensoring(Recording()), "model__alpha"))], random_state=0),
        3 * 6 * 7,
    ),
}


@pytest.mark.parametrize("name", MODELS)
def test_cross_validation_hands_weights_and_groups_to_every_fit(name):
    model, fits = MODELS[name]
    sample = visits()
    cs.cross_validate({"model": model}, None, sample, cv=3, **PLAIN)
    check_seen(fits)
    assert len(Recording.seen) == fits
    for patient, *_ in Recording.seen:
        assert (np.unique(patient, return_counts=True)[1] == 4).all()  # no visits are torn apart


def test_models_of_other_libraries_and_functions_get_groups():
    sample = visits()
    cs.cross_validate({"other": Structured()}, None, sample, cv=3, **PLAIN)
    check_seen(3)

    def forecast(X, y, X_test, sample_weight=None, groups=None):
        return Recording().fit(X, y, sample_weight, groups=groups).predict_distribution(X_test)

    Recording.seen.clear()
    cs.cross_validate({"function": forecast}, None, sample, cv=3, **PLAIN)
    check_seen(3)


def test_every_cause_and_the_censoring_distribution_of_every_fold_get_groups():
    sample = visits()
    cause = np.where(sample.y.event, 1 + (np.arange(len(sample)) // 3) % 2, 0)
    risks = cs.Sample(sample.X, cs.CompetingRisks(sample.y.time, cause), sample.weight, sample.groups)
    cs.cross_validate({"a": cs.CauseSpecific(Recording())}, None, risks, cv=3, **PLAIN)
    check_seen(6)
    Recording.seen.clear()
    cs.cross_validate({"km": cs.KaplanMeier()}, None, sample, cv=3, censoring=Recording(), **PLAIN)
    check_seen(3)


def test_compare_hands_groups_of_training_subjects_to_the_reference_and_to_C():
    train, scored = visits(seed=1), visits(seed=2)
    F = cs.KaplanMeier().fit(None, train.y).predict_distribution()
    C = cs.Censoring(Recording(), refits=2)
    cs.compare({"km": F}, scored, C, train=train, reference=Recording(), **PLAIN)
    check_seen(2)
    Recording.seen.clear()
    cs.compare({"km": F}, scored, cs.Censoring(Recording(), cv=4, refits=2), reference=None, **PLAIN)
    check_seen(5)


def test_copies_in_bootstrap_samples_are_one_group():
    """In the samples that models are fitted to, and in those that an estimate of C is refitted to."""
    sample = visits(60, each=1)
    y, X = sample.y, sample.X
    cs.cross_validate({"a": Recording()}, X, y, cv=cs.Bootstrap(3), sample_weight=sample.weight, **PLAIN)
    check_seen(3, shift=0)
    Recording.seen.clear()
    F = cs.KaplanMeier().fit(None, y).predict_distribution()
    C = cs.Censoring(Recording(), refits=4)
    cs.compare({"km": F}, y, C, X=X, sample_weight=sample.weight, reference=None, **PLAIN)
    assert len(Recording.seen) >= 5
    for patient, groups, *_ in Recording.seen[1:]:
        np.testing.assert_array_equal(groups, patient)


# ---- what came of it: members that remember ------------------------------------------------------------


class Memory(cs.estimators.SurvivalEstimator):
    """Forecasts the time of the training subject with the nearest covariates."""

    def fit(self, X, y, sample_weight=None):
        self.time_, self.near_ = np.asarray(y.time), NearestNeighbors(n_neighbors=1).fit(X)
        return self

    def predict_distribution(self, X=None):
        nearest = self.near_.kneighbors(X)[1][:, 0]
        return cs.LogNormal(np.log(self.time_[nearest]), np.full(len(nearest), 0.3))


class Weighed(cs.Stacking):
    """A stack that keeps the weight of its member "memory"."""

    weights: list[float] = []  # noqa: RUF012

    def fit(self, X, y, sample_weight=None, *, censoring=None, groups=None, mask=None):
        super().fit(X, y, sample_weight, censoring=censoring, groups=groups, mask=mask)
        self.weights.append(self.weights_["memory"])
        return self


class Unaware(Weighed):
    """The same without groups."""

    def fit(self, X, y, sample_weight=None):
        return super().fit(X, y, sample_weight)


def weighed(kind, X, y, **options) -> tuple[float, float]:
    """The mean weight of the member that remembers, and the mean loss of the stack."""
    Weighed.weights.clear()
    stack = kind([("memory", Memory()), ("weibull", cs.WeibullRegression())], random_state=0)
    found = cs.cross_validate({"stack": stack}, X, y, reference=None, **PLAIN, **options)
    return float(np.mean(Weighed.weights)), float(found.frame()["mean"].iloc[0])


def test_a_member_that_remembers_patients_gets_no_weight():
    rng = np.random.default_rng(0)
    patient, x, frailty = np.repeat(np.arange(100), 4), rng.normal(size=(100, 2)), rng.normal(size=100)
    T = np.exp(0.8 * frailty[patient] + 0.3 * x[patient, 0] + 0.25 * rng.normal(size=400))
    C = rng.uniform(0.5, 8, 400)
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    without, loss_without = weighed(Unaware, x[patient], y, groups=patient)
    weight, loss = weighed(Weighed, x[patient], y, groups=patient)
    assert without > 0.8
    assert weight < 0.3
    assert loss < loss_without - 0.1


def test_a_member_that_remembers_copies_gets_less_weight_in_bootstrap_samples():
    rng = np.random.default_rng(0)
    x = rng.normal(size=(200, 2))
    T, C = np.exp(0.5 * x[:, 0] + 0.3 * rng.normal(size=200)), rng.uniform(0.5, 4, 200)
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    without, loss_without = weighed(Unaware, x, y, cv=cs.Bootstrap(6))
    weight, loss = weighed(Weighed, x, y, cv=cs.Bootstrap(6))
    assert without > 0.45
    assert weight < 0.25
    assert loss < loss_without - 0.01


def test_trees_that_recognise_patients_stop_early():
    rng = np.random.default_rng(0)
    patient, x, frailty = np.repeat(np.arange(60), 6), rng.normal(size=(60, 2)), rng.normal(size=60)
    T = rng.exponential(np.exp(1.5 * frailty[patient]))
    y = cs.RightCensored(np.minimum(T, 4.0), T <= 4.0)
    trees = cs.BoostedHazards(random_state=0)
    without = trees.fit(x[patient], y).n_trees_
    assert cs.BoostedHazards(random_state=0).fit(x[patient], y, groups=patient).n_trees_ < without / 2
    for train, held in completed_folds(patient, [], 0):
        assert not set(patient[train]) & set(patient[held])


# ---- searches whose folds know nothing of groups ---------------------------------------------------------


@pytest.mark.parametrize(("cv", "told"), [(3, True), (GroupKFold(3), False)])
def test_a_search_that_tears_groups_apart_is_told(cv, told):
    sample = visits()
    model = GridSearchCV(cs.WithCensoring(cs.CoxRegression()), {"model__alpha": [0.1]}, cv=cv)
    grouped = cs.cross_validate({"s": make_pipeline(same(), model)}, None, sample, cv=3, **PLAIN)
    X, y = sample.X, sample.y
    bootstrap = cs.cross_validate({"s": model}, X, y, cv=cs.Bootstrap(3), **PLAIN)
    for found in (grouped, bootstrap):
        assert any("search of 's'" in note for note in found.notes) == told


def test_a_search_is_not_told_of_groups_where_there_are_none():
    sample = visits()
    model = GridSearchCV(cs.WithCensoring(cs.CoxRegression()), {"model__alpha": [0.1]}, cv=3)
    found = cs.cross_validate({"s": model}, sample.X, sample.y, cv=3, **PLAIN)
    assert not any("search" in note for note in found.notes)


def test_other_groups_are_other_results_in_a_store(tmp_path):
    sample = visits()
    folds = [(np.arange(80, 160), np.arange(80)), (np.arange(80), np.arange(80, 160))]
    for groups in (sample.groups, sample.groups, sample.groups // 2):
        cv = cs.Folds(folds, store=tmp_path)
        options = {"groups": groups, "sample_weight": sample.weight}
        cs.cross_validate({"a": Recording()}, sample.X, sample.y, cv=cv, reference=None, **options, **PLAIN)
    assert len(Recording.seen) == 4  # the second time, both folds come from the store
