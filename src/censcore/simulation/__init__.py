"""Data-generating processes with known distributions of T and C."""

from censcore.simulation.one_factor import OneFactorLogNormal
from censcore.simulation.scenario import Scenario, SimulatedData
from censcore.simulation.scenarios import DataScenario, LogNormalScenario, TargetedScenario, WeibullScenario

__all__ = [
    "DataScenario",
    "LogNormalScenario",
    "OneFactorLogNormal",
    "Scenario",
    "SimulatedData",
    "TargetedScenario",
    "WeibullScenario",
]
