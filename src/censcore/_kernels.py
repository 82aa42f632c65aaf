"""The one place that chooses what computes a formula: the formula itself, or a kernel that equals it.

Kernels live in modules beside their formulas: ``..._numba`` for NumPy arrays, ``..._triton`` for tensors on a
graphics processor. They agree with the formulas up to rounding. They hold no lock and start no threads:
callers run them on chunks of rows in a thread pool. The choice depends on the size of the work, on where the
arrays are and on what is installed; nothing is measured.
"""

from __future__ import annotations

from importlib import import_module
from typing import Any

from censcore._arrays import Array, is_torch, requires_grad

__all__ = ["WORTH_COMPILING", "on_cpu", "on_gpu"]

WORTH_COMPILING = 500_000  # below this many numbers the formulas are faster than loading a compiler


def on_cpu(module: str, name: str, like: Array, numbers: float) -> Any:
    """The compiled kernel ``name`` of a module for work on ``numbers`` numbers; None for the formula.

    Tensors have none, nor has little work, nor an installation without numba.
    """
    if is_torch(like) or numbers < WORTH_COMPILING:
        return None
    return _loaded(module, name)


def on_gpu(module: str, name: str, *arrays: Array) -> Any:
    """The kernel of tensors on a graphics processor; None elsewhere, and where a gradient is recorded."""
    if not is_torch(arrays[0]) or not arrays[0].is_cuda or any(requires_grad(array) for array in arrays):
        return None
    return _loaded(module, name)


def _loaded(module: str, name: str) -> Any:
    try:
        return getattr(import_module(module), name)
    except ImportError:
        return None
