"""Joint distributions of several event times, learned from censored data: ten methods and the truth."""

from censcore_studies.multivariate.calibration import JOINT_EVENTS, joint_calibration
from censcore_studies.multivariate.extensions import EXTENSIONS, extension_cells
from censcore_studies.multivariate.finished import read_cells
from censcore_studies.multivariate.methods import FEASIBLE, METHODS, methods_for
from censcore_studies.multivariate.paired import paired_differences
from censcore_studies.multivariate.study import (
    CENSORINGS,
    SCENARIOS,
    multivariate_cells,
    run_multivariate,
    score_cell,
)
from censcore_studies.multivariate.tables import summarise

__all__ = [
    "CENSORINGS",
    "EXTENSIONS",
    "FEASIBLE",
    "JOINT_EVENTS",
    "METHODS",
    "SCENARIOS",
    "extension_cells",
    "joint_calibration",
    "methods_for",
    "multivariate_cells",
    "paired_differences",
    "read_cells",
    "run_multivariate",
    "score_cell",
    "summarise",
]
