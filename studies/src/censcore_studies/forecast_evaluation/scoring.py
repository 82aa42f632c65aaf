"""One regime and one seed: every rule applied to every forecast."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np

from censcore.scores import mean_loss
from censcore_studies.forecast_evaluation.rules import RULES
from censcore_studies.forecast_evaluation.scenario import StudySettings, build_scenario
from censcore_studies.kit.cells import Cell

#: Raise the number when the same settings give other scores.
STUDY = "forecast-evaluation 1"

__all__ = ["best_competitor", "oracle_rank", "replicated_cells", "score_cell", "spread"]


def score_cell(settings: dict[str, Any]) -> dict[str, Any]:
    """Mean loss and its standard error by rule and forecast, for one regime and one seed.

    Examples
    --------
    >>> from censcore_studies.forecast_evaluation import score_cell
    >>> result = score_cell({"regime": "B", "n": 200, "seed": 1, "rules": ["CRPS, ours"]})
    >>> min(result["means"]["CRPS, ours"], key=result["means"]["CRPS, ours"].get)
    'F0'
    """
    study = replace(StudySettings(), severity=settings.get("severity", 1.0))
    scenario = build_scenario(
        settings["regime"], settings["n"], settings["seed"], study, settings.get("estimator")
    )
    means: dict[str, dict[str, float]] = {}
    errors: dict[str, dict[str, float]] = {}
    for rule in settings.get("rules") or list(RULES):
        losses = {name: np.asarray(RULES[rule](scenario, f)) for name, f in scenario.candidates.items()}
        means[rule] = {name: float(loss.mean()) for name, loss in losses.items()}
        errors[rule] = {name: float(mean_loss(loss).standard_error) for name, loss in losses.items()}
    return {"means": means, "errors": errors, "event_rate": float(scenario.y.event.mean())}


def replicated_cells(regimes: Sequence[str], n: int, replications: int, seed: int, **more: Any) -> list[Cell]:
    """One cell per regime and seed; cells with the same settings serve every table that needs them."""
    usual = {"severity": 1.0, "estimator": None, "rules": list(RULES)}
    fixed = {"study": STUDY, "conventions": asdict(StudySettings()), **usual}
    return [
        Cell(
            f"{regime.replace(' ', '_')}-n{n}-{r}",
            {"regime": regime, "n": n, "seed": seed + r, **more},
            fixed,
        )
        for regime in regimes
        for r in range(replications)
    ]


def oracle_rank(means: dict[str, float]) -> int:
    """One plus the number of forecasts with a smaller mean loss than F0."""
    return 1 + sum(value < means["F0"] for name, value in means.items() if name != "F0")


def best_competitor(means: dict[str, float]) -> float:
    """The smallest mean loss among the forecasts that are not the oracle."""
    return min(value for name, value in means.items() if name != "F0")


def spread(values: np.ndarray) -> float:
    """Standard deviation over replications; NaN where there is one."""
    return float(values.std(ddof=1)) if len(values) > 1 else float("nan")
