"""Who is studied, when each criterion is first met, and on which side of the split a patient falls."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from censcore.exceptions import InvalidInputError
from censcore.store import content_key
from censcore_studies.aki.engine import Engine, Say, read_sql
from censcore_studies.aki.settings import AkiSettings, EndpointSettings
from censcore_studies.aki.source import ANCHOR_YEAR_GROUPS
from censcore_studies.kit.store import Stage, run_stage

__all__ = ["SPLITS", "choose_cohort", "find_endpoints", "split_patients"]

SPLITS = ("train", "validation", "test")
_SHARED_GROUP, _TEST_GROUP = ANCHOR_YEAR_GROUPS[3:]


def seconds(hours: float) -> int:
    """Whole seconds, the unit of every window."""
    return round(hours * 3600)


def choose_cohort(
    engine: Engine, tables: Mapping[str, Stage], out: Path, settings: AkiSettings, say: Say
) -> Stage:
    """Write ``cohort/cohort.parquet``: one row per studied stay; the summary counts the others by reason."""
    rules = settings.cohort
    parameters = {
        "death_ends_stay": rules.death_ends_stay,
        "this_admission_too": rules.chronic_renal_failure == "this_admission_too",
        "minimum_age": rules.minimum_age,
        "minimum_stay_s": seconds(rules.minimum_stay_hours),
        "minimum_creatinine": rules.minimum_creatinine,
        "minimum_urine": rules.minimum_urine,
        "weight_needed": rules.missing_weight == "exclude_stay",
        "stays_per_part": settings.rows.stays_per_part,
    }
    statements = (read_sql("stays"), read_sql("cohort"))

    def make(folder: Path) -> dict[str, Any]:
        for name, stage in tables.items():
            engine.parquet(name, stage.folder / f"{name}.parquet")
        engine.table("stays", statements[0], parameters)
        found = int(engine.value("SELECT count(*) FROM stays"))
        left_out = dict(
            engine.rows(
                "SELECT left_out, count(*) FROM stays WHERE left_out IS NOT NULL GROUP BY ALL ORDER BY ALL"
            )
        )
        studied = engine.write(statements[1], folder / "cohort.parquet", parameters)
        if studied == 0:
            raise InvalidInputError(f"None of {found} ICU stays can be studied; left out were {left_out}.")
        patients, deaths, parts = engine.rows(
            "SELECT count(DISTINCT subject_id), count(*) FILTER (WHERE dies), "
            "(count(*) - 1) // $stays_per_part + 1 FROM stays WHERE left_out IS NULL",
            parameters,
        )[0]
        return {
            "icu_stays": found,
            "left_out": left_out,
            "studied_stays": studied,
            "patients": patients,
            "deaths": deaths,
            "parts": parts,
        }

    key = content_key(statements, parameters, [stage.key for stage in tables.values()])
    return run_stage(out, "cohort", key, make, say)


def endpoint_parameters(settings: AkiSettings) -> dict[str, Any]:
    """The settings of the criteria as the parameters of their statements."""
    rules: EndpointSettings = settings.endpoints
    cohort = settings.cohort
    lookback = max(rules.baseline_hours, 48.0, settings.rows.window_hours) + rules.onset_lookback_hours
    return {
        "lookback_s": seconds(lookback),
        "baseline_s": seconds(rules.baseline_hours),
        "rolling_baseline": rules.creatinine_baseline == "rolling_minimum",
        "creatinine_ratio": rules.creatinine_ratio,
        "count_stage_3": rules.count_stage_3,
        "stage_3_creatinine": rules.stage_3_creatinine,
        "stage_3_needs_rise": rules.stage_3_needs_rise,
        "acute_rise": rules.acute_rise,
        "onset_lookback_s": seconds(rules.onset_lookback_hours),
        "first_urine_s": seconds(rules.first_urine_hours),
        "assumed_weight": cohort.assumed_weight if cohort.missing_weight == "assume" else None,
        "short_s": seconds(rules.urine_short_hours),
        "middle_s": seconds(rules.urine_hours),
        "long_s": seconds(rules.stage_3_urine_hours),
        "grace_s": seconds(rules.urine_grace_hours),
        "urine_rate": rules.urine_rate,
        "stage_3_urine_rate": rules.stage_3_urine_rate,
        "urine_strict": rules.urine_strict,
        "urine_rate_decimals": rules.urine_rate_decimals,
        "urine_needs_short_window": rules.urine_needs_short_window,
        "recurrent": rules.onset == "recurrent",
    }


def find_endpoints(
    engine: Engine, tables: Mapping[str, Stage], cohort: Stage, out: Path, settings: AkiSettings, say: Say
) -> Stage:
    """Write ``endpoints/``: staged values, weights, and ``episodes.parquet`` with the onsets."""
    parameters = endpoint_parameters(settings)
    names = ("stay_creatinine", "staged_creatinine", "stay_weights", "staged_urine", "episodes")
    statements = {name: read_sql(name) for name in names}

    def make(folder: Path) -> dict[str, Any]:
        engine.parquet("cohort", cohort.folder / "cohort.parquet")
        for name in ("creatinine", "urine", "weights"):
            engine.parquet(name, tables[name].folder / f"{name}.parquet")
        # A view cannot hold parameters; this one needs a single whole number.
        view = statements[names[0]].replace("$lookback_s", str(parameters["lookback_s"]))
        engine.run(f"CREATE OR REPLACE TEMP VIEW stay_creatinine AS {view}")
        for name in names[1:]:
            with engine.watched(name):
                engine.write(statements[name], folder / f"{name}.parquet", parameters)
            engine.parquet(name, folder / f"{name}.parquet")
        return {
            "stays_with_onset": dict(
                engine.rows(
                    "SELECT endpoint, count(DISTINCT stay_id) FROM episodes GROUP BY endpoint ORDER BY 1"
                )
            ),
            "urine_records_outside_the_stay": engine.value(
                "SELECT count(*) FROM urine JOIN cohort USING (stay_id) "
                "WHERE charttime NOT BETWEEN intime AND exit_time"
            ),
        }

    used = {stage: tables[stage].key for stage in ("creatinine", "urine", "weights")}
    key = content_key(statements, parameters, cohort.key, used)
    return run_stage(out, "endpoints", key, make, say)


def split_patients(engine: Engine, cohort: Stage, out: Path, settings: AkiSettings, say: Say) -> Stage:
    """Write ``split/split.parquet``: ``subject_id, stay_id, split``."""
    rules = settings.split
    statement = read_sql("split")

    def make(folder: Path) -> dict[str, Any]:
        engine.parquet("cohort", cohort.folder / "cohort.parquet")
        groups = {group for (group,) in engine.rows("SELECT DISTINCT anchor_year_group FROM cohort")}
        rule, reason = _rule(rules.rule, groups)
        train, validation, _ = rules.random_shares
        parameters = {
            "seed": str(rules.seed),
            "chronological": rule == "chronological",
            "shared_group": _SHARED_GROUP,
            "test_group": _TEST_GROUP,
            "train_share": rules.shared_group_share if rule == "chronological" else train,
            "validation_share": 1.0 if rule == "chronological" else train + validation,
        }
        engine.write(statement, folder / "split.parquet", parameters)
        engine.parquet("split", folder / "split.parquet")
        counts = {
            side: {"stays": stays, "patients": patients}
            for side, stays, patients in engine.rows(
                "SELECT split, count(*), count(DISTINCT subject_id) FROM split GROUP BY split ORDER BY split"
            )
        }
        empty = [side for side in SPLITS if side not in counts]
        if empty:
            raise InvalidInputError(
                f"The {rule} split of {cohort.summary['patients']} patients leaves no patient in {empty}; "
                "use more data or other SplitSettings.random_shares."
            )
        return {"rule": rule, "reason": reason, "sides": counts}

    key = content_key(statement, settings.to_dict()["split"], cohort.key)
    return run_stage(out, "split", key, make, say)


def _rule(wanted: str, groups: set[str]) -> tuple[str, str]:
    absent = [group for group in (_SHARED_GROUP, _TEST_GROUP) if group not in groups]
    if not groups - {_SHARED_GROUP, _TEST_GROUP}:
        absent = ["2008 to 2016", *absent]
    if wanted == "random":
        return "random", "asked for"
    if not absent:
        return "chronological", "all anchor-year groups are there"
    if wanted == "chronological":
        raise InvalidInputError(
            f"A chronological split needs stays in the anchor-year groups {absent}, and the cohort has none; "
            "2020 - 2022 exists in MIMIC-IV 3.x only. Use SplitSettings(rule='random')."
        )
    return "random", f"no stays in the anchor-year groups {' and '.join(absent)}"
