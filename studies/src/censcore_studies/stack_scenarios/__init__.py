"""The default stack beside models of other libraries in scenarios whose truth is known."""

from censcore_studies.stack_scenarios.models import MODELS
from censcore_studies.stack_scenarios.scenarios import SCENARIOS, Scenario
from censcore_studies.stack_scenarios.study import (
    report_scenarios,
    run_scenarios,
    scenario_cells,
    score_model,
)

__all__ = [
    "MODELS",
    "SCENARIOS",
    "Scenario",
    "report_scenarios",
    "run_scenarios",
    "scenario_cells",
    "score_model",
]
