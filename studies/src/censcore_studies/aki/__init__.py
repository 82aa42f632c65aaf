"""Early acute kidney injury in intensive care: joint forecasts of two endpoints on MIMIC-IV.

``run_all(data_dir, out)`` is the whole study; its steps are ``build``, ``train``, ``evaluate``, ``report``.
``write_synthetic_database`` makes a database with known endpoints for those without access to the data.
"""

from censcore_studies.aki.build import BuildResult, build
from censcore_studies.aki.data import AkiRows, open_build
from censcore_studies.aki.engine import Resources
from censcore_studies.aki.evaluation import evaluate
from censcore_studies.aki.features import ENDPOINTS, FEATURES
from censcore_studies.aki.methods import METHODS, PRESETS, Preset
from censcore_studies.aki.report import report
from censcore_studies.aki.settings import (
    AkiSettings,
    CohortSettings,
    EndpointSettings,
    RowSettings,
    SourceSettings,
    SplitSettings,
)
from censcore_studies.aki.study import run_all
from censcore_studies.aki.synthetic import write_synthetic_database
from censcore_studies.aki.training import train

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
