"""The source files of the repository, read and parsed once for all rules that they have to keep."""

from __future__ import annotations

import ast
from functools import cache
from pathlib import Path


@cache
def text_of(path: Path) -> str:
    return path.read_text(encoding="utf-8")


@cache
def nodes_of(source: str) -> list[ast.AST]:
    """The imports, calls, classes and attributes in a source, in the order of ``ast.walk``."""
    wanted = (ast.Import, ast.ImportFrom, ast.Call, ast.ClassDef, ast.Attribute)
    return [node for node in ast.walk(ast.parse(source)) if isinstance(node, wanted)]
