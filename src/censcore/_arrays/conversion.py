"""Numbers as floating arrays of either library, arrays brought from one to the other, and subjects."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

from censcore._arrays.libraries import Array, in_transform, is_batched, is_neutral, is_torch, namespace
from censcore.exceptions import InvalidIndexError, InvalidInputError, InvalidTypeError
from censcore.plain_text import shown

__all__ = [
    "as_float", "as_rows", "broadcast_to", "check_entries", "check_integers", "common_rows",
    "convert", "like_moved", "take_rows", "to_numpy",
]  # fmt: skip

_FLOAT = {float}
_FLOATS = (np.dtype(np.float64), np.dtype(np.float32))


def as_float(value: Array, name: str, like: Array | None = None) -> Array:
    """``value`` as a floating array in its own library, or if neutral in that and the dtype of ``like``.

    Integers become float64 and half precision float32; other floating types are kept.
    """
    if type(value) is np.ndarray and value.dtype in _FLOATS:
        return value
    kind_of = type(value)
    if (kind_of is float or (kind_of is list and _FLOAT.issuperset(map(type, value)))) and (
        like is None or (type(like) is np.ndarray and like.dtype == np.float64)
    ):
        return np.asarray(value)
    if is_torch(value):
        check_entries(value, name)
        return _torch_float(value, name)
    kind = like.dtype if like is not None and is_neutral(value) else None
    if like is not None and kind is not None and is_torch(like):
        array = value if type(value) is float else _real(value, name, None)
        return sys.modules["torch"].as_tensor(array, dtype=kind, device=like.device)
    return _real(value, name, kind)


def _real(value: Any, name: str, kind: Any) -> np.ndarray:
    """``value`` as an array of NumPy that holds real numbers, in the dtype ``kind`` where there is one."""
    if value is None:
        raise InvalidTypeError(f"{name} must hold numbers; got None.")
    array = _listed(value, name, "a number or an array of numbers")
    if array.dtype.kind in "OUST":  # a list with a text becomes one of texts
        array = _from_objects(np.asarray(value, dtype=object) if isinstance(value, list) else array, name)
    if array.dtype.kind not in "fiub":
        raise InvalidTypeError(f"{name} must hold numbers; got an array of dtype {array.dtype}.")
    check_integers(array, name)
    if kind is None and array.dtype == np.float16:
        kind = np.float32
    elif kind is None and array.dtype not in _FLOATS:
        kind = np.float64
    if kind is None or array.dtype == kind:
        return array
    with np.errstate(over="ignore"):  # beyond the range of the dtype is infinite
        return array.astype(kind)


def check_integers(array: np.ndarray, name: str) -> None:
    """Check that there is no NA of R, which arrives as the smallest whole number of 32 bits."""
    if array.dtype.kind == "i" and (missing := array == np.iinfo(np.int32).min).any():
        raise InvalidInputError(
            f"{name}: got a missing value in {int(missing.sum())} of {array.size} entries (R's NA, which is "
            "-2147483648 in an array of whole numbers), expected numbers. Leave these subjects out, or "
            "impute the values."
        )


def _listed(value: Any, name: str, expected: str) -> np.ndarray:
    """``value`` as NumPy understands it, where that is an array without masked entries."""
    check_entries(value, name)
    try:
        return np.asarray(value)
    except (TypeError, ValueError, RuntimeError, OverflowError) as error:
        if isinstance(error, InvalidTypeError):
            raise InvalidTypeError(f"{name}: {error}") from error
        raise InvalidTypeError(
            f"{name} must be {expected}; got {type(value).__name__} that is none ({error})."
        ) from error


def check_entries(value: Any, name: str) -> None:
    """Check that all entries can be read: none is masked, a tensor is dense and has data, none is batched."""
    if type(value) is np.ndarray:
        return
    # a structured array has a mask for every field
    if isinstance(value, np.ma.MaskedArray) and np.ma.getmaskarray(value).copy().view(bool).any():
        raise InvalidInputError(
            f"{name}: got a masked array with masked entries, expected a value in every entry. Leave out the "
            "subjects that they belong to, or fill them in."
        )
    if not is_torch(value):
        return
    if value.layout is not sys.modules["torch"].strided or value.is_nested:
        raise InvalidTypeError(f"{name}: got a sparse tensor, expected a dense one. Pass tensor.to_dense().")
    if value.is_meta or is_batched(value):
        what = "without data, on the device 'meta'" if value.is_meta else "whose batch axis torch.vmap hides"
        raise InvalidTypeError(
            f"{name}: got a tensor {what}, expected one whose values can be read. Subjects are an axis "
            "already: pass one value for each, (n,), and call the score once."
        )


def _from_objects(array: np.ndarray, name: str) -> np.ndarray:
    """Objects that are numbers; an error names an entry that is none, such as a text."""
    values = array.ravel().tolist()
    text = [place for place, value in enumerate(values) if isinstance(value, str | bytes)]
    if text:
        worst = next((place for place in text if not _is_number(values[place])), text[0])
        raise InvalidTypeError(
            f"{name} must hold numbers; got {shown(values[worst])} in entry {worst}, which is text. Convert "
            "text to numbers first."
        )
    try:
        return array.astype(np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        bad = next((place for place, value in enumerate(values) if not _is_number(value)), 0)
        too_large = isinstance(error, OverflowError)
        got = "an integer too large for a float" if too_large else f"{values[bad]!r:.60}"
        raise InvalidTypeError(f"{name} must hold numbers; got {got} in entry {bad}.") from error


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


def convert(array: Array, like: Array) -> Array:
    """``array`` in the library, on the device and in the dtype of ``like`` (booleans stay booleans)."""
    if type(like) is not np.ndarray and is_torch(like):
        torch = sys.modules["torch"]
        if isinstance(array, np.ndarray) and not array.flags.writeable:
            array = array.copy()  # torch has no read-only tensors
        tensor = torch.as_tensor(array, device=like.device)
        return tensor.to(like.dtype) if tensor.is_floating_point() else tensor
    if type(array) is not np.ndarray:
        array = to_numpy(array)
    if array.dtype.kind != "f" or array.dtype == like.dtype:
        return array
    try:
        with np.errstate(over="raise"):
            return array.astype(like.dtype, copy=False)
    except FloatingPointError as error:
        largest = np.abs(array[np.isfinite(array)]).max()
        raise InvalidInputError(
            f"got numbers up to {largest:g}, which {like.dtype} does not hold. Use double "
            "precision, or another unit of time."
        ) from error


def like_moved(array: Array, *args: Any, **kwargs: Any) -> Array:
    """An empty tensor where ``tensor.to(*args, **kwargs)`` would bring ``array``; what ``.to`` is made of.

    >>> import numpy as np, torch
    >>> like_moved(np.ones(3), torch.float32).dtype
    torch.float32
    """
    import torch

    here = array.device if is_torch(array) else None
    dtype = array.dtype if is_torch(array) else getattr(torch, str(array.dtype))
    try:
        moved = torch.empty(0, dtype=dtype, device=here).to(*args, **kwargs)
    except (RuntimeError, TypeError, AssertionError) as error:  # also of devices that are not there
        given = ", ".join([*map(shown, args), *(f"{name}={shown(value)}" for name, value in kwargs.items())])
        reason = str(error).partition("\n")[0].rstrip(".")
        raise InvalidInputError(
            f"to: got {given}, expected a device that is there, a dtype, or a tensor ({reason})."
        ) from error
    if moved.dtype not in (torch.float32, torch.float64):
        raise InvalidTypeError(
            f"Outcomes and distributions hold float32 or float64; got {moved.dtype}. Inside torch.autocast "
            "leave them as they are: scores are computed in float32 at least."
        )
    return moved


def to_numpy(array: Array, name: str = "An array") -> np.ndarray:
    """``array`` as NumPy, cut from any graph and brought to the CPU; ``name`` is for errors."""
    if type(array) is np.ndarray:
        return array
    if not is_torch(array):
        return _listed(array, name, "an array")
    if in_transform():
        return _unwrapped(array, sys.modules["torch"]._C)
    check_entries(array, name)
    return _plain(array.detach()).cpu().numpy()


def _plain(tensor: Array) -> Array:
    """A tensor of a dtype that NumPy has, too: floating numbers of 8 bits and bfloat16 become float32."""
    torch = sys.modules["torch"]
    known = tensor.dtype in (torch.float16, torch.float32, torch.float64)
    return tensor.float() if tensor.is_floating_point() and not known else tensor.resolve_conj().resolve_neg()


def _unwrapped(tensor: Array, core: Any) -> np.ndarray:
    """What is inside the tensors that ``torch.func.grad`` and its relatives pass around."""
    check_entries(tensor, "a tensor")
    while core._functorch.is_functorch_wrapped_tensor(tensor):
        tensor = core._functorch.get_unwrapped(tensor)
    with core._DisableFuncTorch():
        return tensor.detach().cpu().numpy()


# ---- subjects as the first axis ------------------------------------------------------------------------


def as_rows(rows: Any) -> Any:
    """Which subjects to take (indices, a slice or a mask) as either library indexes by; one stays an axis."""
    if isinstance(rows, int | np.integer) and not isinstance(rows, bool | np.timedelta64):
        return [int(rows)]
    if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
        rows = rows[0]  # scikit-learn indexes by [rows, ...]
    if isinstance(rows, slice):
        return rows
    if type(rows) is np.ndarray and rows.dtype == np.intp and rows.ndim == 1 and rows.flags.c_contiguous:
        return rows
    check_entries(rows, "rows")
    if is_torch(rows) and rows.ndim == 1 and not rows.is_floating_point() and not rows.is_complex():
        return rows
    try:
        chosen = np.ascontiguousarray(rows)  # torch takes no index with negative strides, such as order[::-1]
    except (TypeError, ValueError, RuntimeError) as error:
        raise InvalidIndexError(f"rows: got {shown(rows)}, {_EXPECTED_ROWS}.") from error
    if np.ndim(rows) != 1 or (chosen.size and chosen.dtype.kind not in "iub"):
        raise InvalidIndexError(f"rows: got {shown(rows)}, {_EXPECTED_ROWS}.")
    return chosen if chosen.size else chosen.astype(np.intp)


_EXPECTED_ROWS = "expected places of subjects from 0, an array of booleans or a slice"


def take_rows(array: Array, rows: Any) -> Array:
    """The entries of ``array`` that belong to some subjects, chosen by what :func:`as_rows` returns."""
    if type(rows) not in (slice, np.ndarray) and is_torch(rows) and not is_torch(array):
        rows = to_numpy(rows)  # NumPy takes a tensor of one place for a number, and drops the axis
    try:
        if type(rows) is type(array) is np.ndarray and rows.dtype == np.intp:
            return array.take(rows, axis=0)  # several times faster than by an index
        return array[rows]
    except (IndexError, OverflowError) as error:
        raise InvalidIndexError(
            f"rows: got places that do not exist ({error}). There are {len(array)} subjects, from 0 to "
            f"{len(array) - 1}; booleans need one entry for each."
        ) from error


def common_rows(**rows: int) -> int:
    """The number of subjects that all parts share; a part with one serves all of them.

    >>> common_rows(outcome=5, forecast=5, censoring=1)
    5
    """
    common = 1
    for n in rows.values():
        if n not in (1, common):
            if common != 1:
                got = ", ".join(f"{name} has {n}" for name, n in rows.items() if n != 1)
                raise InvalidInputError(
                    f"The numbers of subjects differ: {got}. Each part must have the same number, or one for "
                    "all."
                )
            common = n
    return common


def broadcast_to(array: Array, shape: tuple[int, ...]) -> Array:
    """``array`` repeated to ``shape``; itself where it has that shape."""
    return array if array.shape == shape else namespace(array).broadcast_to(array, shape)
