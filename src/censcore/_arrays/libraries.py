"""NumPy or torch, one for all arrays of a call, and the modes of torch in which a formula may run.

Modes are gradients, autocast, compilation, transforms and CUDA graphs.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from functools import wraps
from importlib import import_module
from typing import Any, ParamSpec, Protocol, TypeAlias, TypeVar

import numpy as np

from censcore.exceptions import InvalidTypeError

__all__ = [
    "Array", "ArrayLike", "Covariates", "Frame", "Numbers", "detach", "grad_is_recorded", "in_eager",
    "in_transform", "is_batched", "is_neutral", "is_torch", "namespace", "not_compiled", "one_namespace",
    "possibly", "requires_grad", "surely",
]  # fmt: skip

_P = ParamSpec("_P")
_R = TypeVar("_R")

#: An array of NumPy or a tensor of torch inside the library, whose types have no operations in common.
Array = Any


class Numbers(Protocol):
    """An array of NumPy, a tensor of torch or a column of a frame."""

    @property
    def shape(self) -> Any: ...
    @property
    def dtype(self) -> Any: ...
    def __len__(self) -> int: ...
    def __getitem__(self, key: Any, /) -> Any: ...


#: What public functions take for numbers or labels: an array, one number, or a list.
ArrayLike: TypeAlias = Numbers | float | Sequence[Any]


class Frame(Protocol):
    """A data frame of any library that narwhals reads."""

    @property
    def columns(self) -> Any:
        """Names of the columns."""


#: Covariates: an array, (n,) or (n, p), or a data frame.
Covariates: TypeAlias = ArrayLike | Frame

# Axes that an array can have; a list nested deeper, such as one that holds itself, is none.
_DEEPEST = 32
_PLAIN = {bool, int, float}


def is_torch(value: object) -> bool:
    """Whether ``value`` is a torch tensor, without importing torch."""
    if type(value) is np.ndarray:
        return False
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(value, torch.Tensor)


def is_neutral(value: object, depth: int = 0) -> bool:
    """Whether ``value`` belongs to no array library: a Python number or a (nested) list of them."""
    if isinstance(value, list | tuple):
        plain = _PLAIN.issuperset(map(type, value))  # without a call for each of many numbers
        return plain or (depth < _DEEPEST and all(is_neutral(item, depth + 1) for item in value))
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
        if value is None or type(reference) is type(value) is np.ndarray:
            continue
        if type(value) is not np.ndarray and is_neutral(value):
            continue
        if reference is None:
            reference = value
        elif _home(reference) != _home(value):
            homes = {name: _home(value) for name, value in named.items() if not is_neutral(value)}
            got = ", ".join(f"{name} in {home}" for name, home in homes.items())
            raise InvalidTypeError(
                f"Got arrays of different libraries or devices: {got}. Expected one library and one device: "
                "convert arrays by torch.as_tensor(...), distributions and outcomes by "
                "distribution.like(tensor)."
            )
    return namespace(reference)


def _home(value: Array) -> str:
    return f"torch on {value.device}" if is_torch(value) else "NumPy"


# ---- modes of torch ------------------------------------------------------------------------------------


def is_batched(value: Array) -> bool:
    """Whether ``torch.vmap`` has hidden an axis of a tensor."""
    functorch = sys.modules["torch"]._C._functorch
    while functorch.is_functorch_wrapped_tensor(value):
        if functorch.is_batchedtensor(value):
            return True
        value = functorch.get_unwrapped(value)
    return False


def not_compiled(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The same function, which ``torch.compile`` calls as it is.

    Checks and quadratures read values to decide what to do next, so that tracing them makes hundreds of small
    graphs, takes minutes and gains nothing.
    """
    excluded: list[Callable[_P, _R]] = []

    @wraps(function)
    def eager(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        if "torch._dynamo" not in sys.modules:  # nothing has been compiled in this process
            return function(*args, **kwargs)
        if not excluded:
            excluded.append(sys.modules["torch"].compiler.disable(function))
        return excluded[0](*args, **kwargs)

    return eager


def in_eager(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The same function, once torch is there: in its own precision under autocast, and never compiled."""

    @wraps(function)
    def precise(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        torch = sys.modules["torch"]
        if not any(map(torch.is_autocast_enabled, ("cpu", "cuda"))):
            return function(*args, **kwargs)
        with torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False):
            return function(*args, **kwargs)

    return not_compiled(precise)


def in_transform() -> bool:
    """Whether ``torch.func.grad`` or a relative is at work: tensors made now must not outlive it."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch._C._are_functorch_transforms_active())


def detach(array: Array) -> Array:
    """``array`` without its gradient."""
    return array if type(array) is np.ndarray or not is_torch(array) else array.detach()


def requires_grad(array: Array) -> bool:
    """Whether a gradient is being recorded through ``array``."""
    return type(array) is not np.ndarray and is_torch(array) and array.requires_grad


def grad_is_recorded(array: Array) -> bool:
    """Whether what follows from ``array`` will have its gradient, which ``torch.no_grad`` suspends."""
    return requires_grad(array) and sys.modules["torch"].is_grad_enabled()


def surely(condition: Array) -> bool:
    """Whether a condition of one element holds and can be read.

    While a step of training is recorded as a CUDA graph nothing can be read from the device. The answer is
    False then: a shortcut is not taken, and a check is left to the steps before the recording.
    """
    return bool(condition) if type(condition) is np.bool_ else not _is_recorded(condition) and bool(condition)


def possibly(condition: Array) -> bool:
    """Whether a condition of one element holds, or cannot be read; see :func:`surely`."""
    return bool(condition) if type(condition) is np.bool_ else _is_recorded(condition) or bool(condition)


def _is_recorded(value: Array) -> bool:
    on_gpu = is_torch(value) and value.is_cuda
    return on_gpu and bool(sys.modules["torch"].cuda.is_current_stream_capturing())
