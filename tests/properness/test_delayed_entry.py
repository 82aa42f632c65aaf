"""With delayed entry the truth wins in mean under every score; ignoring the entry is caught."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize

import censcore as cs

N = 3000
TIMES = np.array([1.5, 2.5, 3.5])
SCORES = {
    "log": lambda y, F, C: cs.log_score(y, F, C),
    "crps": lambda y, F, C: cs.crps(y, F, C),
    "brier": lambda y, F, C: cs.brier_score(y, F, C, TIMES).mean(axis=1),
    "brier, ipcw": lambda y, F, C: cs.brier_score(y, F, C, TIMES, scale="ipcw").mean(axis=1),
    "integrated brier, ipcw": lambda y, F, C: cs.integrated_brier_score(y, F, C, scale="ipcw", horizon=4.0),
    "binomial log": lambda y, F, C: cs.binomial_log_score(y, F, C, TIMES).mean(axis=1),
    "pinball": lambda y, F, C: cs.pinball_score(y, F, C, [0.1, 0.3, 0.5]).mean(axis=1),
    "energy": lambda y, F, C: cs.energy_score(y, F, C),
}


def seen(n, seed, x_effect=0.0):
    """Subjects with T > entry and C > entry: T Weibull(1.5, 3 exp(effect x)), uniform entry, Weibull C."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=3 * n)
    T, A = 3 * np.exp(x_effect * x) * rng.weibull(1.5, 3 * n), rng.uniform(0.0, 3.0, 3 * n)
    C = 5 * rng.weibull(2.0, 3 * n)
    rows = np.nonzero((T > A) & (C > A))[0][:n]
    return x[rows], cs.RightCensored(np.minimum(T, C)[rows], (T <= C)[rows], entry=A[rows])


@pytest.fixture(scope="module")
def scored():
    x, y = seen(N, 1, 0.3)
    return x, y, cs.Censoring(cs.KaplanMeier()).fit(None, seen(N, 2, 0.3)[1]).predict_distribution()


@pytest.mark.parametrize("score", SCORES)
def test_the_truth_wins(scored, score):
    x, y, C = scored
    truth = SCORES[score](y, cs.Weibull(1.5, 3 * np.exp(0.3 * x)), C)
    for F in (
        cs.Weibull(1.5, 3.6 * np.exp(0.3 * x)),
        cs.Weibull(1.5, 2.5 * np.exp(0.3 * x)),
        cs.Weibull(2.0, 4.0 * np.exp(0.3 * x)),
        cs.Weibull(1.5, 3.0),
    ):
        lost = SCORES[score](y, F, C) - truth
        assert lost.mean() > 2.5 * lost.std() / np.sqrt(N)


@pytest.mark.parametrize("score", ["log", "crps", "brier", "pinball"])
def test_ignoring_the_entry_is_caught(scored, score):
    """Without the entries a forecast that is too late beats the truth by several standard errors."""
    x, y, C = scored
    plain = cs.RightCensored(y.time, y.event)
    truth, late = (cs.Weibull(shape, scale * np.exp(0.3 * x)) for shape, scale in ((1.5, 3.0), (2.0, 4.0)))
    gained = SCORES[score](plain, truth, C) - SCORES[score](plain, late, C)
    assert gained.mean() > 5 * gained.std() / np.sqrt(N)


def test_the_smallest_mean_crps_is_at_the_truth():
    _, y = seen(1000, 6)
    C = cs.Weibull(2.0, 5.0)

    def best(y):
        def loss(theta):
            return cs.crps(y, cs.Weibull(*np.exp(theta)), C).mean()

        return np.exp(minimize(loss, np.log([1.7, 3.5]), method="Nelder-Mead", options={"xatol": 1e-3}).x)

    shape, scale = best(y)
    assert abs(shape - 1.5) < 0.15
    assert abs(scale - 3.0) < 0.15
    shape, scale = best(cs.RightCensored(y.time, y.event))
    assert shape > 1.8
    assert scale > 3.6


def test_follow_up_that_is_counted_from_the_entry():
    """C = entry + R: under the shifted distribution of R the truth wins."""
    rng = np.random.default_rng(4)
    T, A = 3 * rng.weibull(1.5, 3 * N), rng.choice([0.0, 2.0], 3 * N)
    rows = np.nonzero(T > A)[0][:N]
    T, A = T[rows], A[rows]
    C = A + 1.5 * rng.weibull(3.0, N)
    y = cs.RightCensored(np.minimum(T, C), T <= C, entry=A)
    model = cs.Censoring(cs.KaplanMeier()).fit(None, cs.RightCensored(y.time - A, y.event))
    R = model.estimators_[0].event_table_
    shifted = cs.Step(R["time"] + A[:, None], sf=R["sf"])
    truth = cs.brier_score(y, cs.Weibull(1.5, 3.0), shifted, TIMES).mean(axis=1)
    for F in (cs.Weibull(1.5, 3.5), cs.Weibull(1.5, 2.6), cs.Weibull(2.0, 3.0), cs.Weibull(1.2, 3.0)):
        lost = cs.brier_score(y, F, shifted, TIMES).mean(axis=1) - truth
        assert lost.mean() > 2 * lost.std() / np.sqrt(N)
