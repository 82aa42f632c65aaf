"""Every exported law keeps the contract, and the contract catches laws that do not."""

from __future__ import annotations

import pytest
from tests.contracts.laws import LAWS

from censcore import distributions
from censcore.testing import check_distribution


@pytest.mark.parametrize("name", LAWS)
def test_contract(name):
    check_distribution(LAWS[name]())


def test_every_exported_law_has_an_example():
    exported = set(distributions.__all__) - {"Distribution", "Univariate"}
    assert exported <= {type(make()).__name__ for make in LAWS.values()}
