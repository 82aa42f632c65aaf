"""A database of a few hand-made stays, written in the layout of MIMIC-IV."""

from __future__ import annotations

import csv
import gzip
import io
from datetime import datetime, timedelta
from pathlib import Path

import pytest

pytest.importorskip("duckdb", reason="the ICU study needs DuckDB")

ADMISSION = datetime(2150, 1, 10, 12, 0, 0)
URINE, IRRIGANT_IN, IRRIGANT_OUT = 226559, 227488, 227489

COLUMNS = {
    "hosp/patients": ("subject_id", "gender", "anchor_age", "anchor_year", "anchor_year_group", "dod"),
    "hosp/admissions": ("subject_id", "hadm_id", "admittime", "dischtime", "deathtime", "race"),
    "hosp/diagnoses_icd": ("subject_id", "hadm_id", "seq_num", "icd_code", "icd_version"),
    "hosp/labevents": (
        "labevent_id", "subject_id", "hadm_id", "itemid", "charttime", "storetime", "value", "valuenum",
        "valueuom", "comments",
    ),
    "icu/icustays": ("subject_id", "hadm_id", "stay_id", "first_careunit", "intime", "outtime", "los"),
    "icu/outputevents": ("subject_id", "stay_id", "charttime", "storetime", "itemid", "value", "valueuom"),
    "icu/chartevents": ("subject_id", "stay_id", "charttime", "storetime", "itemid", "value", "valuenum"),
}  # fmt: skip


class TinyDatabase:
    """Rows are dictionaries that a test may change before :meth:`write`; times are hours since admission."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.columns = dict(COLUMNS)
        self.tables: dict[str, list[dict]] = {name: [] for name in COLUMNS}

    @staticmethod
    def at(hours: float) -> str:
        """The time ``hours`` after the admission that all tests share."""
        return (ADMISSION + timedelta(hours=hours)).strftime("%Y-%m-%d %H:%M:%S")

    def add(self, table: str, **values) -> dict:
        self.tables[table].append(values)
        return values

    def patient(self, subject_id: int, group: str = "2014 - 2016", gender: str = "F", age: int = 60) -> None:
        self.add(
            "hosp/patients", subject_id=subject_id, gender=gender, anchor_age=age, anchor_year=2150,
            anchor_year_group=group,
        )  # fmt: skip

    def stay(
        self, stay_id: int = 1, hours: float = 72, start: float = 0, subject_id: int | None = None,
        weight: float | None = 80.0, death: float | None = None, hadm_id: int | None = None,
    ) -> None:  # fmt: skip
        subject, hadm = subject_id or stay_id, hadm_id or stay_id
        if all(row["subject_id"] != subject for row in self.tables["hosp/patients"]):
            self.patient(subject)
        if all(row["hadm_id"] != hadm for row in self.tables["hosp/admissions"]):
            self.add(
                "hosp/admissions", subject_id=subject, hadm_id=hadm, admittime=self.at(start - 24),
                dischtime=self.at(start + hours + 48), deathtime="" if death is None else self.at(death),
            )  # fmt: skip
        self.add(
            "icu/icustays", subject_id=subject, hadm_id=hadm, stay_id=stay_id, intime=self.at(start),
            outtime=self.at(start + hours),
        )  # fmt: skip
        if weight is not None:
            self.weight(start, weight, stay_id)

    def weight(self, hour: float, kilograms: float, stay_id: int = 1, item: int = 226512) -> None:
        self.add(
            "icu/chartevents", stay_id=stay_id, subject_id=stay_id, charttime=self.at(hour), itemid=item,
            value=kilograms, valuenum=kilograms,
        )  # fmt: skip

    def creatinine(self, hour: float, value: float | str, subject_id: int = 1, **other) -> dict:
        return self.add(
            "hosp/labevents",
            **{
                "labevent_id": len(self.tables["hosp/labevents"]) + 1, "subject_id": subject_id,
                "itemid": 50912, "charttime": self.at(hour), "value": value, "valuenum": value,
                "valueuom": "mg/dL", **other,
            },
        )  # fmt: skip

    def urine(self, hour: float, volume: float, stay_id: int = 1, item: int = URINE, **other) -> dict:
        return self.add(
            "icu/outputevents",
            **{
                "stay_id": stay_id, "subject_id": stay_id, "charttime": self.at(hour), "itemid": item,
                "value": volume, "valueuom": "ml", **other,
            },
        )  # fmt: skip

    def hourly_urine(self, volume: float, first: int, last: int, stay_id: int = 1) -> None:
        for hour in range(first, last + 1):
            self.urine(hour, volume, stay_id)

    def bystanders(self) -> None:
        """Healthy patients, so that every side of a split has somebody."""
        for stay_id in range(901, 921):
            self.stay(stay_id, hours=30)
            self.creatinine(1, 1.0, stay_id)
            self.hourly_urine(100, 1, 20, stay_id)

    def write(self, suffix: str = ".csv.gz") -> Path:
        for name, rows in self.tables.items():
            path = self.folder / f"{name}{suffix}"
            path.parent.mkdir(parents=True, exist_ok=True)
            text = io.StringIO()
            writer = csv.DictWriter(text, self.columns[name], restval="", lineterminator="\n")
            writer.writeheader()
            writer.writerows(rows)
            plain = text.getvalue().encode()
            path.write_bytes(gzip.compress(plain, mtime=0) if suffix.endswith("gz") else plain)
        return self.folder


@pytest.fixture
def tiny(tmp_path) -> TinyDatabase:
    database = TinyDatabase(tmp_path / "tiny")
    database.bystanders()
    return database


@pytest.fixture
def ready(tiny) -> TinyDatabase:
    """A database with one stay that has both measurements."""
    tiny.stay()
    tiny.creatinine(1, 1.0)
    tiny.urine(1, 100)
    return tiny


@pytest.fixture
def query():
    """Run SQL on Parquet files."""
    import duckdb

    return lambda statement: duckdb.sql(statement).fetchall()
