"""The synthetic database, and that the pipeline finds exactly the endpoints that it hides."""

import csv
import gzip
import json
import shutil

import pytest

from censcore.exceptions import InvalidInputError
from censcore_studies.aki import (
    AkiSettings,
    EndpointSettings,
    RowSettings,
    build,
    write_synthetic_database,
)


@pytest.fixture(scope="module")
def built(tmp_path_factory):
    database = write_synthetic_database(tmp_path_factory.mktemp("database"), stays=600, seed=11)
    return database, build(
        database, tmp_path_factory.mktemp("out"), AkiSettings(rows=RowSettings(stays_per_part=256))
    )


def truth(database) -> list[dict[str, str]]:
    with (database / "truth.csv").open(encoding="utf-8") as file:
        return list(csv.DictReader(file))


def test_onsets_found_are_the_true_ones(built, query):
    database, result = built
    studied = {stay for (stay,) in query(f"SELECT stay_id FROM '{result.out}/cohort/cohort.parquet'")}
    episodes = query(
        "SELECT endpoint, stay_id, min(onset_s) / 3600 "
        f"FROM '{result.out}/endpoints/episodes.parquet' GROUP BY ALL"
    )
    for endpoint in ("creatinine", "urine"):
        found = {stay: hours for name, stay, hours in episodes if name == endpoint}
        expected = {
            int(row["stay_id"]): float(row[f"{endpoint}_onset_hours"])
            for row in truth(database)
            if row[f"{endpoint}_seen"] == "1" and int(row["stay_id"]) in studied
        }
        assert len(expected) > 50
        assert found == pytest.approx(expected, abs=1e-6)
        hidden = [r for r in truth(database) if r[f"{endpoint}_seen"] == "0"]
        assert len(hidden) > 100  # censoring matters
        assert all(float(r[f"{endpoint}_onset_hours"]) > float(r["exit_hours"]) for r in hidden)


def test_exits_and_exclusions_are_the_true_ones(built, query):
    database, result = built
    found = dict(query(f"SELECT stay_id, exit_s / 3600 FROM '{result.out}/cohort/cohort.parquet'"))
    assert found == pytest.approx(
        {int(r["stay_id"]): float(r["exit_hours"]) for r in truth(database) if r["has_weight"] == "1"},
        abs=1e-6,
    )
    without = sum(r["has_weight"] == "0" for r in truth(database))
    assert result.summary["cohort"]["left_out"] == {"no usable weight": without}


def test_every_flaw_put_in_is_counted(built):
    database, result = built
    counted = {
        f"{table}: {reason}": count
        for table, summary in result.summary["records"].items()
        for reason, count in summary["left_out"].items()
    }
    assert counted == json.loads((database / "truth.json").read_text(encoding="utf-8"))["flaws"]
    assert len(counted) == 6


def wrong_by(query, database, out, endpoint: str, condition: str = "true") -> tuple[int, float]:
    """Rows, and the largest error of their remaining time against the first true onset, cut at the exit."""
    onset = f"greatest({endpoint}_onset_hours - elapsed_hours, 0)"
    expected = f"least({onset}, exit_hours - elapsed_hours)"
    return query(
        f"SELECT count(*), max(abs({expected} - {endpoint}_time)) FROM '{out}/rows/*/rows.parquet' "
        f"JOIN read_csv('{database}/truth.csv') USING (stay_id) WHERE {condition}"
    )[0]


@pytest.mark.parametrize("endpoint", ["creatinine", "urine"])
def test_rows_before_the_event_carry_the_true_remaining_times(built, query, endpoint):
    database, result = built
    count, error = wrong_by(query, database, result.out, endpoint, f"elapsed_hours <= {endpoint}_onset_hours")
    assert count > 15_000
    assert error < 1e-4  # elapsed_hours is kept in single precision


def test_the_first_event_is_present_ever_after_where_asked_for(built, query, tmp_path):
    database, result = built
    shutil.copytree(result.out, tmp_path / "out")
    first = AkiSettings(endpoints=EndpointSettings(onset="first"), rows=RowSettings(stays_per_part=256))
    again = build(database, tmp_path / "out", first)
    assert "extract/urine" in again.skipped
    for endpoint in ("creatinine", "urine"):
        count, error = wrong_by(query, database, again.out, endpoint)
        assert count > 20_000
        assert error < 1e-4


def test_same_seed_same_bytes_and_a_larger_database_begins_with_the_smaller(tmp_path):
    small = write_synthetic_database(tmp_path / "a", stays=40, seed=3)
    again = write_synthetic_database(tmp_path / "b", stays=40, seed=3)
    large = write_synthetic_database(tmp_path / "c", stays=300, seed=3)
    other = write_synthetic_database(tmp_path / "d", stays=40, seed=4)
    name = "hosp/labevents.csv.gz"
    assert (small / name).read_bytes() == (again / name).read_bytes() != (other / name).read_bytes()
    lines = [gzip.decompress((database / name).read_bytes()).splitlines() for database in (small, large)]
    assert lines[1][: len(lines[0])] == lines[0]


def test_filler_and_flaws_do_not_change_the_patients(tmp_path):
    plain = write_synthetic_database(tmp_path / "a", stays=30, flawed=False)
    full = write_synthetic_database(tmp_path / "b", stays=30, filler_per_hour=4)
    onsets = [
        [(r["creatinine_onset_hours"], r["urine_onset_hours"]) for r in truth(w)] for w in (plain, full)
    ]
    assert onsets[0] == onsets[1]
    sizes = [
        len(gzip.decompress((w / "icu/chartevents.csv.gz").read_bytes()).splitlines()) for w in (plain, full)
    ]
    assert sizes[1] > 20 * sizes[0]


def test_a_database_that_could_not_be_finished_is_not_there(tmp_path, monkeypatch):
    import censcore_studies.aki.synthetic as module

    drawn = module.draw_patient
    patients = iter(range(200))

    def fail(*given):
        if next(patients) == 150:
            raise ZeroDivisionError
        return drawn(*given)

    write = write_synthetic_database
    whole = {path: path.read_bytes() for path in write(tmp_path, 20, seed=1).rglob("*.*")}
    monkeypatch.setattr(module, "draw_patient", fail)
    for folder in (tmp_path, tmp_path / "new"):
        with pytest.raises(ZeroDivisionError):
            write(folder, 10_000, seed=2)
        patients = iter(range(200))
    assert {path: path.read_bytes() for path in tmp_path.rglob("*.*")} == whole


def test_nonsense_raises(tmp_path):
    with pytest.raises(InvalidInputError, match="got stays=0"):
        write_synthetic_database(tmp_path, stays=0)
