"""Scores on a grid with completed rows: by hand; proper with the weights of the truth, not with their own."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs
from censcore.exceptions import InvalidInputError
from censcore_studies.forecast_evaluation.completed import (
    completed_brier,
    completed_log,
    completed_multiclass_brier,
    completed_pinball,
    completed_rps,
)

GRID = np.array([0.0, 1.0, 2.0, 3.0, 4.0])
MASSES = np.array([0.1, 0.4, 0.2, 0.3])
F = cs.PiecewiseLinear(GRID[1:], cdf=np.cumsum(MASSES)[None, :])
# an event in the second bin, a row censored half way through it, one censored on an edge
Y = cs.RightCensored([1.5, 1.5, 2.0], [1, 0, 0])


def test_log_by_hand():
    """At 1.5 F = 0.3, so of the survivors (0.5 - 0.3) / 0.7 have the event in the bin."""
    w = 0.2 / 0.7
    on_edge = 0.2 / 0.5  # left-closed bins: 2.0 opens the third
    expected = [
        -np.log(0.4),
        -(w * np.log(0.4) + (1 - w) * np.log(0.5)),
        -(on_edge * np.log(0.2) + (1 - on_edge) * np.log(0.3)),
    ]
    np.testing.assert_allclose(completed_log(Y, F, grid=GRID, epsilon=0.0), expected)


def test_log_in_the_last_bin_has_all_weight_there():
    y = cs.RightCensored([3.5, 4.0, 9.0], [0, 0, 1])
    np.testing.assert_allclose(completed_log(y, F, grid=GRID, epsilon=1e-6), -np.log(0.3 + 1e-6), rtol=1e-5)


def test_binary_brier_and_rps_by_hand():
    cdf = np.array([0.1, 0.5, 0.7])
    w = np.array([0.0, 0.2, 0.4]) / 0.7
    event = np.where(GRID[1:-1] >= 1.5, (1 - cdf) ** 2, cdf**2)
    censored = np.where(GRID[1:-1] >= 1.5, w * (1 - cdf) ** 2 + (1 - w) * cdf**2, cdf**2)
    found = completed_brier(Y, F, times=GRID[1:-1])
    np.testing.assert_allclose(found[:2], [event, censored])
    np.testing.assert_allclose(completed_rps(Y, F, grid=GRID), found.sum(axis=1))


def test_multiclass_brier_by_hand():
    c = np.array([0.0, 0.2 / 0.7, 0.2 / 0.7, 0.3 / 0.7])
    expected = (c * (1 - MASSES) ** 2 + (1 - c) * MASSES**2).sum()
    one_hot = np.array([0.0, 1.0, 0.0, 0.0])
    event = (one_hot * (1 - MASSES) ** 2 + (1 - one_hot) * MASSES**2).sum()
    found = completed_multiclass_brier(Y, F, grid=GRID)
    np.testing.assert_allclose(found[:2], [event, expected])


def test_pinball_by_hand():
    """Levels below F(1.5) = 0.3 and above it; q = 1.25 and 2.5."""
    y, levels, far = cs.RightCensored([1.5], [0]), [0.2, 0.6], 10.0
    q = np.array([1.25, 2.5])
    np.testing.assert_allclose(F.icdf(np.array([levels]))[0], q)
    w = (0.6 - 0.3) / 0.7
    at_z = np.array([0.2 * (1.5 - 1.25), 0.4 * (2.5 - 1.5)])
    at_far = np.array([0.2, 0.6]) * (far - q)
    above = w * at_z[1] + (1 - w) * at_far[1]
    observed = completed_pinball(y, F, levels=levels, z_inf=far)
    np.testing.assert_allclose(observed[0], [at_z[0], above])
    event = completed_pinball(cs.RightCensored([1.5], [1]), F, levels=levels, z_inf=far)
    np.testing.assert_allclose(event[0], at_z)


def test_weights_of_another_distribution_replace_those_of_the_forecast():
    other = cs.PiecewiseLinear(GRID[1:], cdf=np.array([[0.25, 0.5, 0.75, 1.0]]))
    w = (0.5 - 0.375) / (1 - 0.375)
    expected = -(w * np.log(0.4) + (1 - w) * np.log(0.5))
    found = completed_log(Y, F, grid=GRID, weights=other, epsilon=0.0)
    assert found[1] == pytest.approx(expected)


RULES = {
    "log": lambda y, f, w: completed_log(y, f, grid=GRID, weights=w),
    "multiclass Brier": lambda y, f, w: completed_multiclass_brier(y, f, grid=GRID, weights=w),
    "Brier": lambda y, f, w: completed_brier(y, f, times=GRID[1:-1], weights=w).mean(axis=1),
    "ranked probability": lambda y, f, w: completed_rps(y, f, grid=GRID, weights=w),
    "pinball": lambda y, f, w: completed_pinball(y, f, levels=[0.2, 0.6, 0.8], z_inf=5.0, weights=w).mean(
        axis=1
    ),
}


N = 20_000


def censored_data(kind: str) -> cs.RightCensored:
    """Censoring at random, or of three in four rows before most events and of nobody else."""
    rng = np.random.default_rng(0)
    T = F.sample(N, rng)[0]
    c = (
        rng.uniform(0, 5, N)
        if kind == "random"
        else np.where(rng.random(N) < 0.75, rng.uniform(0, 0.3, N), 9.0)
    )
    return cs.RightCensored(np.minimum(T, c), c >= T)


def published() -> dict[str, cs.PiecewiseLinear]:
    """Mass moved around, to the end and to the front."""
    masses = {
        "flat": [0.25, 0.25, 0.25, 0.25],
        "late": [0.08, 0.25, 0.12, 0.55],
        "very late": [0.06, 0.15, 0.09, 0.70],
        "early": [0.2, 0.5, 0.15, 0.15],
        "sharp": [0.05, 0.65, 0.1, 0.2],
    }
    return {name: cs.PiecewiseLinear(GRID[1:], cdf=np.cumsum(m)[None, :]) for name, m in masses.items()}


def margins(rule, y: cs.RightCensored, oracle_weights: bool) -> dict[str, float]:
    """By how many standard errors the truth beats each rival, rows paired."""
    best = rule(y, F, F)
    found = {}
    for name, rival in published().items():
        gap = rule(y, rival, F if oracle_weights else None) - best
        found[name] = gap.mean() / (gap.std(ddof=1) / np.sqrt(len(gap)))
    return found


@pytest.mark.parametrize("kind", ["random", "early"])
@pytest.mark.parametrize("rule", RULES)
def test_with_the_weights_of_the_truth_the_truth_wins(rule, kind):
    assert min(margins(RULES[rule], censored_data(kind), oracle_weights=True).values()) > 4


@pytest.mark.parametrize("rule", ["multiclass Brier", "Brier", "ranked probability"])
def test_with_plug_in_weights_a_late_forecast_beats_the_truth(rule):
    assert margins(RULES[rule], censored_data("early"), oracle_weights=False)["very late"] < -4


def test_the_plug_in_log_score_prefers_a_sharper_forecast_within_the_bin():
    """Censoring in the first half of a bin: completing the rows in its own favour pays."""
    rng = np.random.default_rng(1)
    n = N
    T, c = F.sample(n, rng)[0], np.where(rng.random(n) < 0.8, rng.uniform(1.0, 1.3, n), 9.0)
    y = cs.RightCensored(np.minimum(T, c), c >= T)
    truth = completed_log(y, F, grid=GRID)
    masses = np.array([0.1, 0.15, 0.3, 0.45])
    rival = cs.PiecewiseLinear(GRID[1:], cdf=np.cumsum(masses)[None, :])
    gap = completed_log(y, rival, grid=GRID) - truth
    fair = completed_log(y, rival, grid=GRID, weights=F) - truth
    assert fair.mean() > 4 * fair.std() / np.sqrt(n)
    assert gap.mean() < fair.mean()


def test_finer_grids_bring_the_log_score_to_the_censored_likelihood():
    rng = np.random.default_rng(2)
    distribution, y = cs.Weibull(1.5, 2.0), cs.RightCensored(rng.uniform(0.2, 4, 50), rng.integers(0, 2, 50))
    exact = cs.log_score(y, distribution, cs.Uniform(0.0, 9.0))
    errors = []
    for bins in (200, 5000):
        grid = np.linspace(0, 12, bins + 1)
        # a bin's mass is its width times the density
        found = completed_log(y, distribution, grid=grid, epsilon=0.0) + y.event * np.log(grid[1])
        errors.append(np.abs(found - exact).max())
    assert errors[1] < 0.1 * errors[0]
    assert errors[1] < 0.02


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: completed_log(Y, F, grid=[0.0, 2.0, 1.0]), "increasing"),
        (lambda: completed_log(Y, F, grid=[0.0, np.inf]), "finite"),
    ],
)
def test_wrong_input_is_refused(call, message):
    with pytest.raises(InvalidInputError, match=message):
        call()
