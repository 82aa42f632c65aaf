"""What all tests share: seeded randomness, real data where present, and what may be searched for examples."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from hypothesis import settings

ROOT = Path(__file__).resolve().parent

pytest_plugins = ["tests.missing_packages"]

# Kernels for a GPU; their package exists only where one can be.
collect_ignore = [] if find_spec("triton") else ["src/censcore/scores/_energy_pairs_triton.py"]

# The same examples in every run, and no verdict by elapsed time: machines differ.
settings.register_profile("censcore", derandomize=True, deadline=None)
settings.load_profile("censcore")

# Real data may lie beside the checkout; nothing that is installed looks there by itself.
DATA = Path(os.environ.setdefault("CENSCORE_DATA", str(ROOT.parent / "shared" / "data")))


@pytest.fixture
def rng() -> np.random.Generator:
    """A generator seeded alike for every test."""
    return np.random.default_rng(20240917)


def _data(name: str) -> Path:
    """The folder ``name`` of the real data, or a skip that says how to get it."""
    if not (DATA / name).is_dir():
        pytest.skip(f"no folder {name!r} under {DATA}; set CENSCORE_DATA to the folder that holds it")
    return DATA / name


@pytest.fixture(scope="session")
def survival_data() -> Path:
    """Folder of the survival data sets (colon.csv, mgus2.csv, ...)."""
    return _data("survival")


@pytest.fixture(scope="session")
def mimic_demo() -> Path:
    """Folder of the open MIMIC-IV demo (hosp/, icu/)."""
    return _data("mimic-iv-demo")
