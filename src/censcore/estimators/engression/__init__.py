"""Censored engression: a neural sampler of the joint distribution of several event times."""

from censcore.estimators.engression.estimator import CensoredEngression
from censcore.estimators.engression.generator import Generator

__all__ = ["CensoredEngression", "Generator"]
