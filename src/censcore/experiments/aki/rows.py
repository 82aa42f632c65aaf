"""Prediction rows: 22 features known at each time, remaining times to both endpoints, time to ICU exit."""

from __future__ import annotations

import shutil
from pathlib import Path
from typing import Any

from censcore.exceptions import InvalidInputError
from censcore.experiments.aki.cohort import endpoint_parameters, seconds
from censcore.experiments.aki.engine import Engine, Say, quoted, read_sql
from censcore.experiments.aki.settings import AkiSettings
from censcore.experiments.aki.stages import Stage, content_key, run_stage

__all__ = ["ENDPOINTS", "FEATURES", "write_rows"]

ENDPOINTS = ("creatinine", "urine")

_SUMMARIES = ("count", "mean", "min", "max", "last", "slope")

FEATURES = (
    "male", "age", "weight", "chronic_renal_failure", "baseline_creatinine", "elapsed_hours",
    *(f"{channel}_{summary}" for channel in ENDPOINTS for summary in _SUMMARIES),
    *(f"{channel}_missing" for channel in ENDPOINTS),
    *(f"{channel}_slope_available" for channel in ENDPOINTS),
)  # fmt: skip

_MEASURED = {
    "part_creatinine": "staged_creatinine",
    "part_urine": "staged_urine",
    "part_weights": "stay_weights",
}


def write_rows(
    engine: Engine, cohort: Stage, endpoints: Stage, out: Path, settings: AkiSettings, say: Say
) -> list[Stage]:
    """Write ``rows/NNNN/rows.parquet``, one part of the stays at a time, each part resumable on its own."""
    parameters = _parameters(settings)
    grid, rows = read_sql(f"grid_{settings.rows.grid}"), read_sql("rows")
    known = "at_s" if settings.rows.known_at == "charttime" else "greatest(at_s, stored_s)"
    key = content_key(grid, rows, known, parameters, cohort.key, endpoints.key)

    def make(folder: Path, part: int) -> dict[str, Any]:
        def take(table: str, file: Path, columns: str) -> None:
            select = f"SELECT {columns} FROM read_parquet({quoted(file)}) WHERE part = $part"
            engine.table(table, select, {"part": part})

        take("part_cohort", cohort.folder / "cohort.parquet", "*")
        take("part_episodes", endpoints.folder / "episodes.parquet", "*")
        for table, file in _MEASURED.items():
            take(table, endpoints.folder / f"{file}.parquet", f"*, {known} AS known_s")
        engine.table("grid", grid, parameters)
        return {"rows": engine.write(rows, folder / "rows.parquet", parameters)}

    parts = int(cohort.summary["parts"])
    stages = []
    for part in range(parts):
        with engine.watched(f"rows, part {part + 1} of {parts}"):
            stages.append(
                run_stage(
                    out,
                    f"rows/{part:04d}",
                    content_key(key, part),
                    lambda folder, part=part: make(folder, part),  # type: ignore[misc]
                    say,
                )
            )
    _remove_stale(out / "rows", parts)
    if not any(stage.summary["rows"] for stage in stages):
        raise InvalidInputError("No prediction row: no stay has a time before its exit on the chosen grid.")
    return stages


def _parameters(settings: AkiSettings) -> dict[str, Any]:
    criteria = endpoint_parameters(settings)
    return {
        "baseline_s": criteria["baseline_s"],
        "rolling_baseline": criteria["rolling_baseline"],
        "step_s": seconds(settings.rows.step_hours),
        "horizon_s": seconds(settings.rows.horizon_hours),
        "window_s": seconds(settings.rows.window_hours),
        "urine_as_rate": settings.rows.urine_unit != "ml",
        "urine_per_kilogram": settings.rows.urine_unit == "ml_per_kg_h",
    }


def _remove_stale(folder: Path, parts: int) -> None:
    current = {f"{part:04d}" for part in range(parts)}
    for path in folder.iterdir():
        if path.name not in current:
            shutil.rmtree(path)
