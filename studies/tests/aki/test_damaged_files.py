"""Damaged and misleading files of the database: an error names file and line, and nothing is half written."""

import gzip

import pytest

from censcore.exceptions import InvalidInputError
from censcore_studies.aki import build
from censcore_studies.aki.engine import Engine, Resources
from censcore_studies.aki.extract import _TIMES
from censcore_studies.aki.source import open_source, release

SECRET = "secret-patient"


def text_of(folder, table: str) -> str:
    return gzip.decompress((folder / f"{table}.csv.gz").read_bytes()).decode()


def rewrite(folder, table: str, text: str) -> None:
    (folder / f"{table}.csv.gz").write_bytes(gzip.compress(text.encode("utf-8", "surrogateescape"), mtime=0))


def build_raises(folder, out, match: str) -> None:
    with pytest.raises(InvalidInputError, match=match) as error:
        build(folder, out)
    assert SECRET not in str(error.value)
    assert "\n" not in str(error.value)
    left = {path.relative_to(out).parts[0] for path in out.rglob("*") if path.is_file()}
    assert not list(out.rglob("*.partial"))
    assert left <= {".lock", "source.json", "extract"}


def repeated(text: str) -> str:
    head, _, rest = text.partition("\n")
    lines = [f"{line},{line.split(',')[0]}" for line in rest.splitlines()]
    return "\n".join([f"{head},SUBJECT_ID", *lines]) + "\n"


DAMAGES = {
    "a column name twice": (repeated, r"repeated in line 1: hosp/admissions has subject_id twice"),
    "a foreign name twice": (
        lambda text: "\n".join(f"{line},{SECRET},{SECRET}" for line in text.splitlines()) + "\n",
        r"hosp/admissions has 1 other names twice",
    ),
    "no header": (lambda text: text.partition("\n")[2], r"admissions.csv.gz \(line 1\): expected the names"),
    "a column without a name": (
        lambda text: "\n".join(f"{line}," for line in text.splitlines()) + "\n",
        r"admissions.csv.gz \(line 1\): expected the names",
    ),
    "nothing": (lambda text: "", "hosp/admissions lacks subject_id"),
    "NUL in the header": (lambda text: f"\0{text}", r"admissions.csv.gz \(line 1\): expected the names"),
    "NUL in a line": (lambda text: text + f"\0{SECRET}\0\n", r"hosp/admissions.csv.gz \(line 23\) cannot be"),
    "too few columns": (lambda text: text + f"1,{SECRET}\n", r"hosp/admissions.csv.gz \(line 23\) cannot be"),
    "too many columns": (
        lambda text: text + f"1,2,3,4,5,6,{SECRET}\n", r"hosp/admissions.csv.gz \(line 23\) cannot be",
    ),
    "an open quote": (lambda text: text + f'1,2,3,4,5,"{SECRET}\n', r"hosp/admissions.csv.gz \(line \d+\)"),
    "words for numbers": (
        lambda text: text.partition("\n")[0] + "\n" + f"{SECRET},{SECRET},{SECRET},,,\n" * 9,
        r"admissions.csv.gz: 0 of 9 records for 'admissions' are usable \(subject_id or hadm_id is not a",
    ),
    "another encoding": (
        lambda text: text.replace("subject_id", "subject\udcff_id"),
        "admissions.csv.gz cannot be read: Unicode",
    ),
}  # fmt: skip


@pytest.mark.parametrize("damage", DAMAGES)
def test_a_damaged_table_is_named(ready, tmp_path, damage):
    change, match = DAMAGES[damage]
    folder = ready.write()
    rewrite(folder, "hosp/admissions", change(text_of(folder, "hosp/admissions")))
    build_raises(folder, tmp_path / "out", match)


def test_every_truncation_and_every_changed_byte_is_found(ready, tmp_path):
    """DuckDB does not check the checksum of gzip: a changed byte would be another number."""
    from censcore_studies.aki import SourceSettings

    folder, out = ready.write(), tmp_path / "source.json"
    path = folder / "hosp/labevents.csv.gz"
    whole = path.read_bytes()
    damaged = [whole[:keep] for keep in range(0, len(whole), 7)]
    for place in range(10, len(whole), 11):
        changed = bytearray(whole)
        changed[place] ^= 1 << (place % 8)
        damaged.append(bytes(changed))
    for data in damaged:
        path.write_bytes(data)
        with pytest.raises(InvalidInputError, match=r"labevents|Columns"):
            open_source(folder, SourceSettings(), out)
    path.write_bytes(whole)
    open_source(folder, SourceSettings(), out)


@pytest.mark.parametrize("text", ["", "[]", '{"hosp/patients": 3}', '{"hosp/patients": {"stamp": null}}'])
def test_a_damaged_memory_of_hashes_is_made_again(ready, tmp_path, text):
    from censcore_studies.aki import SourceSettings

    folder, remembered = ready.write(), tmp_path / "source.json"
    found = open_source(folder, SourceSettings(), remembered)
    remembered.write_text(text, encoding="utf-8")
    assert open_source(folder, SourceSettings(), remembered) == found


@pytest.mark.parametrize("name", ["it's [12]*?x", 'qu"ote; -- $release {x}\u202e'])
def test_folders_may_have_any_name(ready, tmp_path, name):
    """A pattern in the name of a folder stands for itself, also where other folders match it."""
    ready.folder = tmp_path / name / "db"
    ready.write()
    for other in ("it's 1x", "it's 2aax", "it's 1bx"):
        ready.folder = tmp_path / other / "db"
        ready.stay(int(1000 + len(other)), hours=48)
        ready.write()
    found = build(tmp_path / name / "db", tmp_path / name / "out").summary
    assert found["records"]["icustays"]["records"] == 21
    assert sum(side["rows"] for side in found["rows"].values()) > 0


@pytest.mark.parametrize("year", ["0000", "9999"])
def test_years_that_stand_for_no_date_are_left_out_and_counted(ready, tmp_path, year):
    when, later = f"{year}-01-01 00:00:00", f"{year}-01-03 00:00:00"
    ready.stay(50)
    ready.tables["icu/icustays"][-1] |= {"intime": when, "outtime": later}
    ready.stay(51)
    ready.tables["hosp/admissions"][-1]["deathtime"] = when
    ready.creatinine(2, 1.0, charttime=when)
    ready.creatinine(3, 1.0, storetime=when)
    ready.urine(2, 100, storetime=when)
    summary = build(ready.write(), tmp_path / "out").summary
    records = summary["records"]
    assert records["icustays"]["left_out"] == {"intime or outtime is not a time": 1}
    assert records["admissions"]["left_out"] == {"deathtime is not a time": 1}
    assert records["creatinine"]["left_out"] == {"charttime is not a time": 1, "storetime is not a time": 1}
    assert records["urine"]["left_out"] == {"storetime is not a time": 1}
    assert summary["cohort"]["studied_stays"] == 21


def test_times_lie_between_1900_and_2500(tmp_path):
    with Engine(Resources(threads=1), tmp_path / "spill", print) as engine:
        engine.run(_TIMES)
        none = [
            "0001-01-01",
            "1899-12-31 23:59:59",
            "2501-01-01",
            "infinity",
            "-infinity",
            "44 BC",
            "",
            "soon",
        ]
        for text in none:
            assert engine.value("SELECT as_time($text)", {"text": text}) is None
        for text in ("1900-01-01 00:00:00", "2150-01-10 12:00:00", "2500-12-31 23:59:59"):
            assert str(engine.value("SELECT as_time($text)", {"text": text})) == text


def test_keys_that_are_no_numbers_are_left_out_and_counted(ready, tmp_path):
    ready.tables["hosp/admissions"].append(ready.tables["hosp/admissions"][0] | {"subject_id": SECRET})
    ready.tables["icu/icustays"].append(ready.tables["icu/icustays"][0] | {"stay_id": "1-2"})
    ready.tables["hosp/patients"].append(ready.tables["hosp/patients"][0] | {"subject_id": ""})
    records = build(ready.write(), tmp_path / "out").summary["records"]
    assert records["admissions"]["left_out"] == {"subject_id or hadm_id is not a number": 1}
    assert records["icustays"]["left_out"] == {"subject_id, hadm_id or stay_id is not a number": 1}
    assert records["patients"]["left_out"] == {"subject_id is not a number": 1}


def test_ages_that_nobody_reaches_are_left_out_and_counted(ready, tmp_path):
    ready.stay(50)
    ready.tables["hosp/patients"][-1]["anchor_year"] = 0
    ready.stay(51)
    ready.tables["hosp/patients"][-1]["anchor_year"] = 1999
    summary = build(ready.write(), tmp_path / "out").summary
    assert summary["records"]["patients"]["left_out"] == {"anchor year outside 1900 to 2500": 1}
    assert summary["cohort"]["left_out"]["older than 130 years"] == 1


def test_values_that_are_no_year_groups_are_not_shown():
    with pytest.raises(InvalidInputError, match="1 values that are no such groups") as error:
        release([SECRET])
    assert SECRET not in str(error.value)


def test_too_little_memory_is_one_sentence(tmp_path):
    small = Resources(memory_limit="1MB", threads=1)
    raises = pytest.raises(InvalidInputError, match="memory_limit: got '1MB'")
    with Engine(small, tmp_path / "spill", print) as engine, raises:
        engine.table("t", "SELECT i, md5(i::VARCHAR) AS h FROM range(3000000) AS r(i) ORDER BY h")
