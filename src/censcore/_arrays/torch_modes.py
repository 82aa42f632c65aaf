"""Modes of torch in which a formula may run: gradients, autocast, compilation, transforms, CUDA graphs."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from typing import ParamSpec, TypeVar

import numpy as np

from censcore._arrays.libraries import Array, is_torch
from censcore.exceptions import DerivativeError

__all__ = [
    "as_loss",
    "check_not_batched",
    "detach",
    "full_precision",
    "grad_is_recorded",
    "in_transform",
    "not_compiled",
    "possibly",
    "requires_grad",
    "surely",
]


def check_not_batched(value: Array, name: str) -> None:
    """Check that ``torch.vmap`` has not hidden an axis of a tensor."""
    functorch = sys.modules["torch"]._C._functorch
    while functorch.is_functorch_wrapped_tensor(value):
        if functorch.is_batchedtensor(value):
            raise DerivativeError(
                f"torch.vmap: got {name} with a hidden batch axis, which the checks and quadratures of "
                "censcore cannot read. Subjects are an axis already: pass one value per subject, (n,), and "
                "call the score once; it returns one loss per subject."
            )
        value = functorch.get_unwrapped(value)


_P = ParamSpec("_P")

_R = TypeVar("_R")


def full_precision(function: Callable[_P, _R]) -> Callable[_P, _R]:
    """The same function, which regions of ``torch.autocast`` leave in float32 or float64."""

    @wraps(function)
    def precise(*args: _P.args, **kwargs: _P.kwargs) -> _R:
        torch = sys.modules.get("torch")
        if torch is None or not any(map(torch.is_autocast_enabled, ("cpu", "cuda"))):
            return function(*args, **kwargs)
        with torch.autocast("cpu", enabled=False), torch.autocast("cuda", enabled=False):
            return function(*args, **kwargs)

    return precise


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


def as_loss(score: Callable[_P, _R]) -> Callable[_P, _R]:
    """A score that may be called inside ``torch.autocast`` and ``torch.compile``, in a training step."""
    return not_compiled(full_precision(score))


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
    return not _is_recorded(condition) and bool(condition)


def possibly(condition: Array) -> bool:
    """Whether a condition of one element holds, or cannot be read; see :func:`surely`."""
    return _is_recorded(condition) or bool(condition)


def _is_recorded(value: Array) -> bool:
    on_gpu = is_torch(value) and value.is_cuda
    return on_gpu and bool(sys.modules["torch"].cuda.is_current_stream_capturing())
