"""Rows of one side as plain arrays on disk: written from Parquet a part at a time, then mapped, not loaded.

Training visits rows in random order, which Parquet is not made for. A mapped array gives any row without
reading the others, takes no memory that the system cannot have back, and is written once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = ["choose_rows", "map_arrays", "write_arrays"]

Columns = Mapping[str, NDArray[Any]]


def write_arrays(folder: Path, rows: int, parts: Sequence[Callable[[], Columns]]) -> None:
    """Write ``<name>.npy`` for every column, the parts one after the other, each made when its turn comes."""
    with ExitStack() as stack:
        files: dict[str, Any] = {}
        for make in parts:
            for name, column in make().items():
                if name not in files:
                    files[name] = stack.enter_context((folder / f"{name}.npy").open("wb"))
                    _write_header(files[name], column.dtype, (rows, *column.shape[1:]))
                files[name].write(np.ascontiguousarray(column).data)


def _write_header(file: Any, dtype: np.dtype[Any], shape: tuple[int, ...]) -> None:
    header = {"descr": np.lib.format.dtype_to_descr(dtype), "fortran_order": False, "shape": shape}
    np.lib.format.write_array_header_1_0(file, header)


def map_arrays(folder: Path) -> dict[str, NDArray[Any]]:
    """The arrays of :func:`write_arrays`, read-only, their pages read when touched."""
    return {path.stem: np.asarray(np.load(path, mmap_mode="r")) for path in sorted(folder.glob("*.npy"))}


def choose_rows(
    stays: Sequence[NDArray[Any]], at_most: int | None, per_stay: int | None, seed: int
) -> list[NDArray[np.intp]]:
    """Positions to keep in each part: at random ``per_stay`` of every stay, then ``at_most`` in all.

    Parameters
    ----------
    stays : sequence of arrays
        The stay of every row, part by part; a stay lies in one part.
    at_most, per_stay : int or None
        None keeps all.
    seed : int
        Seed of the draw.

    Examples
    --------
    >>> kept = choose_rows([np.array([1, 1, 1, 2]), np.array([3, 3])], at_most=None, per_stay=1, seed=0)
    >>> [len(part) for part in kept]
    [2, 1]
    """
    rng = np.random.default_rng(seed)
    kept = [np.arange(len(part)) if per_stay is None else _of_each(part, per_stay, rng) for part in stays]
    total = sum(len(part) for part in kept)
    if at_most is None or at_most >= total:
        return kept
    chosen = np.sort(rng.choice(total, size=at_most, replace=False))
    starts = np.cumsum([0, *(len(part) for part in kept)])
    bounds = np.searchsorted(chosen, starts)
    return [
        part[chosen[first:last] - start]
        for part, start, first, last in zip(kept, starts, bounds[:-1], bounds[1:], strict=False)
    ]


def _of_each(groups: NDArray[Any], most: int, rng: np.random.Generator) -> NDArray[np.intp]:
    """Up to ``most`` random positions of each group, in order."""
    shuffled = rng.permutation(len(groups))
    by_group = shuffled[np.argsort(groups[shuffled], kind="stable")]
    counts = np.unique(groups, return_counts=True)[1]
    rank = np.arange(len(groups)) - np.repeat(np.cumsum(counts) - counts, counts)
    return np.sort(by_group[rank < most])
