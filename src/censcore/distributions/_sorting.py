"""Sorting the rows of large ensembles."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import cache
from time import perf_counter
from typing import Any

import numpy as np

from censcore._numerics import run_threads

__all__ = ["sort_rows"]

_BLOCK = 131_072  # numbers that stay in the cache while they are sorted
_RUN = 256  # rows up to this long are sorted by a fixed network of comparisons, without branches
_WORTH_COMPILING = 500_000  # below this many numbers loading a compiler takes longer


def sort_rows(samples: np.ndarray) -> np.ndarray:
    """A copy of ``samples`` (n, m) with every row ascending, made block by block in threads."""
    ordered = np.array(samples, order="C")
    n, m = ordered.shape
    worth_it = "numba" in sys.modules or ordered.size >= _WORTH_COMPILING
    sort = _fastest(ordered.dtype) if m > _RUN and worth_it else _plain
    step = max(1, _BLOCK // m)
    run_threads(sort, [ordered[start : start + step] for start in range(0, n, step)])
    return ordered


def _plain(block: np.ndarray) -> None:
    block.sort(axis=1)


@cache
def _fastest(dtype: np.dtype) -> Callable[[np.ndarray], None]:
    """NumPy's sort, or short runs merged: on some processors long rows take it several times as long.

    Which one is found out once, by sorting a few rows; both give the same.
    """
    in_runs = _in_runs()
    if in_runs is None:
        return _plain
    rows = np.random.default_rng(0).random((64, 1000)).astype(dtype)
    in_runs(rows.copy())
    return min((_plain, in_runs), key=lambda sort: min(_seconds(sort, rows.copy()) for _ in range(5)))


def _seconds(sort: Callable[[np.ndarray], None], rows: np.ndarray) -> float:
    start = perf_counter()
    sort(rows)
    return perf_counter() - start


def _in_runs() -> Callable[[np.ndarray], None] | None:
    """Sort runs of equal length, then merge them by a compiled kernel; None where numba is not installed."""
    try:
        from censcore.distributions._merge_numba import merge_runs
    except ImportError:
        return None
    merge: Any = merge_runs

    def sort(block: np.ndarray) -> None:
        n, m = block.shape
        runs = 1 << max(0, (m - 1) // _RUN).bit_length()
        length = -(-m // runs)
        padded = block
        if runs * length > m:
            padded = np.full((n, runs * length), np.inf, dtype=block.dtype)
            padded[:, :m] = block
        padded.reshape(n * runs, length).sort(axis=1)
        merge(padded, length)
        if padded is not block:
            block[...] = padded[:, :m]

    return sort
