"""What joint distributions return (a coordinate, the first event, the censored times) keeps the contract."""

from __future__ import annotations

import numpy as np
import pytest
from tests.contracts.rules import check_distribution

from censcore.distributions import Copula, Exponential, Independent, JointGrid, Step, Weibull

CELLS = np.random.default_rng(1).dirichlet(np.ones(12), 2).reshape(2, 4, 3)
EDGES = [[0.0, 0.5, 1.0, 2.5], [0.0, 1.0, 4.0]]
SMOOTH = [Weibull(1.3, [1.0, 2.0]), Exponential(0.5)]
STEPS = Step([1.0, 2.0, 3.0], sf=[[0.8, 0.5, 0.2], [0.9, 0.9, 0.1]])

DISTRIBUTIONS = {
    "coordinate of a grid": lambda: JointGrid(EDGES, CELLS, tail=[0.4, 1.5]).marginal(0),
    "coordinate of a grid, cured": lambda: JointGrid(EDGES, CELLS, tail="infinity").marginal(1),
    "first of a grid": lambda: JointGrid(EDGES, CELLS, tail=0.7).first(),
    "first of a grid, cured": lambda: JointGrid(EDGES, CELLS, tail="infinity").first(),
    "first of independent": lambda: Independent(SMOOTH).first(),
    "first of steps": lambda: Independent([STEPS, Step([1.5, 2.0], sf=[0.7, 0.3])]).first(),
    "first of a step and a density": lambda: Independent([STEPS, Weibull(1.2, 3.0)]).first(),
    "first under Clayton": lambda: Copula("clayton", SMOOTH, [0.5, 2.0]).first(),
    "first under Gumbel": lambda: Copula("gumbel", SMOOTH, [1.0, 2.0]).first(),
    "censored grid": lambda: JointGrid(EDGES, CELLS, tail=0.7).censor_at(2.0),
    "first of a censored grid": lambda: JointGrid(EDGES, CELLS, tail=0.7).censor_at(2.0).first(),
    "censored independent": lambda: Independent(SMOOTH).censor_at(1.5),
    "censored copula": lambda: Copula("clayton", SMOOTH, 2.0).censor_at(1.5),
}


#: Others of the same class run every time.
SLOW = (
    "coordinate of a grid, cured",
    "first of a grid, cured",
    "first of a censored grid",
    "first under Gumbel",
)


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in DISTRIBUTIONS]
)
def test_contract(name):
    check_distribution(DISTRIBUTIONS[name]())
