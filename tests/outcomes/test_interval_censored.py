"""Interval-censored outcomes: what they hold, what they are made from, and what is wrong input."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

import censcore as cs
from censcore.exceptions import (
    InvalidInputError,
    InvalidTypeError,
    MissingVisitsError,
    UnsupportedOutcomeError,
)

INF = np.inf


def outcome(**options):
    return cs.IntervalCensored([0.0, 2.0, 6.0], [2.0, 4.0, INF], **options)


def test_parts_are_taken_with_their_visits_and_entries():
    y = outcome(visits=[[2.0, 4.0, np.nan], [2.0, 4.0, 6.0], [6.0, INF, INF]], entry=[0.0, 1.0, 2.0])
    some = y[[2, 0]]
    np.testing.assert_array_equal(some.lower, [6.0, 0.0])
    np.testing.assert_array_equal(some.visits, [[6.0, INF, INF], [2.0, 4.0, INF]])
    np.testing.assert_array_equal(some.entry, [2.0, 0.0])
    assert len(y[y.found]) == 2
    assert y[0].shape == (1,)
    np.testing.assert_array_equal(y.last_visit, [4.0, 6.0, 6.0])
    with pytest.raises(InvalidInputError, match="none was chosen"):
        y[[False, False, False]]


@pytest.mark.parametrize(
    "visits",
    [
        [[2.0, 4.0], [6.0, 4.0, 2.0], [6.0]],
        np.array([[2.0, 4.0, np.nan], [2.0, 4.0, 6.0], [6.0, np.nan, np.nan]]),
        pd.DataFrame({"a": [2.0, 2.0, 6.0], "b": [4.0, 4.0, None], "c": [None, 6.0, None]}).to_numpy(),
    ],
    ids=["lists", "NaN", "frame"],
)
def test_visits_may_be_ragged(visits):
    expected = [[2.0, 4.0, INF], [2.0, 4.0, 6.0], [6.0, INF, INF]]
    np.testing.assert_array_equal(outcome(visits=visits).visits, expected)


def test_a_schedule_of_all_subjects_is_stored_once():
    assert outcome(visits=np.array([6.0, 2.0, 4.0])).visits.shape == (1, 3)
    assert outcome(visits=[2.0, 4.0, 6.0])[[0, 1]].visits.shape == (1, 3)


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_from_frame(library):
    library = pytest.importorskip(library)
    columns = {"l": [0.0, 2.0], "u": [2.0, None], "v1": [2.0, 2.0], "v2": [3.0, None], "a": [1.0, 0.0]}
    y = cs.IntervalCensored.from_frame(library.DataFrame(columns), "l", "u", visits=["v1", "v2"], entry="a")
    np.testing.assert_array_equal(y.upper, [2.0, INF])
    np.testing.assert_array_equal(y.visits, [[2.0, 3.0], [2.0, INF]])
    assert y.has_delayed_entry
    with pytest.raises(InvalidInputError, match=r"\['lower'\] are not in the frame"):
        cs.IntervalCensored.from_frame(library.DataFrame(columns), upper="u")


def test_from_structured():
    kind = [("lower", float), ("upper", float), ("entry", float)]
    y = cs.IntervalCensored.from_structured(np.array([(1.0, 2.0, 0.5), (2.0, INF, 0.0)], dtype=kind))
    np.testing.assert_array_equal(y.entry, [0.5, 0.0])
    with pytest.raises(InvalidTypeError, match="'lower' and 'upper'"):
        cs.IntervalCensored.from_structured(np.array([(1.0,)], dtype=[("time", float)]))


def test_current_status_and_right_censored_data():
    y = cs.IntervalCensored.current_status([2.0, 3.0], [1, 0])
    np.testing.assert_array_equal(y.visits, [[2.0], [3.0]])
    both = cs.IntervalCensored.from_right_censored(cs.RightCensored([2.0, 3.0], [1, 0], entry=[1.0, 0.0]))
    np.testing.assert_array_equal(both.exact, [True, False])
    np.testing.assert_array_equal(both.entry, [1.0, 0.0])
    np.testing.assert_array_equal(both.detection().time, [2.0, 3.0])


def test_cut_visits_are_as_if_they_had_not_been_made():
    y = cs.IntervalCensored([0.0, 4.0, 4.0, 6.0], [2.0, 6.0, INF, INF], visits=[2.0, 4.0, 6.0])
    cut = y.censor_at(5.0)
    np.testing.assert_array_equal(cut.lower, [0.0, 4.0, 4.0, 4.0])
    np.testing.assert_array_equal(cut.upper, [2.0, INF, INF, INF])
    np.testing.assert_array_equal(y.censor_at([1.0, 6.0, 2.0, 9.0]).lower, [0.0, 4.0, 2.0, 6.0])
    with pytest.raises(MissingVisitsError, match="A horizon before the end of follow-up needs"):
        outcome().censor_at(5.0)
    exact = cs.IntervalCensored([3.0, 7.0], [3.0, 7.0]).censor_at(5.0)
    np.testing.assert_array_equal(exact.lower, [3.0, 5.0])
    np.testing.assert_array_equal(exact.upper, [3.0, INF])


def test_torch():
    torch = pytest.importorskip("torch")
    y = cs.IntervalCensored(torch.tensor([0.0, 2.0]), torch.tensor([2.0, INF]), visits=[2.0, 4.0])
    assert y.visits.dtype == torch.float32
    assert y.detection(until=3.0).time.tolist() == [2.0, 3.0]
    with pytest.raises(InvalidTypeError, match="different libraries"):
        cs.IntervalCensored(torch.tensor([0.0]), np.array([2.0]))
    assert isinstance(y.like(np.ones(1)).lower, np.ndarray)


@pytest.mark.parametrize(
    ("lower", "upper", "options", "message"),
    [
        ([2.0], [1.0], {}, r"lower must not exceed upper.*got \(2, 1\]"),
        ([-1.0], [1.0], {}, "lower must be non-negative and finite; got -1"),
        ([INF], [INF], {}, "lower must be non-negative and finite"),
        ([1.0], [np.nan], {}, "upper must be non-negative"),
        ([1.0, 2.0], [3.0], {}, r"one value per subject, \(n,\); got shapes \(2,\) and \(1,\)"),
        ([], [], {}, "one value per subject"),
        ([[1.0]], [[2.0]], {}, "one value per subject"),
        ([1.0], [2.0], {"entry": 2.0}, "entry must be below upper"),
        ([1.0], [2.0], {"entry": [0.0, 1.0]}, "entry must be a number or one per subject"),
        ([1.0], [2.0], {"visits": [1.0, 3.0]}, r"Finite ends of intervals must be visits; upper .*got 2"),
        ([1.0], [2.0], {"visits": [2.0, 3.0]}, r"lower is not in 1 subject \(0\) \(got 1\)"),
        ([1.0], [3.0], {"visits": [1.0, 2.0, 3.0]}, r"A visit inside an interval was missed.*one at 2 in"),
        ([1.0], [2.0], {"visits": [[1.0, 2.0], [1.0, 2.0]]}, r"one per subject, \(1, K\)"),
        ([0.0], [2.0], {"visits": [np.nan]}, "no finite time"),
        ([0.0], [2.0], {"visits": [-1.0, 2.0]}, "visits must be non-negative"),
    ],
)
def test_bad_input(lower, upper, options, message):
    with pytest.raises(InvalidInputError, match=message):
        cs.IntervalCensored(lower, upper, **options)


def test_functions_of_right_censored_data_say_what_takes_intervals():
    with pytest.raises(UnsupportedOutcomeError, match="Turnbull, WeibullRegression"):
        cs.KaplanMeier().fit(None, outcome())


def test_detection_needs_visits_and_says_what_to_pass():
    with pytest.raises(MissingVisitsError, match=r"visits=schedule.*continue_visits\(gaps, until\)"):
        outcome().detection()
    mixed = cs.IntervalCensored([0.0, 3.0], [2.0, 3.0], visits=[2.0, 4.0])
    with pytest.raises(UnsupportedOutcomeError, match="known exactly and lie between visits"):
        mixed.detection()
    np.testing.assert_array_equal(
        cs.IntervalCensored([0.0, 4.0], [2.0, 4.0], visits=[2.0, 4.0]).detection().time, [2.0, 4.0]
    )


def test_visits_are_continued_from_the_detection_on():
    n = 2000
    y = cs.IntervalCensored(np.zeros(n), np.where(np.arange(n) % 2, 1.0, INF), visits=np.ones((n, 1)))
    with pytest.raises(MissingVisitsError, match="dropped out"):
        y.detection(until=4.0)
    y = cs.IntervalCensored(np.where(np.arange(n) % 2, 0.0, 1.0), y.upper, visits=np.ones((n, 1)))
    more = y.continue_visits(cs.Exponential(2.0), until=4.0, seed=1)
    counts = np.isfinite(more.visits).sum(axis=1)
    assert (counts[::2] == 1).all()
    assert counts[1::2].mean() == pytest.approx(1 + 3 * 2.0, rel=0.03)  # a Poisson process of rate 2
    assert more.visits[np.isfinite(more.visits)].max() <= 4.0
    np.testing.assert_array_equal(
        more.visits, y.continue_visits(cs.Exponential(2.0), until=4.0, seed=1).visits
    )


def test_joined_outcomes_keep_the_visits_that_all_subjects_share():
    y = cs.IntervalCensored([0.0, 2.0, 2.0], [2.0, 4.0, 4.0], visits=[2.0, 4.0])
    joined = cs.IntervalCensored.concat([y[:2], y[2:]])
    assert joined.visits.shape == (3, 2)
    np.testing.assert_array_equal(joined[2].visits, [[2.0, 4.0]])
    np.testing.assert_array_equal(cs.crps(joined, cs.Exponential(0.5)), cs.crps(y, cs.Exponential(0.5)))
