"""The truth wins in mean, for every score under every kind of censoring; an improper score is caught.

The improper score replaces G(s)/G(y-) by 1. Under it a distribution of T that is too early beats the truth,
and the very test that every score passes must see that.
"""

from __future__ import annotations

import numpy as np
import pytest
from tests.properness.margins import margins

import censcore as cs
from censcore.exceptions import PositivityError

N = 4000
TIMES = np.array([0.3, 0.6, 0.9])
LEVELS = np.array([0.1, 0.25, 0.5])

SCORES = {
    "log": lambda y, F, C: cs.log_score(y, F, C),
    "crps": lambda y, F, C: cs.crps(y, F, C),
    "brier": lambda y, F, C: cs.brier_score(y, F, C, TIMES).mean(axis=1),
    "brier, ipcw": lambda y, F, C: cs.brier_score(y, F, C, TIMES, scale="ipcw").mean(axis=1),
    "integrated brier, ipcw": lambda y, F, C: cs.integrated_brier_score(y, F, C, scale="ipcw", horizon=1.2),
    "binomial log": lambda y, F, C: cs.binomial_log_score(y, F, C, TIMES).mean(axis=1),
    "pinball": lambda y, F, C: cs.pinball_score(y, F, C, LEVELS).mean(axis=1),
}


def scenario(kind, n=N):
    """Covariates, an outcome, the censoring distribution that scores it, and the truth with alternatives."""
    rng = np.random.default_rng(7)
    x = rng.normal(size=n)
    scale = np.exp(0.5 * x)
    T = scale * rng.weibull(1.5, n)
    draw = {
        "administrative": lambda: (np.full(n, 1.5), cs.PointMass(1.5)),
        "known times": lambda: (c := rng.uniform(0.5, 3, n), cs.PointMass(c)),
        "uniform": lambda: (rng.uniform(0, 1.6, n), cs.Uniform(0.0, 1.6)),
        "covariate-dependent": lambda: (
            rng.exponential(0.8 * np.exp(0.3 * x), n),
            cs.Exponential(np.exp(-0.3 * x) / 0.8),
        ),
        "Kaplan-Meier": lambda: (rng.exponential(1.5, n), None),
    }[kind]
    c, C = draw()
    y = cs.RightCensored(np.minimum(T, c), c >= T)
    if C is None:  # estimated apart from the rows that are scored
        m = n // 4
        T_train, c_train = np.exp(0.5 * rng.normal(size=m)) * rng.weibull(1.5, m), rng.exponential(1.5, m)
        train = cs.RightCensored(np.minimum(T_train, c_train), c_train >= T_train)
        C = cs.Censoring(cs.KaplanMeier()).fit(None, train).predict_distribution(np.zeros((n, 1)))
        end = float(min(train.time.max(), 4.0))
        y, C = y.censor_at(end), C.censor_at(end)
    alternatives = {
        "early": cs.Weibull(1.5, 0.85 * scale),
        "too early": cs.Weibull(1.5, 0.7 * scale),
        "too late": cs.Weibull(1.5, 1.25 * scale),
        "too sharp": cs.Weibull(2.0, scale),
        "too wide": cs.Weibull(1.1, scale),
        "blind to x": cs.Weibull(1.3, 1.05),
        "another family": cs.LogNormal(np.log(0.85 * scale), 0.6),
    }
    return y, C, cs.Weibull(1.5, scale), alternatives


KINDS = ["administrative", "known times", "uniform", "covariate-dependent", "Kaplan-Meier"]


@pytest.fixture(scope="module", params=KINDS)
def setting(request):
    return scenario(request.param)


@pytest.mark.parametrize("name", SCORES)
def test_truth_beats_every_alternative(setting, name):
    y, C, truth, alternatives = setting
    if name.endswith("ipcw") and isinstance(C, cs.PointMass) and len(C) > 1:
        with pytest.raises(PositivityError, match="scale='ipcw' divides by"):
            SCORES[name](y, truth, C)
        return
    won = margins(SCORES[name], y, C, truth, alternatives)
    assert min(won.values()) > 3, won


def improper(score):
    """The same score with G(s)/G(y-) = 1: for events follow-up is taken to be endless."""

    def without_weight(y, F, C):
        return score(y, F, cs.PointMass(np.where(y.event, np.inf, y.time)))

    return without_weight


@pytest.mark.parametrize("name", ["crps", "brier", "binomial log", "pinball"])
@pytest.mark.parametrize("kind", ["uniform", "covariate-dependent"])
def test_an_improper_score_is_caught(kind, name):
    won = margins(improper(SCORES[name]), *scenario(kind, n=3 * N))
    assert min(won.values()) < -3, won


def test_avatis_score_is_minimised_by_tanh():
    """For T and C standard exponential the improper CRPS prefers F(s) = tanh(s), the proper one the truth."""
    rng = np.random.default_rng(3)
    T, c = rng.exponential(size=(2, N))
    y = cs.RightCensored(np.minimum(T, c), c >= T)
    t = np.linspace(0, 12, 200)[1:]
    truth, fooled = (
        cs.PiecewiseLinear(t, cdf=np.r_[F(t[:-1]), 1.0]) for F in (lambda s: -np.expm1(-s), np.tanh)
    )
    won = margins(cs.crps, y, cs.Exponential(1.0), truth, {"tanh": fooled})
    lost = margins(improper(cs.crps), y, cs.Exponential(1.0), truth, {"tanh": fooled})
    assert won["tanh"] > 4
    assert lost["tanh"] < -4


def test_ipcw_brier_score_is_unbiased_on_tied_discrete_data():
    """Under ties, left limits and the events-first rule keep the mean at that of uncensored data."""
    rng = np.random.default_rng(11)
    n, replications, times = 2000, 200, [2.0, 4.0, 6.0]
    F = cs.Step(np.arange(1.0, 30), sf=0.8 ** np.arange(1, 30))
    off = []
    for _ in range(replications):
        T, c = rng.geometric(0.15, n).astype(float), np.minimum(rng.geometric(0.15, n), 10).astype(float)
        y = cs.RightCensored(np.minimum(T, c), c >= T)
        C = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution(np.zeros((n, 1)))
        latent = cs.brier_score(cs.RightCensored(T, np.ones(n)), F, None, times).mean(axis=0)
        off.append(cs.brier_score(y, F, C, times, scale="ipcw").mean(axis=0) / latent - 1)
    mean, error = cs.mean_loss(np.array(off))
    assert (np.abs(mean) < 0.005).all(), (mean, error)
