"""Scores of composed distributions: subjects permuted, repeated or alone, and the definition itself."""

from __future__ import annotations

from functools import partial
from itertools import pairwise

import numpy as np
import pytest
from scipy.integrate import quad
from tests.distributions.compositions import N, compositions

import censcore as cs
from censcore.distributions import Grouped, Independent

HORIZON = np.array([1.4, 0.8, 1.1, 2.0])
SCORES = {
    "crps": cs.crps,
    "brier": partial(cs.brier_score, times=[0.3, 0.6]),
    "brier, ipcw": partial(cs.brier_score, times=[0.3, 0.6], scale="ipcw"),
    "integrated brier, ipcw": partial(cs.integrated_brier_score, scale="ipcw"),
    "binomial log": partial(cs.binomial_log_score, times=[0.3, 0.6]),
    "pinball": partial(cs.pinball_score, levels=[0.2, 0.7]),
    "energy": cs.energy_score,
}
FORECASTS = {
    "smooth": cs.Weibull([0.8, 1.2, 2.0, 3.0], [2.0, 1.0, 1.5, 3.0]),
    "shared": cs.LogNormal(0.0, 0.7),
    "steps": cs.Step(
        [0.5, 1.0, 2.0], sf=[[0.9, 0.5, 0.1], [0.8, 0.2, 0.0], [0.7, 0.6, 0.5], [0.5, 0.4, 0.0]]
    ),
    "ensemble": cs.Ensemble(np.random.default_rng(3).weibull(1.2, (N, 7))),
    "quantiles": cs.Quantiles([0.1, 0.5, 0.9], [[1.0, 2.0, 5.0], [0.2, 0.3, 4.0]]),
}
ROWS = np.array([2, 0, -1, 1, 0])  # permuted, repeated, negative


def trees():
    """Compositions of one event time, by what they hold."""
    return {
        f"{kind} of {name}": tree
        for name, distribution in FORECASTS.items()
        for kind, tree in compositions(distribution).items()
        if tree.whole().k == 1
    }


TREES = trees()


def outcome_under(C, seed=0):
    """Times that C can have censored: those of subject i under its distribution."""
    rng = np.random.default_rng(seed)
    c, T = C.sample(1, seed)[:, 0], rng.weibull(1.3, N)
    c = np.broadcast_to(c, (N,))
    return cs.RightCensored(np.minimum(T, c), c >= T)


@pytest.mark.parametrize("name", TREES)
def test_losses_follow_their_subjects(name):
    """As censoring distribution, and as forecast: chosen subjects keep their losses, to the last digits.

    Every second score in each role; every composition meets all of them.
    """
    composed = TREES[name].whole()
    F = cs.Gamma([0.8, 1.2, 2.0, 3.0], [1.0, 2.0, 1.0, 1.5])
    cases = {"censoring": (outcome_under(composed), F, composed)}
    cases["forecast"] = (outcome_under(cs.Uniform(0.0, 2.5)), composed, cs.Uniform(0.0, 2.5))
    for place, (role, (y, forecast, C)) in enumerate(cases.items(), list(TREES).index(name)):
        tau = 0.9 * np.minimum(HORIZON, np.broadcast_to(C.isf(0.0), (N,)))
        for score_name, score in list(SCORES.items())[place % 2 :: 2]:
            losses = score(y, forecast, C, horizon=np.maximum(tau, 0.61))
            some = score(y[ROWS], forecast[ROWS], C[ROWS], horizon=np.maximum(tau, 0.61)[ROWS])
            np.testing.assert_allclose(
                some, losses[ROWS], rtol=1e-11, atol=1e-13, err_msg=f"{role} {score_name}"
            )


@pytest.mark.parametrize("name", [name for name in TREES if name.endswith(("of smooth", "of steps"))])
def test_the_crps_is_its_definition_for_every_subject(name):
    """Quadrature of the integral, with the two distributions of each subject built alone."""
    tree = TREES[name]
    C, F = tree.whole(), cs.Weibull([0.8, 1.2, 2.0, 3.0], [2.0, 1.0, 1.5, 3.0])
    y = outcome_under(C, seed=1)
    losses = cs.crps(y, F, C, horizon=HORIZON)
    for i in range(N):
        expected = _crps(float(y.time[i]), bool(y.event[i]), F[i], tree.alone(i), HORIZON[i])
        np.testing.assert_allclose(losses[i], expected, rtol=1e-7, atol=1e-10)


def _crps(y, event, F, C, h):
    breaks = C.breaks()
    stops = [] if breaks is None else np.asarray(breaks).reshape(-1).tolist()
    loss = _integral(lambda s: float(F.cdf(s)[0]) ** 2, 0.0, min(y, h), stops)
    if not event or y > h:
        return loss
    tail = _integral(lambda s: float(C.sf(s)[0] * F.sf(s)[0] ** 2), y, h, stops)
    return loss + tail / float(C.sf_left(y)[0])


def _integral(f, a, b, stops):
    edges = [a, *sorted({s for s in stops if a < s < b}), b]
    return sum(quad(f, low, high, epsabs=1e-12, epsrel=1e-11)[0] for low, high in pairwise(edges))


def test_sorting_leaves_the_mean_alone(rng):
    """Strata with other risks, sorted by time: the mean Brier score is that of the subjects as they came."""
    n = 400
    group = rng.integers(0, 2, n)
    T, c = rng.exponential(np.where(group == 0, 0.5, 3.0)), rng.uniform(0, 4, n)
    y, C = cs.RightCensored(np.minimum(T, c), c >= T), cs.Uniform(0.0, 4.0)
    strata = Grouped([cs.Exponential(2.0), cs.Exponential(1 / 3)], group)
    F = cs.Mixture([strata, cs.Exponential(1.0)], [0.9, 0.1])
    order = np.argsort(y.time)
    losses = cs.brier_score(y, F, C, 1.0)
    np.testing.assert_allclose(cs.brier_score(y[order], F[order], C, 1.0), losses[order], rtol=1e-13)


def test_out_of_fold_curves_of_every_coordinate(rng):
    """Independent groups of curves serve the energy score, in any order of the subjects."""
    n = 60
    T, c = rng.exponential(size=(n, 2)), rng.uniform(0, 2, (n, 2))
    y = cs.RightCensored(np.minimum(T, c), c >= T)
    C = cs.Censoring(cs.KaplanMeier(), cv=5, shared=False).fit_predict_distribution(None, y)
    assert isinstance(C, Independent)
    F = cs.Ensemble(rng.exponential(size=(n, 20, 2)))
    end = rng.uniform(0.5, 1.0, n)
    losses = cs.energy_score(y, F, C, horizon=end, draws=512)
    assert np.isfinite(losses).all()
    order = rng.permutation(n)  # draws belong to the place of a subject, so they differ by their error
    moved = cs.energy_score(y[order], F[order], C[order], horizon=end[order], draws=512)
    np.testing.assert_allclose(moved, losses[order], atol=0.01)


def test_out_of_fold_curves_with_a_horizon_for_each_subject(rng):
    n = 80
    T, c = rng.exponential(size=n), rng.uniform(0, 2, n)
    y = cs.RightCensored(np.minimum(T, c), c >= T)
    C = cs.Censoring(cs.KaplanMeier(), cv=5).fit_predict_distribution(None, y)
    F, end = cs.Exponential(np.linspace(0.5, 2, n)), rng.uniform(0.61, 1.2, n)
    for score in SCORES.values():
        losses = score(y, F, C, horizon=end)
        alone = [score(y[[i]], F[[i]], C[[i]], horizon=float(end[i])) for i in range(0, n, 9)]
        np.testing.assert_allclose(losses[::9], np.concatenate(alone), rtol=1e-11)


def test_a_group_of_known_times_is_scored_at_these_times():
    """Energy: all pairs at the known c, whether it comes as a point mass, in groups or as a curve."""
    rng = np.random.default_rng(4)
    c = np.array([2.0, 3.0, 2.0, 3.0])
    T = rng.exponential(size=(N, 2))
    y = cs.RightCensored(np.minimum(T, c[:, None]), c[:, None] >= T)
    F = cs.Ensemble(rng.exponential(size=(N, 100, 2)))
    known = cs.energy_score(y, F, cs.PointMass(c))
    groups = Grouped([cs.Step([2.0], sf=[0.0]), cs.PointMass(3.0)], c == 3.0)
    np.testing.assert_allclose(cs.energy_score(y, F, groups), known, rtol=1e-12)
    np.testing.assert_allclose(cs.energy_score(y[ROWS], F[ROWS], groups[ROWS]), known[ROWS], rtol=1e-12)
