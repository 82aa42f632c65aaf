"""NumPy and torch behind one namespace: which library, which dtype, which device.

Formulas are written once against the array-API namespace ``xp`` of their inputs. The few
operations that the standard lacks, or spells row by row, live here.
"""

from __future__ import annotations

import sys
from importlib import import_module
from typing import Any

import numpy as np

from censcore.exceptions import InvalidIndexError, InvalidInputError, InvalidTypeError

__all__ = [
    "Array",
    "as_float",
    "as_rows",
    "broadcast_to",
    "common_rows",
    "convert",
    "detach",
    "is_neutral",
    "is_torch",
    "namespace",
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
    if value.dtype in (torch.float32, torch.float64):
        return value
    if value.is_complex():
        raise InvalidTypeError(f"{name} must hold real numbers; got a tensor of dtype {value.dtype}.")
    return value.to(torch.float32 if value.is_floating_point() else torch.float64)


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
    if chosen.size and chosen.dtype.kind not in "iub":
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


def to_numpy(array: Array) -> np.ndarray:
    """``array`` as NumPy, cut from any graph and brought to the CPU."""
    if type(array) is np.ndarray:
        return array
    return array.detach().cpu().numpy() if is_torch(array) else np.asarray(array)


def detach(array: Array) -> Array:
    """``array`` without its gradient."""
    return array if type(array) is np.ndarray or not is_torch(array) else array.detach()


def requires_grad(array: Array) -> bool:
    """Whether a gradient is being recorded through ``array``."""
    return type(array) is not np.ndarray and is_torch(array) and array.requires_grad


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
        return np.searchsorted(knots[0], values, side=side)  # type: ignore[call-overload]
    if values.shape[0] == 1:
        values = np.broadcast_to(values, (knots.shape[0], values.shape[1]))
    return _searchsorted_rows(knots, values, side)


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


# q log2(J) from which one call per row costs less than bisection.
_MANY_PASSES = 128
# Values bisected at once: few enough for the cache.
_BLOCK_VALUES = 20_000


def _bisect(knots: np.ndarray, values: np.ndarray, side: str) -> np.ndarray:
    """How many knots each value passes: add powers of two, largest first, while the knot there is passed."""
    n_knots = knots.shape[1]
    passed = np.less_equal if side == "right" else np.less
    index = np.zeros(values.shape, dtype=np.intp)
    for power in range(int(n_knots).bit_length() - 1, -1, -1):
        candidate = index + (1 << power)
        knot = np.take_along_axis(knots, np.minimum(candidate, n_knots) - 1, axis=1)
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
