"""Kernels compiled by numba, where it is installed and the work is worth it."""

from __future__ import annotations

from importlib import import_module
from typing import Any

from censcore._arrays import Array, is_torch

__all__ = ["WORTH_COMPILING", "compiled"]

WORTH_COMPILING = 500_000  # below this many numbers the formulas are faster than loading a compiler


def compiled(module: str, name: str, like: Array) -> Any:
    """The kernel ``name`` of a module beside this one; None for tensors or where numba is not installed."""
    if is_torch(like):
        return None
    try:
        return getattr(import_module(f"censcore.scores.{module}"), name)
    except ImportError:
        return None
