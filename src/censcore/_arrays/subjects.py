"""Subjects as the first axis of arrays: choosing them, and how many there are."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore._arrays.conversion import check_entries, shown, to_numpy
from censcore._arrays.libraries import Array, is_torch, namespace
from censcore.exceptions import InvalidIndexError, InvalidInputError

__all__ = ["as_rows", "broadcast_to", "common_rows", "take_rows"]


def as_rows(rows: Any) -> Any:
    """Which subjects to take (indices, a slice or a mask) as either library indexes by; one stays an axis."""
    if isinstance(rows, int | np.integer) and not isinstance(rows, bool):
        return [int(rows)]
    if isinstance(rows, tuple) and len(rows) == 2 and rows[1] is Ellipsis:
        rows = rows[0]  # scikit-learn indexes by [rows, ...]
    if isinstance(rows, slice):
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
    if is_torch(rows) and not is_torch(array):
        rows = to_numpy(rows)  # NumPy takes a tensor of one place for a number, and drops the axis
    try:
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
