"""Every exported distribution keeps the contract, and the contract catches distributions that do not."""

from __future__ import annotations

from inspect import isabstract

import pytest
from tests.contracts.distributions import DISTRIBUTIONS
from tests.contracts.rules import check_distribution

from censcore import distributions

#: Others of the same class run every time.
SLOW = ("CauseSpecificHazards", "GivenJointSurvival, grid")


@pytest.mark.parametrize(
    "name", [pytest.param(name, marks=[pytest.mark.slow] * (name in SLOW)) for name in DISTRIBUTIONS]
)
def test_contract(name):
    check_distribution(DISTRIBUTIONS[name]())


def test_every_exported_distribution_has_an_example():
    exported = {name for name in distributions.__all__ if not isabstract(getattr(distributions, name))}
    assert exported <= {type(make()).__name__ for make in DISTRIBUTIONS.values()}
