"""The reference of semi-competing risks: its margins are those of Aalen-Johansen and of Kaplan-Meier."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.estimators.nonparametric.event_histories import MEMBERS, draw_histories, event_histories


def illness_and_death(n, seed, unit=None):
    """No Markov process: a frailty makes relapses and deaths depend on each other."""
    rng = np.random.default_rng(seed)
    frailty = rng.gamma(0.5, 2.0, n)
    first, alone = rng.exponential(size=n) / frailty, 2 * rng.exponential(size=n) / frailty
    relapse = np.where(first < alone, first, np.inf)
    death = np.where(first < alone, first + 0.5 * rng.exponential(size=n) / frailty, alone)
    C = rng.uniform(0, 5, n)
    if unit:
        relapse, death, C = (np.ceil(part / unit) * unit for part in (relapse, death, C))
    end = np.minimum(death, C)
    y = cs.SemiCompetingRisks(
        np.column_stack([np.minimum(relapse, end), end]), np.column_stack([relapse <= end, death <= C])
    )
    return y, relapse, death


@pytest.mark.parametrize("unit", [None, 0.25])
def test_the_margins_are_right(unit):
    y, relapse, death = illness_and_death(3000, 0, unit)
    F, t = event_histories(None, y), np.array([0.3, 1.0, 2.0, 4.0])
    causes = cs.CompetingRisks(y.time[:, 0], np.where(y.event[:, 0], 1, np.where(y.never[:, 0], 2, 0)))
    incidence = cs.AalenJohansen().fit(None, causes).predict_distribution().cause(1).cdf(t)
    assert np.abs(F.marginal(0).cdf(t) - incidence).max() < 2 / MEMBERS
    curve = cs.KaplanMeier().fit(None, y.terminal_event()).predict_distribution().cdf(t)
    assert np.abs(F.marginal(1).cdf(t) - curve).max() < 0.02
    for j, true in enumerate((relapse, death)):
        assert np.abs(F.marginal(j).cdf(t) - [(true <= s).mean() for s in t]).max() < 0.03
    z = F.samples[0]
    assert (np.isinf(z[:, 0]) | (z[:, 0] <= z[:, 1])).all()
    both = [((relapse <= s) & (death <= s)).mean() for s in t]
    assert np.abs([(z <= s).all(axis=1).mean() for s in t] - np.array(both)).max() < 0.03


def test_weights_are_copies_and_zero_weights_nobody():
    y, *_ = illness_and_death(60, 1)
    weight = np.random.default_rng(0).integers(0, 4, 60)
    copies = y.take(np.repeat(np.arange(60), weight))
    found = draw_histories(y, weight.astype(float))
    np.testing.assert_array_equal(found, draw_histories(copies, np.ones(len(copies))))
    np.testing.assert_array_equal(event_histories(None, y, None, weight.astype(float)).samples[0], found)


def test_three_events_and_none():
    rng = np.random.default_rng(2)
    death, C = rng.exponential(2.0, 500), rng.uniform(0, 4, 500)
    T = np.column_stack([rng.exponential(size=(500, 2)), death])
    end = np.minimum(death, C)[:, None]
    y = cs.SemiCompetingRisks(np.minimum(T, end), end >= T)
    z = draw_histories(y, np.ones(500))
    for j in range(2):
        share = ((T[:, j] <= 1.0) & (T[:, j] <= death)).mean()
        assert abs((z[:, j] <= 1.0).mean() - share) < 0.06
    nothing = cs.SemiCompetingRisks([[2.0, 2.0], [3.0, 3.0]], [[0, 0], [0, 0]])
    assert np.isinf(draw_histories(nothing, np.ones(2))).all()
