"""Prediction rows: 22 features known at each time, remaining times to both endpoints, time to ICU exit."""

from __future__ import annotations

import shutil
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from censcore.exceptions import InvalidInputError
from censcore.store import content_key
from censcore_studies.aki.cohort import seconds
from censcore_studies.aki.engine import Engine, Say, path_in_sql, quoted
from censcore_studies.aki.features import (
    ENDPOINTS,
    FEATURES,
    Moments,
    Series,
    baseline,
    moment,
    second_of,
    stay_of,
    summaries,
    time_to_event,
)
from censcore_studies.aki.settings import AkiSettings
from censcore_studies.kit.store import Stage, run_stage

__all__ = ["COLUMNS", "Part", "write_rows"]

OUTCOME = (
    *(f"{endpoint}_{what}" for what in ("present", "event", "time") for endpoint in ENDPOINTS),
    "censoring_time",
)
COLUMNS = ("subject_id", "stay_id", *FEATURES, *OUTCOME)
_FORMAT = 1  # raise it when the same settings give other rows

Columns = dict[str, NDArray[Any]]


def write_rows(
    engine: Engine, cohort: Stage, endpoints: Stage, out: Path, settings: AkiSettings, say: Say
) -> list[Stage]:
    """Write ``rows/NNNN/rows.parquet``, one part of the stays at a time, each part resumable on its own."""
    # How rows are standardized is no part of them.
    chosen = {n: v for n, v in settings.to_dict()["rows"].items() if n != "standardized_limit"}
    used = [chosen, settings.endpoints.creatinine_baseline, settings.endpoints.baseline_hours]
    key = content_key(_FORMAT, COLUMNS, used, cohort.key, endpoints.key)
    parts = int(cohort.summary["parts"])

    def make(part: int, folder: Path) -> dict[str, Any]:
        columns = Part(engine, cohort.folder, endpoints.folder, part, settings).columns()
        return {"rows": _write(engine, columns, folder / "rows.parquet")}

    stages = [
        run_stage(out, f"rows/{part:04d}", content_key(key, part), partial(make, part), say)
        for part in range(parts)
    ]
    _remove_stale(out / "rows", parts)
    if not any(stage.summary["rows"] for stage in stages):
        raise InvalidInputError("No prediction row: no stay has a time before its exit on the chosen grid.")
    return stages


class Part:
    """The measurements of one part of the stays, and the rows made of them.

    Parameters
    ----------
    engine : Engine
        Reads the measurements.
    cohort, endpoints : Path
        Folders of those stages.
    part : int
        Which part.
    settings : AkiSettings
        Of the build.
    """

    def __init__(
        self, engine: Engine, cohort: Path, endpoints: Path, part: int, settings: AkiSettings
    ) -> None:
        self._settings = settings
        known = "at_s" if settings.rows.known_at == "charttime" else "greatest(at_s, stored_s)"

        def fetch(file: Path, columns: str, rest: str = "") -> Columns:
            select = f"SELECT {columns} FROM read_parquet({path_in_sql(file)}) WHERE part = $part {rest}"
            return dict(engine.run(select, {"part": part}).fetchnumpy())

        def series(file: str, value: str) -> Series:
            # Values that become known at one time are averaged.
            columns = f"stay_id, {known} AS known_s, avg({value}) AS value"
            found = fetch(endpoints / f"{file}.parquet", columns, "GROUP BY ALL ORDER BY ALL")
            return Series(moment(self._number(found["stay_id"]), found["known_s"]), found["value"])

        self.stays = fetch(cohort / "cohort.parquet", "*", "ORDER BY stay_id")
        volume = "volume" if settings.rows.urine_unit == "ml" else "volume / lasts_hours"
        self.creatinine = series("staged_creatinine", "value")
        self.urine = series("staged_urine", volume)
        self.weight = series("stay_weights", "kilograms")
        self.episodes = {
            endpoint: fetch(
                endpoints / "episodes.parquet",
                f"stay_id, onset_s, coalesce(end_s, {2**33 - 1}) AS end_s",
                f"AND endpoint = {quoted(endpoint)} ORDER BY stay_id, onset_s",
            )
            for endpoint in ENDPOINTS
        }

    def _number(self, stay_id: NDArray[Any]) -> NDArray[Any]:
        return np.searchsorted(self.stays["stay_id"], stay_id)

    def columns(self) -> Columns:
        """Every column of the rows, in the order of stays and times."""
        rows = self._grid()
        stay, second = stay_of(rows), second_of(rows)
        to_exit = self.stays["exit_s"][stay] - second
        keys = {name: self.stays[name][stay] for name in ("subject_id", "stay_id")}
        outcome: Columns = {"censoring_time": to_exit / 3600}
        for endpoint, found in self.episodes.items():
            onset, end = (
                moment(self._number(found["stay_id"]), found[name]) for name in ("onset_s", "end_s")
            )
            present, wait = time_to_event(onset, end, rows)
            outcome |= {f"{endpoint}_present": present, f"{endpoint}_event": wait >= 0}
            outcome[f"{endpoint}_time"] = np.where(wait >= 0, wait, to_exit) / 3600
        values = keys | self._features(rows, stay, second) | outcome
        return {name: values[name] for name in COLUMNS}

    def _grid(self) -> Moments:
        rules = self._settings.rows
        exits = self.stays["exit_s"]
        if rules.grid == "measurements":
            rows = np.sort(np.concatenate([self.creatinine.moment, self.urine.moment]))
            rows = rows[np.diff(rows, prepend=-1) > 0]
        else:
            step = seconds(rules.step_hours)
            count = -(-exits // step)
            stay = np.repeat(np.arange(len(exits)), count)
            within = np.arange(len(stay)) - np.repeat(np.cumsum(count) - count, count)
            rows = moment(stay, within * step)
        stay, second = stay_of(rows), second_of(rows)
        return rows[(second >= 0) & (second < exits[stay]) & (second <= seconds(rules.horizon_hours))]

    def _features(self, rows: Moments, stay: Moments, second: Moments) -> Columns:
        rules, criteria = self._settings.rows, self._settings.endpoints
        weight = self.weight.last(self.weight.between(moment(stay, -(2**33)), rows))
        of_stay = ("male", "age", "chronic_renal_failure")
        values: Columns = {name: self.stays[name][stay] for name in of_stay}
        values |= {"weight": weight, "elapsed_hours": second / 3600}
        rolling = criteria.creatinine_baseline == "rolling_minimum"
        reach = seconds(criteria.baseline_hours)
        values["baseline_creatinine"] = baseline(self.creatinine, rows, reach, rolling)
        per = {"creatinine": 1.0, "urine": weight if rules.urine_unit == "ml_per_kg_h" else 1.0}
        for channel, series in (("creatinine", self.creatinine), ("urine", self.urine)):
            found = summaries(series, rows, seconds(rules.window_hours))
            n = found.pop("count")
            values |= {f"{channel}_{name}": value / per[channel] for name, value in found.items()}
            values |= {
                f"{channel}_count": n,
                f"{channel}_missing": n == 0,
                f"{channel}_slope_available": n >= 2,
            }
        return {name: np.asarray(values[name], dtype=np.float32) for name in FEATURES}


def _write(engine: Engine, columns: Columns, path: Path) -> int:
    named = [f"if(isnan({name}), NULL, {name}) AS {name}" if name in FEATURES else name for name in columns]
    engine.connection.register("part_rows", columns)
    try:
        return engine.write(f"SELECT {', '.join(named)} FROM part_rows", path)
    finally:
        engine.connection.unregister("part_rows")


def _remove_stale(folder: Path, parts: int) -> None:
    current = {f"{part:04d}" for part in range(parts)}
    for path in folder.iterdir():
        if path.name not in current:
            shutil.rmtree(path)
