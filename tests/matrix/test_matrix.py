"""Cells of the matrix work or are refused, as the committed table says; see ``python -m tests.matrix``."""

from __future__ import annotations

import warnings
from itertools import product
from pathlib import Path

import pandas as pd
import pytest

from tests.matrix.cells import DESIGNS, KINDS, SOURCES, cells_of
from tests.matrix.page import tables

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "results" / "matrix"
COMMITTED = pd.read_csv(FOLDER / "cells.csv", keep_default_na=False)
ALL = list(product(KINDS, DESIGNS, SOURCES))
#: Those that run every time: every kind, every design and every source is among them.
OFTEN = [
    ((kind, entry), design, source)
    for (kind, entry), design, source in ALL
    if (design == "fixed forecasts" and source == ("Kaplan-Meier by site" if entry else "known times"))
    or (kind == "one time" and source == "Kaplan-Meier in the call")
    or ((kind, design) == ("one time", "fixed forecasts") and not entry)
]


def check(kind: str, entry: bool, design: str, source: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cells = cells_of(kind, entry, design, source)
    assert not [cell for cell in cells if cell.state == "fails"]
    here = COMMITTED[
        (COMMITTED.kind == cells[0].kind) & (COMMITTED.design == design) & (COMMITTED.source == source)
    ]
    assert dict(zip(here.measure, here.state, strict=True)) == {cell.measure: cell.state for cell in cells}


@pytest.mark.parametrize(("kind", "design", "source"), OFTEN, ids=lambda part: str(part).replace(" ", "-"))
def test_cells(kind, design, source):
    check(*kind, design, source)


def test_every_kind_design_and_source_runs_often():
    kinds, designs, sources = zip(*OFTEN, strict=True)
    assert (set(kinds), set(designs), set(sources)) == (set(KINDS), set(DESIGNS), set(SOURCES))


@pytest.mark.slow
@pytest.mark.parametrize(
    ("kind", "design", "source"),
    [cell for cell in ALL if cell not in OFTEN],
    ids=lambda part: str(part).replace(" ", "-"),
)
def test_other_cells(kind, design, source):
    check(*kind, design, source)


def test_no_committed_cell_fails_and_every_refusal_says_why():
    assert set(COMMITTED.state) == {"works", "refused"}
    assert (COMMITTED[COMMITTED.state == "refused"].reason != "").all()
    assert len(COMMITTED.drop_duplicates(["kind", "measure", "design", "source"])) == len(COMMITTED)
    assert (FOLDER / "tables.md").read_text(encoding="utf-8") == tables(COMMITTED), (
        "run python -m tests.matrix"
    )
