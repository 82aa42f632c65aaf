"""Which data show that an event ends the follow-up of another one, and which only have ties."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.exceptions import UnsupportedOutcomeError
from censcore.outcomes.ended_follow_up import check_no_event_ends_follow_up, ended_follow_up


def times(n, seed, k=2):
    """Dependent event times by a gamma frailty, and one censoring time."""
    rng = np.random.default_rng(seed)
    frailty = rng.gamma(0.5, 1.0, (n, 1))
    return 3 * rng.exponential(size=(n, k)) / frailty, rng.uniform(0, 10, (n, 1))


def rounded(values, unit):
    return values if unit is None else np.ceil(values / unit) * unit


def coded(T, C):
    """The last event as censoring of the others."""
    ends = np.column_stack([np.minimum(C, T[:, -1:])] * (T.shape[1] - 1) + [C])
    return cs.RightCensored(np.minimum(T, ends), ends >= T)


UNITS = [None, 1 / 365, 1 / 12, 0.5, 1.0, 2.0]


@pytest.mark.parametrize("unit", UNITS)
@pytest.mark.parametrize("n", [100, 1000])
def test_death_as_censoring_is_found_in_any_unit(unit, n):
    for seed in range(5):
        T, C = (rounded(part, unit) for part in times(n, seed))
        found = list(ended_follow_up(coded(T, C)))
        assert [(one.i, one.j) for one in found] == [(0, 1)]
        first = (T[:, 1] < T[:, 0]) & (T[:, 1] <= C[:, 0])
        np.testing.assert_array_equal(found[0].rows, np.nonzero(first)[0])
        assert found[0].of == first.sum()


@pytest.mark.parametrize("unit", [*UNITS, 5.0])
@pytest.mark.parametrize("end", [np.inf, 5.0])
@pytest.mark.parametrize("each", [False, True])
def test_chance_ties_of_independent_censoring_are_not(unit, end, each):
    """Also of coarse times with an administrative end, at which an event and C coincide by design."""
    for seed in range(20):
        T, C = times(400, seed, k=3)
        if each:
            C = np.random.default_rng([seed, 1]).uniform(0, 10, T.shape)
        T, C = rounded(T, unit), rounded(np.minimum(C, end), unit)
        assert not list(ended_follow_up(cs.RightCensored(np.minimum(T, C), T <= C)))


def test_times_that_are_masked_or_past_say_nothing():
    T, C = times(200, 0)
    y = coded(T, C)
    mask = np.ones(T.shape, dtype=bool)
    mask[:, 0] = False
    assert not list(ended_follow_up(y, mask))
    past = cs.RightCensored(np.column_stack([np.zeros(200), y.time[:, 1]]), y.event | [True, False])
    assert not list(ended_follow_up(past))


def test_the_error_says_what_to_build_of_the_same_columns():
    y = coded(*times(300, 1))
    with pytest.raises(UnsupportedOutcomeError) as caught:
        check_no_event_ends_follow_up(y, names=("relapse", "death"))
    text = str(caught.value)
    assert "'relapse' censored at exactly the time of 'death'" in text
    assert "SemiCompetingRisks(y.time, y.event, terminal=1)" in text
    assert cs.SemiCompetingRisks(y.time, y.event, terminal=1).never[:, 0].sum() > 0
    with pytest.raises(UnsupportedOutcomeError, match=r"terminal=1\)"):
        cs.Censoring(cs.KaplanMeier()).fit(None, y)
    each = cs.Censoring(cs.KaplanMeier(), shared=False).fit(None, y)  # as it is asked for: one C per event
    assert not each.shared_


def test_the_censoring_distribution_of_semi_competing_risks_is_that_of_the_terminal_event():
    y = coded(*times(300, 1))
    semi = cs.SemiCompetingRisks(y.time, y.event)
    C = cs.Censoring(cs.KaplanMeier()).fit(None, semi).predict_distribution()
    alone = cs.Censoring(cs.KaplanMeier()).fit(None, y.marginal(1)).predict_distribution()
    at = np.linspace(0, 9, 50)[None]
    np.testing.assert_array_equal(C.sf(at), alone.sf(at))


def test_recurrence_and_death_of_the_colon_trial(survival_data):
    """38 patients died without a recurrence, which is censored at their death."""
    rows = pytest.importorskip("pandas").read_csv(survival_data / "colon.csv").sort_values("id")
    recurred, died = (rows[rows.etype == kind].set_index("id") for kind in (1, 2))
    time = np.column_stack([recurred.time, died.time]).astype(float)
    event = np.column_stack([recurred.status, died.status])
    (found,) = ended_follow_up(cs.RightCensored(time, event))
    assert (found.i, found.j, len(found.rows), found.of) == (0, 1, 38, 38)
    assert cs.SemiCompetingRisks(time, event).never[:, 0].sum() == 38
