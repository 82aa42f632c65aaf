"""Which scoring rules put the true forecast first under censoring: scenarios, published scores, tables."""

from censcore_studies.forecast_evaluation.candidates import (
    GridSettings,
    exploit_candidates,
    weibull_candidates,
)
from censcore_studies.forecast_evaluation.convergence import convergence
from censcore_studies.forecast_evaluation.data_regimes import DATA_REGIMES, data_scenario
from censcore_studies.forecast_evaluation.ranks import oracle_ranks
from censcore_studies.forecast_evaluation.raw import raw_scores
from censcore_studies.forecast_evaluation.rules import RULES
from censcore_studies.forecast_evaluation.scenario import Scenario, StudySettings, build_scenario
from censcore_studies.forecast_evaluation.scoring import score_cell
from censcore_studies.forecast_evaluation.sensitivity import sensitivity

__all__ = [
    "DATA_REGIMES",
    "RULES",
    "Scenario",
    "GridSettings",
    "StudySettings",
    "build_scenario",
    "convergence",
    "data_scenario",
    "exploit_candidates",
    "oracle_ranks",
    "raw_scores",
    "score_cell",
    "sensitivity",
    "weibull_candidates",
]
