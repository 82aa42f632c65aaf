"""Data-generating processes with known distributions of T and C."""

from censcore.simulation.data_scenario import DataScenario
from censcore.simulation.lognormal import LogNormalScenario
from censcore.simulation.one_factor import OneFactorLogNormal
from censcore.simulation.scenario import Scenario, SimulatedData
from censcore.simulation.targeted import TargetedScenario
from censcore.simulation.weibull import WeibullScenario

__all__ = [
    "DataScenario",
    "LogNormalScenario",
    "OneFactorLogNormal",
    "SimulatedData",
    "Scenario",
    "TargetedScenario",
    "WeibullScenario",
]
