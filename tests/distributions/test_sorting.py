"""Rows of large ensembles come out sorted, whichever way is the faster one."""

from __future__ import annotations

import numpy as np
import pytest

from censcore.distributions import _sorting


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("m", [1, 255, 257, 300, 512, 513, 1000, 1025, 3000])
def test_merged_runs_equal_a_plain_sort(rng, m, dtype):
    pytest.importorskip("numba")
    rows = rng.exponential(size=(6, m)).astype(dtype)
    rows[0, : m // 2] = np.inf
    rows[1] = 1.0
    rows[2].sort()
    rows[3] = rows[2, ::-1]
    block = rows.copy()
    _sorting._in_runs()(block)
    np.testing.assert_array_equal(block, np.sort(rows, axis=1))


@pytest.mark.parametrize("shape", [(1, 1), (3, 700), (900, 600), (2, 400_000)])
def test_sorted_copy(rng, shape):
    rows = rng.random(shape)
    before = rows.copy()
    np.testing.assert_array_equal(_sorting.sort_rows(rows), np.sort(rows, axis=1))
    np.testing.assert_array_equal(rows, before)
    np.testing.assert_array_equal(_sorting.sort_rows(rows.T), np.sort(rows.T, axis=1))


def test_without_numba_rows_are_sorted_by_numpy(monkeypatch):
    monkeypatch.setattr(_sorting, "_in_runs", lambda: None)
    assert _sorting._fastest.__wrapped__(np.dtype(np.float64)) is _sorting._plain
