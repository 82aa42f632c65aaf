"""Censored engression and other joint models on public data sets with several event times."""

from censcore_studies.real_data.comparison import (
    METHODS,
    real_data_cells,
    report_real_data,
    run_real_data,
    score_fold,
    summarise,
)
from censcore_studies.real_data.data import DATA, SurvivalData, load_survival_data

__all__ = [
    "DATA",
    "METHODS",
    "SurvivalData",
    "load_survival_data",
    "real_data_cells",
    "report_real_data",
    "run_real_data",
    "score_fold",
    "summarise",
]
