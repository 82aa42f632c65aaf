"""The truth has the smallest mean score under irregular visits; imputation does not survive the same test."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pytest
from scipy.optimize import minimize

import censcore as cs

N, END = 8_000, 8.0
TRUTH = (1.5, 3.0)


def schedule(rng, n=N):
    """Irregular visits to the end of the study: some subjects come often, others rarely."""
    mean = np.where(rng.random(n) < 0.5, 0.7, 3.0)[:, None]
    visits = np.cumsum(mean * rng.uniform(0.5, 1.5, (n, 24)), axis=1)
    return np.where(visits <= END, visits, np.inf)


def intervals(T, visits, keep_future=True):
    before = visits < T[:, None]
    lower = np.max(np.where(before, visits, 0.0), axis=1)
    upper = np.min(np.where(before, np.inf, visits), axis=1)
    known = visits if keep_future else np.where(visits <= upper[:, None], visits, np.inf)
    return cs.IntervalCensored(lower, upper, known)


def best(mean_loss, start=TRUTH):
    """The Weibull distribution with the smallest mean loss."""
    loss = lambda theta: float(np.mean(mean_loss(cs.Weibull(*np.exp(theta)))))  # noqa: E731
    found = minimize(loss, np.log(start) + 0.1, method="Nelder-Mead", options={"xatol": 1e-3, "fatol": 1e-7})
    return np.exp(found.x)


@pytest.fixture(scope="module")
def seen():
    rng = np.random.default_rng(7)
    T = TRUTH[1] * rng.weibull(TRUTH[0], N)
    visits = schedule(rng)
    visits[~np.isfinite(visits).any(axis=1), 0] = END
    return T, visits


SCORES = {
    "log_score": lambda y, F: cs.log_score(y, F),
    "log_score, horizon": lambda y, F: cs.log_score(y, F, horizon=4.0),
    "crps": lambda y, F: cs.crps(y, F, horizon=END),
    "crps, no horizon": lambda y, F: cs.crps(y, F),
    "brier_score": lambda y, F: cs.brier_score(y, F, times=[1.0, 2.0, 3.0, 5.0]).sum(axis=1),
    "binomial_log_score": lambda y, F: cs.binomial_log_score(y, F, times=[1.0, 2.0, 3.0, 5.0]).sum(axis=1),
    "pinball_score": lambda y, F: cs.pinball_score(y, F, levels=np.arange(0.05, 1, 0.1), horizon=END).sum(
        axis=1
    ),
    "energy_score": lambda y, F: cs.energy_score(y, F, horizon=END),
}


@pytest.mark.parametrize("name", [name for name in SCORES if name != "pinball_score"])
def test_the_truth_has_the_smallest_mean_score(seen, name):
    y = intervals(*seen)
    np.testing.assert_allclose(best(lambda F: SCORES[name](y, F)), TRUTH, rtol=0.05)


@pytest.mark.parametrize("name", ["crps", "brier_score", "log_score", "pinball_score"])
def test_no_neighbour_of_the_truth_scores_better(seen, name):
    y = intervals(*seen)
    truth = SCORES[name](y, cs.Weibull(*TRUTH))
    for shape, scale in product([1.2, 1.5, 1.9], [2.6, 3.0, 3.5]):
        if (shape, scale) != TRUTH:
            gain = SCORES[name](y, cs.Weibull(shape, scale)) - truth
            assert gain.mean() > 2 * gain.std() / np.sqrt(N), (shape, scale)


def test_covariates_too():
    rng = np.random.default_rng(8)
    x = rng.normal(size=N)
    scale = np.exp(1 + 0.5 * x)
    y = intervals(scale * rng.weibull(1.5, N), np.where((v := schedule(rng)) < np.inf, v, np.inf))
    truth, flat = cs.Weibull(1.5, scale), cs.Weibull(1.3, np.exp(1.0))
    wrong = cs.Weibull(1.5, np.exp(1 + 0.3 * x))
    for score in SCORES.values():
        assert score(y, truth).mean() < min(score(y, flat).mean(), score(y, wrong).mean())


# ---- visits after the detection ------------------------------------------------------------------


def test_visits_drawn_from_their_gaps_keep_the_score_proper():
    rng = np.random.default_rng(9)
    T = TRUTH[1] * rng.weibull(TRUTH[0], N)
    visits = np.cumsum(rng.exponential(1.5, (N, 30)), axis=1)
    y = intervals(T, np.where(visits <= END, visits, np.inf), keep_future=False)
    full = y.continue_visits(cs.Exponential(1 / 1.5), until=END, seed=1)
    np.testing.assert_allclose(best(lambda F: cs.crps(full, F, horizon=END)), TRUTH, rtol=0.05)


def test_without_the_visits_after_detection_early_forecasts_win(seen):
    """What the error about missing visits prevents: the time after detection would cost nothing."""
    T, visits = seen
    y = intervals(T, visits)
    D = np.where(np.isfinite(y.upper), y.upper, END)

    def until_detection(F):
        p = np.where(np.isfinite(visits), F.cdf(np.where(np.isfinite(visits), visits, 1.0)), 0.0)
        width = np.diff(np.append(np.minimum(visits, END), np.full((N, 1), END), axis=1), axis=1)
        return (np.where(visits < D[:, None], width * p**2, 0.0)).sum(axis=1)

    late = cs.Weibull(1.5, 30.0)
    assert until_detection(late).mean() < until_detection(cs.Weibull(*TRUTH)).mean()


def test_dropout_with_the_distribution_of_the_last_visit():
    rng = np.random.default_rng(10)
    T = TRUTH[1] * rng.weibull(TRUTH[0], N)
    visits = np.arange(1.0, 9.0)
    last = rng.integers(1, 9, N).astype(float)  # of the visits that a subject attends
    full = intervals(T, np.broadcast_to(visits, (N, 8)))
    gone = full.upper > last
    lower = np.where(gone, np.minimum(full.lower, last), full.lower)
    y = cs.IntervalCensored(lower, np.where(gone, np.inf, full.upper), visits)
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y.detection()).predict_distribution()
    np.testing.assert_allclose(best(lambda F: cs.crps(y, F, C)), TRUTH, rtol=0.07)
    np.testing.assert_allclose(best(lambda F: cs.log_score(y, F)), TRUTH, rtol=0.05)


def test_delayed_entry():
    rng = np.random.default_rng(11)
    T, entry = TRUTH[1] * rng.weibull(TRUTH[0], 2 * N), rng.uniform(0, 3, 2 * N)
    rows = np.nonzero(entry < T)[0][:N]
    T, entry = T[rows], entry[rows]
    visits = entry[:, None] + np.cumsum(rng.uniform(0.5, 2.5, (N, 6)), axis=1)
    plain = intervals(T, visits)
    y = cs.IntervalCensored(plain.lower, plain.upper, visits, entry=entry)
    for score in (cs.log_score, cs.crps):
        np.testing.assert_allclose(best(lambda F, score=score: score(y, F)), TRUTH, rtol=0.05)
        assert best(lambda F, score=score: score(plain, F))[1] > 3.3  # ignoring entries


# ---- imputation ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def followed_to_the_end():
    """Visits until the event is found, so that nothing but the intervals is unknown."""
    rng = np.random.default_rng(7)
    T = TRUTH[1] * rng.weibull(TRUTH[0], 3000)
    often = np.where(rng.random(3000) < 0.5, 1.0, 5.0)[:, None]
    return T, intervals(T, np.cumsum(often * rng.uniform(0.5, 1.5, (3000, 40)), axis=1))


def gain_over_truth(loss, other):
    """By how many standard errors the other forecast has a smaller mean loss than the truth."""
    gain = loss(cs.Weibull(*TRUTH)) - loss(cs.Weibull(*other))
    return gain.mean() / gain.std() * np.sqrt(len(gain))


def scored_against(T, y):
    """Losses of a forecast against a midpoint, a draw from itself given the interval, and what was seen."""
    ones, u = np.ones(len(T)), np.random.default_rng(12).random(len(T))

    def drawn(F):
        level = F.cdf(y.lower) + u * (F.cdf(y.upper) - F.cdf(y.lower))
        return F.icdf(np.clip(level, 1e-12, 1 - 1e-12))

    return {
        "the midpoint of the interval": lambda F: cs.crps(cs.RightCensored((y.lower + y.upper) / 2, ones), F),
        "a draw from the scored forecast, given the interval": lambda F: cs.crps(
            cs.RightCensored(drawn(F), ones), F
        ),
        "the detection time": lambda F: cs.crps(y, F, horizon=12.0),
    }


def test_imputation_prefers_wrong_forecasts_and_the_detection_time_the_truth(followed_to_the_end):
    midpoint, draw, detection = scored_against(*followed_to_the_end).values()
    narrow, narrower = (1.9, 3.2), (3.0, 2.8)
    assert gain_over_truth(midpoint, narrow) > 5
    assert gain_over_truth(draw, narrower) > 5  # a forecast that confirms itself
    for wrong in (narrow, narrower):
        assert gain_over_truth(detection, wrong) < -3
        assert gain_over_truth(lambda F: cs.log_score(followed_to_the_end[1], F), wrong) < -3


def test_the_table_of_the_documentation(followed_to_the_end):
    page = (Path(__file__).parents[2] / "docs" / "interval_censoring.md").read_text(encoding="utf-8")
    for name, loss in scored_against(*followed_to_the_end).items():
        means = [f"{loss(cs.Weibull(*theta)).mean():.3f}" for theta in (TRUTH, (1.9, 3.2), (3.0, 2.8))]
        assert f"| {name} | {' | '.join(means)} |" in page.replace("**", ""), means
