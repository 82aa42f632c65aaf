"""The open MIMIC-IV demo, end to end."""

import pytest

from censcore_studies.aki import (
    FEATURES,
    METHODS,
    AkiSettings,
    RowSettings,
    SourceSettings,
    build,
    run_all,
)


def test_the_demo_is_built_and_its_counts_are_those_of_its_description(mimic_demo, tmp_path, query):
    summary = build(mimic_demo, tmp_path).summary
    assert summary["release"] == "2.2 or earlier"
    assert summary["records"]["patients"]["records"] == 100
    assert summary["records"]["creatinine"]["records"] == 3003
    assert summary["records"]["urine"]["records"] == 7349
    assert summary["records"]["weights"]["records"] == 806
    assert summary["cohort"]["icu_stays"] == 140
    assert summary["cohort"]["left_out"] == {"no usable weight": 2}
    assert summary["split"]["rule"] == "random"
    rows = f"'{tmp_path}/rows/*/rows.parquet'"
    (bad,) = query(
        f"SELECT count(*) FROM {rows} WHERE censoring_time <= 0 OR creatinine_time > censoring_time "
        "OR urine_time > censoring_time OR creatinine_time < 0 OR urine_time < 0 OR elapsed_hours > 336 "
        "OR (creatinine_present AND creatinine_time > 0) OR (urine_event <> (urine_time < censoring_time) "
        "AND urine_time <> censoring_time) OR creatinine_min > creatinine_max OR age < 18"
    )
    assert bad == (0,)
    (stays, distinct, count) = query(
        f"SELECT count(DISTINCT stay_id), count(DISTINCT (stay_id, elapsed_hours)), count(*) FROM {rows}"
    )[0]
    assert stays > 130
    assert distinct == count > 5000


def test_the_demo_has_other_grids_and_weights(mimic_demo, tmp_path):
    settings = AkiSettings(
        source=SourceSettings(weight_sources=("kilograms", "pounds", "inputevents")),
        rows=RowSettings(grid="hourly"),
    )
    summary = build(mimic_demo, tmp_path, settings).summary
    assert summary["cohort"]["left_out"] == {"no usable weight": 1}
    assert sum(side["rows"] for side in summary["rows"].values()) > 10_000
    assert len(FEATURES) == 22


@pytest.mark.slow
def test_the_whole_study_runs_on_the_demo(mimic_demo, tmp_path):
    pytest.importorskip("torch", reason="the study trains networks")
    text = run_all(mimic_demo, tmp_path).read_text("utf-8")
    assert all(method.label in text for method in METHODS.values())
    assert "far too small for conclusions" in text
