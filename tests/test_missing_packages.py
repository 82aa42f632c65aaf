"""Tests are skipped for a package that may be missing, and for no other error."""

from __future__ import annotations

import sys
from types import ModuleType

import pytest

from censcore.exceptions import MissingPackageError
from tests import missing_packages
from tests.missing_packages import LIBRARY, forget_halves, pytest_runtest_call


@pytest.fixture(autouse=True)
def nowhere(monkeypatch):
    monkeypatch.setattr(missing_packages, "MISSING", ["nowhere"])


def end_of_test(source: str, file: str) -> None:
    """The end of a test that calls a function ``f`` with this source in this file."""
    names = {"MissingPackageError": MissingPackageError}
    exec(compile(f"def f():\n    {source}", file, "exec"), names)
    call = pytest_runtest_call()
    next(call)
    try:
        names["f"]()
    except ImportError as error:
        call.throw(error)


def test_a_module_that_was_run_by_half_is_forgotten(monkeypatch):
    for name in ("half", "whole"):
        module = ModuleType(name)
        module.__file__ = f"{name}.py"
        monkeypatch.setitem(sys.modules, name, module)
    with pytest.raises(ModuleNotFoundError) as found:
        exec(compile("import nowhere", "half.py", "exec"), {})
    forget_halves(found.value)
    assert ("half" in sys.modules, "whole" in sys.modules) == (False, True)


def test_a_test_that_imports_it_is_skipped():
    with pytest.raises(pytest.skip.Exception, match=r"needs nowhere\.part"):
        end_of_test("raise ModuleNotFoundError(name='nowhere.part')", "test_it.py")


def test_the_library_says_what_is_missing():
    source = "raise MissingPackageError('Install it.') from ModuleNotFoundError(name='nowhere')"
    with pytest.raises(pytest.skip.Exception, match="needs nowhere"):
        end_of_test(source, str(LIBRARY / "scores" / "it.py"))


@pytest.mark.parametrize(
    ("source", "file"),
    [
        ("import nowhere", str(LIBRARY / "scores" / "it.py")),
        ("import somewhere_else", "test_it.py"),
        ("from json import nothing_of_the_kind", "test_it.py"),
    ],
)
def test_every_other_error_of_an_import_is_a_failure(source, file):
    with pytest.raises(ImportError):
        end_of_test(source, file)
