"""Cells of the matrix work or are refused, as the committed table says; see ``python -m tests.matrix``."""

from __future__ import annotations

from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

from tests.matrix import coverage
from tests.matrix.cells import COX, KINDS, Cell, cells_of, population_cells
from tests.matrix.designs import DESIGNS, SOURCES
from tests.matrix.page import coverage_table, tables

FOLDER = Path(__file__).resolve().parents[2] / "docs" / "results" / "matrix"
COMMITTED = pd.read_csv(FOLDER / "cells.csv", keep_default_na=False)
ALL = list(product(KINDS, DESIGNS, SOURCES))
LATE = [(kind, True) for kind in ("causes", "several times")]
#: Those that run every time: every kind, every design and every source but Cox regression is among them,
#: and delayed entry of one time.
OFTEN = [
    ((kind, entry), design, source)
    for (kind, entry), design, source in ALL
    if (kind, entry) not in LATE
    if (design == "fixed forecasts" and source == ("Kaplan-Meier by site" if entry else "known times"))
    or (kind == "one time" and source == "Kaplan-Meier in the call")
    or ((kind, design) == ("one time", "fixed forecasts") and not entry and source != COX)
]


def check(cells: list[Cell]) -> None:
    assert not [cell for cell in cells if cell.state == "fails"]
    for cell in cells:
        here = (COMMITTED.kind == cell.kind) & (COMMITTED.measure == cell.measure)
        here &= (COMMITTED.design == cell.design) & (COMMITTED.source == cell.source)
        assert COMMITTED[here].state.item() == cell.state, cell


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("kind", "design", "source"), OFTEN, ids=lambda part: str(part).replace(" ", "-"))
def test_cells(kind, design, source):
    check(population_cells(*kind, design, source, drawn=False))


def test_every_kind_design_and_source_runs_often():
    kinds, designs, sources = zip(*OFTEN, strict=True)
    assert set(kinds) == set(KINDS) - set(LATE)
    assert (set(designs), set(sources)) == (set(DESIGNS), set(SOURCES) - {COX})


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("kind", "design", "source"), ALL, ids=lambda part: str(part).replace(" ", "-"))
def test_all_cells(kind, design, source):
    check(cells_of(*kind, design, source))


def test_no_committed_cell_fails_and_every_refusal_says_why():
    assert set(COMMITTED.state) == {"works", "refused"}
    assert (COMMITTED[COMMITTED.state == "refused"].reason != "").all()
    assert len(COMMITTED.drop_duplicates(["kind", "measure", "design", "source"])) == len(COMMITTED)
    assert (FOLDER / "tables.md").read_text(encoding="utf-8") == tables(COMMITTED), (
        "run python -m tests.matrix"
    )


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("rep", coverage.ALL, ids=lambda rep: "-".join(rep.row.values()).replace(" ", "-"))
def test_coverage_of_a_few_data_sets(rep, monkeypatch):
    """Most intervals hold a rough truth; the committed counts are of 1,000 data sets and of a better one."""
    monkeypatch.setattr(coverage, "TRUTH", (2, 2000))
    truth = {} if "folds" in rep.design else coverage.truth_of(rep)
    counts = [line for seed in range(5) for line in coverage.counted(rep, 200, seed, truth).values()]
    _, intervals, below, above = np.sum(counts, axis=0)
    assert intervals > 0
    assert below + above < 0.3 * intervals


@pytest.mark.skipif(not (FOLDER / "coverage.csv").exists(), reason="run python -m tests.matrix coverage")
def test_committed_coverage():
    counts = pd.read_csv(FOLDER / "coverage.csv", keep_default_na=False)
    assert (FOLDER / "coverage.md").read_text(encoding="utf-8") == coverage_table(counts)
    there = set(zip(counts.kind, counts.design, counts.source, counts.n, strict=True))
    assert there <= {(*rep.row.values(), n) for rep in coverage.ALL for n in coverage.SIZES}
