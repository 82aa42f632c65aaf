"""The one place that chooses what computes a formula: the formula itself, or a kernel that equals it.

Kernels live in modules beside their formulas: ``..._numba`` for NumPy arrays, ``..._triton`` for tensors on a
graphics processor. They agree with the formulas up to rounding. They hold no lock and start no threads:
callers run them on chunks of rows in a thread pool. The choice depends on the size of the work, on where the
arrays are and on what is installed; nothing is measured. Loading a compiler takes as long as the formulas do
for millions of numbers: a process loads it once that much work was asked for, and small scripts never do.

So the same call may use the formula early in a process and the kernel later. The two differ by rounding only
(tests demand 1e-11 of the loss in double precision). Where even that is too much,
the environment variable ``CENSCORE_KERNELS`` fixes the route for a process: ``always`` loads kernels at the
first call that is worth it, ``never`` uses formulas throughout.
"""

from __future__ import annotations

import os
import sys
from importlib import import_module
from typing import Any

from censcore._arrays import Array, is_torch, requires_grad
from censcore.exceptions import InvalidInputError

WORTH_COMPILING = 500_000  # below this many numbers the formulas are as fast
CALLS_UNTIL_LOADED = 100  # so many times as much work has to be asked for before a kernel is loaded

_asked: dict[str, float] = {}  # numbers that each module would have worked on so far


def on_cpu(module: str, name: str, like: Array, numbers: float) -> Any:
    """The compiled kernel ``name`` of a module for work on ``numbers`` numbers; None for the formula.

    There is none for tensors, for little work, or without numba.
    """
    if numbers < WORTH_COMPILING or is_torch(like) or not _pays(module, numbers):
        return None
    return _loaded(module, name)


def _pays(module: str, numbers: float) -> bool:
    """Whether a module of kernels is loaded, or has been asked for enough work to be."""
    asked = os.environ.get("CENSCORE_KERNELS", "auto")
    if asked not in ("auto", "always", "never"):
        raise InvalidInputError(
            f"The environment variable CENSCORE_KERNELS: got {asked!r}, expected 'auto', 'always' or 'never'."
        )
    if asked != "auto":
        return asked == "always"
    if module in sys.modules:
        return True
    _asked[module] = _asked.get(module, 0.0) + numbers
    return _asked[module] >= CALLS_UNTIL_LOADED * WORTH_COMPILING


def on_gpu(module: str, name: str, *arrays: Array) -> Any:
    """The kernel of tensors on a graphics processor; None elsewhere, and where a gradient is recorded."""
    if not is_torch(arrays[0]) or not arrays[0].is_cuda or any(requires_grad(array) for array in arrays):
        return None
    return _loaded(module, name)


def compiled(**options: Any) -> Any:
    """A decorator that compiles a function by numba, with these options beside those that all kernels have.

    The machine code is kept on disk, so that a process compiles once what many run. Where no folder can be
    written, as in a container with packages that may only be read and without a home, each process compiles.
    """
    import numba

    def decorate(function: Any) -> Any:
        try:
            return numba.njit(nogil=True, error_model="numpy", cache=True, **options)(function)
        except RuntimeError:  # no folder for the cache
            return numba.njit(nogil=True, error_model="numpy", **options)(function)

    return decorate


def _loaded(module: str, name: str) -> Any:
    try:
        return getattr(import_module(module), name)
    except ImportError:
        return None
