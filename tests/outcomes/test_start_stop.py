"""Outcomes of intervals (start, stop] with time-varying covariates."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
from tests.start_stop_data import VISITS, histories

import censcore as cs
from censcore.exceptions import InvalidInputError


def test_log_scores_of_intervals_add_up_to_that_of_the_history():
    table, rates, y = histories()
    rows, groups = cs.RightCensored.from_start_stop(table)
    losses = cs.log_score(rows, cs.Exponential(table["rate"].to_numpy()))
    whole = cs.log_score(y, cs.PiecewiseExponential(VISITS[1:-1], rates))
    assert np.bincount(groups, losses) == pytest.approx(whole, rel=1e-10)
    # A subject first seen at its second visit: the sum is the score of its history with that entry.
    late = table[table["start"] > 0]
    rows, groups = cs.RightCensored.from_start_stop(late)
    losses = cs.log_score(rows, cs.Exponential(late["rate"].to_numpy()))
    kept = np.unique(groups)
    entered = cs.RightCensored(y.time[kept], y.event[kept], entry=1.0)
    whole = cs.log_score(entered, cs.PiecewiseExponential(VISITS[1:-1], rates[kept]))
    assert np.bincount(groups, losses)[kept] == pytest.approx(whole, rel=1e-10)


def test_scores_with_planned_visits_are_those_of_the_time_left_in_the_interval():
    table, *_ = histories()
    rows, _ = cs.RightCensored.from_start_stop(table, censoring_time="planned")
    F = cs.Exponential(table["rate"].to_numpy())
    start, width = table["start"].to_numpy(), (table["planned"] - table["start"]).to_numpy()
    left = cs.RightCensored(rows.time - start, rows.event, width)
    assert cs.crps(rows, F) == pytest.approx(cs.crps(left, F), rel=1e-9)
    # int_0^c (F(t) - 1{Y <= t})^2 dt, by hand
    t = np.linspace(0, 1, 2001)[None, :] * width[:, None]
    happened = left.event[:, None] & (left.time[:, None] <= t)
    square = (-np.expm1(-table["rate"].to_numpy()[:, None] * t) - happened) ** 2
    assert cs.crps(rows, F) == pytest.approx(np.trapezoid(square, t, axis=1), abs=2e-3)


def test_the_true_hazards_win_and_errors_are_those_of_subjects():
    table, *_ = histories(400)
    rows, groups = cs.RightCensored.from_start_stop(table, censoring_time="planned")
    baseline = table.groupby("id")["rate"].first().loc[table["id"]].to_numpy()  # the rate at entry for ever
    models = {"current": cs.Exponential(table["rate"].to_numpy()), "at entry": cs.Exponential(baseline)}
    found = cs.compare(models, rows, groups=groups, scores=["log_score", "crps"], horizon=6.0, reference=None)
    for name in ("log_score", "crps"):
        better = found.estimate("current", name) - found.estimate("at entry", name)
        assert better.value[0] < -2 * better.standard_error[0]
        loss = getattr(cs, name)(rows, models["current"])
        codes = np.unique(groups, return_inverse=True)[1]
        sums = np.bincount(codes, (loss - loss.mean()) / len(loss))
        error = np.sqrt((sums**2).sum() * len(sums) / (len(sums) - 1))
        assert found.estimate("current", name).standard_error[0] == pytest.approx(error, rel=1e-6)


def test_columns_have_any_name_and_frames_any_library():
    table, *_ = histories(20)
    named = table.rename(columns={"id": "patient", "start": "from", "stop": "to", "event": "died"})
    y, groups = cs.RightCensored.from_start_stop(named, id="patient", start="from", stop="to", event="died")
    assert np.array_equal(y.entry, table["start"])
    assert np.array_equal(groups, table["id"])
    mixed = pd.DataFrame(
        [["x", 0, 2, 0], [7, 0, 3, 1], ["x", 2, 4, 1]], columns=["id", "start", "stop", "event"]
    )
    assert cs.RightCensored.from_start_stop(mixed)[1].tolist() == ["x", 7, "x"]
    polars = pytest.importorskip("polars")
    again, _ = cs.RightCensored.from_start_stop(polars.DataFrame(table.to_dict("list")))
    assert np.array_equal(again.time, y.time)


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([[1, 0, 2, 0], [1, 1, 3, 0]], r"must not overlap.*1 subject \(first id = 1, interval 0 to 2\)"),
        ([[1, 0, 2, 0], [1, 3, 4, 0]], r'begin where the one before it ends.*gap="not at risk"'),
        ([[1, 0, 2, 1], [1, 2, 4, 0]], r"only the last interval may end with the event"),
        ([[1, 2, 2, 0]], r"start < stop"),
        ([[1, 0, np.nan, 0]], r"\['stop'\] have missing values"),
        ([[1, -1, 2, 0]], r"start must be"),
        ([[1, 0, 2, 2]], r"competing risks"),
    ],
)
def test_wrong_tables(lines, message):
    frame = pd.DataFrame(lines, columns=["id", "start", "stop", "event"])
    with pytest.raises((InvalidInputError, cs.exceptions.UnsupportedOutcomeError), match=message):
        cs.RightCensored.from_start_stop(frame)


def test_gaps_are_allowed_where_asked_for_and_columns_must_exist():
    frame = pd.DataFrame([[1, 0, 2, 0], [1, 3, 4, 1]], columns=["id", "start", "stop", "event"])
    y, _ = cs.RightCensored.from_start_stop(frame, gap="unobserved")
    assert y.entry.tolist() == [0.0, 3.0]
    with pytest.raises(InvalidInputError, match=r"Columns \['subject'\] are not in the table"):
        cs.RightCensored.from_start_stop(frame, id="subject")


def test_a_frame_with_start_and_stop_names_the_constructor():
    frame = pd.DataFrame({"id": [1, 1], "start": [0.0, 1.0], "stop": [1.0, 2.0], "event": [0, 1]})
    with pytest.raises(cs.exceptions.UnsupportedOutcomeError, match="from_start_stop"):
        cs.KaplanMeier().fit(None, frame)
