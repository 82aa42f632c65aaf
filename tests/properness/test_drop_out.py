"""Subjects with visits of their own who drop out: the truth has the smallest mean score, by every route."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

import censcore as cs

TRUTH, END = (1.5, 3.0), 8.0
WRONG = {"early": (1.5, 2.7), "late": (1.5, 3.3), "narrow": (1.9, 3.0)}
LEAVE = 0.2


def seen(T, visits, last, entry=None):
    """What is seen of T by subjects who attend their first ``last`` visits; all planned visits are known."""
    attended = np.arange(1, visits.shape[1] + 1) <= last[:, None]
    clear, found = (visits < T[:, None]) & attended, (visits >= T[:, None]) & attended
    lower = np.max(np.where(clear, visits, 0.0), axis=1)
    return cs.IntervalCensored(lower, np.min(np.where(found, visits, np.inf), axis=1), visits, entry=entry)


def drop_outs(n, seed=0, leave=LEAVE, often=None):
    """A visit every 1.5 ± 0.3, with own dates; a fifth of the subjects leave after each."""
    rng = np.random.default_rng(seed)
    T = TRUTH[1] * rng.weibull(TRUTH[0], n)
    gap = np.ones((n, 1)) if often is None else np.where(rng.random((n, 1)) < 0.5, often, 1.0)
    visits = np.cumsum(gap * rng.uniform(1.2, 1.8, (n, 14)), axis=1)
    visits = np.where(visits <= END, visits, np.inf)
    return seen(T, visits, rng.geometric(leave, n))


@pytest.fixture(scope="module")
def large():
    return drop_outs(40_000)


def estimated(y):
    return cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()


SCORES = {
    "crps": lambda y, F, C: cs.crps(y, F, C, horizon=END),
    "crps, no horizon": lambda y, F, C: cs.crps(y, F, C),
    "crps, short": lambda y, F, C: cs.crps(y, F, C, horizon=3.7),
    "brier_score": lambda y, F, C: cs.brier_score(y, F, C, times=[1.5, 3.0, 5.0]).sum(axis=1),
    "brier_score, ipcw": lambda y, F, C: cs.brier_score(y, F, C, [1.5, 3.0, 5.0], scale="ipcw").sum(axis=1),
    "integrated_brier_score, ipcw": lambda y, F, C: cs.integrated_brier_score(
        y, F, C, horizon=END, scale="ipcw"
    ),
    "binomial_log_score": lambda y, F, C: cs.binomial_log_score(y, F, C, times=[1.5, 3.0, 5.0]).sum(axis=1),
    "energy_score": lambda y, F, C: cs.energy_score(y, F, C, horizon=END),
}


def best_scale(loss):
    return minimize_scalar(lambda scale: float(loss(cs.Weibull(1.5, scale)).mean()), (2.8, 3.2)).x


@pytest.mark.parametrize("name", SCORES)
def test_the_truth_wins_under_estimated_drop_out(large, name):
    C = estimated(large)
    truth = SCORES[name](large, cs.Weibull(*TRUTH), C)
    for wrong in WRONG.values():
        gain = SCORES[name](large, cs.Weibull(*wrong), C) - truth
        assert gain.mean() > 3 * gain.std() / np.sqrt(len(large)), wrong
