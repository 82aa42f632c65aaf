"""What the checks that public functions share return, and what their errors say."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import censcore as cs
from censcore import _validation as gate
from censcore.exceptions import InvalidIndexError, InvalidInputError, InvalidTypeError

ACCEPTED = [
    (gate.as_names(["relapse", "death"], 2), ("relapse", "death")),
    (gate.as_number(np.float32(2.0), "horizon", above=0), 2.0),
    (gate.as_count(10, "bins"), 10),
    (gate.as_index(np.int64(-1), "j"), -1),
    (gate.as_coordinate(-1, 2, "The outcome"), 1),
    (gate.as_seed(7), 7),
    (gate.as_codes([0.0, 2.0], "group").tolist(), [0, 2]),
    (gate.as_cause_codes(np.array([0.0, 2.0]), "cause", "censored").tolist(), [0, 2]),
    (gate.as_events([1, 0], np.array([[1.0], [2.0]])).tolist(), [[True], [False]]),
    (gate.name_subjects([3]), "1 subject (3)"),
    (gate.name_subjects(range(12)), "12 subjects (0, 1, 2, 3, 4, ...)"),
    (gate.as_weights([1, 3], 2).tolist(), [1.0, 3.0]),
    (gate.as_labels(["a", "b", "a"], 3).tolist(), ["a", "b", "a"]),
]
TWICE = pd.DataFrame([[1.0, 2.0]], columns=["age", "age"])
REFUSED = [
    (
        lambda: gate.check_instance(cs.KaplanMeier, "censoring"),
        InvalidTypeError,
        "censoring: got the class KaplanMeier, expected an instance. Write KaplanMeier(...), with "
        "parentheses.",
    ),
    (
        lambda: gate.check_kind([1.0], "frozen", dict, "a dictionary. Pass dict(...)"),
        InvalidTypeError,
        "frozen: got list, expected a dictionary. Pass dict(...).",
    ),
    (
        lambda: gate.check_method(3.0, "estimator", "fit", "an estimator with fit(X, y)"),
        InvalidTypeError,
        "estimator: got float, expected an estimator with fit(X, y).",
    ),
    (
        lambda: gate.check_option("ipwc", "scale", ("localized", "ipcw")),
        InvalidInputError,
        "scale must be 'localized' or 'ipcw'; got 'ipwc'.",
    ),
    (
        lambda: gate.check_flag("no", "fair"),
        InvalidTypeError,
        "fair must be True or False; got 'no'.",
    ),
    (
        lambda: gate.as_list(3.0, "landmarks", "times"),
        InvalidTypeError,
        "landmarks: got 3.0, expected a list of times.",
    ),
    (
        lambda: gate.as_frame(3.0),
        InvalidTypeError,
        "frame: got float, expected a data frame of pandas, polars or pyarrow.",
    ),
    (
        lambda: gate.as_frame(TWICE, name="X"),
        InvalidInputError,
        "X: got the name 'age' of 2 columns, expected one column of each name. Rename them, or leave out all "
        "but one.",
    ),
    (
        lambda: gate.as_number(-1, "horizon", above=0),
        InvalidInputError,
        "horizon must be a finite number above 0; got -1.",
    ),
    (
        lambda: gate.as_count(2.5, "bins"),
        InvalidInputError,
        "bins must be a whole number of at least 1; got 2.5.",
    ),
    (
        lambda: gate.as_confidence(95),
        InvalidInputError,
        "confidence: got 95, expected a number between 0 and 1, such as 0.95.",
    ),
    (
        lambda: gate.as_generator(1e300),
        InvalidInputError,
        "seed must be a whole number of at least 0, a list of them, a numpy.random.Generator or None; got "
        "1e+300.",
    ),
]


@pytest.mark.parametrize(("value", "expected"), ACCEPTED)
def test_what_is_accepted(value, expected):
    assert value == expected


@pytest.mark.parametrize(("call", "kind", "message"), REFUSED)
def test_what_an_error_says(call, kind, message):
    with pytest.raises(kind) as caught:
        call()
    assert str(caught.value) == message


def test_columns_may_have_names_that_are_numbers():
    columns = gate.columns_of(pd.DataFrame([[1.5, 2.5]]))
    assert [(name, column.to_list()) for name, column in columns] == [(0, [1.5]), (1, [2.5])]


@pytest.mark.parametrize(
    ("check", "error"),
    [
        (lambda: gate.as_number(True, "x"), InvalidTypeError),
        (lambda: gate.as_number("1", "x"), InvalidTypeError),
        (lambda: gate.as_number(np.inf, "x"), InvalidInputError),
        (lambda: gate.as_number(10**400, "x"), InvalidInputError),
        (lambda: gate.as_count(True, "x"), InvalidTypeError),
        (lambda: gate.as_count(np.nan, "x"), InvalidInputError),
        (lambda: gate.as_weights([1e308, 1e308], 2), InvalidInputError),
        (lambda: gate.as_labels([1.0, np.nan], 2), InvalidInputError),
        (lambda: gate.as_labels(np.array(["a", 1], dtype=object), 2), InvalidTypeError),
        (lambda: gate.check_option(["a"], "x", ("a", "b")), InvalidInputError),
        (lambda: cs.Exponential([1.0, 2.0]).take(["a"]), InvalidIndexError),
    ],
)
def test_checks_name_what_is_wrong(check, error):
    with pytest.raises(error):
        check()
