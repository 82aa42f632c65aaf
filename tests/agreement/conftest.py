from __future__ import annotations

from pathlib import Path

import pandas as pd
import pytest


@pytest.fixture(scope="session")
def lines(r_data: Path) -> pd.DataFrame:
    """What R's packages returned, one line per number; empty words where there is no option or model."""
    found = pd.read_csv(r_data / "results.csv")
    words = ["source", "option", "model", "versus"]
    return found.assign(**{name: found[name].fillna("") for name in words})
