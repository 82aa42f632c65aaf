"""Contracts that every distribution, score and estimator satisfies, to run on custom ones."""

from censcore.testing.distributions import check_distribution
from censcore.testing.estimators import check_estimator
from censcore.testing.scores import check_score

__all__ = ["check_distribution", "check_estimator", "check_score"]
