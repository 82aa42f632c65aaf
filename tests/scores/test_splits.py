"""Losses belong to subjects: the same in any order, company and split of the data."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.distributions.joint_events import first_is

RNG = np.random.default_rng(8)
N, M = 300, 90
T = RNG.weibull(1.5, (N, 2))
C = RNG.uniform(0.2, 3.0, N)
SCALE = RNG.uniform(0.5, 1.5, N)
Y = cs.RightCensored(np.minimum(T, C[:, None]), C[:, None] >= T)
G = cs.Uniform(0.0, 3.5)
ENSEMBLE = cs.Ensemble(RNG.weibull(1.5, (N, M, 2)))
COPULA = cs.Copula("clayton", [cs.Weibull(1.5, SCALE), cs.Weibull(1.2, SCALE)], 1.5)
FORECASTS = {
    "ensemble": ENSEMBLE,
    "one ensemble": ENSEMBLE.take(np.array([0])),
    "clayton": COPULA,
    "gumbel": cs.Copula("gumbel", [cs.Weibull(1.5, SCALE), cs.Weibull(1.2, SCALE)], 1.5),
    "one copula": cs.Copula("clayton", [cs.Weibull(1.5, 1.0), cs.Weibull(1.2, 1.0)], 1.5),
    "independent": cs.Independent([cs.Weibull(1.5, SCALE), cs.Exponential(SCALE)]),
    "given survival": COPULA.given_survival(np.minimum(T.min(axis=1), C) * RNG.uniform(0, 0.9, N)),
    "one given survival": cs.Copula("clayton", [cs.Weibull(1.5, 1.0)] * 2, 1.5).given_survival(0.05),
    "censored": COPULA.censor_at(3.0),
}


def _taken(F, rows):
    return F if len(F) == 1 else F.take(rows)


@pytest.mark.parametrize("name", FORECASTS)
@pytest.mark.parametrize("options", [{}, {"pairs": "lagged"}, {"beta": 0.7, "fair": True}])
def test_energy_score_is_the_same_in_any_split_and_order(name, options):
    F = FORECASTS[name]
    options = {"members": 70, "draws": 8, **options}
    whole = cs.energy_score(Y, F, G, **options)
    assert len(np.unique(whole)) == N
    for parts in (np.array_split(RNG.permutation(N), 7), [np.arange(N)[::-1]]):
        split = np.concatenate([cs.energy_score(Y[rows], _taken(F, rows), G, **options) for rows in parts])
        np.testing.assert_allclose(split, whole[np.concatenate(parts)], rtol=1e-12, atol=1e-14)


def test_a_censoring_time_per_coordinate_is_the_same_in_any_split():
    both = cs.Independent([G, cs.Uniform(0.0, 4.0)])
    whole = cs.energy_score(Y, ENSEMBLE, both)
    rows = RNG.permutation(N)[:40]
    np.testing.assert_allclose(cs.energy_score(Y[rows], ENSEMBLE.take(rows), both), whole[rows], rtol=1e-12)


@pytest.mark.parametrize("name", ["clayton", "one copula", "independent", "given survival"])
@pytest.mark.parametrize("event", ["all", first_is(1)])
def test_joint_brier_score_is_the_same_in_any_split(name, event):
    F = FORECASTS[name]
    whole = cs.joint_brier_score(Y, F, G, [0.3, 0.9], event=event, members=60)
    rows = RNG.permutation(N)[:70]
    part = cs.joint_brier_score(Y[rows], _taken(F, rows), G, [0.3, 0.9], event=event, members=60)
    np.testing.assert_allclose(part, whole[rows], rtol=1e-12, atol=1e-14)


def test_causes_and_semi_competing_risks_are_the_same_in_any_split():
    cause = 1 + (RNG.random(N) < 0.4)
    risks = cs.CompetingRisks(Y.time[:, 0], np.where(Y.event[:, 0], cause, 0))
    F = cs.CumulativeIncidence([0.5, 1.0, 2.0], RNG.dirichlet([1, 1, 1, 4], (N, 2))[:, :, :3].cumsum(2) / 2)
    rows = RNG.permutation(N)[:80]
    whole = cs.energy_score(risks, F, G, members=40, draws=4)
    part = cs.energy_score(risks[rows], F.take(rows), G, members=40, draws=4)
    np.testing.assert_allclose(part, whole[rows], rtol=1e-12, atol=1e-14)
    terminal = np.minimum(T[:, 1], C)
    first = np.minimum(T[:, 0], terminal)
    semi = cs.SemiCompetingRisks(
        np.column_stack([first, terminal]), np.column_stack([T[:, 0] <= terminal, T[:, 1] <= C])
    )
    for forecast in (ENSEMBLE, COPULA):
        whole = cs.energy_score(semi, forecast, G, members=40, draws=4)
        part = cs.energy_score(semi[rows], forecast.take(rows), G, members=40, draws=4)
        np.testing.assert_allclose(part, whole[rows], rtol=1e-12, atol=1e-14)


def test_ids_decide_who_shares_draws():
    same = cs.RightCensored(np.ones((6, 2)), np.ones((6, 2), bool))
    one = ENSEMBLE.take(np.array([0]))
    assert len(np.unique(cs.energy_score(same, one, G))) == 6
    assert len(np.unique(cs.energy_score(same, one, G, ids=np.zeros(6)))) == 1
    ids = np.array(["a", "b", "c", "a", "d", "e"])
    losses = cs.energy_score(same, one, G, ids=ids)
    assert len(np.unique(losses)) == 5
    assert losses[0] == losses[3]
    np.testing.assert_array_equal(cs.energy_score(same[2:4], one, G, ids=ids[2:4]), losses[2:4])
    with pytest.raises(cs.exceptions.InvalidInputError, match=r"ids: got an array of shape \(2,\)"):
        cs.energy_score(same, one, G, ids=ids[:2])


def test_draws_of_subjects_are_uniform_and_independent():
    from censcore.distributions.random_draws import SubjectDraws, keys_of

    draws = SubjectDraws(keys_of([np.arange(2000)], seed=1))
    size = (2000, 50)
    u, z, e = draws.random(size), draws.standard_normal(size), draws.standard_exponential(size)
    g = draws.standard_gamma(np.full((2000, 1), 2.5), (2000, 50))
    assert 0 <= u.min() < 1e-4
    assert 1 - 1e-4 < u.max() < 1
    moments = [(u, 1 / 2, 1 / 12), (z, 0, 1), (e, 1, 1), (g, 2.5, 2.5)]
    for values, mean, variance in moments:
        assert abs(values.mean() - mean) < 5 * np.sqrt(variance / values.size)
        assert abs(values.var() / variance - 1) < 0.05
    across = np.corrcoef(np.column_stack([u[:, :5], u[:, 45:], z[:, :3], np.roll(u[:, 0], 1)]).T)
    assert np.abs(across - np.eye(len(across))).max() < 0.1
