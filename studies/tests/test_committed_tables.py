"""The committed tables are what the code makes of the committed cells."""

from __future__ import annotations

import io
from pathlib import Path

import pandas as pd
import pytest

from censcore_studies.multivariate.extensions import EXTENSIONS, summarise_extension
from censcore_studies.multivariate.finished import read_cells, with_defaults
from censcore_studies.multivariate.methods import METHODS
from censcore_studies.multivariate.paired import paired_differences
from censcore_studies.multivariate.tables import summarise

RESULTS = Path(__file__).resolve().parents[2] / "docs" / "results" / "multivariate"


@pytest.fixture(scope="module")
def cells():
    return read_cells(RESULTS)


def assert_committed(table: pd.DataFrame, name: str) -> None:
    """Equal up to what differences lose of the seven digits that cells.csv holds."""
    again = pd.read_csv(io.StringIO(table.to_csv(index=False)))
    pd.testing.assert_frame_equal(again, pd.read_csv(RESULTS / f"{name}.csv"), rtol=1e-4, check_dtype=False)


def test_tables_of_scores_and_differences(cells):
    usual = with_defaults(cells[cells["method"].isin(METHODS)])
    blocks = list(summarise(usual).groupby(["scenario", "k"], sort=False))
    assert len(blocks) == 5
    for (scenario, k), block in blocks:
        assert_committed(block, f"{scenario}_k{k}")
    assert_committed(paired_differences(usual), "paired")


@pytest.mark.parametrize("name", EXTENSIONS)
def test_tables_of_extensions(cells, name):
    assert_committed(summarise_extension(cells, EXTENSIONS[name]), f"extension_{name}")
