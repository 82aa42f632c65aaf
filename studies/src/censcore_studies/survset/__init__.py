"""Tables of SurvSet on the splits and in the convention of the published results of SurvivalPFN."""

from censcore_studies.survset.convention import predicted_time, published_brier_score
from censcore_studies.survset.data import TABLES, load_table, published_results
from censcore_studies.survset.study import LEARNERS, report_survset, run_survset, score_split, survset_cells

__all__ = [
    "LEARNERS",
    "TABLES",
    "load_table",
    "predicted_time",
    "published_brier_score",
    "published_results",
    "report_survset",
    "run_survset",
    "score_split",
    "survset_cells",
]
