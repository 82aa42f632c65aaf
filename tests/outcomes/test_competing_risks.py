"""Outcomes of competing risks: what they hold, where they come from, and what is an error."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.exceptions import InvalidInputError, InvalidTypeError, UnsupportedOutcomeError
from censcore.outcomes import as_competing_risks

TIME, CAUSE = np.array([2.0, 5.0, 3.0, 4.0, 0.0]), np.array([1, 0, 2, 1, 2])
Y = cs.CompetingRisks(TIME, CAUSE, names=["relapse", "death"])


def test_one_cause_has_three_kinds_of_subjects():
    y = Y.cause("relapse")
    np.testing.assert_array_equal(y.event, [True, False, False, True, False])
    np.testing.assert_array_equal(y.never, [False, False, True, False, True])
    np.testing.assert_array_equal(y.censored, [False, True, False, False, False])
    np.testing.assert_array_equal(Y.cause(2).event, y.never)
    np.testing.assert_array_equal(Y.any_cause().event, ~y.censored)


def test_choosing_subjects():
    for part in (Y[[0, 2]], Y.take(np.array([True, False, True, False, False])), Y[0:3:2]):
        np.testing.assert_array_equal(part.causes, [1, 2])
        np.testing.assert_array_equal(part.time, [2.0, 3.0])
        assert part.names == Y.names
    np.testing.assert_array_equal(Y.cause(1)[[2, 0]].never, [True, False])
    np.testing.assert_array_equal(Y.cause(1)[2].never, [True])
    assert len(Y[1:2]) == 1  # no event, but the causes are known


def test_follow_up_cut_at_tau():
    y = Y.cause(1).censor_at(3.0)
    np.testing.assert_array_equal(y.time, [2.0, 3.0, 3.0, 3.0, 0.0])
    np.testing.assert_array_equal(y.event, [True, False, False, False, False])
    np.testing.assert_array_equal(y.never, [False, False, True, False, True])
    np.testing.assert_array_equal(Y.censor_at(3.0).causes, [1, 0, 2, 0, 2])
    np.testing.assert_array_equal(Y.censor_at(3.0).cause(1).never, y.never)


def test_events_of_all_causes_come_before_censoring():
    y = cs.CompetingRisks([2.0, 2.0, 2.0, 0.0], [1, 2, 0, 2])
    for flipped in (y.flip(), y.cause(1).flip(), y.cause(2).flip()):
        np.testing.assert_array_equal(flipped.event, [False, False, True])
        assert (flipped.time[:2] < 2.0).all()
    np.testing.assert_array_equal(y.cause(1).informs_censoring, [True, True, True, False])


def test_known_censoring_times():
    y = cs.CompetingRisks(TIME, CAUSE, censoring_time=[6.0, 5.0, 6.0, 6.0, 1.0])
    assert "C known" in repr(y)
    np.testing.assert_array_equal(y.cause(1).censoring_time, [6.0, 5.0, 6.0, 6.0, 1.0])
    np.testing.assert_array_equal(y.cause(1).censor_at(4.5).censoring_time, [4.5, 4.5, 4.5, 4.5, 1.0])
    np.testing.assert_array_equal(y[[2]].censoring_time, [6.0])
    with pytest.raises(InvalidInputError, match="A censored time must equal its censoring_time"):
        cs.CompetingRisks(TIME, CAUSE, censoring_time=6.0)


def test_torch_and_single_precision():
    torch = pytest.importorskip("torch")
    y = cs.CompetingRisks(torch.tensor(TIME), torch.tensor(CAUSE))
    assert y.cause(1).never.tolist() == Y.cause(1).never.tolist()
    assert Y.like(torch.zeros(1)).cause(2).time.dtype == torch.float32
    assert Y.cause(1).like(np.zeros(1, np.float32)).time.dtype == np.float32
    np.testing.assert_array_equal(Y.cause(1).like(torch.zeros(1)).censored.numpy(), Y.cause(1).censored)


def test_other_formats():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    columns = {"months": TIME, "status": CAUSE, "end": np.where(CAUSE == 0, TIME, 9.0)}
    for frame in (pd.DataFrame(columns), pl.DataFrame(columns)):
        y = cs.CompetingRisks.from_frame(frame, time="months", cause="status", censoring_time="end")
        np.testing.assert_array_equal(y.causes, CAUSE)
        assert y.censoring_time is not None
    structured = np.array(list(zip(CAUSE, TIME, strict=True)), dtype=[("status", int), ("time", float)])
    hazardous = pd.DataFrame({"event": CAUSE, "duration": TIME})
    for y in (
        cs.CompetingRisks.from_structured(structured),
        cs.CompetingRisks.from_hazardous(hazardous, names=["a", "b"]),
        as_competing_risks(structured),
        as_competing_risks(hazardous),
        as_competing_risks(hazardous.set_axis(["cause", "time"], axis=1)),
        as_competing_risks(Y),
    ):
        np.testing.assert_array_equal(y.causes, CAUSE)
        np.testing.assert_array_equal(y.time, TIME)
    with pytest.raises(InvalidInputError, match=r"Columns \['time', 'cause'\] are not in the frame"):
        cs.CompetingRisks.from_frame(hazardous)
    with pytest.raises(InvalidTypeError, match="one field of whole numbers"):
        cs.CompetingRisks.from_structured(structured.astype([("status", bool), ("time", float)]))
    with pytest.raises(InvalidTypeError, match="got tuple"):
        as_competing_risks((TIME, CAUSE))


@pytest.mark.parametrize(
    ("cause", "message"),
    [
        ([1, 0, 2, 1, 1.5], r"whole numbers.*got 1.5, in 1 subject \(4\)"),
        ([1, 0, -1, 1, 2], r"got -1, in 1 subject \(2\)"),
        ([1, 0, np.nan, 1, 2], "got nan"),
        ([0, 0, 0, 0, 0], "all are censored.*n_causes=m"),
        ([1, 0, 2], "must both have shape"),
    ],
)
def test_wrong_causes(cause, message):
    with pytest.raises(InvalidInputError, match=message):
        cs.CompetingRisks(TIME, cause)


def test_wrong_names_and_numbers():
    with pytest.raises(InvalidTypeError, match="Translate labels"):
        cs.CompetingRisks(TIME, ["a", "b", "a", "a", "b"])
    with pytest.raises(InvalidInputError, match="The data have a cause 2; expected causes 1 to 1"):
        cs.CompetingRisks(TIME, CAUSE, names=["relapse"])
    with pytest.raises(InvalidInputError, match="different names"):
        cs.CompetingRisks(TIME, CAUSE, names=["a", "a"])
    with pytest.raises(InvalidTypeError, match="expected a list of names, one per cause"):
        cs.CompetingRisks(TIME, CAUSE, names="ab")
    for j in (0, 3, True, 1.5, None):
        with pytest.raises(InvalidInputError, match="number from 1 to 2 or one of the names relapse, death"):
            Y.cause(j)
    with pytest.raises(InvalidInputError, match="no cause called 'churn'; there are relapse, death"):
        Y.cause("churn")
    with pytest.raises(InvalidInputError, match="non-negative"):
        cs.CompetingRisks([-1.0, 2.0], [1, 0])
    with pytest.raises(InvalidInputError, match="both in 1 subject"):
        cs.outcomes.EventOfCause([1.0, 2.0], [1, 0], [1, 0])


def test_functions_of_one_event_time_say_what_to_do():
    with pytest.raises(UnsupportedOutcomeError, match=r"y.any_cause\(\)"):
        cs.outcomes.as_outcome(Y)
    with pytest.raises(UnsupportedOutcomeError, match="EventOfCause"):
        cs.outcomes.as_outcome(Y.cause(1))
    with pytest.raises(UnsupportedOutcomeError, match=r"CompetingRisks\(time, cause=event\)"):
        cs.RightCensored(TIME, CAUSE)
