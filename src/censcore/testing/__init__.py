"""Contracts to run on classes and functions of your own: what every law, and every score, must satisfy."""

from censcore.testing.distributions import check_distribution
from censcore.testing.score import check_score

__all__ = ["check_distribution", "check_score"]
