"""Evaluations of single forecasts: side by side they are the comparison, also after a pickle."""

import json
import pickle

import numpy as np
import pandas as pd
import pytest

import censcore as cs
from censcore.exceptions import InvalidInputError, InvalidTypeError

KM = cs.Censoring(cs.KaplanMeier())


def data(n=150, seed=4):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    T, C = rng.weibull(1.5, n) * np.exp(x), rng.uniform(0, 4, n)
    y = cs.RightCensored(np.minimum(T, C).round(2), T <= C)
    forecasts = {"with x": cs.Weibull(1.5, np.exp(x)), "without": cs.Weibull(1.5, 1.0)}
    return y, forecasts, {"sample_weight": rng.integers(0, 3, n), "groups": np.arange(n) // 3, "by": x > 0}


def evaluated(y, forecasts, censoring=KM, **options):
    return {name: cs.evaluate(F, y, censoring, name=name, **options) for name, F in forecasts.items()}


@pytest.mark.parametrize(
    "censoring",
    [KM, cs.Censoring(cs.KaplanMeier(), cv=3), cs.Uniform(0.0, 4.0)],
    ids=["curve", "folds", "known"],
)
def test_evaluations_side_by_side_are_the_comparison(censoring):
    y, forecasts, subjects = data()
    options = subjects | {"horizon": 2.0}
    together = cs.compare(forecasts, y, censoring, reference="without", discrimination=False, **options)
    apart = cs.compare(evaluated(y, forecasts, censoring, **options), reference="without")
    pd.testing.assert_frame_equal(apart.frame(discrimination=False), together.frame(), rtol=1e-12)
    pd.testing.assert_frame_equal(apart.differences(discrimination=False), together.differences(), rtol=1e-12)
    assert apart.verdict.sentences[0] == together.verdict.sentences[0]


def test_evaluations_may_be_made_elsewhere_and_come_back():
    y, forecasts, subjects = data()
    made = evaluated(y, forecasts, **subjects)
    again = {name: pickle.loads(pickle.dumps(each)) for name, each in made.items()}
    pd.testing.assert_frame_equal(cs.compare(again).frame(), cs.compare(made).frame())
    assert repr(again["with x"]) == repr(made["with x"])


def test_forecasts_that_are_functions_of_others_can_be_kept():
    """What was passed in place of a forecast or an estimator is not kept, so that it need not be pickled."""
    y, _, _ = data()
    comparison = cs.cross_validate(
        {"a": lambda X, y, X_test: cs.Weibull(1.5, 1.0)}, None, y, cv=2, scores="crps", discrimination=False
    )
    again = pickle.loads(pickle.dumps(comparison.evaluations["a"]))
    assert again.estimate("crps").value == comparison.estimate("a", "crps").value


def test_its_document_holds_no_subject():
    y, forecasts, _ = data()
    found = json.loads(cs.evaluate(forecasts["with x"], y, KM, name="a").to_json())
    assert {line["model"] for line in found["means"]} == {"a"}
    numbers = json.dumps(found)
    assert len(numbers) < 20_000
    assert found["settings"]["subjects"] == len(y)


def test_an_estimate_has_its_influence():
    y, forecasts, subjects = data()
    found = cs.evaluate(forecasts["with x"], y, KM, scores="crps", **subjects)
    mean = found.estimate("crps")
    assert mean.value.shape == (1,)
    np.testing.assert_allclose(np.sqrt((mean.influence**2).sum(axis=0)), mean.standard_error)
    assert found.estimate("brier_score") is None
    assert len(found.frame()) == 3  # all subjects, and two subgroups


@pytest.mark.parametrize(
    ("change", "what"),
    [
        ({"horizon": 1.5}, "times"),
        ({"scores": "brier_score"}, "scores"),
        ({"sample_weight": np.arange(150) + 1.0}, "weights and subgroups"),
        ({"censoring": cs.Uniform(0.0, 4.0)}, "the censoring distribution"),
    ],
)
def test_evaluations_by_other_decisions_are_not_compared(change, what):
    y, forecasts, _ = data()
    options = {"censoring": KM, "scores": "crps", "horizon": 2.0}
    made = {
        "a": cs.evaluate(forecasts["with x"], y, **options),
        "b": cs.evaluate(forecasts["without"], y, **options | change),
    }
    with pytest.raises(InvalidInputError, match=f"'b' differs from 'a' in .*{what}"):
        cs.compare(made)


def test_other_subjects_are_not_compared():
    (y, forecasts, _), (other, _, _) = data(), data(seed=5)
    made = {"a": cs.evaluate(forecasts["without"], y, KM), "b": cs.evaluate(forecasts["without"], other, KM)}
    with pytest.raises(InvalidInputError, match="differs from 'a' in outcomes"):
        cs.compare(made)


def test_evaluations_come_alone():
    y, forecasts, _ = data()
    made = cs.evaluate(forecasts["with x"], y, KM)
    with pytest.raises(InvalidTypeError, match="'b', expected evaluations alone"):
        cs.compare({"a": made, "b": forecasts["without"]})
    with pytest.raises(InvalidTypeError, match="with y, expected evaluations alone"):
        cs.compare({"a": made}, y)
    with pytest.raises(InvalidInputError, match="reference"):
        cs.compare({"a": made}, reference="c")
