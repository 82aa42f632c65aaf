"""The runner says of each case what came out."""

from __future__ import annotations

import math
import warnings

import numpy as np
import pytest

from censcore.exceptions import InvalidInputError
from conformance import NotOffered, Result, cases, library, run

TIE, ZERO = cases("brier-ipcw-tie")[0], cases("brier-ipcw-zero-G")[0]


def given(value, case=TIE):
    """The result of a library that gives this value, or raises it."""

    def function(_):
        if isinstance(value, Exception):
            raise value
        return value

    return run({case.quantity: function}, case.id)[0]


def test_right_and_wrong():
    assert given(TIE.expected).status == "right"
    assert given(TIE.expected + 1e-8).status == "right"
    result = given(TIE.expected + 0.01)
    assert result.status == "wrong"
    assert "off by 0.01 " in result.detail
    assert given(math.nan).detail == "gives nan"
    assert "got 2 numbers, expected 1" in given([0.1, 0.2]).detail


def test_another_convention_is_named():
    for variant in TIE.variants:
        result = given(variant.value)
        assert (result.status, result.detail) == ("convention", "; ".join(variant.names))


def test_errors_and_what_is_not_offered():
    result = given(ValueError("times  out of\nrange"))
    assert (result.status, result.detail) == ("error", "ValueError: times out of range")
    assert given(NotOffered("no weights")).status == "not offered"
    assert run({}, TIE.id)[0].status == "not offered"


def test_where_there_is_no_answer():
    assert given(ValueError("P(C > t) = 0"), ZERO).status == "right"
    assert given(math.nan, ZERO).status == "right"
    assert given(math.inf, ZERO).status == "right"
    assert given(0.3, ZERO).status == "silent"
    assert given(0.125, ZERO).detail == "gives 0.125: no weight where G = 0"

    def warns(_):
        warnings.warn("G is zero", UserWarning, stacklevel=2)
        return 0.3

    assert run({ZERO.quantity: warns}, ZERO.id)[0].status == "warned"


def test_infinite_numbers_are_compared():
    case = cases("log-outside")[0]
    assert given(math.inf, case).status == "right"
    assert given(3.0, case).status == "wrong"


def test_results_are_counted_and_printed():
    results = run({"concordance": lambda case: 0.8}, "concordance")
    assert sum(results.counts().values()) == len(results) == len(cases("concordance"))
    assert "right: 2" in str(results)
    assert isinstance(results[0], Result)


def test_cases_of_others_are_run():
    assert len(run({}, suite=[TIE, ZERO])) == 2


def test_bad_arguments_are_explained():
    with pytest.raises(InvalidInputError, match="expected a dictionary"):
        run(np.mean)
    with pytest.raises(InvalidInputError, match="expected one of"):
        library("surv")
