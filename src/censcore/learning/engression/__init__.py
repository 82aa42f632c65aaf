"""Censored engression: a neural sampler of the joint distribution of several event times."""

from censcore.learning.engression.estimator import CensoredEngression
from censcore.learning.engression.generator import Generator
from censcore.learning.settings import Network, Training

__all__ = ["CensoredEngression", "Generator", "Network", "Training"]
