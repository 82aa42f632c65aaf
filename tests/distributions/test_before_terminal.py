"""Forecasts of semi-competing risks: an event that comes after the terminal one never happens."""

from __future__ import annotations

import numpy as np
import pytest
from tests.contracts.rules import check_distribution

import censcore as cs
from censcore.distributions.derived.semi_competing import BeforeTerminal, before_terminal
from censcore.exceptions import InvalidInputError, InvalidTypeError, UnsupportedOutcomeError

RATES = np.array([1.0, 0.4])
STEPS = [
    cs.Step([0.5, 1.0, 2.0, 3.0], sf=[[0.8, 0.6, 0.3, 0.1], [0.9, 0.7, 0.5, 0.2]]),
    cs.Step([0.5, 1.0, 2.5], sf=[[0.9, 0.5, 0.3]]),
]
CELLS = np.random.default_rng(0).dirichlet(np.ones(16), 2).reshape(2, 4, 4)
JOINT = {
    "clayton": (cs.Copula("clayton", [cs.Exponential(RATES), cs.Weibull(1.5, 2.0)], theta=2.0), 1),
    "gumbel": (cs.Copula("gumbel", [cs.Exponential(RATES), cs.Weibull(1.5, 2.0)], theta=2.0), 0),
    "three": (
        cs.Copula(
            "clayton", [cs.Exponential(RATES), cs.Weibull(1.5, 2.0), cs.LogNormal(0.0, 1.0)], theta=1.0
        ),
        2,
    ),
    "cells": (cs.JointGrid([[0.0, 1.0, 2.0, 3.0], [0.0, 0.5, 2.0, 4.0]], CELLS, tail=1.0), 1),
    "steps": (cs.Independent(STEPS), 1),
    "dependent steps": (cs.Copula("clayton", [*STEPS, STEPS[0]], theta=2.0), 2),
}
TIMES = np.array([[0.3, 1.0, 2.5]])


@pytest.mark.parametrize("name", JOINT)
def test_marginals_and_draws_are_those_of_the_times_before_the_terminal_one(name):
    joint, terminal = JOINT[name]
    F, m = before_terminal(joint, terminal), 100_000
    z = joint.sample(m, seed=1)
    z = np.where(z > z[..., [terminal]], np.inf, z)
    drawn = F.sample(m, seed=2)
    for j in range(joint.k):
        share = (z[:, :, j, None] <= TIMES[:, None, :]).mean(axis=1)
        error = np.sqrt(share * (1 - share) / m) + 1e-12
        assert (np.abs(F.marginal(j).cdf(TIMES) - share) < 5 * error + 1e-9).all()
        again = (drawn[:, :, j, None] <= TIMES[:, None, :]).mean(axis=1)
        assert (np.abs(again - share) < 7 * error).all()
        assert np.abs(F.marginal(j).mass_at_infinity() - np.isinf(z[:, :, j]).mean(axis=1)).max() < 0.01
    assert F.shape == joint.shape


def test_independent_exponential_times_have_a_closed_form():
    F = before_terminal(cs.Independent([cs.Exponential(RATES), cs.Exponential(0.3)]), 1).marginal(0)
    total = RATES + 0.3
    np.testing.assert_allclose(F.cdf(2.0), RATES / total * -np.expm1(-2 * total), rtol=1e-9)
    np.testing.assert_allclose(F.mass_at_infinity(), 0.3 / total, rtol=1e-9)


@pytest.mark.parametrize(
    "name",
    [
        "clayton",
        "steps",
        *(pytest.param(name, marks=pytest.mark.slow) for name in ("cells", "dependent steps")),
    ],
)
def test_the_contract_of_distributions(name):
    joint, terminal = JOINT[name]
    for j in set(range(joint.k)) - {terminal}:
        check_distribution(before_terminal(joint, terminal).marginal(j))


def test_the_likelihood_is_that_of_what_was_seen():
    joint, _ = JOINT["clayton"]
    F = before_terminal(joint, 1)
    time, event = np.array([[1.0, 2.0], [1.5, 1.5]]), np.array([[1, 1], [0, 1]])
    np.testing.assert_array_equal(F.log_likelihood(time, event), joint.log_likelihood(time, event))
    np.testing.assert_array_equal(F.first().sf(1.0), joint.first().sf(1.0))
    assert F.has_density
    assert not before_terminal(JOINT["steps"][0], 1).has_density


def test_ensembles_stay_ensembles_and_nothing_is_read_twice():
    z = cs.Ensemble([[[1.0, 5.0], [3.0, 2.0], [2.0, 2.0]]], [0.5, 0.25, 0.25])
    read = before_terminal(z, 1)
    np.testing.assert_array_equal(read.samples[0, :, 0], [1.0, np.inf, 2.0])
    np.testing.assert_array_equal(read.weights, z.weights)
    assert before_terminal(read, 1) is read
    F = before_terminal(JOINT["clayton"][0], 1)
    assert before_terminal(F, 1) is F
    assert len(F.take([1])) == 1
    given = F.given_survival(0.5)
    assert isinstance(given, BeforeTerminal)
    assert given.marginal(0).cdf(0.4)[0] == 0


def test_what_cannot_be_read():
    with pytest.raises(InvalidTypeError, match="joint distribution"):
        before_terminal(cs.Exponential(1.0), 1)
    with pytest.raises(InvalidInputError, match="all be continuous"):
        before_terminal(cs.Independent([cs.Exponential(1.0), STEPS[1]]), 1)
    with pytest.raises(UnsupportedOutcomeError, match="horizon"):
        before_terminal(JOINT["clayton"][0], 1).censor_at(2.0)
