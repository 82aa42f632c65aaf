"""Studies use the public modules and names of the library alone."""

from __future__ import annotations

import ast
from pathlib import Path

import censcore_studies

SOURCE = Path(censcore_studies.__file__).parent


def imported(path: Path) -> set[str]:
    names = set()
    for node in ast.walk(ast.parse(path.read_text("utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.module:
            names |= {f"{node.module}.{alias.name}" for alias in node.names}
        elif isinstance(node, ast.Import):
            names |= {alias.name for alias in node.names}
    return {name for name in names if name.split(".")[0] == "censcore"}


def test_no_private_name_of_the_library_is_imported():
    used = set().union(*(imported(path) for path in SOURCE.rglob("*.py")))
    assert len(used) > 20
    private = {name for name in used if any(part.startswith("_") for part in name.split("."))}
    assert not private
