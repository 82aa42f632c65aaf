"""The build as a whole: resumable, idempotent, honest about its settings; the split and the preprocessing."""

import json
import shutil
from pathlib import Path

import numpy as np
import pytest

from censcore.exceptions import InvalidInputError
from censcore_studies.aki import (
    FEATURES,
    AkiSettings,
    EndpointSettings,
    Resources,
    RowSettings,
    SplitSettings,
    build,
    write_synthetic_database,
)
from censcore_studies.aki.preprocessing import Preprocessing
from censcore_studies.kit.store import locked

SIDES = {"train", "validation", "test"}
IN_PARTS = AkiSettings(rows=RowSettings(stays_per_part=64))


@pytest.fixture(scope="module")
def database(tmp_path_factory) -> Path:
    return write_synthetic_database(tmp_path_factory.mktemp("database"), stays=150, seed=5)


@pytest.fixture(scope="module")
def first(database, tmp_path_factory):
    """A build with the default settings, to be read only."""
    return build(database, tmp_path_factory.mktemp("built") / "out")


@pytest.fixture
def built(first, tmp_path) -> Path:
    """A copy of it that a test may change."""
    return shutil.copytree(first.out, tmp_path / "out")


@pytest.fixture(scope="module")
def in_parts(database, tmp_path_factory):
    """A build whose rows lie in three parts, to be read only."""
    return build(database, tmp_path_factory.mktemp("parts") / "out", IN_PARTS)


def contents(out: Path) -> dict[str, bytes]:
    return {str(p.relative_to(out)): p.read_bytes() for p in sorted(out.rglob("*")) if p.is_file()}


def test_second_build_does_nothing_and_changes_nothing(database, first, built):
    before = contents(built)
    second = build(database, built)
    assert (second.ran, set(second.skipped)) == ((), set(first.ran))
    assert second.summary == first.summary
    assert contents(built) == before


def test_resources_do_not_change_the_result(database, first, tmp_path):
    small = Resources(memory_limit="200MB", threads=1, spill_directory=tmp_path / "spill")
    build(database, tmp_path / "b", resources=small)
    a, b = contents(first.out), contents(tmp_path / "b")
    compared = [
        name
        for name in a
        if name.startswith(("rows/", "split/", "preprocessing/", "summary/"))
        and not name.endswith("stage.json")  # holds the time it took
    ]
    assert len(compared) >= 4
    assert not (tmp_path / "spill").exists() or not list((tmp_path / "spill").iterdir())
    assert [name for name in compared if a[name] != b[name] and not name.endswith("stage.json")] == []


def test_a_setting_reruns_only_what_depends_on_it(database, built):
    split = build(database, built, AkiSettings(split=SplitSettings(seed=3)))
    assert set(split.ran) == {"split", "preprocessing", "summary"}
    limit = AkiSettings(split=SplitSettings(seed=3), rows=RowSettings(standardized_limit=5))
    assert set(build(database, built, limit).ran) == {"preprocessing", "summary"}
    window = build(
        database, built, AkiSettings(split=SplitSettings(seed=3), rows=RowSettings(window_hours=48))
    )
    assert set(window.ran) == {"rows/0000", "preprocessing", "summary"}
    rate = AkiSettings(endpoints=EndpointSettings(urine_rate=0.4))
    assert {"cohort", "extract/urine"} & set(build(database, built, rate).ran) == set()


def test_changed_input_reruns_what_reads_it(tiny, tmp_path):
    tiny.stay()
    tiny.creatinine(1, 1.0)
    build(tiny.write(), tmp_path / "out")
    tiny.creatinine(2, 1.5)
    ran = build(tiny.write(), tmp_path / "out").ran
    assert [name for name in ran if name.startswith("extract/")] == ["extract/creatinine"]
    assert {"cohort", "endpoints", "rows/0000"} <= set(ran)


@pytest.mark.parametrize("stop_at", ["extract/urine: started", "endpoints: started", "rows/0001: started"])
def test_interrupted_build_goes_on_where_it_stopped(database, in_parts, tmp_path, stop_at):
    def interrupt(line: str) -> None:
        if line == stop_at:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        build(database, tmp_path / "out", IN_PARTS, say=interrupt)
    assert not list((tmp_path / "out").rglob("*.partial"))
    finished = {str(p.parent.relative_to(tmp_path / "out")) for p in (tmp_path / "out").rglob("stage.json")}
    resumed = build(database, tmp_path / "out", IN_PARTS)
    assert set(resumed.skipped) == finished
    assert stop_at.split(":")[0] in resumed.ran
    assert resumed.summary == in_parts.summary


def test_leftovers_of_a_killed_build_are_ignored(database, built):
    (built / "rows" / "0000" / "rows.parquet").write_bytes(b"half")
    (built / "rows" / "0007").mkdir()
    (built / "cohort.partial").mkdir()
    again = build(database, built)
    assert again.ran == ("rows/0000",)
    assert not (built / "rows" / "0007").exists()


def test_two_builds_in_one_place_raise(database, tmp_path):
    with locked(tmp_path), pytest.raises(InvalidInputError, match="Another run is writing"):
        build(database, tmp_path)


def test_parts_hold_every_row_once(first, in_parts, query):
    columns = ", ".join(["stay_id", *FEATURES, "creatinine_time", "urine_time", "censoring_time"])
    whole, parts = (
        query(f"SELECT {columns} FROM '{found.out}/rows/*/rows.parquet' ORDER BY stay_id, elapsed_hours")
        for found in (first, in_parts)
    )
    assert whole == parts
    assert [len(list((found.out / "rows").iterdir())) for found in (first, in_parts)] == [1, 3]


def test_progress_is_told_and_holds_no_patient(database, tmp_path):
    lines: list[str] = []
    build(database, tmp_path, say=lines.append)
    assert any(line.startswith("cohort: done in ") for line in lines)
    assert not [line for line in lines if any(key in line for key in ("1000", "2000", "3000"))]


def test_summary_and_settings_are_written(database, tmp_path):
    settings = AkiSettings(rows=RowSettings(grid="hourly", step_hours=4))
    result = build(database, tmp_path, settings)
    written = json.loads((tmp_path / "settings.json").read_text(encoding="utf-8"))
    assert AkiSettings.from_dict(written) == settings
    assert json.loads((tmp_path / "summary" / "summary.json").read_text(encoding="utf-8")) == result.summary


# Split


def sides(out: Path, query) -> dict[str, set[int]]:
    found = query(f"SELECT split, list(DISTINCT subject_id) FROM '{out}/split/split.parquet' GROUP BY split")
    return {side: set(subjects) for side, subjects in found}


def test_chronological_split_follows_the_year_groups(first, query):
    assert first.summary["split"]["rule"] == "chronological"
    found = query(
        f"SELECT split, list(DISTINCT anchor_year_group ORDER BY anchor_year_group) "
        f"FROM '{first.out}/split/split.parquet' "
        f"JOIN '{first.out}/cohort/cohort.parquet' USING (stay_id) GROUP BY split"
    )
    assert dict(found) == {
        "train": ["2008 - 2010", "2011 - 2013", "2014 - 2016", "2017 - 2019"],
        "validation": ["2017 - 2019"],
        "test": ["2020 - 2022"],
    }
    halves = query(
        f"SELECT split, count(*) FROM '{first.out}/split/split.parquet' "
        f"JOIN '{first.out}/cohort/cohort.parquet' USING (stay_id) "
        "WHERE anchor_year_group = '2017 - 2019' GROUP BY split"
    )
    train, validation = (dict(halves)[side] for side in ("train", "validation"))
    assert abs(train - validation) <= 3


def test_no_patient_is_on_two_sides(database, built, query):
    for rule in ("chronological", "random"):
        out = build(database, built, AkiSettings(split=SplitSettings(rule=rule))).out
        patients = sides(out, query)
        assert set(patients) == SIDES
        assert sum(map(len, patients.values())) == len(set.union(*patients.values()))


def test_older_release_falls_back_on_a_random_split_and_says_so(tmp_path, query):
    database = write_synthetic_database(tmp_path / "old", stays=100, seed=1, release="2.2")
    split = build(database, tmp_path / "out").summary["split"]
    assert split["rule"] == "random"
    assert "2020 - 2022" in split["reason"]
    stays = {side: count["stays"] for side, count in split["sides"].items()}
    assert stays["train"] / sum(stays.values()) == pytest.approx(0.7, abs=0.03)
    with pytest.raises(InvalidInputError, match=r"3\.x only"):
        build(database, tmp_path / "out", AkiSettings(split=SplitSettings(rule="chronological")))
    first = sides(tmp_path / "out", query)
    build(database, tmp_path / "out", AkiSettings(split=SplitSettings(seed=9)))
    assert sides(tmp_path / "out", query) != first


# Preprocessing


def test_preprocessing_is_fitted_on_training_rows_only(first):
    summary = first.summary["preprocessing"]
    written = (first.out / "preprocessing" / "preprocessing.json").read_text(encoding="utf-8")
    fitted = Preprocessing(**json.loads(written))
    import duckdb

    columns = duckdb.sql(
        f"SELECT * FROM '{first.out}/rows/*/rows.parquet' "
        f"JOIN '{first.out}/split/split.parquet' USING (stay_id) WHERE split = 'train'"
    ).fetchnumpy()
    raw = np.column_stack([np.ma.filled(columns[name].astype(float), np.nan) for name in FEATURES])
    filled = np.where(np.isnan(raw), 0.0, raw)  # counts and slopes
    for j, name in enumerate(FEATURES):
        if not name.endswith(("_count", "_slope")):
            filled[:, j] = np.where(np.isnan(raw[:, j]), np.nanmedian(raw[:, j]), raw[:, j])
    np.testing.assert_allclose(fitted.mean, filled.mean(axis=0), rtol=1e-7, atol=1e-9)
    np.testing.assert_allclose(
        fitted.scale, np.where(filled.std(axis=0) > 0, filled.std(axis=0), 1), rtol=1e-6
    )
    assert np.isnan(raw).any()
    standard = fitted.transform(raw)
    exact = (filled - np.array(fitted.mean)) / np.array(fitted.scale)
    np.testing.assert_allclose(standard, np.clip(exact, -10, 10), rtol=1e-5, atol=1e-6)
    assert summary["training_values_cut"] == (np.abs(exact) > 10).sum()
    q95 = np.quantile(columns["censoring_time"], 0.95)
    assert fitted.time_scale == pytest.approx(np.log1p(q95))
    assert fitted.scaled(np.array(q95)) == pytest.approx(1)
