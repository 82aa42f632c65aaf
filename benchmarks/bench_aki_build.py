"""The ICU study's build on synthetic databases: time against rows, peak memory, and the work against pandas.

``python -m benchmarks aki_build`` builds 500, 1,000 and 2,000 stays; other sizes go on the command line, as
in ``python -m benchmarks.bench_aki_build 5000 10000 20000``. Each build runs in a process of its own under a
DuckDB memory limit of 1 GB, so that the peak is its own. Pandas computes the same 22 features with its
grouped rolling windows, from the extracted measurements and from the files, and must find the same numbers.
Processor seconds, not clock time: they count every thread and little of what else the machine does. Where the
time of a build goes is told beside what inflating the files alone takes, which no reader of them can avoid.
"""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from censcore_studies.aki import (
    FEATURES,
    AkiSettings,
    Resources,
    RowSettings,
    SourceSettings,
    write_synthetic_database,
)
from censcore_studies.aki.engine import Engine
from censcore_studies.aki.rows import Part, write_rows
from censcore_studies.kit.store import read_stage

if TYPE_CHECKING:
    import pandas as pd

    Tables = tuple[pd.DataFrame, pd.DataFrame, pd.DataFrame, pd.DataFrame]

SIZES = (500, 1000, 2000)
SLICE = 2000  # stays given to pandas
FILLER_PER_HOUR = 20
LIMIT = "1GB"

_BUILD = """
import json, resource, sys, time
from censcore_studies.aki import Resources, build
start, busy = time.perf_counter(), time.process_time()
stages, mark = {}, busy
def say(line):
    global mark
    if line.endswith(": done"):
        name = line.split(":")[0].split("/0")[0]
        stages[name] = stages.get(name, 0) + time.process_time() - mark
    if line.endswith((": done", ": started")):
        mark = time.process_time()
result = build(sys.argv[1], sys.argv[2], resources=Resources(memory_limit=sys.argv[3]), say=say)
print(json.dumps({
    "stages": stages,
    "seconds": time.perf_counter() - start,
    "busy": time.process_time() - busy,
    "peak": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
    "rows": sum(side["rows"] for side in result.summary["rows"].values()),
}))
"""


def main(sizes: tuple[int, ...] = SIZES) -> None:
    print("   stays  MB of csv.gz       rows  seconds  processor s  rows per processor s  peak MiB")
    with tempfile.TemporaryDirectory() as folder:
        builds = {size: _measured(Path(folder) / str(size), size) for size in sizes}
        largest = max(sizes)
        print(_where_the_time_goes(Path(folder) / str(largest) / "database", builds[largest]))
        compared = min(sizes, key=lambda size: abs(size - SLICE))
        print(_against_pandas(Path(folder) / str(compared), builds[compared]["busy"]))


def _measured(folder: Path, size: int) -> dict[str, Any]:
    database = write_synthetic_database(folder / "database", stays=size, filler_per_hour=FILLER_PER_HOUR)
    megabytes = sum(path.stat().st_size for path in database.rglob("*.gz")) / 1e6
    command = [sys.executable, "-c", _BUILD, str(database), str(folder / "out"), LIMIT]
    found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
    print(
        f"{size:8,d} {megabytes:13.1f} {found['rows']:10,d} {found['seconds']:8.1f} {found['busy']:12.1f} "
        f"{found['rows'] / found['busy']:21,.0f} {found['peak']:9.0f}",
        flush=True,
    )
    return dict(found)


def _where_the_time_goes(database: Path, build: dict[str, Any]) -> str:
    start = time.process_time()
    for path in database.rglob("*.gz"):
        with gzip.open(path) as file:
            while file.read(2**20):
                pass
    inflating = time.process_time() - start
    longest = sorted(build["stages"].items(), key=lambda stage: -stage[1])[:5]
    shares = ", ".join(f"{name} {seconds / build['busy']:.0%}" for name, seconds in longest)
    return (
        f"\nlargest build: {shares}\ninflating its files, and nothing else: {inflating / build['busy']:.0%}"
    )


def _against_pandas(folder: Path, build_busy: float) -> str:
    """Alternate between censcore and pandas on the same measurements, with other windows each turn."""
    out = folder / "out"
    ours, theirs = [], []
    for window_hours in (60.0, 66.0, 69.0, 72.0):
        ours.append(_own_turn(out, window_hours))
        theirs.append(_pandas_turn(out, window_hours))
    start = time.process_time()
    pandas_features(*_from_files(folder / "database"), 72.0).to_parquet(folder / "from_files.parquet")
    whole = time.process_time() - start
    memory, stored = np.median(ours, axis=0)
    memory_pandas, stored_pandas = np.median(theirs, axis=0)
    return (
        f"\nprocessor seconds for the same features, largest difference {_difference(folder):.1e}\n"
        f"{'':34s} {'pandas':>8s} {'here':>8s} {'ratio':>8s}\n"
        f"{'in memory':34s} {memory_pandas:8.2f} {memory:8.2f} {memory_pandas / memory:8.1f}\n"
        f"{'from Parquet to Parquet':34s} {stored_pandas:8.2f} {stored:8.2f} {stored_pandas / stored:8.1f}\n"
        f"{'from the files, here all stages':34s} {whole:8.2f} {build_busy:8.2f} {whole / build_busy:8.1f}"
    )


def _own_turn(out: Path, window_hours: float) -> tuple[float, float]:
    """Seconds in memory (outcomes included), and of the whole stage."""
    settings = AkiSettings(rows=RowSettings(window_hours=window_hours))
    cohort, endpoints = read_stage(out, "cohort"), read_stage(out, "endpoints")
    assert cohort is not None
    assert endpoints is not None
    with Engine(Resources(memory_limit=LIMIT), out / "spill", lambda _: None) as engine:
        parts = [
            Part(engine, cohort.folder, endpoints.folder, p, settings) for p in range(cohort.summary["parts"])
        ]
        start = time.process_time()
        for part in parts:
            part.columns()
        memory = time.process_time() - start
    start = time.process_time()
    with Engine(Resources(memory_limit=LIMIT), out / "spill", lambda _: None) as engine:
        write_rows(engine, cohort, endpoints, out, settings, lambda _: None)
    return memory, time.process_time() - start


def _pandas_turn(out: Path, window_hours: float) -> tuple[float, float]:
    begun = time.process_time()
    tables = _extracted(out)
    start = time.process_time()
    frame = pandas_features(*tables, window_hours)
    memory = time.process_time() - start
    frame.to_parquet(out.parent / "pandas.parquet")
    return memory, time.process_time() - begun


def _extracted(out: Path) -> Tables:
    import pandas as pd

    cohort = pd.read_parquet(out / "cohort" / "cohort.parquet")
    files = ("staged_creatinine", "staged_urine", "stay_weights")
    creatinine, urine, weights = (pd.read_parquet(out / "endpoints" / f"{file}.parquet") for file in files)
    return cohort, creatinine, urine, weights


def _from_files(database: Path) -> Tables:
    """Cohort and measurements from the CSV files, with the study's rules for impossible values."""
    import pandas as pd

    rules = SourceSettings()

    def read(table: str, columns: Iterable[str], times: Iterable[str] = ()) -> pd.DataFrame:
        return pd.read_csv(database / f"{table}.csv.gz", usecols=list(columns), parse_dates=list(times))

    def items(table: str, columns: Iterable[str], wanted: Iterable[int]) -> pd.DataFrame:
        chunks = pd.read_csv(
            database / f"{table}.csv.gz", usecols=["itemid", "charttime", *columns], chunksize=1_000_000
        )
        found = pd.concat([chunk[chunk["itemid"].isin(list(wanted))] for chunk in chunks])
        return found.assign(charttime=pd.to_datetime(found["charttime"]))

    admissions = read("hosp/admissions", ["hadm_id", "admittime", "dischtime", "deathtime"],
                      ["admittime", "dischtime", "deathtime"])  # fmt: skip
    stays = read(
        "icu/icustays", ["subject_id", "hadm_id", "stay_id", "intime", "outtime"], ["intime", "outtime"]
    )
    patients = read("hosp/patients", ["subject_id", "gender", "anchor_age", "anchor_year"])
    codes = read("hosp/diagnoses_icd", ["subject_id", "hadm_id", "icd_code"])
    weights = items("icu/chartevents", ["stay_id", "valuenum"], [226512, 224639, 226531])
    weights["kilograms"] = weights["valuenum"] * np.where(weights["itemid"] == 226531, 0.45359237, 1)
    weights = weights[weights["kilograms"].between(rules.lowest_weight, rules.highest_weight)]
    pounds = weights["itemid"] == 226531
    weights = weights[~pounds | ~weights.duplicated(["stay_id", "charttime"], keep=False)]
    cohort = stays.merge(patients, on="subject_id").merge(admissions, on="hadm_id")
    cohort = cohort[cohort["stay_id"].isin(weights["stay_id"])]
    cohort["exit"] = cohort[["outtime", "deathtime"]].min(axis=1)
    cohort["exit_s"] = (cohort["exit"] - cohort["intime"]).dt.total_seconds()
    cohort["male"] = cohort["gender"] == "M"
    cohort["age"] = cohort["anchor_age"] + cohort["admittime"].dt.year - cohort["anchor_year"]
    chronic = codes[codes["icd_code"].str.startswith(("585", "N18"))].merge(admissions, on="hadm_id")
    earlier = cohort[["stay_id", "subject_id", "intime"]].merge(chronic, on="subject_id")
    earlier = earlier[earlier["dischtime"] <= earlier["intime"]]
    cohort["chronic_renal_failure"] = cohort["stay_id"].isin(earlier["stay_id"])
    timing = cohort[["stay_id", "subject_id", "intime", "exit"]]

    creatinine = items("hosp/labevents", ["subject_id", "valuenum"], rules.creatinine_items)
    creatinine = creatinine[creatinine["valuenum"].between(0, rules.highest_creatinine)]
    creatinine = creatinine.groupby(["subject_id", "charttime"], as_index=False)["valuenum"].mean()
    creatinine = _timed(creatinine, timing, "subject_id").rename(columns={"valuenum": "value"})
    urine = items("icu/outputevents", ["stay_id", "value"], rules.urine_items + rules.irrigant_items)
    urine = urine.drop_duplicates()
    irrigant = urine["itemid"].isin(rules.irrigant_items)
    urine = urine[(irrigant | (urine["value"] >= 0)) & (urine["value"].abs() <= rules.highest_urine)]
    urine["volume"] = np.where(irrigant[urine.index], -urine["value"].abs(), urine["value"])
    urine = urine.groupby(["stay_id", "charttime"], as_index=False)["volume"].sum()
    urine = _timed(urine, timing, "stay_id").sort_values(["stay_id", "at_s"])
    urine["lasts_hours"] = (urine.groupby("stay_id")["at_s"].diff() / 3600).fillna(1.0)
    return cohort, creatinine, urine[urine["at_s"] >= 0], _timed(weights, timing, "stay_id")


def _timed(frame: pd.DataFrame, timing: pd.DataFrame, key: str) -> pd.DataFrame:
    joined = frame.merge(timing if key == "subject_id" else timing.drop(columns="subject_id"), on=key)
    joined["at_s"] = (joined["charttime"] - joined["intime"]).dt.total_seconds()
    return joined[(joined["charttime"] <= joined["exit"]) & (joined["at_s"] >= -168 * 3600)]


def pandas_features(
    cohort: pd.DataFrame,
    creatinine: pd.DataFrame,
    urine: pd.DataFrame,
    weights: pd.DataFrame,
    window_hours: float,
) -> pd.DataFrame:
    import pandas as pd

    measured = [
        creatinine[["stay_id", "at_s"]].assign(creatinine=creatinine["value"]),
        urine[["stay_id", "at_s"]].assign(urine=urine["volume"] / urine["lasts_hours"]),
        weights[["stay_id", "at_s"]].assign(weight=weights["kilograms"]),
    ]
    line = (
        pd.concat(measured)
        .groupby(["stay_id", "at_s"], as_index=False)
        .mean()
        .merge(cohort[["stay_id", "exit_s", "male", "age", "chronic_renal_failure"]], on="stay_id")
    )
    line["time"] = pd.to_datetime(line["at_s"], unit="s")
    line["weight"] = line.groupby("stay_id")["weight"].ffill()
    for channel in ("creatinine", "urine"):
        _summaries(line, channel, window_hours)
    week = line.groupby("stay_id").rolling("168h", on="time", closed="both")["creatinine"].min()
    line["baseline_creatinine"] = week.to_numpy()
    charted = line["creatinine"].notna() | line["urine"].notna()
    rows = line[charted & line["at_s"].between(0, 14 * 86400) & (line["at_s"] < line["exit_s"])].copy()
    for what in ("mean", "min", "max", "last", "slope"):
        rows[f"urine_{what}"] /= rows["weight"]
    rows["elapsed_hours"] = rows["at_s"] / 3600
    return rows[["stay_id", *FEATURES]].astype(dict.fromkeys(FEATURES, np.float32))


def _summaries(line: pd.DataFrame, channel: str, window_hours: float) -> None:
    """Count, mean, min, max, last and slope of one channel over the trailing window, both ends included."""
    hours = line["at_s"] / 3600 + line[channel] * 0
    parts = {channel: line[channel], "x": hours, "xx": hours**2, "xy": hours * line[channel]}
    frame = line[["stay_id", "time"]].assign(**parts)
    rolled = frame.groupby("stay_id").rolling(f"{window_hours}h", on="time", closed="both")
    n = rolled[channel].count().to_numpy()
    sums: dict[str, Any] = {name: rolled[name].sum().to_numpy() for name in parts}
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = (n * sums["xy"] - sums["x"] * sums[channel]) / (n * sums["xx"] - sums["x"] ** 2)
    line[f"{channel}_count"] = n
    for what in ("mean", "min", "max"):
        line[f"{channel}_{what}"] = getattr(rolled[channel], what)().to_numpy()
    last = line.groupby("stay_id")[channel].ffill()
    line[f"{channel}_last"] = last.where(n > 0)
    line[f"{channel}_slope"] = np.where(n >= 2, slope, np.nan)
    line[f"{channel}_missing"] = n == 0
    line[f"{channel}_slope_available"] = n >= 2


def _difference(folder: Path) -> float:
    import pandas as pd

    files = [sorted(folder.glob("out/rows/*/rows.parquet")), [folder / "pandas.parquet"]]
    files.append([folder / "from_files.parquet"])
    ours, *others = (
        pd.concat([pd.read_parquet(path) for path in paths])
        .sort_values(["stay_id", "elapsed_hours"])[list(FEATURES)]
        .to_numpy(float)
        for paths in files
    )
    for other in others:
        assert ours.shape == other.shape
        assert (np.isnan(ours) == np.isnan(other)).all()
    return float(max(np.nanmax(np.abs(ours - other) / (1 + np.abs(other))) for other in others))


if __name__ == "__main__":
    main(tuple(int(size) for size in sys.argv[1:]) or SIZES)
