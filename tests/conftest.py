"""Fixtures shared by all tests: seeded randomness and, where present, real data."""

from __future__ import annotations

import os
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent.parent

# The same examples in every run, and no verdict by the clock: machines differ.
settings.register_profile("censcore", derandomize=True, deadline=None)
settings.load_profile("censcore")


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator seeded alike for every test."""
    return np.random.default_rng(20240917)


def _data(name: str) -> Path:
    """The folder ``name`` of the shared data, or a skip that says how to get it."""
    root = Path(os.environ.get("CENSCORE_DATA", ROOT.parent / "shared" / "data"))
    if not (root / name).is_dir():
        pytest.skip(f"no folder {name!r} under {root}; set CENSCORE_DATA to the folder that holds it")
    return root / name


@pytest.fixture(scope="session")
def survival_data() -> Path:
    """Folder of the survival data sets (colon.csv, mgus2.csv, ...)."""
    return _data("survival")


@pytest.fixture(scope="session")
def mimic_demo() -> Path:
    """Folder of the open MIMIC-IV demo (hosp/, icu/)."""
    return _data("mimic-iv-demo")
