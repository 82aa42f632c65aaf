"""Where a package is missing that may be, what imports it is skipped, and says what it needs."""

from __future__ import annotations

import sys
from collections.abc import Generator
from doctest import UnexpectedException
from importlib.util import find_spec
from pathlib import Path
from traceback import extract_tb
from typing import Any

import pytest

import censcore
from censcore.exceptions import MissingDependencyError

LIBRARY = Path(censcore.__file__).parent

#: What only extras bring, the studies, and modules of Python that not every system has.
OPTIONAL = (
    "censcore_studies", "catboost", "dask", "distributed", "docx", "fcntl", "hazardous", "lifelines",
    "lightgbm", "matplotlib", "mpmath", "numba", "numpydoc", "numpyro", "polars", "pyarrow", "pycox",
    "resource", "rich", "safetensors", "sksurv", "torch", "torchsurv", "typer", "xgboost",
)  # fmt: skip
MISSING = [name for name in OPTIONAL if find_spec(name) is None]


def _missing(error: BaseException | None) -> str | None:
    """The package that an error is about, if it is missing and may be."""
    while error is not None and not isinstance(error, ModuleNotFoundError):
        error = error.__cause__
    name = "" if error is None else str(error.name)
    return name if name.partition(".")[0] in MISSING else None


def forget_halves(error: BaseException | None) -> None:
    """pytest keeps what was run of a module before an error; those who import it later shall not find it."""
    run = set()
    while error is not None:
        run |= {line.filename for line in extract_tb(error.__traceback__) if line.name == "<module>"}
        error = error.__cause__
    for name, module in list(sys.modules.items()):
        if getattr(module, "__file__", None) in run:
            del sys.modules[name]


@pytest.hookimpl(wrapper=True)
def pytest_make_collect_report(collector: pytest.Collector) -> Generator[None, Any, Any]:
    """Modules that import what is missing and may be are skipped, and say what they need."""
    collect = collector.collect

    def or_skip() -> list[pytest.Item | pytest.Collector]:
        try:
            return list(collect())
        except Exception as error:
            if (name := _missing(error)) is None:
                raise
            forget_halves(error)
            pytest.skip(f"{collector.nodeid} needs {name}", allow_module_level=True)

    collector.collect = or_skip  # type: ignore[method-assign]
    return (yield)


@pytest.hookimpl(wrapper=True)
def pytest_runtest_call() -> Generator[None, Any, Any]:
    """So are tests that import it. A function of the library has to say what is missing, in its own words."""
    try:
        return (yield)
    except (ImportError, UnexpectedException) as found:
        error = found.exc_info[1] if isinstance(found, UnexpectedException) else found
        called = [line for line in extract_tb(error.__traceback__) if line.name != "<module>"]
        foreign = any(Path(line.filename).is_relative_to(LIBRARY) for line in called)
        if (name := _missing(error)) is None or (foreign and not isinstance(error, MissingDependencyError)):
            raise
        pytest.skip(f"needs {name}")
