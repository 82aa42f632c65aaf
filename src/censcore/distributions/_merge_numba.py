"""Merging sorted runs, compiled for NumPy arrays."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

__all__ = ["merge_runs"]

_compile: Any = numba.njit(nogil=True, cache=True, error_model="numpy")


@_compile
def merge_runs(rows, length):  # type: ignore[no-untyped-def]
    """Sort every row in place: it holds ascending runs of this length, a power of two of them."""
    m = rows.shape[1]
    spare = np.empty(m, rows.dtype)
    for row in rows:
        here, there, size, at_home = row, spare, length, True
        while size < m:
            for start in range(0, m, 2 * size):
                middle, end = start + size, start + 2 * size
                _merge(here[start:middle], here[middle:end], there[start:end])
            here, there, size, at_home = there, here, 2 * size, not at_home
        if not at_home:
            row[:] = here


@_compile
def _merge(a, b, out):  # type: ignore[no-untyped-def]
    """Merge two runs of one length from both ends at once: two chains of comparisons, no branch, no bound."""
    n = a.size
    low_a, low_b, high_a, high_b = 0, 0, n - 1, n - 1
    for k in range(n):
        x, y = a[low_a], b[low_b]
        second = y < x
        out[k] = y if second else x
        low_a += not second
        low_b += second
        x, y = a[high_a], b[high_b]
        first = y < x
        out[2 * n - 1 - k] = x if first else y
        high_a -= first
        high_b -= not first
