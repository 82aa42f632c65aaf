"""The truth wins in mean under every kind of censoring, dependence included; an improper rule is caught."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs

N, M = 6000, 40
THETA = 2.0
END = 2.5


def clayton(rng, theta, scale, size):
    """Exponential times (..., 2) that share a gamma frailty, so that both tend to come late together."""
    frailty = rng.gamma(1 / theta, size=(*size, 1))
    return scale * np.log1p(rng.exponential(size=(*size, 2)) / frailty) / theta


def scenario(rng):
    """Covariates, true times and forecasts: the truth, and what gets one aspect of it wrong.

    Alternatives are made of the true members, so that differences are not drowned in sampling noise.
    """
    x = rng.uniform(0.5, 1.5, (N, 1))
    truth = clayton(rng, THETA, x[:, None], (N, M))
    forecasts = {
        "truth": truth,
        "independent": np.stack([truth[:, :, 0], rng.permuted(truth[:, :, 1], axis=1)], axis=2),
        "too dependent": np.sort(truth, axis=1),
        "too early": 0.7 * truth,
        "a little early": 0.85 * truth,
        "too late": 1.3 * truth,
        "blind to x": truth / x[:, None],
    }
    return x[:, 0], clayton(rng, THETA, x, (N,)), {name: cs.Ensemble(z) for name, z in forecasts.items()}


def censoring(kind, rng, x):
    """Censoring times (n, 1) or (n, 2), and their distribution."""
    if kind == "administrative":
        return np.full((N, 1), END / 2), cs.PointMass(END / 2)
    if kind == "uniform":
        return rng.uniform(0, END, (N, 1)), cs.Uniform(0.0, END)
    if kind == "by covariate":
        return rng.exponential(2 / x)[:, None], cs.Exponential(x / 2)
    if kind == "componentwise":
        distributions = [cs.Uniform(0.0, END), cs.Exponential(x / 2)]
        return np.stack([rng.uniform(0, END, N), rng.exponential(2 / x)], axis=1), cs.Independent(
            distributions
        )
    assert kind == "componentwise, known"
    C = rng.uniform(0, END, (N, 2))
    return C, cs.Independent([cs.PointMass(C[:, 0]), cs.PointMass(C[:, 1])])


def margins(score, forecasts):
    """How many standard errors each alternative loses by, row by row against the truth."""
    truth = score(forecasts["truth"])
    gaps = {name: score(F) - truth for name, F in forecasts.items() if name != "truth"}
    return {name: gap.mean() / (gap.std() / np.sqrt(len(gap))) for name, gap in gaps.items()}


KINDS = ["administrative", "uniform", "by covariate", "componentwise", "componentwise, known"]


@pytest.mark.parametrize("kind", KINDS)
def test_truth_wins(rng, kind):
    x, T, forecasts = scenario(rng)
    C, distribution = censoring(kind, rng, x)
    y = cs.RightCensored(np.minimum(T, C), C >= T)
    won = margins(lambda F: cs.energy_score(y, F, distribution, fair=True, draws=8), forecasts)
    assert min(won.values()) > 3, won


@pytest.mark.parametrize("beta", [0.3, pytest.param(1.7, marks=pytest.mark.slow)])
def test_truth_wins_for_other_exponents(rng, beta):
    x, T, forecasts = scenario(rng)
    C, distribution = censoring("uniform", rng, x)
    y = cs.RightCensored(np.minimum(T, C), C >= T)
    won = margins(lambda F: cs.energy_score(y, F, distribution, beta=beta, fair=True, draws=4), forecasts)
    assert min(won.values()) > 2.5, won


def test_truth_wins_under_an_estimated_distribution(rng):
    x, T, forecasts = scenario(rng)
    C, _ = censoring("uniform", rng, x)
    y = cs.RightCensored(np.minimum(T, C), C >= T)
    distribution = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution(None)
    won = margins(lambda F: cs.energy_score(y, F, distribution, fair=True, draws=8, horizon=2.0), forecasts)
    assert min(won.values()) > 3, won


def test_ignoring_that_follow_up_ends_is_caught(rng):
    """Scoring rows without a censored time as if they could never have been censored is improper."""
    x, T, forecasts = scenario(rng)
    C, _ = censoring("uniform", rng, x)
    y = cs.RightCensored(np.minimum(T, C), C >= T)
    c = np.where(y.event.all(axis=1), np.inf, C[:, 0])
    won = margins(lambda F: cs.energy_score(y, F, cs.PointMass(c), fair=True), forecasts)
    assert won["a little early"] < -4, won
