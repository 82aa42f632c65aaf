"""Which array library: NumPy or torch, one for all arrays of a call."""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import numpy as np

from censcore.exceptions import InvalidTypeError

__all__ = ["Array", "is_neutral", "is_torch", "namespace", "one_namespace"]

#: An array of NumPy or a tensor of torch. Neither library has a type that describes both.
Array = Any

# Axes that an array can have; a list nested deeper, such as one that holds itself, is none.
_DEEPEST = 32


def is_torch(value: object) -> bool:
    """Whether ``value`` is a torch tensor, without importing torch."""
    if type(value) is np.ndarray:
        return False
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_neutral(value: object, depth: int = 0) -> bool:
    """Whether ``value`` belongs to no array library: a Python number or a (nested) list of them."""
    if isinstance(value, list | tuple):
        return depth < _DEEPEST and all(is_neutral(item, depth + 1) for item in value)
    return value is None or isinstance(value, bool | int | float)


def namespace(array: Array) -> Any:
    """The array-API namespace of one array; anything that is not a tensor counts as NumPy."""
    if type(array) is np.ndarray:
        return np
    return _torch_namespace() if is_torch(array) else np


def _torch_namespace() -> Any:
    # looked up without a cached function, which torch.compile would warn about
    return sys.modules.get("array_api_compat.torch") or import_module("array_api_compat.torch")


def one_namespace(**named: Array) -> Any:
    """The namespace shared by all named arrays, or an error that says which one differs.

    >>> one_namespace(time=np.ones(3), scale=np.ones(3)).__name__
    'numpy'
    """
    reference = None
    for value in named.values():
        if is_neutral(value):
            continue
        if reference is None:
            reference = value
        elif type(reference) is type(value) is np.ndarray:
            continue
        elif not _share_a_home(reference, value):
            _raise_different_homes(named)
    return namespace(reference)


def _share_a_home(a: Array, b: Array) -> bool:
    return a.device == b.device if is_torch(a) and is_torch(b) else is_torch(a) == is_torch(b)


def _raise_different_homes(named: dict[str, Array]) -> None:
    got = ", ".join(f"{name} in {_home(value)}" for name, value in named.items() if not is_neutral(value))
    raise InvalidTypeError(
        f"Got arrays of different libraries or devices: {got}. Expected one library and one device: convert "
        "arrays by torch.as_tensor(...), distributions and outcomes by distribution.like(tensor)."
    )


def _home(value: Array) -> str:
    return f"torch on {value.device}" if is_torch(value) else "NumPy"
