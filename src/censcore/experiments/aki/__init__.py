"""Early acute kidney injury in intensive care: joint forecasts of two endpoints on MIMIC-IV."""

from censcore.experiments.aki.build import BuildResult, build
from censcore.experiments.aki.engine import Resources
from censcore.experiments.aki.features import ENDPOINTS, FEATURES
from censcore.experiments.aki.settings import (
    AkiSettings,
    CohortSettings,
    EndpointSettings,
    RowSettings,
    SourceSettings,
    SplitSettings,
)
from censcore.experiments.aki.synthetic import write_synthetic_database

__all__ = [
    "build",
    "write_synthetic_database",
    "BuildResult",
    "Resources",
    "AkiSettings",
    "SourceSettings",
    "CohortSettings",
    "EndpointSettings",
    "RowSettings",
    "SplitSettings",
    "FEATURES",
    "ENDPOINTS",
]
