"""Estimators of the censoring distribution by name."""

from __future__ import annotations

import pytest

import censcore as cs
from censcore.estimators.censoring.censoring_choice import CENSORING_ESTIMATORS, censoring_estimator
from censcore.exceptions import InvalidInputError


@pytest.mark.parametrize("name", CENSORING_ESTIMATORS)
def test_every_name_gives_its_estimator(name):
    made = censoring_estimator(name, cv=3, random_state=7)
    assert type(made.estimator) is CENSORING_ESTIMATORS[name]
    assert (made.cv, made.random_state) == (3, 7)


def test_options_reach_the_estimator():
    assert censoring_estimator("kaplan-meier", stratify="site").estimator.stratify == "site"
    assert censoring_estimator("cox", alpha=1.0).estimator.alpha == 1.0
    assert isinstance(censoring_estimator("weibull"), cs.Censoring)


def test_unknown_names_and_misplaced_strata_are_errors():
    with pytest.raises(InvalidInputError, match="got 'coks', expected one of kaplan-meier, cox, weibull"):
        censoring_estimator("coks")
    with pytest.raises(InvalidInputError, match="stratify belongs to 'kaplan-meier'; got it with 'cox'"):
        censoring_estimator("cox", stratify="site")
