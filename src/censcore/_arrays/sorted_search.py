"""Search in sorted knots, row by row."""

from __future__ import annotations

import sys

import numpy as np

from censcore._arrays.libraries import Array, detach, is_torch, namespace

__all__ = ["searchsorted", "take_along"]


def searchsorted(knots: Array, values: Array, side: str) -> Array:
    """Row by row ``searchsorted``: knots (1 or n, J) ascending, values (n, q) -> indices (n, q)."""
    if type(values) is not np.ndarray and is_torch(values):
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
        many = 0 < knots.shape[1] <= _FEW_KNOTS and values.shape[1] >= _MANY_VALUES
        if many and (values[0, 1:] >= values[0, :-1]).all():  # false where a value is not a number
            return _counted(knots, values[0], side)
        values = np.broadcast_to(values, (knots.shape[0], values.shape[1]))
    return _searchsorted_rows(knots, values, side)


def _counted(knots: np.ndarray, values: np.ndarray, side: str) -> np.ndarray:
    """The same ascending values in every row: each knot is placed among them, and those passed are counted.

    A knot is passed by the values from the first that reaches it on (``"right"``), or exceeds it.
    """
    (n, J), q = knots.shape, len(values)
    place = np.searchsorted(values, knots.reshape(-1), side="left" if side == "right" else "right")
    place += np.repeat((q + 1) * np.arange(n), J)
    counts = np.bincount(place, minlength=n * (q + 1)).reshape(n, q + 1)
    return np.cumsum(counts[:, :-1], axis=1)


def _searchsorted_in_one(knots: np.ndarray, values: np.ndarray, side: str) -> np.ndarray:
    """Many values among the same many knots are looked up in a table of equally wide buckets first.

    The bucket of a number never falls as the number grows, so that only the knots of its bucket are left to
    compare with. Bisection of values in no order waits for memory at every step.
    """
    if knots.size < _FEW_KNOTS or values.size < knots.size or knots.dtype != values.dtype:
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
    count, last = (end - inside)[bucket], end[bucket]
    left = np.nonzero(count < last)[0]
    while left.size:
        left = left[passed(knots[count[left]], flat[left])]
        count[left] += 1
        left = left[count[left] < last[left]]
    return count.reshape(values.shape)


def _searchsorted_rows(knots: np.ndarray, values: np.ndarray, side: str) -> np.ndarray:
    """A loop over rows where each has many values to place, else bisection on a block of rows at once."""
    n, q = values.shape
    count = np.empty((n, q), dtype=np.intp)
    if q * int(knots.shape[1]).bit_length() >= _MANY_PASSES:
        for row in range(n):
            count[row] = np.searchsorted(knots[row], values[row], side=side)  # type: ignore[call-overload]
        return count
    step = max(1, _BLOCK_VALUES // max(1, q))
    for start in range(0, n, step):
        block = slice(start, start + step)
        count[block] = _bisect(knots[block], values[block], side)
    return count


# Values from which it costs less to place the knots among them.
_MANY_VALUES = 16

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
        return array[0].take(index) if type(array) is np.ndarray else array[0][index]
    if index.shape[0] == 1:
        return namespace(array).take(array, index[0], axis=1)
    if is_torch(array):
        return sys.modules["torch"].take_along_dim(array, index, dim=1)
    return np.take_along_axis(array, index, axis=1)
