"""Every library that is installed gives what the committed table says of it, version by version."""

from __future__ import annotations

import warnings
from pathlib import Path

import pytest
from conformance.page import QUANTITIES, Row, collect, read_rows, tables, write

from conformance import LIBRARIES, STATUSES, cases, conventions, installed, library, run

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "results" / "conformance"
COMMITTED = read_rows(FOLDER / "results.csv")
VERSIONS = {row.library: row.version for row in COMMITTED}
PEERS = [name for name in LIBRARIES if name != "censcore"]


@pytest.fixture
def quiet():
    """What libraries warn of when they are imported is theirs."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("name", LIBRARIES)
def test_results_are_those_of_the_table(name, quiet):
    version = installed().get(name)
    if version is None or version != VERSIONS[name]:
        pytest.skip(f"the table is of {name} {VERSIONS[name]}, installed is {version}")
    found = {result.case.id: result.status for result in run(library(name))}
    committed = {row.case: row.status for row in COMMITTED if row.library == name}
    assert found == committed, "run make conformance"


@pytest.mark.parametrize("name", PEERS)
def test_every_library_is_right_somewhere(name):
    statuses = [row.status for row in COMMITTED if row.library == name]
    assert statuses.count("right") >= 10
    assert set(statuses) <= set(STATUSES)


def test_the_table_is_made_of_the_results():
    assert (FOLDER / "tables.md").read_text(encoding="utf-8") == tables(COMMITTED), "run make conformance"
    assert {row.case for row in COMMITTED} == {case.id for case in cases()}
    assert set(QUANTITIES) == {case.quantity for case in cases()}


def test_every_convention_of_the_table_is_explained():
    text = (FOLDER / "tables.md").read_text(encoding="utf-8")
    for row in COMMITTED:
        if row.status == "convention":
            for name in row.detail.split("; "):
                assert f"| {name} | {conventions()[name]} |" in text


def test_lines_of_absent_libraries_stay(tmp_path, monkeypatch):
    monkeypatch.setattr("conformance.page.installed", lambda: {"censcore": "9"})
    first, gone = cases()[0].id, "a-case-that-was-removed"
    old = [Row("pycox", "0.3.0", first, "right", ""), Row("pycox", "0.3.0", gone, "right", "")]
    (tmp_path / "results.csv").write_text(
        "library,version,case,status,detail\n" + "".join(f"pycox,0.3.0,{row.case},right,\n" for row in old),
        encoding="utf-8",
    )
    rows = write(tmp_path)
    assert [row for row in rows if row.library == "pycox"] == old[:1]
    assert sum(row.library == "censcore" for row in rows) == len(cases()) == len(collect())
    assert read_rows(tmp_path / "results.csv") == rows
    assert read_rows(tmp_path / "none.csv") == []
