"""Stacks in model files: the same forecasts to the last bit, no subject, no code."""

import numpy as np
import pandas as pd
import pytest
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import RobustScaler, StandardScaler

import censcore as cs
from censcore.estimators.saved_models import Trees
from censcore.estimators.stacking.stacking_subjects import stack_folds
from censcore.exceptions import InvalidInputError, ModelFileError
from censcore.model_files import read_model_file, write_model_file

N = 151  # no array of the file has so many rows
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, 3))
T = np.exp(0.5 * np.abs(X[:, :1]) + 0.4 * RNG.normal(size=(N, 2)))
C = RNG.uniform(0.3, 4, size=(N, 1))
TIME, EVENT = np.minimum(T, C).round(2) + 0.01, T <= C
ONE = cs.RightCensored(TIME[:, 0], EVENT[:, 0])
SIMPLE = [
    ("cox", make_pipeline(StandardScaler(), cs.CoxRegression(alpha=1.0))),
    ("km", cs.KaplanMeier()),
    ("weibull", cs.WeibullRegression()),
    ("trees", cs.BoostedHazards(max_iter=20, random_state=0)),
]


def outcomes():
    late = TIME[:, 0] > TIME[:, 1]
    before = np.where(late[:, None] & [True, False], TIME[:, 1:], TIME)
    causes = np.where(EVENT.any(axis=1), 1 + TIME.argmin(axis=1), 0)
    return {
        "one": ONE,
        "two": cs.RightCensored(TIME, EVENT),
        "causes": cs.CompetingRisks(TIME.min(axis=1), causes, names=["relapse", "death"]),
        "semi-competing": cs.SemiCompetingRisks(before, EVENT & ~(late[:, None] & [True, False]), 1),
    }


def test_trees_predict_what_the_regressor_does():
    Z = np.where(RNG.random((N, 3)) < 0.1, np.nan, X)
    model = HistGradientBoostingRegressor(loss="poisson", max_iter=15, max_leaf_nodes=6).fit(Z, TIME[:, 0])
    np.testing.assert_array_equal(Trees(model).predict(Z), model.predict(Z))


def test_a_stack_of_simple_models(tmp_path):
    frame = pd.DataFrame(X, columns=["a", "b", "c"])
    stack = cs.Stacking(SIMPLE, baselines=["km"], random_state=0).fit(frame, ONE)
    assert len(stack.estimators_) > 1
    stack.save(tmp_path / "stack")
    again = cs.load(tmp_path / "stack")
    assert type(again) is cs.Stacking
    assert repr(again) == repr(stack)
    pd.testing.assert_frame_equal(again.summary(), stack.summary())
    t = np.linspace(0.1, 3, 9)[None]
    found, expected = (model.predict_distribution(frame).sf(t) for model in (again, stack))
    np.testing.assert_array_equal(found, expected)
    found, expected = (model.risk_interval(frame, t[0]) for model in (again, stack))
    np.testing.assert_array_equal(found, expected)
    assert again.censoring_ is None
    arrays, _ = read_model_file(tmp_path / "stack", "Stacking")
    of_subjects = {N, *(len(rows) for fold in stack_folds(np.arange(N), "auto", 0) for rows in fold)}
    assert all(of_subjects.isdisjoint(array.shape) for array in arrays.values())
    again.fit(frame, ONE)
    assert again.weights_ == stack.weights_


@pytest.mark.usefixtures("brief_members")
@pytest.mark.parametrize(
    "kind",
    ["one", "causes", *(pytest.param(kind, marks=pytest.mark.slow) for kind in ("two", "semi-competing"))],
)
def test_the_default_stack(kind, tmp_path):
    model = cs.BestForecast(epochs=1, random_state=0, device="cpu", n_samples=64).fit(X, outcomes()[kind])
    model.save(tmp_path / "stack")
    again = cs.load(tmp_path / "stack", device="cpu")
    assert type(again) is cs.BestForecast
    assert again.weights_ == model.weights_
    np.testing.assert_array_equal(again.sample(X[:20]), model.sample(X[:20]))
    np.testing.assert_array_equal(again.follow_up_, model.follow_up_)


def test_networks_of_a_stack(tmp_path):
    pytest.importorskip("torch", reason="networks need the extra 'torch'")
    networks = [
        ("density", cs.MixtureDensityNetwork(epochs=2, random_state=0, device="cpu")),
        ("engression", cs.CensoredEngression(epochs=2, n_networks=2, random_state=0, device="cpu")),
    ]
    stack = cs.Stacking(networks, random_state=0, n_samples=64).fit(X, outcomes()["two"])
    stack.save(tmp_path / "stack")
    again = cs.Stacking.load(tmp_path / "stack", device="cpu")
    np.testing.assert_array_equal(again.sample(X[:20]), stack.sample(X[:20]))


def test_a_member_that_cannot_be_kept_is_named(tmp_path):
    robust = [("robust", make_pipeline(RobustScaler(), cs.CoxRegression())), SIMPLE[1]]
    stack = cs.Stacking(robust, random_state=0).fit(X, ONE)
    with pytest.raises(InvalidInputError, match=r"'robust' holds a sklearn.*RobustScaler"):
        stack.save(tmp_path / "stack")
    assert not (tmp_path / "stack").exists()


@pytest.mark.parametrize(
    ("place", "new"),
    [
        ("class", "os.path.join"),
        ("class", "censcore.estimators.no_module.Cox"),
        ("class", "censcore.estimators.regression.cox.np"),
        ("class", "sklearn.pipeline.FeatureUnion"),
        ("class", None),
        ("state", 3),
    ],
)
def test_other_contents_are_errors_even_with_a_right_checksum(place, new, tmp_path):
    stack = cs.Stacking(SIMPLE[1:3], random_state=0).fit(X, ONE)
    stack.save(tmp_path / "stack")
    arrays, settings = read_model_file(tmp_path / "stack", "Stacking")
    dict(dict(settings["state"]["dict"])["estimators_"]["dict"])["km"][place] = new
    write_model_file(tmp_path / "stack", "Stacking", arrays, settings)
    with pytest.raises(ModelFileError, match="restored"):
        cs.load(tmp_path / "stack")


def test_files_of_other_models_are_told_apart(tmp_path):
    cs.Stacking(SIMPLE[1:3], random_state=0).fit(X, ONE).save(tmp_path / "stack")
    with pytest.raises(ModelFileError, match="got a Stacking, expected a BestForecast"):
        cs.BestForecast.load(tmp_path / "stack")
    with pytest.raises(cs.exceptions.NotFittedError):
        cs.Stacking(SIMPLE).save(tmp_path / "other")
