"""Worlds with known laws of T and C."""

from censcore.simulation.data_world import DataWorld
from censcore.simulation.lognormal import LogNormalWorld
from censcore.simulation.one_factor import OneFactorLogNormal
from censcore.simulation.weibull import TargetedWorld, WeibullWorld
from censcore.simulation.world import Sample, World

__all__ = [
    "DataWorld",
    "LogNormalWorld",
    "OneFactorLogNormal",
    "Sample",
    "TargetedWorld",
    "WeibullWorld",
    "World",
]
