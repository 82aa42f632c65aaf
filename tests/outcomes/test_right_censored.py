"""Right-censored outcomes: what is accepted, what is refused, and the algebra of censoring."""

from __future__ import annotations

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from censcore import CompetingRisks, IntervalCensored, RightCensored, SemiCompetingRisks
from censcore.exceptions import InvalidInputError, InvalidTypeError, UnsupportedOutcomeError
from censcore.outcomes import as_outcome

INF = float("inf")
JOINT = RightCensored([[2.0, 7.0], [4.0, 4.0], [1.0, 3.0]], [[1, 0], [0, 0], [1, 1]])

times = st.floats(0, 1e6, allow_nan=False, width=32)


def same(a: RightCensored, b: RightCensored) -> bool:
    known = a.censoring_time is not None
    return (
        np.array_equal(a.time, b.time)
        and np.array_equal(a.event, b.event)
        and known == (b.censoring_time is not None)
        and (not known or np.array_equal(a.censoring_time, b.censoring_time))
    )


# ---- what is accepted -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "event", [[1, 0, 1], [True, False, True], [1.0, 0.0, 1.0], np.array([1, 0, 1], "u1")]
)
def test_events_may_be_numbers_or_booleans(event):
    y = RightCensored([2.0, 5.0, 3.5], event)
    assert y.event.dtype == bool
    assert y.event.tolist() == [True, False, True]


@pytest.mark.parametrize(
    ("dtype", "kept"), [("f2", "f4"), ("f4", "f4"), ("f8", "f8"), ("i4", "f8"), ("u1", "f8"), ("O", "f8")]
)
def test_times_keep_single_precision_and_become_double_otherwise(dtype, kept):
    y = RightCensored(np.array([1, 2, 3], dtype=dtype), [1, 0, 1])
    assert y.time.dtype == np.dtype(kept)


def test_known_censoring_time_follows_the_precision_of_time():
    c = np.array([0.1, 0.7])
    y = RightCensored(c.astype(np.float32), [0, 0], censoring_time=c)
    assert y.censoring_time.dtype == np.float32


def test_one_administrative_end_serves_every_row():
    y = RightCensored([1.0, 5.0], [1, 0], censoring_time=5.0)
    np.testing.assert_array_equal(y.censoring_time, [5.0, 5.0])
    assert RightCensored([1.0, 2.0], [1, 1], censoring_time=INF).censoring_time.tolist() == [INF, INF]


def test_one_row_and_all_censored_are_fine():
    y = RightCensored([3.0], [0])
    assert y.shape == (1,)
    assert "events=0 (0.0 %)" in repr(y)


def test_repr_counts_events_by_coordinate():
    assert repr(JOINT) == "RightCensored(n=3, k=2, events=[2, 1] (66.7 %, 33.3 %), time 1 to 7)"
    assert repr(RightCensored([1.0], [1], 4.0)).endswith("C known)")


def test_structured_arrays_of_either_field_order():
    y = np.array([(True, 2.0), (False, 5.0)], dtype=[("cens", bool), ("time", float)])
    other = np.array([(2, True), (5, False)], dtype=[("weeks", "i4"), ("died", "?")])
    for array in (y, other):
        assert same(as_outcome(array), RightCensored([2.0, 5.0], [1, 0]))


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_frames(library):
    frame = pytest.importorskip(library).DataFrame(
        {"time": [2.0, 5.0], "event": [1, 0], "end": [9.0, 5.0], "t2": [1.0, 4.0], "e2": [1, 0]}
    )
    assert same(as_outcome(frame), RightCensored([2.0, 5.0], [1, 0]))
    assert same(
        RightCensored.from_frame(frame, censoring_time="end"), RightCensored([2.0, 5.0], [1, 0], [9.0, 5.0])
    )
    joint = RightCensored.from_frame(frame, time=["time", "t2"], event=["event", "e2"])
    assert same(joint, RightCensored([[2.0, 1.0], [5.0, 4.0]], [[1, 1], [0, 0]]))


def test_pandas_nullable_and_boolean_columns():
    frame = pd.DataFrame(
        {"time": pd.array([2, 5], dtype="Int64"), "event": pd.array([True, False], dtype="boolean")}
    )
    assert same(RightCensored.from_frame(frame), RightCensored([2.0, 5.0], [1, 0]))


# ---- what is refused --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("time", "event", "message"),
    [
        ([1.0, np.nan], [1, 0], "time must be non-negative and finite; got nan, in 1 subject"),
        ([1.0, None], [1, 0], "time must be non-negative and finite; got nan"),
        ([1.0, INF], [1, 0], "time must be non-negative and finite; got inf"),
        ([1.0, -2.0], [1, 0], "time must be non-negative and finite; got -2.0"),
        ([1.0, 2.0], [1, 0, 1], r"event must have the shape of time, \(2,\)"),
        ([1.0, 2.0], [[1, 0]], "event must have the shape of time"),
        ([], [], "at least one subject"),
        (np.ones((2, 0)), np.ones((2, 0)), "at least one subject and coordinate"),
        (3.0, 1, r"time must have shape \(n,\) or \(n, k\)"),
        (np.ones((2, 2, 2)), np.ones((2, 2, 2)), r"time must have shape \(n,\) or \(n, k\)"),
        ([1.0, 2.0], [1.0, 0.5], "event must be 0/1 or boolean"),
        ([1.0, 2.0], [1.0, np.nan], "event must be 0/1 or boolean"),
        ([1.0, 2.0], [1, -1], "event must be 0/1 or boolean"),
        ([True, False], [3.5, 2.0], "Were time and event swapped"),
    ],
)
def test_bad_values_are_refused(time, event, message):
    with pytest.raises(InvalidInputError, match=message):
        RightCensored(time, event)


@pytest.mark.parametrize(
    ("time", "event"),
    [(["a", "b"], [1, 0]), ([1.0, 2.0], ["yes", "no"]), ([1j, 2.0], [1, 0])],
)
def test_things_that_are_not_numbers_are_refused(time, event):
    with pytest.raises(InvalidTypeError, match="must"):
        RightCensored(time, event)


@pytest.mark.parametrize("codes", [[0, 1, 2], [1, 2, 2], [2, 2, 2], [0.0, 3.0, 1.0]])
def test_competing_risks_and_events_coded_two_are_refused_by_name(codes):
    with pytest.raises(UnsupportedOutcomeError, match=r"competing risks.*pass event - 1"):
        RightCensored([1.0, 2.0, 3.0], codes)


def test_entry_is_read_from_frames():
    frame = pd.DataFrame({"time": [2.0, 3.0], "event": [1, 0], "start": [1.0, 0.0]})
    assert RightCensored.from_frame(frame, entry="start").entry.tolist() == [1.0, 0.0]
    assert as_outcome(frame.rename(columns={"start": "entry"})).has_delayed_entry


@pytest.mark.parametrize(
    ("entry", "message"),
    [
        ([2.0, 0.5], r"entry must be below time.*1 subject \(0\) \(got entry 2 and time 2\)"),
        ([2.5, 3.5], r"2 subjects \(0, 1\)"),
        ([-1.0, 0.0], "entry must be non-negative"),
        ([np.nan, 0.0], "entry must be non-negative"),
        ([np.inf, 0.0], "entry must be non-negative and finite"),
        ([1.0], r"one per subject, \(2,\)"),
        ([[1.0, 1.0]], r"one per subject, \(2,\)"),
    ],
)
def test_bad_entries(entry, message):
    with pytest.raises(InvalidInputError, match=message):
        RightCensored([2.0, 3.0], [1, 0], entry=entry)


def test_entry_follows_the_subjects():
    y = RightCensored([2.0, 5.0, 3.0, 0.0], [1, 0, 1, 1], entry=[0.0, 1.0, 2.5, 0.0])
    assert "delayed entry in 2" in repr(y)
    assert y[[2, 0]].entry.tolist() == [2.5, 0.0]
    assert y.flip().entry.tolist() == [0.0, 1.0, 2.5]
    assert y.like(np.ones(1, np.float32)).entry.dtype == np.float32
    cut = y.censor_at(2.0)
    assert cut.entry.tolist() == [0.0, 1.0, 2.0, 0.0]
    assert cut.time.tolist() == [2.0, 2.0, 2.0, 0.0]
    assert not cut.event[2]
    joint = RightCensored([[2.0, 4.0], [3.0, 3.0]], [[1, 0], [0, 0]], entry=[1.0, 2.0])
    assert joint.marginal(1).entry.tolist() == joint.first().entry.tolist() == [1.0, 2.0]
    with pytest.raises(InvalidInputError, match="entry must be below time"):
        RightCensored([[2.0, 4.0]], [[1, 0]], entry=3.0)


def test_landmarks():
    y = RightCensored([2.0, 5.0, 3.0, 6.0, 3.0001], [1, 0, 1, 1, 0], entry=[0.0, 1.0, 0.0, 4.0, 3.0])
    assert y.at_risk(3.0).tolist() == [False, True, False, False, True]
    late = y.after(3.0)
    assert late.time.tolist() == [5.0, 3.0001]
    assert late.entry.tolist() == [3.0, 3.0]
    with pytest.raises(InvalidInputError, match="No subject is at risk after 6"):
        y.after(6.0)
    with pytest.raises(InvalidInputError, match="s must be one time"):
        y.after([1.0, 2.0])


def test_what_cannot_take_entries_says_so():
    y = RightCensored([2.0, 5.0], [1, 0], entry=[0.0, 1.0])
    with pytest.raises(
        UnsupportedOutcomeError, match=r"A median does not take delayed entry.*1 subject \(1\)"
    ):
        y.require_no_entry("A median")


@pytest.mark.parametrize(
    ("time", "event", "c", "message"),
    [
        ([2.0, 3.0], [1, 1], [2.0, 2.5], r"time must not exceed censoring_time; it does in 1 subject \(1\)"),
        ([2.0, 3.0], [0, 1], [2.5, 3.0], "A censored time must equal its censoring_time"),
        ([2.0, 3.0], [0, 1], INF, "A censored time must equal its censoring_time"),
        ([2.0, 3.0], [1, 1], [2.0, np.nan], "censoring_time must be non-negative; got nan"),
        ([2.0, 3.0], [1, 1], [-2.0, 4.0], "censoring_time must be non-negative"),
        ([2.0, 3.0], [1, 1], [2.0, 3.0, 4.0], r"censoring_time must be a number, \(2,\)"),
        ([[2.0, 3.0], [4.0, 4.0]], [[1, 0], [0, 0]], [3.5, 4.0], "A censored time must equal"),
    ],
)
def test_censoring_times_that_contradict_the_outcome_are_refused(time, event, c, message):
    with pytest.raises(InvalidInputError, match=message):
        RightCensored(time, event, censoring_time=c)


@pytest.mark.parametrize("made_up", ["own time", "never"])
def test_censoring_times_that_are_made_up_from_the_events_are_refused(made_up):
    rng = np.random.default_rng(0)
    T, c = rng.exponential(1.0, 40), rng.uniform(0.0, 3.0, 40)
    time, event = np.minimum(T, c), c >= T
    RightCensored(time, event, c)
    known = time if made_up == "own time" else np.where(event, INF, time)
    with pytest.raises(InvalidInputError, match=f"for all {event.sum()} events, so that it depends on them"):
        RightCensored(time, event, known)
    with pytest.raises(InvalidInputError, match="so that it depends on them"):
        CompetingRisks(time, event.astype(int), censoring_time=known)
    RightCensored(np.ones(9), np.arange(9) < 6, censoring_time=1.0)  # one visit, at which follow-up ends
    RightCensored(T, np.ones(40), censoring_time=INF)  # nobody is censored


def test_events_in_words_are_refused_with_the_value_that_may_mean_an_event():
    with pytest.raises(InvalidTypeError, match="event == 'dead', if it is this one"):
        RightCensored([1.0, 2.0], ["alive", "dead"])
    with pytest.raises(InvalidTypeError, match="event == '1'"):
        RightCensored([1.0, 2.0], ["1", "0"])


def test_frames_and_arrays_of_the_wrong_kind():
    with pytest.raises(InvalidInputError, match=r"Columns \['weeks'\] are not in the frame"):
        RightCensored.from_frame(pd.DataFrame({"time": [1.0], "event": [1]}), time="weeks")
    with pytest.raises(InvalidTypeError, match="one boolean field"):
        RightCensored.from_structured(np.ones(3))
    with pytest.raises(InvalidTypeError, match="one boolean field"):
        RightCensored.from_structured(np.zeros(2, dtype=[("a", "f8"), ("b", "f8")]))
    with pytest.raises(InvalidTypeError, match="which part of a pair is the time"):
        as_outcome(([1.0], [1]))
    with pytest.raises(InvalidTypeError, match="got ndarray"):
        as_outcome(np.ones(3))


# ---- rows and coordinates ---------------------------------------------------------------------------


@pytest.mark.parametrize(
    "rows", [[2, 0], np.array([2, 0]), slice(1, 3), np.array([False, True, True]), -1, np.int64(1)]
)
def test_rows_are_taken_in_the_order_asked_for(rows):
    y = RightCensored([1.0, 2.0, 3.0], [1, 0, 1], censoring_time=[9.0, 2.0, 8.0])
    index = np.atleast_1d(np.arange(3)[rows])
    taken = y[rows]
    np.testing.assert_array_equal(taken.time, y.time[index])
    np.testing.assert_array_equal(taken.event, y.event[index])
    np.testing.assert_array_equal(taken.censoring_time, y.censoring_time[index])
    assert same(taken, y.take(rows))


def test_no_rows_are_no_outcome():
    with pytest.raises(InvalidInputError, match="at least one subject"):
        JOINT[[]]


def test_coordinates():
    assert same(JOINT.marginal(0), RightCensored([2.0, 4.0, 1.0], [1, 0, 1]))
    assert same(JOINT.marginal(-1), RightCensored([7.0, 4.0, 3.0], [0, 0, 1]))
    assert JOINT.k == 2
    with pytest.raises(InvalidInputError, match="2 event times; number 2"):
        JOINT.marginal(2)
    single = RightCensored([1.0], [1])
    assert single.marginal(0) is single
    with pytest.raises(InvalidInputError, match="1 event times; number 1"):
        single.marginal(1)


def test_coordinates_keep_their_own_censoring_time():
    y = RightCensored([[2.0, 5.0]], [[0, 1]], censoring_time=[[2.0, 9.0]])
    assert y.marginal(1).censoring_time.tolist() == [9.0]
    assert not y.shares_censoring


def test_first_event_under_shared_censoring():
    first = JOINT.first()
    assert same(first, RightCensored([2.0, 4.0, 1.0], [1, 0, 1]))
    tie = RightCensored([[4.0, 4.0]], [[1, 0]]).first()
    assert tie.event.tolist() == [True]


def test_componentwise_censoring_has_no_first_event_and_no_common_flip():
    y = RightCensored([[2.0, 7.0]], [[0, 1]])
    assert not y.shares_censoring
    for method in (y.first, y.flip):
        with pytest.raises(InvalidInputError, match="one censoring time per subject"):
            method()


def test_copies():
    for y in (copy.deepcopy(JOINT), pickle.loads(pickle.dumps(JOINT))):
        assert same(y, JOINT)


# ---- censoring --------------------------------------------------------------------------------------


def test_an_event_exactly_at_tau_stays_an_event():
    y = RightCensored([2.0, 3.0, 3.0, 5.0], [1, 1, 0, 1]).censor_at(3.0)
    assert y.time.tolist() == [2.0, 3.0, 3.0, 3.0]
    assert y.event.tolist() == [True, True, False, False]


@given(
    hnp.arrays(float, 6, elements=times),
    hnp.arrays(bool, 6),
    st.floats(0, 1e6, width=32),
    st.floats(0, 1e6, width=32),
)
def test_censoring_twice_is_censoring_at_the_earlier_time(time, event, tau, later):
    y = RightCensored(time, event)
    assert same(y.censor_at(tau).censor_at(later), y.censor_at(min(tau, later)))
    assert same(y.censor_at(INF), y)


def test_tau_per_row_and_per_coordinate():
    y = RightCensored([[2.0, 7.0], [4.0, 4.0]], [[1, 0], [0, 0]], censoring_time=[7.0, 4.0])
    row = y.censor_at([3.0, 9.0])
    assert row.time.tolist() == [[2.0, 3.0], [4.0, 4.0]]
    assert row.censoring_time.tolist() == [3.0, 4.0]
    coordinate = y.censor_at([[1.0, 5.0], [9.0, 3.0]])
    assert coordinate.time.tolist() == [[1.0, 5.0], [4.0, 3.0]]
    assert coordinate.event.tolist() == [[False, False], [False, False]]
    assert coordinate.censoring_time.tolist() == [[1.0, 5.0], [4.0, 3.0]]


@pytest.mark.parametrize(
    ("tau", "message"), [(-1.0, "tau must be non-negative"), (np.nan, "nan"), ([1.0], r"\(3,\)")]
)
def test_bad_tau(tau, message):
    with pytest.raises(InvalidInputError, match=message):
        RightCensored([1.0, 2.0, 3.0], [1, 0, 1]).censor_at(tau)


# ---- flip -------------------------------------------------------------------------------------------


def test_flip_puts_events_before_censorings_at_ties():
    y = RightCensored([2.0, 2.0, 0.0, 0.0], [1, 0, 1, 0])
    flipped = y.flip()
    assert y.informs_censoring.tolist() == [True, True, False, True]
    assert flipped.event.tolist() == [False, True, True]
    assert flipped.time[0] == np.nextafter(2.0, 0.0)
    assert flipped.time[1:].tolist() == [2.0, 0.0]


def test_flip_of_several_times_sees_the_shared_censoring_time():
    flipped = JOINT.flip()
    assert flipped.event.tolist() == [True, True, False]
    assert flipped.time.tolist() == [7.0, 4.0, np.nextafter(3.0, 0.0)]


def test_flip_in_single_precision_moves_by_one_single():
    y = RightCensored(np.float32([2.0]), [1]).flip()
    assert y.time.dtype == np.float32
    assert y.time[0] == np.nextafter(np.float32(2.0), np.float32(0.0))


@given(hnp.arrays(float, 8, elements=times), hnp.arrays(bool, 8))
def test_flip_counts_those_at_risk_of_censoring_by_the_events_first_rule(time, event):
    """At a censoring time c those are at risk who are censored at or after c, or have an event after c."""
    y = RightCensored(time, event)
    if not y.informs_censoring.any():
        return
    flipped = y.flip()
    for c in time[~event]:
        at_risk = ((time >= c) & ~event) | ((time > c) & event)
        assert (flipped.time >= c).sum() == at_risk.sum()
        assert ((flipped.time == c) & flipped.event).sum() == ((time == c) & ~event).sum()


@given(hnp.arrays(float, (5, 2), elements=times), hnp.arrays(float, 5, elements=times))
def test_censoring_by_a_shared_time_is_recognised(latent, c):
    """min(T, C) with one C per row always shares it, whatever the ties."""
    y = RightCensored(np.minimum(latent, c[:, None]), latent <= c[:, None])
    assert y.shares_censoring
    assert y.first().event.tolist() == (latent.min(axis=1) <= c).tolist()
    known = RightCensored(y.time, y.event, censoring_time=c)
    assert known.shares_censoring


# ---- torch ------------------------------------------------------------------------------------------


def test_torch_outcomes_stay_in_torch():
    torch = pytest.importorskip("torch")
    y = RightCensored(torch.tensor([2.0, 2.0, 5.0]), torch.tensor([1, 0, 1]), torch.tensor([3.0, 2.0, 6.0]))
    assert y.time.dtype == torch.float32
    assert y.event.dtype == torch.bool
    for other in (
        y.censor_at(2.0),
        y.flip(),
        y[[0, 2]],
        y[np.array([True, False, True])],
        y[np.arange(3)[::-1]],
    ):
        assert isinstance(other.time, torch.Tensor)
    assert y.flip().time[0] == torch.nextafter(torch.tensor(2.0), torch.tensor(0.0))
    numpy = y.like(np.zeros(1))
    assert same(numpy.censor_at(2.0), y.censor_at(2.0).like(np.zeros(1)))
    assert same(numpy.like(torch.zeros(1)).like(np.zeros(1)), numpy)


def test_torch_integers_half_precision_and_complex():
    torch = pytest.importorskip("torch")
    assert RightCensored(torch.tensor([1, 2]), [1, 0]).time.dtype == torch.float64
    assert RightCensored(torch.tensor([1, 2], dtype=torch.float16), [1, 0]).time.dtype == torch.float32
    with pytest.raises(InvalidTypeError, match="real numbers"):
        RightCensored(torch.tensor([1j, 2j]), [1, 0])


def test_libraries_do_not_mix():
    torch = pytest.importorskip("torch")
    with pytest.raises(InvalidTypeError, match=r"time in torch on cpu, event in NumPy.*torch.as_tensor"):
        RightCensored(torch.ones(2), np.array([1, 0]))
    with pytest.raises(InvalidTypeError, match="tau in NumPy"):
        RightCensored(torch.ones(2), [1, 0]).censor_at(np.ones(2))


@pytest.mark.parametrize("value", [float("nan"), -1.0, INF])
def test_torch_checks_values_too(value):
    torch = pytest.importorskip("torch")
    with pytest.raises(InvalidInputError, match="time must be non-negative and finite"):
        RightCensored(torch.tensor([1.0, value]), [1, 0])
    with pytest.raises(UnsupportedOutcomeError, match="competing risks"):
        RightCensored(torch.ones(2), torch.tensor([1, 2]))


def test_a_frame_with_two_times_is_no_right_censored_outcome():
    frame = pd.DataFrame({"time": [1.0, 2.0], "time2": [2.0, 4.0], "event": [1, 0]})
    with pytest.raises(UnsupportedOutcomeError, match="IntervalCensored"):
        as_outcome(frame)
    assert as_outcome(frame.drop(columns="time2")).time.tolist() == [1.0, 2.0]


def test_an_event_that_is_none_is_missing():
    with pytest.raises(InvalidInputError, match="missing value"):
        RightCensored([1.0, 2.0], None)


def test_columns_of_visits_are_names():
    frame = pd.DataFrame({"lower": [0.0, 1.0], "upper": [1.0, 2.0]})
    with pytest.raises(InvalidTypeError, match="expected its name"):
        IntervalCensored.from_frame(frame, visits=np.array([0.5, 1.0]))
    assert IntervalCensored.from_frame(frame, visits=np.zeros((0, 3))).visits is None


@pytest.mark.parametrize(
    "y",
    [
        RightCensored([2.0, 5.0], [1, 0]),
        CompetingRisks([2.0, 5.0], [1, 0]),
        CompetingRisks([2.0, 5.0], [1, 0]).cause(1),
        SemiCompetingRisks([[2.0, 5.0]], [[1, 1]]),
        IntervalCensored([0.0], [2.0], visits=[2.0, 4.0]),
        IntervalCensored([0.0], [2.0], visits=[2.0, 4.0]).detection(),
    ],
    ids=lambda y: type(y).__name__,
)
def test_outcomes_are_immutable_and_travel(y):
    for name in vars(y):
        with pytest.raises(AttributeError, match="cannot assign"):
            setattr(y, name, None)
    for again in (pickle.loads(pickle.dumps(y)), copy.deepcopy(y), y.take(slice(0, len(y)))):
        assert vars(again).keys() == vars(y).keys()
        assert repr(again) == repr(y)


def test_names_of_event_times():
    y = RightCensored([[2.0, 5.0]], [[1, 0]]).with_names(["relapse", "death"])
    assert y[[0]].names == ["relapse", "death"]
    assert y.with_names(None).names is None
    with pytest.raises(InvalidInputError, match="2 different names, one per event time"):
        y.with_names(["relapse"])
