"""The data part of the study, from the files of the database to rows that a model can be trained on."""

from __future__ import annotations

import shutil
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from censcore.store import content_key
from censcore_studies.aki.cohort import SPLITS, choose_cohort, find_endpoints, split_patients
from censcore_studies.aki.engine import Engine, Resources, Say
from censcore_studies.aki.extract import extract
from censcore_studies.aki.preprocessing import fit_preprocessing
from censcore_studies.aki.rows import write_rows
from censcore_studies.aki.settings import AkiSettings
from censcore_studies.aki.source import open_source
from censcore_studies.aki.truth import keep_truth
from censcore_studies.kit.store import Stage, locked, run_stage, write_json

__all__ = ["BuildResult", "build"]


@dataclass(frozen=True)
class BuildResult:
    """A finished build.

    Attributes
    ----------
    out : Path
        The output directory.
    summary : dict
        Counts only: the release, records left out by rule, cohort flow, split, rows and event rates.
    skipped : tuple of str
        The stages that were already there.
    ran : tuple of str
        The stages that ran.
    """

    out: Path
    summary: dict[str, Any]
    skipped: tuple[str, ...]
    ran: tuple[str, ...]


def build(
    data_dir: str | Path,
    out: str | Path,
    settings: AkiSettings | None = None,
    *,
    resources: Resources | None = None,
    say: Say | None = None,
) -> BuildResult:
    """Build the study's rows from a MIMIC-IV database (2.2 or 3.x) or one of the same layout.

    Stages that are already in ``out`` with the same input and settings are kept; an interrupted build goes on
    where it stopped. Only counts leave this function: no row of a patient is returned, logged or raised.

    Parameters
    ----------
    data_dir : path
        The folder with ``hosp/`` and ``icu/``; read in place, never copied.
    out : path
        Receives ``extract/``, ``cohort/``, ``endpoints/``, ``split/``, ``rows/``, ``preprocessing/``,
        ``summary/`` and ``settings.json``; from a synthetic database also ``truth/``.
    settings : AkiSettings, optional
        Every choice of the study; the default is :class:`AkiSettings()`.
    resources : Resources, optional
        Memory, threads, spilling; never changes a result.
    say : callable, optional
        Receives lines of progress.

    Raises
    ------
    InvalidInputError
        Missing tables or columns, another release, keys that repeat with other content, files that cannot be
        read, or nothing left to study.
    """
    data_dir, out = Path(data_dir), Path(out)
    chosen, allowed, tell = settings or AkiSettings(), resources or Resources(), say or _silent
    with locked(out):
        tell("checking the source files")
        source = open_source(data_dir, chosen.source, out / "source.json")
        spill = out / "spill"
        try:
            with Engine(allowed, spill, tell) as engine:
                tables = extract(engine, source, out, chosen.source, tell)
                cohort = choose_cohort(engine, tables, out, chosen, tell)
                endpoints = find_endpoints(engine, tables, cohort, out, chosen, tell)
                split = split_patients(engine, cohort, out, chosen, tell)
                rows = write_rows(engine, cohort, endpoints, out, chosen, tell)
                preprocessing = fit_preprocessing(
                    engine, rows, split, out, chosen.rows.standardized_limit, tell
                )
                stages = {
                    _name(s, out): s
                    for s in (*tables.values(), cohort, endpoints, split, *rows, preprocessing)
                }
                stages["summary"] = _summarize(engine, stages, out, tell)
        finally:
            shutil.rmtree(spill, ignore_errors=True)
        keep_truth(data_dir, out, tell)
        write_json(out / "settings.json", chosen.to_dict())
    return BuildResult(
        out,
        dict(stages["summary"].summary),
        tuple(name for name, stage in stages.items() if stage.skipped),
        tuple(name for name, stage in stages.items() if not stage.skipped),
    )


def _summarize(engine: Engine, stages: Mapping[str, Stage], out: Path, say: Say) -> Stage:
    keys = {name: stage.key for name, stage in stages.items()}

    def make(folder: Path) -> dict[str, Any]:
        records = {
            name.removeprefix("extract/"): dict(stage.summary)
            for name, stage in stages.items()
            if name.startswith("extract/")
        }
        summary = {
            "release": records["patients"]["release"],
            "records": records,
            **{n: dict(stages[n].summary) for n in ("cohort", "endpoints", "split", "preprocessing")},
            "rows": _row_rates(engine, out),
        }
        write_json(folder / "summary.json", summary)
        write_json(folder / "stages.json", keys)
        return summary

    return run_stage(out, "summary", content_key(keys), make, say)


def _row_rates(engine: Engine, out: Path) -> dict[str, dict[str, float]]:
    engine.parquet("split", out / "split" / "split.parquet")
    engine.parquet("all_rows", *sorted((out / "rows").glob("*/rows.parquet")))
    result = engine.run(
        "SELECT split, count(*) AS rows, count(DISTINCT stay_id) AS stays, "
        "avg(creatinine_event::INT) AS creatinine_event_rate, avg(urine_event::INT) AS urine_event_rate, "
        "avg(creatinine_present::INT) AS creatinine_present_rate, "
        "avg(urine_present::INT) AS urine_present_rate, "
        "median(censoring_time) AS median_censoring_hours "
        "FROM all_rows JOIN split USING (stay_id) GROUP BY split"
    )
    names = [column[0] for column in result.description]
    rates = {row[0]: dict(zip(names[1:], row[1:], strict=True)) for row in result.fetchall()}
    return {side: rates.get(side, {"rows": 0}) for side in SPLITS}


def _name(stage: Stage, out: Path) -> str:
    return stage.folder.relative_to(out).as_posix()


def _silent(_: str) -> None:
    pass
