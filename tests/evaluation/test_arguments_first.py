"""Every argument is checked before any model is fitted."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
from sklearn.base import BaseEstimator

import censcore as cs
from censcore.exceptions import CenscoreError

N = 60
NO_NUMBERS = ["soon", [-1.0], [[1.0, 2.0]], [np.nan], ["a"], [np.inf], []]
WRONG = {
    "scores": ["no such", ["crps", "no such"], 3, {"a": 3}, [], {}],
    "times": NO_NUMBERS,
    "levels": [[1.5], [0.0], *NO_NUMBERS],
    "reference": ["nobody", 3, [1], cs.KaplanMeier, b"x", object(), cs.Exponential(np.ones(7))],
    "horizon": ["late", -1, np.nan, [1, 2]],
    "by": ["nothing", 3, [1, 2], {"a": [1]}, object(), ["a", "b"]],
    "censoring": ["no", 3, [1], cs.Censoring, object(), cs.Exponential(np.ones(7))],
    "sample_weight": [np.ones(3), "w", -np.ones(N), np.full(N, np.nan)],
    "groups": [np.ones(3), "g", np.ones(N)],
    "confidence": [2, "x", None],
    "discrimination": ["yes", 3],
    "time_unit": [3],
    "seed": [-1, "s", 1.5],
    "progress": ["x"],
    "names": [3, ["a"], "x"],
    "events": [3, "x", {"z": 1}],
    "cv": [1, "x", 0, [], [([0], [99])], object(), cs.Folds(cv="x")],
    "landmarks": [[], "x", [-1.0]],
    "window": [-1, "x"],
}


class Never(BaseEstimator):
    def fit(self, X, y, sample_weight=None):
        raise AssertionError("a model was fitted before all arguments were checked")

    def predict_distribution(self, X):
        raise AssertionError("a model was asked before all arguments were checked")


def subjects(causes: int):
    rng = np.random.default_rng(0)
    x, T, C = rng.normal(size=(N, 2)), rng.exponential(size=N), rng.uniform(0, 3, N)
    time, event = np.minimum(T, C), T <= C
    if causes == 1:
        return x, cs.RightCensored(time, event), cs.Exponential(np.ones(N))
    hazards = cs.CauseSpecificHazards([cs.Exponential(np.ones(N))] * 2)
    return x, cs.CompetingRisks(time, np.where(event, rng.integers(1, 3, N), 0)), hazards


def cases():
    for function in (cs.cross_validate, cs.compare, cs.compare_landmarks):
        for name in inspect.signature(function).parameters.keys() & WRONG.keys():
            yield pytest.param(function, name, id=f"{function.__name__} {name}")


@pytest.mark.parametrize("causes", [1, 2])
@pytest.mark.parametrize(("function", "name"), sorted(cases(), key=lambda case: case.id))
def test_wrong_arguments_are_told_before_the_first_fit(function, name, causes):
    x, y, forecast = subjects(causes)
    if function is cs.cross_validate:
        models, given = ({"never": Never()}, x, y), {}
    else:
        models = ({"known": forecast}, y)
        given = {"X": x, "censoring": cs.Censoring(Never()), "reference": Never(), "train": (x, y)}
        given |= {"landmarks": [0.3, 0.6]} if function is cs.compare_landmarks else {}
    with pytest.raises((AssertionError, CenscoreError), match=r"was fitted|was asked"):
        function(*models, **given)  # with right arguments the fit is reached
    for value in WRONG[name]:
        with pytest.raises(CenscoreError) as error:
            function(*models, **given | {name: value})
        assert "AssertionError" not in str(error.value), value


def test_messages_print_ten_values_at_most():
    _, y, forecast = subjects(1)
    many = list(np.linspace(-5, 10, 1000))
    for what in (
        {"times": many},
        {"times": np.array(many)},
        {"levels": many},
        {"scores": [str(a) for a in many]},
    ):
        with pytest.raises(CenscoreError) as error:
            cs.compare({"known": forecast}, y, cs.Censoring(cs.KaplanMeier()), **what)
        assert len(str(error.value)) < 900


class Shaped:
    """A model of somebody, with attributes that arrays have."""

    dtype = "mine"

    def __init__(self, shape: float = 1.5) -> None:
        self.shape = shape

    def get_params(self, deep=True):
        return {"shape": self.shape}

    def set_params(self, **given):
        return self

    def fit(self, X, y):
        self.scale = float(np.mean(y.time))
        return self

    def predict_distribution(self, X):
        return cs.Weibull(self.shape, np.full(len(X), self.scale))


class Bare(Shaped):
    get_params = None  # type: ignore[assignment]

    def __getattribute__(self, name):
        if name == "get_params":
            raise AttributeError(name)
        return super().__getattribute__(name)


class AsInScikitSurvival(BaseEstimator):
    def fit(self, X, y):
        self.scale_ = float(np.mean(y.time))
        return self

    def predict_survival_function(self, X):
        raise AssertionError("fit has failed")


@pytest.mark.parametrize("model", [Shaped(), Bare()])
def test_a_model_with_a_shape_is_no_array(model):
    x, y, _ = subjects(1)
    found = cs.cross_validate({"mine": model}, x, y, cv=3, scores="crps", discrimination=False)
    assert found.compared["models"]
    model.fit(x, y)
    assert (
        "crps"
        in repr(cs.compare({"mine": model}, y, cs.Censoring(cs.KaplanMeier()), X=x, scores="crps")).lower()
    )


def test_a_model_that_cannot_read_its_outcome_is_told_which_one_it_gets():
    x, y, _ = subjects(1)
    with pytest.raises(CenscoreError, match=r"structured array with the fields 'event' and 'time'"):
        cs.cross_validate({"mine": AsInScikitSurvival()}, x, y, cv=3)


def test_times_beyond_the_horizon_are_told_before_the_first_fit():
    x, y, _ = subjects(1)
    with pytest.raises(CenscoreError, match=r"times must lie between 0 and the horizon, 0\.5"):
        cs.cross_validate({"never": Never()}, x, y, times=[0.2, 0.7], horizon=0.5)
