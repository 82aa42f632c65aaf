from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.evaluation.decisions.horizon import follow_up_end

KM = cs.Censoring(cs.KaplanMeier())


def sample(n: int, seed: int, end: float = np.inf) -> cs.RightCensored:
    rng = np.random.default_rng(seed)
    T, C = rng.weibull(1.5, n), np.minimum(rng.exponential(1.0, n), end)
    return cs.RightCensored(np.minimum(T, C), T <= C)


def compare(y: cs.RightCensored, censoring: object = KM, **options: object) -> cs.evaluation.Comparison:
    forecasts = {"one": cs.Weibull(1.5, 1.0), "two": cs.Weibull(1.2, 1.2)}
    return cs.compare(forecasts, y, censoring, scores=["crps"], discrimination=False, **options)


def test_every_subject_is_followed_with_a_tenth():
    y = sample(2000, 0)
    C = cs.Exponential(np.where(np.arange(2000) % 2, 2.0, 1.0))  # rates
    assert follow_up_end(C, y.time) == pytest.approx(-np.log(0.1) / 2)
    assert compare(y, C).horizon == follow_up_end(C, y.time)


def test_kaplan_meier_stops_where_a_tenth_is_left():
    y, train = sample(4_000, 1), sample(3_000, 2)
    found = compare(y, train=(None, train))
    C = KM.fit(None, train).predict_distribution()
    assert C.sf_left(found.horizon)[0] >= 0.1
    assert C.sf_left(np.nextafter(found.horizon, 9.0))[0] < 0.1


def test_ten_subjects_are_at_risk_in_both_samples():
    y, train = sample(80, 3), sample(60, 4)
    found = compare(y, train=(None, train))
    assert min((y.time >= found.horizon).sum(), (train.time >= found.horizon).sum()) >= 10
    [note] = [note for note in found.notes if note.startswith("horizon")]
    assert "chosen by follow-up" in note
    assert note in repr(found)
    assert note in found.to_json()


def test_a_few_subjects_keep_a_fifth_at_risk():
    assert follow_up_end(cs.Exponential(0.1), np.arange(1.0, 11.0)) == 9.0
    assert follow_up_end(cs.Exponential(0.1), np.arange(1.0, 5.0)) == 4.0


def test_an_administrative_end_is_reached():
    y = cs.RightCensored(np.minimum(np.random.default_rng(5).exponential(2.0, 200), 1.0), np.arange(200) % 2)
    time = np.where(y.time == 1.0, 1.0, y.time)
    y = cs.RightCensored(time, time < 1.0)
    assert compare(y).horizon == 1.0


def test_known_censoring_times_need_no_cut():
    y = sample(50, 6)
    assert follow_up_end(cs.PointMass(9.0), y.time) == y.time.max()
    uncensored = cs.RightCensored(y.time, np.ones(50))
    found = compare(uncensored, None)
    assert found.horizon == y.time.max()
    assert not any("horizon" in note for note in found.notes)


@pytest.mark.parametrize(("horizon", "match"), [(99_999.0, "beyond follow-up"), (1.9, "is long for this")])
def test_a_horizon_beyond_follow_up_is_told(horizon, match):
    y = sample(200, 7, end=2.0)
    y = cs.RightCensored(np.append(y.time, 2.0), np.append(y.event, False))
    found = compare(y, cs.Exponential(0.5), horizon=horizon)
    assert found.horizon == horizon
    [note] = [note for note in found.notes if "horizon" in note]
    assert match in note
    assert "horizon='auto' is" in note


def test_a_modest_horizon_needs_no_words():
    assert not any("horizon" in note for note in compare(sample(300, 8), horizon=0.8).notes)


def test_no_time_is_supported():
    with pytest.raises(cs.exceptions.InvalidInputError, match="Pass horizon="):
        compare(sample(60, 9), cs.Mixture([cs.PointMass(0.0), cs.Exponential(1.0)], weights=[0.95, 0.05]))


def test_subjects_who_enter_later_are_not_at_risk():
    """Nearly everybody enters after the horizon, and is not among those at risk there."""
    rng = np.random.default_rng(8)
    entry = np.where(np.arange(400) < 60, 0.0, 2.0)
    y = cs.RightCensored(entry + rng.exponential(2.0, 400), rng.random(400) < 0.6, entry=entry)
    found = compare(y, cs.Exponential(2.0))
    at_risk = ((y.time >= found.horizon) & (y.entry < found.horizon)).sum()
    assert found.horizon < 2.0
    assert at_risk < 60
    [note] = [note for note in found.notes if note.startswith("horizon")]
    assert f"and {at_risk} are at risk there" in note


def test_a_fifth_of_few_is_said():
    found = compare(sample(20, 9), cs.Exponential(0.2))
    [note] = [note for note in found.notes if note.startswith("horizon")]
    assert "4 are at risk there (4 at least, a fifth of 20)" in note


def test_few_subjects_do_not_end_the_comparison():
    """Of 200 subjects, three who are censored early leave the horizon of the others; five end it."""
    y = sample(200, 11)
    for few, whose in ((3, 0.5), (5, 4.0)):
        rate = np.where(np.arange(200) < few, 4.0, 0.5)
        assert follow_up_end(cs.Exponential(rate), y.time) == pytest.approx(
            min(-np.log(0.1) / whose, -np.log(0.001) / 4.0, follow_up_end(cs.Exponential(0.01), y.time))
        )
    found = compare(y, cs.Exponential(np.where(np.arange(200) < 3, 2.5, 1.0)))
    [note] = [note for note in found.notes if note.startswith("horizon")]
    assert "for 98% of the subjects (the smallest is" in note
    [note] = [note for note in compare(y, cs.Exponential(20.0)).notes if note.startswith("horizon")]
    assert "less than half of the follow-up" in note
