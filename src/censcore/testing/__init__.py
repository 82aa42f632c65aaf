"""Contracts to run on classes of your own: what every law must satisfy."""

from censcore.testing.distributions import check_distribution

__all__ = ["check_distribution"]
