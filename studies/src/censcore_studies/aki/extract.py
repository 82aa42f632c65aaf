"""From the CSV files to small Parquet tables: one pass over each file, every record left out counted.

Rules, the same for every table. An impossible record is counted by its ``problem`` and left out. Exact
copies of a record count once. Two different records with one key raise an error, and so does a table in which
no record, or less than half of the records, can be used: such a file is damaged or of another database.
A time before 1900 or after 2500 is none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Any

from censcore.exceptions import InvalidInputError
from censcore.store import content_key
from censcore_studies.aki.engine import Engine, Say, read_sql
from censcore_studies.aki.settings import SourceSettings
from censcore_studies.aki.source import SourceFile, release
from censcore_studies.kit.store import Stage, run_stage

__all__ = ["extract"]

_FORMAT = 1  # raise it when the same files and statements give other tables

# Dates are shifted into the future by decades, never by centuries; the years 0 and 9999 stand for no date.
_TIMES = """CREATE OR REPLACE TEMP MACRO as_time(said) AS CASE
    WHEN TRY_CAST(said AS TIMESTAMP) BETWEEN TIMESTAMP '1900-01-01' AND TIMESTAMP '2500-12-31 23:59:59'
    THEN TRY_CAST(said AS TIMESTAMP) END"""

_WEIGHT_ITEMS = {"kilograms": (226512, 224639), "pounds": (226531,), "inputevents": ()}


@dataclass(frozen=True)
class _Extraction:
    """One Parquet table: the statements that read it (one per file), the key of a record, the merge."""

    name: str
    reads: tuple[tuple[str, str], ...]
    key: tuple[str, ...] = ()
    merge: bool = False
    may_be_empty: bool = False


def _extractions(settings: SourceSettings) -> tuple[_Extraction, ...]:
    weights = (
        [("read_charted_weights", "chartevents")] if set(settings.weight_sources) - {"inputevents"} else []
    )
    weights += [("read_ordered_weights", "inputevents")] if "inputevents" in settings.weight_sources else []
    return (
        _Extraction("patients", (("read_patients", "patients"),), ("subject_id",)),
        _Extraction("admissions", (("read_admissions", "admissions"),), ("hadm_id",)),
        _Extraction("icustays", (("read_icustays", "icustays"),), ("stay_id",)),
        _Extraction(
            "chronic_renal_failure",
            (("read_chronic_renal_failure", "diagnoses_icd"),),
            ("hadm_id", "seq_num", "icd_code", "icd_version"),
            merge=True,
            may_be_empty=True,
        ),
        _Extraction("creatinine", (("read_creatinine", "labevents"),), ("labevent_id",), merge=True),
        _Extraction(
            "urine", (("read_urine", "outputevents"),), ("stay_id", "charttime", "itemid"), merge=True
        ),
        _Extraction("weights", tuple(weights), merge=True),
    )


def extract(
    engine: Engine, source: Mapping[str, SourceFile], out: Path, settings: SourceSettings, say: Say
) -> dict[str, Stage]:
    """Write ``extract/<table>/<table>.parquet`` for every table of the study; finished ones are kept."""
    parameters = _parameters(settings)
    engine.run(_TIMES)
    return {
        wanted.name: run_stage(
            out,
            f"extract/{wanted.name}",
            _key(wanted, source, parameters),
            partial(_extract, engine, source, wanted, parameters),
            say,
        )
        for wanted in _extractions(settings)
    }


def _parameters(settings: SourceSettings) -> dict[str, Any]:
    def as_text(items: tuple[int, ...]) -> list[str]:
        return [str(item) for item in items]

    return {
        "creatinine_items": as_text(settings.creatinine_items),
        "highest_creatinine": settings.highest_creatinine,
        "urine_items": as_text(settings.urine_items),
        "irrigant_items": as_text(settings.irrigant_items),
        "highest_urine": settings.highest_urine,
        "weight_items": as_text(tuple(i for s in settings.weight_sources for i in _WEIGHT_ITEMS[s])),
        "weight_sources": list(settings.weight_sources),
        "lowest_weight": settings.lowest_weight,
        "highest_weight": settings.highest_weight,
    }


def _key(wanted: _Extraction, source: Mapping[str, SourceFile], parameters: Mapping[str, Any]) -> str:
    statements = [read_sql(statement) for statement, _ in wanted.reads] + [_merge_sql(wanted)]
    used = {name: value for name, value in parameters.items() if any(f"${name}" in s for s in statements)}
    return content_key(
        _FORMAT, _TIMES, statements, used, wanted.key, [source[table].sha256 for _, table in wanted.reads]
    )


def _merge_sql(wanted: _Extraction) -> str:
    return read_sql(f"merge_{wanted.name}") if wanted.merge else "SELECT * FROM kept ORDER BY ALL"


def _extract(
    engine: Engine,
    source: Mapping[str, SourceFile],
    wanted: _Extraction,
    parameters: Mapping[str, Any],
    folder: Path,
) -> dict[str, Any]:
    files = [source[table] for _, table in wanted.reads]
    label = " and ".join(file.label for file in files)
    for file in files:
        engine.csv(file.table, file.path, file.columns)
    union = " UNION ALL ".join(read_sql(statement) for statement, _ in wanted.reads)
    with engine.reading(label), engine.watched(f"reading {label}"):
        engine.table("found", union, parameters)
    found = int(engine.value("SELECT count(*) FROM found"))
    left_out = dict(
        engine.rows(
            "SELECT problem, count(*) FROM found WHERE problem IS NOT NULL GROUP BY problem ORDER BY problem"
        )
    )
    usable = found - sum(left_out.values())
    _check_usable(label, wanted, found, usable, left_out)
    engine.table(
        "kept",
        f"SELECT {'DISTINCT' if wanted.key else ''} * EXCLUDE (problem) FROM found WHERE problem IS NULL",
    )
    kept = int(engine.value("SELECT count(*) FROM kept"))
    _check_conflicts(engine, label, wanted.key, kept)
    if usable > kept:
        left_out["exact copy of another record"] = usable - kept
    rows = engine.write(_merge_sql(wanted), folder / f"{wanted.name}.parquet", parameters)
    summary: dict[str, Any] = {"records": found, "left_out": left_out, "rows": rows}
    if wanted.name == "patients":
        groups = [group for (group,) in engine.rows("SELECT DISTINCT anchor_year_group FROM kept ORDER BY 1")]
        summary |= {"release": release(groups), "anchor_year_groups": groups}
    engine.run("DROP TABLE found")
    engine.run("DROP TABLE kept")
    return summary


def _check_usable(
    label: str, wanted: _Extraction, found: int, usable: int, left_out: Mapping[str, int]
) -> None:
    if wanted.may_be_empty and found == 0:
        return
    if usable == 0 or usable < found / 2:
        reasons = "; ".join(f"{problem}: {count}" for problem, count in left_out.items()) or "no such record"
        raise InvalidInputError(
            f"{label}: {usable} of {found} records for '{wanted.name}' are usable ({reasons}). Fewer than "
            "half means a damaged file or another database; check it and the item numbers in the settings."
        )


def _check_conflicts(engine: Engine, label: str, key: tuple[str, ...], kept: int) -> None:
    if not key:
        return
    columns = ", ".join(key)
    distinct = int(engine.value(f"SELECT count(*) FROM (SELECT DISTINCT {columns} FROM kept)"))
    if distinct < kept:
        raise InvalidInputError(
            f"{label}: {kept - distinct} records repeat the key ({columns}) of another record with other "
            "content; the key must be unique. Which of them is right cannot be told: fetch the file again."
        )
