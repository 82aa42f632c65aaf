"""Which scoring rules put the true forecast first under censoring: worlds, rivals, tables."""

from censcore.experiments.forecast_evaluation.arena import StudySettings, build_arena
from censcore.experiments.forecast_evaluation.candidates import (
    GridSettings,
    exploit_candidates,
    weibull_candidates,
)
from censcore.experiments.forecast_evaluation.rules import RULES, Arena
from censcore.experiments.forecast_evaluation.study import (
    convergence,
    oracle_ranks,
    raw_scores,
    score_cell,
    sensitivity,
)

__all__ = [
    "RULES",
    "Arena",
    "GridSettings",
    "StudySettings",
    "build_arena",
    "convergence",
    "exploit_candidates",
    "oracle_ranks",
    "raw_scores",
    "score_cell",
    "sensitivity",
    "weibull_candidates",
]
