"""Semi-competing risks: the outcome, and its energy score at every censoring time that is possible."""

import numpy as np
import pytest

import censcore as cs
from censcore.exceptions import InvalidInputError, InvalidTypeError, PositivityError

TIME = [[2.0, 5.0], [4.0, 4.0], [6.0, 6.0], [3.0, 6.0]]
EVENT = [[1, 1], [0, 1], [0, 0], [1, 0]]


def test_never_is_known_where_the_terminal_event_came_first():
    y = cs.SemiCompetingRisks(TIME, EVENT)
    assert y.never.tolist() == [[False, False], [True, False], [False, False], [False, False]]
    assert y.known_time[1, 0] == np.inf
    assert (y.k, y.shape, len(y)) == (2, (4, 2), 4)
    np.testing.assert_array_equal(y.terminal_event().flip().event, [False, False, True, True])
    assert y[[1, 2]].never[0, 0]


def test_follow_up_that_is_cut_before_the_terminal_event_leaves_nothing_known():
    y = cs.SemiCompetingRisks(TIME, EVENT, censoring_time=[9.0, 9.0, 6.0, 6.0]).censor_at(3.5)
    assert not y.never.any()
    np.testing.assert_array_equal(y.time, [[2.0, 3.5], [3.5, 3.5], [3.5, 3.5], [3.0, 3.5]])
    np.testing.assert_array_equal(y.censoring_time, 3.5)


def test_the_composite_coding_is_translated():
    composite = cs.RightCensored(TIME, [[1, 1], [1, 1], [0, 0], [1, 0]])
    y = cs.SemiCompetingRisks.from_first_event(composite)
    np.testing.assert_array_equal(y.event, np.array(EVENT, dtype=bool))


@pytest.mark.parametrize(
    ("time", "event", "terminal", "match"),
    [
        ([[5.0, 4.0]], [[1, 1]], 1, "exceeds"),
        ([[3.0, 4.0]], [[0, 1]], 1, "without event"),
        ([[3.0, 4.0]], [[1, 1]], 2, "terminal"),
        ([3.0], [1], 0, "shape"),
    ],
)
def test_impossible_data_are_errors(time, event, terminal, match):
    with pytest.raises(InvalidInputError, match=match):
        cs.SemiCompetingRisks(time, event, terminal)


def test_functions_that_would_take_deaths_for_censoring_raise():
    y = cs.SemiCompetingRisks(TIME, EVENT)
    for use in (
        lambda: cs.KaplanMeier().fit(None, y),
        lambda: cs.crps(y, cs.Ensemble(np.ones((1, 3, 2))), cs.Uniform(0.0, 9.0)),
    ):
        with pytest.raises(InvalidTypeError, match="terminal_event"):
            use()


def test_views_of_one_event_of_the_first_and_of_the_last():
    y = cs.SemiCompetingRisks(TIME, EVENT, censoring_time=[9.0, 9.0, 6.0, 6.0])
    relapse, first, last = y.marginal(0), y.first(), y.last()
    np.testing.assert_array_equal(relapse.time, [2.0, 4.0, 6.0, 3.0])
    assert relapse.event.tolist() == [True, False, False, True]
    assert relapse.never.tolist() == [False, True, False, False]
    assert y.marginal(-1) is y.terminal_event()
    np.testing.assert_array_equal(first.time, [2.0, 4.0, 6.0, 3.0])
    assert first.event.tolist() == [True, True, False, True]
    np.testing.assert_array_equal(last.time, [5.0, 4.0, 6.0, 6.0])
    assert (last.event.tolist(), last.never.tolist()) == ([True] + [False] * 3, [False, True, False, False])
    for view in (relapse, first, last):
        np.testing.assert_array_equal(view.censoring_time, y.censoring_time)
    with pytest.raises(InvalidInputError, match="number 2"):
        y.marginal(2)


def test_the_energy_score_averages_over_the_possible_censoring_times():
    """By quadrature over C given C >= y, with the outcome min(T, C) at each."""
    rng = np.random.default_rng(0)
    z = rng.exponential(4.0, size=(1, 40, 2))
    z[0, :15, 0] = np.inf
    z[0, 15:, 1] += z[0, 15:, 0]
    y = cs.SemiCompetingRisks([[4.0, 4.0]], [[0, 1]])
    got = cs.energy_score(y, cs.Ensemble(z), cs.Uniform(0.0, 9.0), draws=2000)
    values = []
    for c in 4 + 5 * (np.arange(500) + 0.5) / 500:
        psi, seen = np.minimum(z[0], c), np.array([c, 4.0])
        between = np.linalg.norm(psi[:, None] - psi[None], axis=2).mean()
        values.append(np.linalg.norm(psi - seen, axis=1).mean() - 0.5 * between)
    np.testing.assert_allclose(got, np.mean(values), rtol=2e-3)


def test_without_an_end_of_follow_up_never_is_infinitely_far():
    y = cs.SemiCompetingRisks([[4.0, 4.0]], [[0, 1]])
    z = cs.Ensemble(np.ones((1, 5, 2)))
    with pytest.raises(PositivityError):
        cs.energy_score(y, z)
    assert np.isfinite(cs.energy_score(y, z, horizon=5.0))


def test_the_truth_wins():
    """Forecasts with other chances of recurrence, or another order of events, score worse."""
    rng = np.random.default_rng(1)

    def truth(n, share):
        first, gap, alone = rng.exponential(size=n), rng.exponential(size=n), 2 * rng.exponential(size=n)
        recurs = rng.random(n) < share
        return np.column_stack([np.where(recurs, first, np.inf), np.where(recurs, first + gap, alone)])

    n = 1500
    t, c = truth(n, 0.5), rng.uniform(0, 5, n)
    end = np.minimum(t[:, 1], c)
    y = cs.SemiCompetingRisks(
        np.column_stack([np.minimum(t[:, 0], end), end]), np.column_stack([t[:, 0] <= end, t[:, 1] <= c])
    )
    forecasts = {"truth": truth(300, 0.5), "less": truth(300, 0.25), "more": truth(300, 0.75)}
    forecasts["without never"] = np.where(np.isinf(forecasts["truth"]), 2.5, forecasts["truth"])
    loss = {
        name: cs.energy_score(y, cs.Ensemble(z[None]), cs.Uniform(0.0, 5.0), draws=4, fair=True)
        for name, z in forecasts.items()
    }
    for name in ("less", "more", "without never"):
        gain, error = cs.mean_loss(loss[name] - loss["truth"])
        assert gain > 2 * error
