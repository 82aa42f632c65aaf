"""The freeze of comparisons finds a changed number and a changed sentence, and takes rounding for equal."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest
from benchmarks.freeze.changes import changes, left_over
from benchmarks.freeze.content import content_of

import censcore as cs


@pytest.fixture(scope="module")
def content():
    rng = np.random.default_rng(0)
    x, T, c = rng.normal(size=80), rng.exponential(1.0, 80), rng.uniform(0.0, 3.0, 80)
    y = cs.RightCensored(np.minimum(T, c), c >= T)
    forecasts = {"flat": cs.Exponential(1.0), "by x": cs.Exponential(np.exp(0.5 * x))}
    return content_of(cs.compare(forecasts, y, cs.Censoring(cs.KaplanMeier())), curves=True)


def test_the_same_content_has_no_changes(content):
    assert changes("a case", content, json.loads(json.dumps(content))) == []


@pytest.mark.parametrize(("factor", "found"), [(1 + 1e-13, False), (1 + 1e-8, True)])
def test_a_changed_number_is_found_beyond_rounding(content, factor, found):
    new = copy.deepcopy(content)
    new["means"][0]["standard_error"] *= factor
    assert [change.where for change in changes("a case", content, new)] == (
        ["means/all, integrated_brier_score:ipcw, flat/standard_error"] if found else []
    )


def test_a_changed_sentence_is_found(content):
    new = copy.deepcopy(content)
    new["notes"][0] += " That is all."
    new["verdict"]["sentences"].append("One more.")
    assert [change.where for change in changes("a case", content, new)] == [
        "verdict/sentences/number of lines", "notes/0",
    ]  # fmt: skip


def test_differences_are_known_as_well_as_the_means_they_are_of():
    about = {"score": "crps", "at": None}
    means = [about | {"model": m, "mean": 0.2, "standard_error": 0.01} for m in "ab"]
    line = about | {"model": "a", "versus": "b", "difference": 1e-9, "standard_error": 1e-9, "p_value": 0.3}
    old = {"means": means, "differences": [line]}
    rounded = {"means": means, "differences": [line | {"difference": 1e-9 + 1e-14, "p_value": 0.3 + 3e-6}]}
    moved = {"means": means, "differences": [line | {"difference": 1e-9 + 1e-12, "p_value": 0.301}]}
    assert changes("", old, rounded) == []
    assert len(changes("", old, moved)) == 2


def test_permitted_changes_have_a_value_and_a_reason(content):
    new = copy.deepcopy(content)
    new["settings"]["seed"] = 1
    found = changes("a case", content, new)
    permission = {"case": "a *", "where": "settings/seed", "old": 0, "new": 1, "reason": "another seed"}
    assert left_over(found, [permission]) == ([], [])
    assert left_over(found, [permission | {"new": 2}]) == (found, [permission | {"new": 2}])
    with pytest.raises(ValueError, match="without a reason"):
        left_over(found, [permission | {"reason": ""}])
