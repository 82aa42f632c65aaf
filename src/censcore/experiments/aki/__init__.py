"""Early acute kidney injury in intensive care: joint forecasts of two endpoints on MIMIC-IV.

``run_all(data_dir, out)`` is the whole study; its steps are ``build``, ``train``, ``evaluate``, ``report``.
``write_synthetic_database`` makes a world with known endpoints for those without access to the data.
"""

from censcore.experiments.aki.build import BuildResult, build
from censcore.experiments.aki.data import AkiRows, open_build
from censcore.experiments.aki.engine import Resources
from censcore.experiments.aki.evaluation import evaluate
from censcore.experiments.aki.features import ENDPOINTS, FEATURES
from censcore.experiments.aki.methods import METHODS, PRESETS, Preset
from censcore.experiments.aki.report import report
from censcore.experiments.aki.settings import (
    AkiSettings,
    CohortSettings,
    EndpointSettings,
    RowSettings,
    SourceSettings,
    SplitSettings,
)
from censcore.experiments.aki.study import run_all
from censcore.experiments.aki.synthetic import write_synthetic_database
from censcore.experiments.aki.training import train

__all__ = [
    "run_all",
    "build",
    "train",
    "evaluate",
    "report",
    "write_synthetic_database",
    "AkiSettings",
    "SourceSettings",
    "CohortSettings",
    "EndpointSettings",
    "RowSettings",
    "SplitSettings",
    "Resources",
    "Preset",
    "PRESETS",
    "METHODS",
    "BuildResult",
    "AkiRows",
    "open_build",
    "FEATURES",
    "ENDPOINTS",
]
