"""Every score keeps the contract, and the contract catches scores that do not."""

from __future__ import annotations

from functools import partial

import numpy as np
import pytest

import censcore as cs
from censcore.testing import check_score

SCORES = {
    "crps": cs.crps,
    "brier": partial(cs.brier_score, times=[0.3, 0.8]),
    "brier at one time": partial(cs.brier_score, times=0.6),
    "integrated brier": cs.integrated_brier_score,
    "binomial log": partial(cs.binomial_log_score, times=[0.3, 0.8]),
    "pinball": partial(cs.pinball_score, levels=[0.2, 0.5]),
}


@pytest.mark.parametrize("name", SCORES)
def test_contract(name):
    check_score(SCORES[name])


def test_contract_of_an_ensemble_score():
    check_score(cs.crps, forecast=lambda distribution: cs.Ensemble(distribution.sample(60, seed=0)))


def endless(y):
    """C as if no event could have been censored."""
    return cs.PointMass(np.where(y.event, np.inf, y.time))


#: A score that takes little time.
sound = SCORES["brier at one time"]


def only_the_mean(y, F, C, horizon=None):
    return sound(y, F, C, horizon=horizon).mean()


def ranks(y, F, C, horizon=None):
    return sound(y, F, C, horizon=horizon) / sound(y, F, C, horizon=horizon).max()


def forgets_the_horizon(y, F, C, horizon=None):
    return cs.crps(y, F, C)


def believes_anything(y, F, C, horizon=None):
    try:
        return sound(y, F, C, horizon=horizon)
    except cs.exceptions.ContradictionError:
        return sound(y, F, endless(y), horizon=horizon)


def improper(y, F, C, horizon=None):
    return cs.crps(y, F, endless(y), horizon=horizon)


def has_holes(y, F, C, horizon=None):
    loss = sound(y, F, C, horizon=horizon)
    loss[0] = np.nan
    return loss


def meddles(y, F, C, horizon=None):
    loss = sound(y, F, C, horizon=horizon)
    y.time[0] += 1e-3
    return loss


BROKEN = {
    only_the_mean: r"Got shape \(\) for 40 subjects",
    ranks: "In slices",
    forgets_the_horizon: "horizon=1.25",
    believes_anything: "contradicts the data raises no ValueError",
    improper: "wins by",
    has_holes: "1 losses are not finite",
    meddles: "differs after scoring",
}


@pytest.mark.parametrize("score", BROKEN, ids=lambda score: score.__name__)
def test_contract_catches(score):
    with pytest.raises(AssertionError, match=BROKEN[score]):
        check_score(score)
