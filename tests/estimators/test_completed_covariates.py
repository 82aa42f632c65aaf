"""Tables as complete numbers: categories, missing values, values far from those of the fit."""

import numpy as np
import pandas as pd
import polars as pl
import pytest

from censcore import BoostedHazards, RightCensored
from censcore.estimators.encoding import CompletedCovariates
from censcore.exceptions import ExtrapolationWarning, InvalidInputError, InvalidTypeError, NotFittedError

AGE, STAGE = [50.0, None, 60.0, 70.0], ["II", "I", None, "I"]


@pytest.mark.parametrize("frame", [pd.DataFrame, pl.DataFrame])
def test_frames(frame):
    X = frame({"age": AGE, "stage": STAGE, "old": [False, False, True, True]})
    completed = CompletedCovariates().fit(X)
    assert completed.names_ == ["age", "stage = II", "stage = missing", "old", "age is missing"]
    expected = [[50, 1, 0, 0, 0], [60, 0, 0, 0, 1], [60, 0, 1, 1, 0], [70, 0, 0, 1, 0]]
    np.testing.assert_array_equal(completed.transform(X), expected)


def test_whole_numbers_with_gaps():
    X = pd.DataFrame({"count": pd.array([1, None, 3], dtype="Int64")})
    np.testing.assert_array_equal(CompletedCovariates().fit_transform(X), [[1, 0], [2, 1], [3, 0]])


def test_gaps_that_the_fit_did_not_have_are_medians():
    completed = CompletedCovariates().fit(np.array([[1.0], [2.0], [6.0]]))
    with pytest.warns(ExtrapolationWarning, match="missing values of column 0, of which fit had none"):
        found = completed.transform(np.array([[np.nan], [3.0]]))
    np.testing.assert_array_equal(found, [[2.0], [3.0]])


def test_a_column_without_any_number():
    X = np.array([[np.nan, 1.0], [np.nan, 2.0]])
    np.testing.assert_array_equal(CompletedCovariates().fit_transform(X), [[0, 1, 1], [0, 2, 1]])


def test_far_values_are_held_at_the_border():
    X = np.array([[0.0, 5.0], [2.0, 5.0]])  # standard deviations 1 and 0
    completed = CompletedCovariates().fit(X)
    np.testing.assert_array_equal(completed.transform([[2.9, 5.0], [-0.9, 5.0]]), [[2.9, 5.0], [-0.9, 5.0]])
    with pytest.warns(ExtrapolationWarning, match="2 subjects"):
        found = completed.transform([[9.0, 5.0], [1.0, 4.0]])
    np.testing.assert_array_equal(found, [[3.0, 5.0], [1.0, 5.0]])


def test_new_levels_are_the_reference():
    completed = CompletedCovariates().fit(pd.DataFrame({"stage": ["I", "II", "I"]}))
    with pytest.warns(ExtrapolationWarning, match="'III' of 'stage'"):
        np.testing.assert_array_equal(completed.transform(pd.DataFrame({"stage": ["III"]})), [[0.0]])


def test_trees_get_gaps_and_far_values_as_they_are():
    model = BoostedHazards(max_iter=5, random_state=0)
    X = np.array([[1.0], [np.nan], [2.0]] * 5)
    model.fit(X, RightCensored(np.arange(1.0, 16.0), np.ones(15, dtype=bool)))
    codes = model._codes(np.array([[np.nan], [99.0], [2.0]]), reset=False)
    assert np.isnan(codes[0, 0])
    assert codes[1, 0] > codes[2, 0]


def test_errors():
    with pytest.raises(NotFittedError):
        CompletedCovariates().transform(np.zeros((2, 1)))
    completed = CompletedCovariates().fit(pd.DataFrame({"stage": ["I", "II"]}))
    with pytest.raises(InvalidInputError, match="data frame"):
        completed.transform(np.zeros((2, 1)))
    with pytest.raises(InvalidInputError, match="features"):
        CompletedCovariates().fit(np.zeros((3, 2))).transform(np.zeros((3, 1)))
    with pytest.raises(InvalidInputError, match="infinity"):
        CompletedCovariates().fit(np.array([[np.inf], [1.0]]))
    with pytest.raises(InvalidTypeError, match="numbers"):
        CompletedCovariates().fit(np.array([["a"], ["b"]]))
