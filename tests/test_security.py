"""What SECURITY.md promises of the source: no pickle, no network, no code from text, no other programs."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.sources import nodes_of, text_of

ROOT = Path(__file__).resolve().parents[1]
SOURCES = [*(ROOT / "src").rglob("*.py"), *(ROOT / "studies" / "src").rglob("*.py")]

PICKLE = {"pickle", "marshal", "shelve", "dill", "cloudpickle"}
NETWORK = {"aiohttp", "ftplib", "http", "httpx", "requests", "smtplib", "socket", "ssl", "urllib", "urllib3"}
PROGRAMS = {"subprocess", "pty"}
CALLS = {"eval", "exec", "compile", "__import__"}
METHODS = {("torch", "load"), ("joblib", "load"), ("os", "system"), ("os", "popen"), ("yaml", "load")}


def imported(path: Path) -> set[str]:
    found = set()
    for node in nodes_of(text_of(path)):
        if isinstance(node, ast.Import):
            found |= {alias.name.split(".")[0] for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            found.add((node.module or "").split(".")[0])
    return found


def called(path: Path) -> Iterator[ast.Call]:
    return (node for node in nodes_of(text_of(path)) if isinstance(node, ast.Call))


def name_of(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


@pytest.mark.parametrize("banned", [PICKLE, NETWORK, PROGRAMS], ids=["pickle", "network", "programs"])
def test_modules_that_are_never_imported(banned):
    # the contracts in censcore.testing pickle objects to see that they survive it
    # and a Dask scheduler is asked whether it listens at the address that the caller gives
    checked = [path for path in SOURCES if not (banned is PICKLE and "testing" in path.parts)]
    checked = [path for path in checked if not (banned is NETWORK and path.name == "runners.py")]
    assert len(checked) > 200
    found = {name_of(path): sorted(banned & imported(path)) for path in checked}
    assert {name: modules for name, modules in found.items() if modules} == {}


def test_nothing_is_run_from_text():
    found = []
    for path in SOURCES:
        for call in called(path):
            f = call.func
            if isinstance(f, ast.Name) and f.id in CALLS:
                found.append(f"{name_of(path)}: {f.id}")
            if (
                isinstance(f, ast.Attribute)
                and isinstance(f.value, ast.Name)
                and (f.value.id, f.attr) in METHODS
            ):
                found.append(f"{name_of(path)}: {f.value.id}.{f.attr}")
    assert found == []


def test_arrays_are_read_without_pickle():
    calls = [
        (name_of(path), call)
        for path in SOURCES
        for call in called(path)
        if isinstance(call.func, ast.Attribute)
        and call.func.attr == "load"
        and isinstance(call.func.value, ast.Name)
        and call.func.value.id == "np"
    ]
    assert calls
    for name, call in calls:
        given = {word.arg: word.value for word in call.keywords}
        allowed = given.get("allow_pickle")
        assert allowed is None or (isinstance(allowed, ast.Constant) and allowed.value is False), name


def test_the_promises_name_tests_that_exist():
    text = (ROOT / "SECURITY.md").read_text("utf-8")
    named = [part for part in text.split("`") if part.startswith(("tests/", "studies/tests/"))]
    assert len(named) >= 4
    if not (ROOT / "studies").exists():  # an archive of the library alone
        named = [name for name in named if not name.startswith("studies/")]
    assert [name for name in named if not (ROOT / name).exists()] == []
