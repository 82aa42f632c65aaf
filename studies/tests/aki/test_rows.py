"""Prediction rows: times, features by hand, remaining times, and nothing from the future."""

import math

import pytest

from censcore_studies.aki import (
    FEATURES,
    AkiSettings,
    CohortSettings,
    EndpointSettings,
    RowSettings,
    build,
)


@pytest.fixture
def rows(tiny, tmp_path):
    """Build and return the rows of one stay as dictionaries, in time order."""
    import duckdb

    def find(settings: AkiSettings | None = None, stay: int = 1) -> list[dict]:
        out = build(tiny.write(), tmp_path / "out", settings).out
        result = duckdb.sql(
            f"SELECT * FROM '{out}/rows/*/rows.parquet' WHERE stay_id = {stay} ORDER BY elapsed_hours"
        )
        return [dict(zip(result.columns, row, strict=True)) for row in result.fetchall()]

    return find


def test_there_are_22_features_and_the_columns_of_the_outcome(tiny, rows):
    tiny.stay(hours=10)
    tiny.creatinine(2, 1.0)
    (row,) = rows()
    assert len(FEATURES) == 22
    outcome = [f"{end}_{what}" for what in ("present", "event", "time") for end in ("creatinine", "urine")]
    assert list(row) == ["subject_id", "stay_id", *FEATURES, *outcome, "censoring_time"]


def test_rows_stand_at_measurements_between_admission_and_exit(tiny, rows):
    tiny.stay(hours=400)
    for hour in (-3, 0, 7.5, 336, 336.5, 400):
        tiny.creatinine(hour, 1.0)
    tiny.urine(7.5, 100)
    tiny.urine(9, 100)
    assert [row["elapsed_hours"] for row in rows()] == [0, 7.5, 9, 336]


def test_hourly_rows_stop_before_the_exit(tiny, rows):
    tiny.stay(hours=5)
    found = rows(AkiSettings(rows=RowSettings(grid="hourly")))
    assert [row["elapsed_hours"] for row in found] == [0, 1, 2, 3, 4]
    assert [row["censoring_time"] for row in found] == [5, 4, 3, 2, 1]


def test_remaining_times_and_presence(tiny, rows):
    tiny.stay(hours=50)
    tiny.creatinine(-10, 1.0)
    tiny.creatinine(2, 1.0)
    tiny.creatinine(20, 2.0)
    tiny.creatinine(30, 1.0)
    names = ("creatinine_time", "creatinine_event", "creatinine_present")

    def found(row):
        return tuple(row[name] for name in names)

    before, onset, after = rows()
    assert found(before) == (18, True, False)
    assert found(onset) == (0, True, True)
    assert found(after) == (20, False, False)
    assert (before["urine_time"], before["urine_event"], before["urine_present"]) == (48, False, False)
    assert [row["censoring_time"] for row in (before, onset, after)] == [48, 30, 20]
    *earlier, ever_after = rows(AkiSettings(endpoints=EndpointSettings(onset="first")))
    assert [found(row) for row in earlier] == [found(before), found(onset)]
    assert found(ever_after) == (0, True, True)


def test_event_before_the_first_row_is_present_in_every_row(tiny, rows):
    tiny.stay(hours=30)
    tiny.creatinine(-10, 1.0)
    tiny.creatinine(0, 2.0)
    tiny.hourly_urine(100, 1, 20)
    found = rows()
    assert len(found) == 21
    assert all(row["creatinine_present"] and row["creatinine_event"] for row in found)
    assert {row["creatinine_time"] for row in found} == {0}


def test_features_worked_out_by_hand(tiny, rows):
    tiny.stay(hours=200, weight=50)
    for hour, value in [(-30, 0.9), (0, 1.0), (10, 1.2), (20, 1.1), (82, 1.5)]:
        tiny.creatinine(hour, value)
    tiny.urine(18, 100)  # the first record: 100 mL in one hour
    tiny.urine(20, 100)  # 50 mL/h
    at_20, at_82 = (row for row in rows() if row["elapsed_hours"] in (20, 82))
    expected = {
        "male": 0, "age": 60, "weight": 50, "chronic_renal_failure": 0, "baseline_creatinine": 0.9,
        "elapsed_hours": 20, "creatinine_count": 4, "creatinine_mean": 1.05, "creatinine_min": 0.9,
        "creatinine_max": 1.2, "creatinine_last": 1.1, "creatinine_slope": 7 / 1400,
        "urine_count": 2, "urine_mean": 1.5, "urine_min": 1, "urine_max": 2, "urine_last": 1,
        "urine_slope": -0.5, "creatinine_missing": 0, "urine_missing": 0, "creatinine_slope_available": 1,
        "urine_slope_available": 1,
    }  # fmt: skip
    assert {name: at_20[name] for name in FEATURES} == pytest.approx(expected, rel=1e-6)
    # 72 h back from 82, ends included, are the values at 10, 20 and 82.
    assert (at_82["creatinine_count"], at_82["creatinine_last"]) == (3, pytest.approx(1.5))
    assert at_82["creatinine_mean"] == pytest.approx((1.2 + 1.1 + 1.5) / 3)


def test_missing_measurements_are_missing(tiny, rows):
    tiny.stay(hours=30)
    tiny.urine(4, 80)
    (row,) = rows()
    assert (row["creatinine_count"], row["creatinine_missing"], row["creatinine_slope_available"]) == (
        0,
        1,
        0,
    )
    assert all(row[f"creatinine_{what}"] is None for what in ("mean", "min", "max", "last", "slope"))
    assert row["baseline_creatinine"] is None
    assert (row["urine_count"], row["urine_slope"], row["urine_slope_available"]) == (1, None, 0)


@pytest.mark.parametrize(("unit", "value"), [("ml_per_kg_h", 0.625), ("ml_per_h", 50), ("ml", 100)])
def test_units_of_urine(tiny, rows, unit, value):
    tiny.stay(hours=30)
    tiny.urine(2, 100)
    tiny.urine(4, 100)
    *_, row = rows(AkiSettings(rows=RowSettings(urine_unit=unit)))
    assert row["urine_last"] == pytest.approx(value)


def test_a_weight_is_a_feature_only_once_charted(tiny, rows):
    tiny.stay(hours=30, weight=None)
    tiny.weight(5, 70.0)
    tiny.urine(2, 100)
    tiny.urine(6, 100)
    early, late = rows()
    assert (early["weight"], early["urine_last"]) == (None, None)
    assert (late["weight"], late["urine_last"]) == (70, pytest.approx(100 / 4 / 70))


def test_values_wait_for_their_storage_time_when_asked(tiny, rows):
    tiny.stay(hours=30)
    tiny.creatinine(2, 1.0, storetime=tiny.at(3.5))
    tiny.urine(3, 100, storetime=tiny.at(2.9))
    assert [row["creatinine_count"] for row in rows()] == [1, 1]
    stored = rows(AkiSettings(rows=RowSettings(known_at="storetime")))
    assert [(row["elapsed_hours"], row["creatinine_count"]) for row in stored] == [(3, 0), (3.5, 1)]


def test_chronic_renal_failure_comes_from_admissions_that_are_over(tiny, rows):
    tiny.stay(1, hours=20, hadm_id=11)
    tiny.stay(2, hours=20, start=200, subject_id=1, hadm_id=12)
    tiny.add("hosp/diagnoses_icd", subject_id=1, hadm_id=11, seq_num=1, icd_code="N183", icd_version=10)
    tiny.creatinine(1, 1.0)
    tiny.creatinine(201, 1.0)
    assert rows(stay=1)[0]["chronic_renal_failure"] == 0
    assert rows(stay=2)[0]["chronic_renal_failure"] == 1
    now = AkiSettings(cohort=CohortSettings(chronic_renal_failure="this_admission_too"))
    assert rows(now, stay=1)[0]["chronic_renal_failure"] == 1


CUT = 24.0


@pytest.mark.parametrize(
    ("how", "baseline"),
    [({}, "rolling_minimum"), ({"grid": "hourly"}, "before_icu"), ({"known_at": "storetime"}, "before_icu")],
)
def test_features_do_not_look_ahead(tiny, rows, how, baseline):
    """Everything recorded after the cut changes: features up to it stay bit for bit, later ones do not."""
    settings = AkiSettings(
        rows=RowSettings(**how),
        endpoints=EndpointSettings(creatinine_baseline=baseline),
        cohort=CohortSettings(missing_weight="no_urine_event"),
    )
    tiny.stay(hours=72)
    for i, hour in enumerate(range(-30, 72, 5)):
        tiny.creatinine(hour, round(1 + 0.05 * math.sin(i), 2))
    for hour in range(1, 72):
        tiny.urine(hour, 60 + 7 * (hour % 5))
    tiny.weight(30, 90.0, item=224639)
    before = rows(settings)

    for table in ("hosp/labevents", "icu/outputevents", "icu/chartevents"):
        future = [row for row in tiny.tables[table] if row["charttime"] > tiny.at(CUT)]
        assert future, f"{table} has no record to perturb"
        for row in future[::2]:
            tiny.tables[table].remove(row)
        for row in future[1::2]:
            for column in {"value", "valuenum"} & set(row):
                row[column] = round(2.5 * float(row[column]), 2)
    tiny.creatinine(CUT + 0.01, 6.0, labevent_id=10_000)
    tiny.urine(CUT + 0.01, 5)
    tiny.weight(CUT + 0.01, 120.0, item=224639)
    tiny.add("hosp/diagnoses_icd", subject_id=1, hadm_id=1, seq_num=1, icd_code="5859", icd_version=9)
    stay = next(row for row in tiny.tables["icu/icustays"] if row["stay_id"] == 1)
    stay["outtime"] = tiny.at(100)
    admission = next(row for row in tiny.tables["hosp/admissions"] if row["hadm_id"] == 1)
    admission["deathtime"] = tiny.at(99)
    after = rows(settings)

    def features(found: list[dict], late: bool) -> list[tuple]:
        return [tuple(r[f] for f in FEATURES) for r in found if (r["elapsed_hours"] > CUT) == late]

    assert len(features(before, late=False)) > 20
    assert features(before, late=False) == features(after, late=False)
    assert features(before, late=True) != features(after, late=True)
    assert before[0]["creatinine_time"] != after[0]["creatinine_time"]
