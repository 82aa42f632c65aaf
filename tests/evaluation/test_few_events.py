"""A comparison without events, or with a few, does not name a winner."""

from __future__ import annotations

import json

import numpy as np
import pytest

import censcore as cs

TIME = 1.0


def flat(p: float) -> cs.Step:
    """The event happens by TIME with probability p, or never."""
    return cs.Step([TIME], sf=[1 - p])


def sample(rng: np.random.Generator, n: int = 40, risk: float = 0.05) -> cs.RightCensored:
    happens = rng.random(n) < risk
    return cs.RightCensored(np.where(happens, rng.uniform(0.1, 0.9, n), 2.0), happens)


def compare(y: cs.RightCensored, **options: object) -> cs.evaluation.Comparison:
    forecasts = {"right": flat(0.05), "wrong": flat(0.01)}
    return cs.compare(
        forecasts,
        y,
        cs.PointMass(2.0),
        scores=["brier_score", "crps"],
        times=[TIME],
        discrimination=False,
        reference=None,
        **options,
    )


def test_the_wrong_model_does_not_win_without_events():
    """Normal tests name the wrong model as the winner in every data set without events, one in eight."""
    rng = np.random.default_rng(0)
    wins = []
    for _ in range(200):
        row = compare(sample(rng)).differences().iloc[0]
        wins.append(row["p_value"] < 0.05 and row["difference"] > 0)
    assert np.mean(wins) <= 0.025


@pytest.fixture
def nobody() -> cs.evaluation.Comparison:
    return compare(sample(np.random.default_rng(1), risk=0.0))


def test_without_events_nothing_is_told(nobody):
    pairs, frame = nobody.differences(), nobody.frame()
    for column in ("p_value", "p_adjusted", "low", "high", "standard_error"):
        assert pairs[column].isna().all()
    for column in ("standard_error", "low", "high", "rank"):
        assert frame[column].isna().all()
    assert (frame["events"] == 0).all()
    assert frame["note"].str.startswith("cannot tell: 0 effective events").all()
    assert pairs["note"].str.startswith("cannot tell").all()
    assert np.isfinite(frame["mean"]).all()


def test_no_page_names_a_winner(nobody):
    text, html = repr(nobody), nobody.to_html()
    assert nobody.verdict.best == ""
    assert text.splitlines()[2].startswith(
        "Cannot tell which forecast is best: the comparison is based on 0 events"
    )
    assert "clearly the best" not in text
    assert "0.0001 (cannot tell)" in text
    assert "★" not in html
    assert "cannot tell" in html
    document = json.loads(nobody.to_json())
    assert all(line["p_value"] is None for line in document["differences"])


def test_forecasts_that_vary_do_not_hide_it():
    """With one forecast per subject the losses vary although nothing happened."""
    y = sample(np.random.default_rng(2), risk=0.0)
    p = np.random.default_rng(3).uniform(0.01, 0.2, 40)
    forecasts = {"low": cs.Step([TIME], sf=1 - p[:, None] / 9), "high": cs.Step([TIME], sf=1 - p[:, None])}
    found = cs.compare(
        forecasts, y, cs.PointMass(2.0), scores="brier_score", times=[TIME], discrimination=False
    )
    assert found.differences()["p_value"].isna().all()


def test_five_events_are_enough_and_clusters_count_once():
    event = np.arange(40) < 8
    y = cs.RightCensored(np.where(event, 0.5, 2.0), event)
    alone = compare(y)
    assert np.isfinite(alone.differences()["p_value"]).all()
    assert alone.frame()["events"].tolist() == [8.0] * 4
    clustered = compare(y, groups=np.arange(40) // 4)
    assert (clustered.frame()["events"] == 2).all()
    assert clustered.differences()["p_value"].isna().all()


def test_too_few_survivors_are_too_few():
    event = np.arange(40) < 38
    y = cs.RightCensored(np.where(event, 0.5, 2.0), event)
    brier = compare(y).frame()
    assert brier[brier["score"] == "brier_score"]["events"].tolist() == [2.0, 2.0]
    assert brier[brier["score"] == "crps"]["events"].tolist() == [38.0, 38.0]


def test_pinball_scores_rest_on_events_before_the_quantile():
    time = np.linspace(0.01, 2.0, 200)
    y = cs.RightCensored(time, np.ones(200))
    found = cs.compare(
        {"a": cs.Uniform(0.0, 2.0), "b": cs.Uniform(0.0, 1.0)},
        y,
        scores="pinball_score",
        levels=[0.01, 0.3],
        discrimination=False,
    )
    events = found.frame().groupby("at")["events"].first()
    assert events[0.01] == (time <= 0.02).sum() < 5
    assert events[0.3] == (time <= 0.6).sum()


def test_the_mark_of_a_strong_difference_is_not_zero():
    y = cs.RightCensored(np.random.default_rng(4).exponential(size=4000), np.ones(4000))
    found = cs.compare(
        {"a": cs.Exponential(1.0), "b": cs.Exponential(9.0)}, y, scores="crps", discrimination=False
    )
    pairs = found.differences()
    assert (pairs[["p_value", "p_adjusted"]] >= 1e-16).all(axis=None)
    assert "&lt; 0.0001" in found.to_html()
