"""The cases: their numbers follow from their arithmetic, from definitions, and from the library."""

from __future__ import annotations

import math

import numpy as np
import pytest
from conformance.case import numbers

from censcore.exceptions import InvalidInputError
from conformance import cases, conventions, library, run, schema
from tests.conformance import reference

ENTRIES = reference.entries()
WITH_ANSWER = [entry for entry in ENTRIES if "value" in entry["expected"]]
VARIANTS = [(entry, variant) for entry in ENTRIES for variant in entry.get("variants", [])]


def named(thing):
    return thing["id"] if isinstance(thing, dict) and "id" in thing else ""


def close(found, expected, tolerance=1e-12):
    found, expected = (np.array([float(x) for x in values]) for values in (found, expected))
    np.testing.assert_allclose(found, expected, rtol=tolerance, atol=tolerance)


@pytest.mark.parametrize("entry", WITH_ANSWER, ids=named)
def test_the_value_is_that_of_its_arithmetic(entry):
    expected = entry["expected"]
    close(numbers(expected["value"]), [reference.arithmetic(text) for text in expected["exact"]])


@pytest.mark.parametrize("entry", WITH_ANSWER, ids=named)
def test_the_value_follows_from_the_definition(entry):
    # a continuous distribution of C is enumerated at midpoints
    tolerance = 1e-4 if entry.get("censoring", {}).get("kind") == "uniform" else 1e-12
    close(reference.compute(entry), numbers(entry["expected"]["value"]), tolerance)


@pytest.mark.parametrize(("entry", "variant"), VARIANTS, ids=named)
def test_the_value_of_another_convention_follows_from_its_rule(entry, variant):
    close(numbers(variant["value"]), [reference.arithmetic(text) for text in variant["exact"]])
    try:
        found = reference.variant(entry, [*variant["names"]])
    except NotImplementedError:
        return  # its arithmetic is the derivation
    close(found, numbers(variant["value"]))


def test_most_conventions_are_computed_by_rule():
    done = 0
    for entry, variant in VARIANTS:
        try:
            reference.variant(entry, [*variant["names"]])
        except NotImplementedError:
            continue
        done += 1
    assert done > 0.6 * len(VARIANTS)


@pytest.mark.parametrize("case", cases(), ids=lambda case: case.id)
def test_other_conventions_give_other_numbers(case):
    known = [case.expected] if case.expected is not None else []
    for variant in case.variants:
        assert all(
            value.shape != variant.value.shape or np.abs(value - variant.value).max() > 1e-4
            for value in known
            if np.isfinite(value).all()
        ), variant.names
        known.append(variant.value)


def test_every_case_is_right_in_this_library():
    results = run(library("censcore"))
    assert results.counts() == {"right": len(cases())}, str(results)


def test_every_question_is_asked():
    asked = {case.topic for case in cases()}
    assert asked >= {
        "ties",
        "left limits",
        "G = 0",
        "censored exactly at t",
        "unsorted times",
        "horizon edges",
        "mass at infinity",
        "bin edges",
        "competing events",
        "delayed entry",
        "weights",
    }
    quantities = schema()["$defs"]["case"]["properties"]["quantity"]["enum"]
    assert {case.quantity for case in cases()} == set(quantities)
    assert len({case.id for case in cases()}) == len(cases())


TYPES = {"object": dict, "array": list, "string": str, "integer": int, "number": (int, float)}


def breaches(value, rule, path="file"):
    """What of a value does not fit the parts of JSON Schema that the format uses."""
    if "$ref" in rule:
        rule = schema()["$defs"][rule["$ref"].rsplit("/", 1)[1]]
    if "enum" in rule and value not in rule["enum"]:
        yield f"{path}: {value!r}"
    if "type" in rule and not isinstance(value, TYPES[rule["type"]]):
        yield f"{path}: {type(value).__name__}"
    if isinstance(value, dict):
        properties = rule.get("properties", {})
        yield from (f"{path}: no {name}" for name in rule.get("required", []) if name not in value)
        if not rule.get("additionalProperties", True):
            yield from (f"{path}: unknown {name}" for name in value if name not in properties)
        for name, part in value.items():
            yield from breaches(part, properties.get(name, {}), f"{path}.{name}")
    elif isinstance(value, list) and "items" in rule:
        for k, part in enumerate(value):
            yield from breaches(part, rule["items"], f"{path}[{k}]")


def test_the_files_have_the_documented_format():
    files = reference.files(parse=None)
    assert sum(len(file["cases"]) for file in files) == len(cases())
    assert [found for file in files for found in breaches(file, schema())] == []
    wrong = {"cases": [{"id": "a", "title": "", "topic": "", "quantity": "guess", "outcome": {}, "more": 1}]}
    found = list(breaches(wrong, schema()))
    assert len(found) == 4  # no expected, unknown more, the quantity, no time


def test_conventions_are_explained_and_used():
    used = {name for case in cases() for variant in case.variants for name in variant.names}
    assert used == set(conventions())


def test_numbers_are_read():
    assert numbers(["1/4", "inf", 2]).tolist() == [0.25, math.inf, 2.0]
    assert numbers([[1, "1/2"]]).shape == (1, 2)


def test_cases_are_chosen_by_id_and_quantity():
    assert [case.id for case in cases("crps-tie")] == ["crps-tie"]
    assert {case.quantity for case in cases("crps", "concordance")} == {"crps", "concordance"}
    with pytest.raises(InvalidInputError, match="expected ids or quantities"):
        cases("brier")


def test_forecasts_are_read_at_times():
    case = cases("brier-ipcw-no-ties")[0]
    np.testing.assert_array_equal(case.survival([0.5, 1.0, 2.5, 9.0])[0], [1.0, 0.5, 0.25, 0.125])
    with pytest.raises(InvalidInputError, match="no step forecast"):
        cases("harrell-simple")[0].survival([1.0])
    cause = cases("cause-brier-ipcw")[0]
    np.testing.assert_array_equal(cause.incidence([0.5, 1.0, 5.0])[1, 0], [0.0, 0.125, 0.25])
    with pytest.raises(InvalidInputError, match="competing risks"):
        case.incidence()
