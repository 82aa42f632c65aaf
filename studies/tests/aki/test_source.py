"""What raises, what is left out and counted, and that no patient's data is in a message."""

import gzip

import pytest

from censcore.exceptions import InvalidInputError
from censcore_studies.aki import AkiSettings, SourceSettings, build


def build_raises(folder, tmp_path, match: str, settings: AkiSettings | None = None) -> str:
    with pytest.raises(InvalidInputError, match=match) as error:
        build(folder, tmp_path / "out", settings)
    return str(error.value)


def test_missing_folder(tmp_path):
    build_raises(tmp_path / "nowhere", tmp_path, "not a folder.*hosp/ and icu/")


def test_every_missing_table_is_named(ready, tmp_path):
    folder = ready.write()
    (folder / "hosp/labevents.csv.gz").unlink()
    (folder / "icu/outputevents.csv.gz").unlink()
    build_raises(folder, tmp_path, "lacks hosp/labevents, icu/outputevents")


def test_every_missing_column_is_named(ready, tmp_path):
    ready.columns["hosp/patients"] = ("subject_id", "gender", "anchor_age", "dod")
    for row in ready.tables["hosp/patients"]:
        del row["anchor_year"], row["anchor_year_group"]
    build_raises(ready.write(), tmp_path, "hosp/patients lacks anchor_year, anchor_year_group")


def test_inputevents_is_needed_only_for_its_weights(ready, tmp_path):
    folder = ready.write()
    settings = AkiSettings(source=SourceSettings(weight_sources=("inputevents",)))
    build_raises(folder, tmp_path, "lacks icu/inputevents", settings)
    columns = "stay_id,starttime,patientweight\n"
    text = columns + "".join(f"{stay},2150-01-10 13:00:00,80\n" * 3 for stay in [1, *range(901, 921)])
    (folder / "icu/inputevents.csv").write_text(text, encoding="utf-8")
    assert build(folder, tmp_path / "out", settings).summary["cohort"]["studied_stays"] == 21


def test_plain_csv_is_read_like_gzip_and_both_at_once_raise(ready, tmp_path):
    plain = build(ready.write(".csv"), tmp_path / "a").summary
    ready.folder = tmp_path / "zipped"
    assert build(ready.write(), tmp_path / "b").summary == plain
    ready.write(".csv")
    build_raises(ready.folder, tmp_path, "both as .csv and .csv.gz")


def test_older_layout_is_recognized(ready, tmp_path):
    folder = ready.write()
    (folder / "core").mkdir()
    (folder / "hosp/patients.csv.gz").rename(folder / "core/patients.csv.gz")
    build_raises(folder, tmp_path, "MIMIC-IV 1.0")


def test_unknown_year_group_is_another_database(ready, tmp_path):
    ready.tables["hosp/patients"][0]["anchor_year_group"] = "1999 - 2001"
    build_raises(ready.write(), tmp_path, r"1999 - 2001.*another database or release")


@pytest.mark.parametrize(
    ("table", "change", "key"),
    [
        ("hosp/patients", {"anchor_age": 33}, "subject_id"),
        ("hosp/admissions", {"dischtime": "2150-02-02 00:00:00"}, "hadm_id"),
        ("icu/icustays", {"outtime": "2150-02-02 00:00:00"}, "stay_id"),
        ("hosp/labevents", {"valuenum": 3.3}, "labevent_id"),
        ("icu/outputevents", {"value": 321}, "stay_id, charttime, itemid"),
    ],
)
def test_repeated_keys_with_other_content_raise(ready, tmp_path, table, change, key):
    ready.tables[table].append({**ready.tables[table][0], **change})
    build_raises(ready.write(), tmp_path, rf"{table}.csv.gz: 1 records repeat the key \({key}\)")


def test_damaged_files_are_named_without_their_content(ready, tmp_path):
    folder = ready.write()
    path = folder / "hosp/labevents.csv.gz"
    text = gzip.decompress(path.read_bytes()).decode()
    path.write_bytes(gzip.compress((text + "77,secret-patient,x\n").encode()))
    message = build_raises(folder, tmp_path, "hosp/labevents.csv.gz.*cannot be read")
    assert "secret" not in message
    path.write_bytes(gzip.compress(text.encode())[:-40])
    build_raises(folder, tmp_path, "hosp/labevents.csv.gz.*cannot be read")
    path.write_bytes(b"not a gzip file")
    build_raises(folder, tmp_path, "labevents.csv.gz cannot be read")


def test_wrong_item_numbers_find_nothing(ready, tmp_path):
    settings = AkiSettings(source=SourceSettings(creatinine_items=(1,)))
    build_raises(ready.write(), tmp_path, "0 of 0 records for 'creatinine'.*item numbers", settings)


def test_mostly_unusable_files_raise(ready, tmp_path):
    for row in ready.tables["hosp/labevents"]:
        row["valueuom"] = "umol/L"
    build_raises(ready.write(), tmp_path, r"unit other than mg/dL: 21")


def test_impossible_records_are_left_out_and_counted(ready, tmp_path):
    ready.hourly_urine(100, 2, 20)
    for value, unit in [("", "mg/dL"), ("abc", "mg/dL"), (0, "mg/dL"), (151, "mg/dL"), (80, "umol/L")]:
        ready.creatinine(3, value, valueuom=unit)
    ready.creatinine(3, 1.0, charttime="some day")
    for item, value in [(226560, -5), (226561, 10_001), (226563, ""), (226564, "nan")]:
        ready.urine(3, value, item=item)
    ready.urine(3, 10, item=226567, valueuom="oz")
    for kilograms in (5, 400, "", "heavy"):
        ready.weight(3, kilograms)
    summary = build(ready.write(), tmp_path / "out").summary["records"]
    assert summary["creatinine"]["left_out"] == {
        "charttime is not a time": 1, "creatinine above the highest possible": 1, "creatinine not above 0": 1,
        "no numeric value": 1, "unit other than mg/dL": 1, "value is not a number": 1,
    }  # fmt: skip
    assert summary["urine"]["left_out"] == {
        "negative urine": 1, "no volume": 1, "unit other than mL": 1, "volume above the highest possible": 1,
        "volume is not a number": 1,
    }  # fmt: skip
    assert summary["weights"]["left_out"] == {
        "no weight": 1, "weight above the highest possible": 1, "weight below the lowest possible": 1,
        "weight is not a number": 1,
    }  # fmt: skip


def test_stays_left_out_are_counted_by_reason(ready, tmp_path):
    ready.stay(2, hours=30, subject_id=1, start=40)  # overlaps stay 1
    ready.patient(3, age=17)
    ready.stay(3)
    ready.stay(4, weight=None)
    ready.stay(5, death=-1)
    ready.add(
        "icu/icustays",
        subject_id=6,
        hadm_id=6,
        stay_id=6,
        intime="2150-01-10 12:00:00",
        outtime="2150-01-11 12:00:00",
    )
    ready.add(
        "icu/icustays",
        subject_id=1,
        hadm_id=77,
        stay_id=7,
        intime="2151-01-10 12:00:00",
        outtime="2151-01-11 12:00:00",
    )
    ready.add(
        "icu/icustays",
        subject_id=1,
        hadm_id=1,
        stay_id=8,
        intime="2151-01-10 12:00:00",
        outtime="2151-01-10 12:00:00",
    )
    ready.add("icu/icustays", subject_id=1, hadm_id=1, stay_id=9, intime="", outtime="2151-01-10 12:00:00")
    summary = build(ready.write(), tmp_path / "out").summary
    assert summary["cohort"]["left_out"] == {
        "death before ICU admission": 1, "hospital admission unknown or unusable": 1, "no usable weight": 1,
        "overlaps an earlier stay of the patient": 1, "patient unknown or unusable": 1,
        "younger than the minimum age": 1,
    }  # fmt: skip
    assert summary["records"]["icustays"]["left_out"] == {
        "intime or outtime is not a time": 1, "outtime is not after intime": 1,
    }  # fmt: skip
    assert summary["cohort"]["studied_stays"] == 21


@pytest.mark.parametrize(
    "change",
    [
        {"weight_sources": ()}, {"weight_sources": ("stones",)}, {"highest_creatinine": 0.0},
        {"lowest_weight": 90.0, "highest_weight": 80.0},
    ],
)  # fmt: skip
def test_settings_that_make_no_sense_raise(change):
    with pytest.raises(InvalidInputError, match="must be"):
        SourceSettings(**change)


def test_unknown_settings_raise():
    with pytest.raises(InvalidInputError, match="Unknown field of SourceSettings: \\['creatinin_items'\\]"):
        AkiSettings.from_dict({"source": {"creatinin_items": [1]}})
    with pytest.raises(InvalidInputError, match="Unknown settings section"):
        AkiSettings.from_dict({"sources": {}})
