"""NumPy and torch behind one namespace: which library, which dtype, which device.

Formulas are written once against the array-API namespace ``xp`` of their inputs. The few
operations that the standard lacks, or spells row by row, live here.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any, ParamSpec, TypeVar

import numpy as np

from censcore.exceptions import DerivativeError, InvalidIndexError, InvalidInputError, InvalidTypeError

__all__ = [
    "Array",
    "as_float",
    "as_loss",
    "as_rows",
    "broadcast_to",
    "common_rows",
    "convert",
    "detach",
    "full_precision",
    "grad_is_recorded",
    "in_transform",
    "is_neutral",
    "is_torch",
    "like_moved",
    "namespace",
    "not_compiled",
    "one_namespace",
    "possibly",
    "requires_grad",
    "searchsorted",
    "surely",
    "take_along",
    "take_rows",
    "to_numpy",
]

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

    Examples
    --------
    >>> import numpy as np
    >>> from censcore._arrays import one_namespace
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


_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


def as_float(value: Array, name: str, like: Array | None = None) -> Array:
    """``value`` as a floating array in its own library, or if neutral in that and the dtype of ``like``.

    Integers become float64 and half precision float32; other floating types are kept.
    """
    if type(value) is np.ndarray and value.dtype in _FLOATS:
        return value
    if is_torch(value):
        return _torch_float(value, name)
    kind = like.dtype if like is not None and is_neutral(value) else None
    if like is not None and kind is not None and is_torch(like):
        array = value if type(value) is float else _real(value, name, None)
        return sys.modules["torch"].as_tensor(array, dtype=kind, device=like.device)
    return _real(value, name, kind)


def _real(value: Any, name: str, kind: Any) -> np.ndarray:
    """``value`` as an array of NumPy that holds real numbers, in the dtype ``kind`` where there is one."""
    array = _as_array(value, name)
    if array.dtype.kind in "OUST":
        array = _from_objects(array, name)
    if array.dtype.kind not in "fiub":
        raise InvalidTypeError(f"{name} must hold numbers; got an array of dtype {array.dtype}.")
    if kind is None and array.dtype == np.float16:
        kind = np.float32
    elif kind is None and array.dtype not in _FLOATS:
        kind = np.float64
    if kind is None or array.dtype == kind:
        return array
    with np.errstate(over="ignore"):  # beyond the range of the dtype is infinite
        return array.astype(kind)


def _as_array(value: Any, name: str) -> np.ndarray:
    if value is None:
        raise InvalidTypeError(f"{name} must hold numbers; got None.")
    if isinstance(value, np.ndarray) and np.any(getattr(value, "mask", False)):
        raise InvalidInputError(
            f"{name}: got a masked array with masked entries, expected numbers. Leave out the subjects that "
            "they belong to, or fill them in."
        )
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        if isinstance(error, InvalidTypeError):
            raise InvalidTypeError(f"{name}: {error}") from error
        raise InvalidTypeError(
            f"{name} must be a number or an array of numbers; got {type(value).__name__} that is none "
            f"({error})."
        ) from error


def _from_objects(array: np.ndarray, name: str) -> np.ndarray:
    """Objects or text that hold numbers; an error names the first entry that does not."""
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        values = array.ravel().tolist()
        bad = next((place for place, value in enumerate(values) if not _is_number(value)), 0)
        got = "an integer too large for a float" if isinstance(error, OverflowError) else _shown(values[bad])
        raise InvalidTypeError(f"{name} must hold numbers; got {got} in entry {bad}.") from error


def _shown(value: object) -> str:
    text = repr(value)
    return text if len(text) <= 60 else f"{text[:57]}..."


def _is_number(value: object) -> bool:
    try:
        float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return False
    return True


def _torch_float(value: Array, name: str) -> Array:
    torch = sys.modules["torch"]
    _check_not_batched(value, name)
    if value.dtype in (torch.float32, torch.float64):
        return value
    if value.is_complex():
        raise InvalidTypeError(f"{name} must hold real numbers; got a tensor of dtype {value.dtype}.")
    return value.to(torch.float32 if value.is_floating_point() else torch.float64)


def _check_not_batched(value: Array, name: str) -> None:
    functorch = sys.modules["torch"]._C._functorch
    while functorch.is_functorch_wrapped_tensor(value):
        if functorch.is_batchedtensor(value):
            raise DerivativeError(
                f"torch.vmap: got {name} with a hidden batch axis, which the checks and quadratures of "
                "censcore cannot read. Subjects are an axis already: pass one value per subject, (n,), and "
                "call the score once; it returns one loss per subject."
            )
        value = functorch.get_unwrapped(value)


def as_rows(rows: Any) -> Any:
    """Which subjects to take (indices, a slice or a mask) as either library indexes by; one stays an axis."""
    if isinstance(rows, int | np.integer) and not isinstance(rows, bool):
        return [int(rows)]
    if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
        rows = rows[0]  # scikit-learn indexes by [rows, ...]
    if isinstance(rows, slice) or (is_torch(rows) and not rows.is_floating_point() and not rows.is_complex()):
        return rows
    try:
        chosen = np.ascontiguousarray(rows)  # torch takes no index with negative strides, such as order[::-1]
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidIndexError(f"rows: got {_shown(rows)}, {_EXPECTED_ROWS}.") from error
    if np.ndim(rows) != 1 or (chosen.size and chosen.dtype.kind not in "iub"):
        raise InvalidIndexError(f"rows: got {_shown(rows)}, {_EXPECTED_ROWS}.")
    return chosen if chosen.size else chosen.astype(np.intp)


_EXPECTED_ROWS = "expected places of subjects from 0, an array of booleans or a slice"


def take_rows(array: Array, rows: Any) -> Array:
    """The entries of ``array`` that belong to some subjects, chosen by what :func:`as_rows` returns."""
    try:
        return array[rows]
    except (IndexError, OverflowError) as error:
        raise InvalidIndexError(
            f"rows: got places that do not exist ({error}). There are {len(array)} subjects, from 0 to "
            f"{len(array) - 1}; booleans need one entry for each."
        ) from error


def convert(array: Array, like: Array) -> Array:
    """``array`` in the library, on the device and in the dtype of ``like`` (booleans stay booleans)."""
    if type(like) is not np.ndarray and is_torch(like):
        torch = sys.modules["torch"]
        if isinstance(array, np.ndarray) and not array.flags.writeable:
            array = array.copy()  # torch has no read-only tensors
        tensor = torch.as_tensor(array, device=like.device)
        return tensor.to(like.dtype) if tensor.is_floating_point() else tensor
    array = to_numpy(array)
    return array.astype(like.dtype, copy=False) if array.dtype.kind == "f" else array


def like_moved(array: Array, *args: Any, **kwargs: Any) -> Array:
    """An empty tensor where ``tensor.to(*args, **kwargs)`` would bring ``array``; what ``.to`` is made of.

    Examples
    --------
    >>> import numpy as np, torch
    >>> from censcore._arrays import like_moved
    >>> like_moved(np.ones(3), torch.float32).dtype
    torch.float32
    """
    import torch

    here = array.device if is_torch(array) else None
    dtype = array.dtype if is_torch(array) else getattr(torch, str(array.dtype))
    moved = torch.empty(0, dtype=dtype, device=here).to(*args, **kwargs)
    if moved.dtype not in (torch.float32, torch.float64):
        raise InvalidTypeError(
            f"Outcomes and distributions hold float32 or float64; got {moved.dtype}. Inside torch.autocast "
            "leave them as they are: scores are computed in float32 at least."
        )
    return moved


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


def to_numpy(array: Array) -> np.ndarray:
    """``array`` as NumPy, cut from any graph and brought to the CPU."""
    if type(array) is np.ndarray:
        return array
    if not is_torch(array):
        return np.asarray(array)
    if in_transform():
        return _unwrapped(array, sys.modules["torch"]._C)
    return array.detach().cpu().numpy()


def in_transform() -> bool:
    """Whether ``torch.func.grad`` or a relative is at work: tensors made now must not outlive it."""
    torch = sys.modules.get("torch")
    return torch is not None and bool(torch._C._are_functorch_transforms_active())


def _unwrapped(tensor: Array, core: Any) -> np.ndarray:
    """What is inside the tensors that ``torch.func.grad`` and its relatives pass around."""
    _check_not_batched(tensor, "a tensor")
    while core._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = core._functorch.get_unwrapped(tensor)
    with core._DisableFuncTorch():
        return tensor.detach().cpu().numpy()


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


def common_rows(**rows: int) -> int:
    """The number of subjects that all parts share; a part with one serves all of them.

    Examples
    --------
    >>> from censcore._arrays import common_rows
    >>> common_rows(outcome=5, forecast=5, censoring=1)
    5
    """
    common = 1
    for n in rows.values():
        if n not in (1, common):
            if common != 1:
                _raise_different_rows(rows)
            common = n
    return common


def _raise_different_rows(rows: dict[str, int]) -> None:
    got = ", ".join(f"{name} has {n}" for name, n in rows.items() if n != 1)
    raise InvalidInputError(
        f"The numbers of subjects differ: {got}. Each part must have the same number, or one for all."
    )


def broadcast_to(array: Array, shape: tuple[int, ...]) -> Array:
    """``array`` repeated to ``shape``; itself where it has that shape."""
    return array if array.shape == shape else namespace(array).broadcast_to(array, shape)


def searchsorted(knots: Array, values: Array, side: str) -> Array:
    """Row by row ``searchsorted``: knots (1 or n, J) ascending, values (n, q) -> indices (n, q)."""
    if is_torch(values):
        torch = sys.modules["torch"]
        dtype = torch.promote_types(knots.dtype, values.dtype)
        knots, values = detach(knots).to(dtype), detach(values).to(dtype)
        if knots.shape[0] == 1:
            return torch.searchsorted(knots[0].contiguous(), values.contiguous(), side=side)
        rows = values.shape[0] if values.shape[0] != 1 else knots.shape[0]
        values = values.expand(rows, values.shape[1]).contiguous()
        return torch.searchsorted(knots.contiguous(), values, side=side)
    if knots.shape[0] == 1:
        return _searchsorted_in_one(knots[0], values, side)
    if values.shape[0] == 1:
        if 0 < knots.shape[1] <= _SCANNED and knots.shape[0] > 1 and not np.isnan(values).any():
            return _scanned(knots, values[0], side)
        values = np.broadcast_to(values, (knots.shape[0], values.shape[1]))
    return _searchsorted_rows(knots, values, side)


def _scanned(knots: np.ndarray, values: np.ndarray, side: str) -> np.ndarray:
    """The same values in every row: a scan for the first knot beyond each costs less than bisection."""
    J, backwards = knots.shape[1], knots.strides[1] < 0
    beyond: np.ufunc
    if backwards:  # a falling curve read as a rising one, without a copy
        knots, beyond = knots[:, ::-1], np.less_equal if side == "right" else np.less
    else:
        beyond = np.greater if side == "right" else np.greater_equal
    found = np.empty((len(knots), len(values)), dtype=np.intp)
    for column, value in enumerate(values):
        hit = beyond(knots, value)
        first = np.where(hit[:, -1], hit.argmax(axis=1), J)
        found[:, column] = J - first if backwards else first
    return found


def _searchsorted_in_one(knots: np.ndarray, values: np.ndarray, side: str) -> np.ndarray:
    """Many values among the same many knots are looked up in a table of equally wide buckets first.

    The bucket of a number never falls as the number grows, so that only the knots of its bucket are left to
    compare with. Bisection of values in no order waits for memory at every step.
    """
    if knots.size < _FEW_KNOTS or values.size < 2 * knots.size or knots.dtype != values.dtype:
        return np.searchsorted(knots, values, side=side)  # type: ignore[call-overload]
    low, buckets = knots[0], 4 * knots.size
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        scale = buckets / (knots[-1] - low)
    if not (0 < scale < np.inf) or np.isnan(values).any():
        return np.searchsorted(knots, values, side=side)  # type: ignore[call-overload]

    def bucket_of(numbers: np.ndarray) -> np.ndarray:
        place = ((np.clip(numbers, low, knots[-1]) - low) * scale).astype(np.intp)
        return np.minimum(place, buckets - 1, out=place)

    inside = np.bincount(bucket_of(knots), minlength=buckets)
    if inside.max() > _MOST_IN_BUCKET:
        return np.searchsorted(knots, values, side=side)  # type: ignore[call-overload]
    flat = values.reshape(-1)
    bucket, passed = bucket_of(flat), np.less_equal if side == "right" else np.less
    end = np.cumsum(inside)
    found, last = (end - inside)[bucket], end[bucket]
    left = np.nonzero(found < last)[0]
    while left.size:
        left = left[passed(knots[found[left]], flat[left])]
        found[left] += 1
        left = left[found[left] < last[left]]
    return found.reshape(values.shape)


def _searchsorted_rows(knots: np.ndarray, values: np.ndarray, side: str) -> np.ndarray:
    """A loop over rows where each has many values to place, else bisection on a block of rows at once."""
    n, q = values.shape
    found = np.empty((n, q), dtype=np.intp)
    if q * int(knots.shape[1]).bit_length() >= _MANY_PASSES:
        for row in range(n):
            found[row] = np.searchsorted(knots[row], values[row], side=side)  # type: ignore[call-overload]
        return found
    step = max(1, _BLOCK_VALUES // max(1, q))
    for start in range(0, n, step):
        block = slice(start, start + step)
        found[block] = _bisect(knots[block], values[block], side)
    return found


# Knots of a row up to which a scan costs less than bisection.
_SCANNED = 256
# Knots up to which bisection stays in the cache, and the most of them that one bucket may hold.
_FEW_KNOTS = 256
_MOST_IN_BUCKET = 32
# q log2(J) from which one call per row costs less than bisection.
_MANY_PASSES = 128
# Values bisected at once: few enough for the cache.
_BLOCK_VALUES = 20_000


def _bisect(knots: np.ndarray, values: np.ndarray, side: str) -> np.ndarray:
    """How many knots each value passes: add powers of two, largest first, while the knot there is passed."""
    n, n_knots = knots.shape
    passed = np.less_equal if side == "right" else np.less
    backwards = knots.strides[1] < 0  # a falling curve read as a rising one, without a copy
    flat = np.ascontiguousarray(knots[:, ::-1] if backwards else knots).reshape(-1)
    before = np.arange(n)[:, None] * n_knots + (n_knots if backwards else -1)  # the place before the first
    index = np.zeros(values.shape, dtype=np.intp)
    for power in range(int(n_knots).bit_length() - 1, -1, -1):
        candidate = index + (1 << power)
        step = np.minimum(candidate, n_knots)
        knot = flat.take(before - step if backwards else before + step)
        np.copyto(index, candidate, where=(candidate <= n_knots) & passed(knot, values))
    return index


def take_along(array: Array, index: Array) -> Array:
    """``array`` (1 or n, J) read at ``index`` (n, q) along its second axis, one row serving all."""
    if array.shape[0] == 1:
        return array[0][index]
    if index.shape[0] == 1:
        return namespace(array).take(array, index[0], axis=1)
    if is_torch(array):
        return sys.modules["torch"].take_along_dim(array, index, dim=1)
    return np.take_along_axis(array, index, axis=1)
