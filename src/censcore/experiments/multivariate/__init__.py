"""Learning the joint law of several censored event times: methods against each other and the truth."""

from censcore.experiments.multivariate.methods import FEASIBLE, METHODS, methods_for
from censcore.experiments.multivariate.study import (
    multivariate_cells,
    run_multivariate,
    score_cell,
    summarise,
)

__all__ = [
    "FEASIBLE",
    "METHODS",
    "methods_for",
    "multivariate_cells",
    "run_multivariate",
    "score_cell",
    "summarise",
]
