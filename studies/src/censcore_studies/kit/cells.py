"""Studies as cells: each a pure function of its settings, computed once, kept in the store, run anywhere."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

from censcore.exceptions import InvalidInputError, MissingPackageError
from censcore.processes import in_processes
from censcore.progress import track
from censcore.store import content_key, read_record, write_record

__all__ = ["Cell", "finished_cells", "run_cells"]

_log = logging.getLogger("censcore")

Work = Callable[[dict[str, Any]], dict[str, Any]]


@dataclass(frozen=True)
class Cell:
    """One piece of a study.

    Attributes
    ----------
    name : str
        Readable part of the file name.
    settings : dict
        What distinguishes the cell from others of its study, seed included; plain JSON values. The work
        receives these.
    fixed : mapping
        Everything else that the result depends on: the settings of the study that the cell leaves at their
        defaults, and a tag that is raised when its code gives other numbers.
    """

    name: str
    settings: dict[str, Any] = field(default_factory=dict)
    fixed: Mapping[str, Any] = field(default_factory=dict)

    @property
    def content_key(self) -> str:
        """Hash of everything the result depends on."""
        return content_key({**self.fixed, **self.settings})

    @property
    def key(self) -> str:
        """Name and the start of the hash: whatever differs is another cell, in another file."""
        return f"{self.name}-{self.content_key[:12]}"


def run_cells(
    work: Work,
    cells: Sequence[Cell],
    out: str | os.PathLike[str] | None = None,
    *,
    jobs: int = 1,
    dask: str | None = None,
    progress: bool = True,
) -> list[dict[str, Any]]:
    """Compute all cells, those already on disk excepted, and return their results in order.

    Parameters
    ----------
    work : callable
        Maps the settings of a cell to its result (plain JSON values). It must be a pure function, and
        importable from a module when other processes are to run it.
    cells : sequence of Cell
        What to compute.
    out : path, optional
        Finished cells are kept in ``out/cells``, each written in one piece, so that a run killed at any
        point loses at most the cells under way, and several runs may share a folder. Without it nothing is
        kept.
    jobs : int
        Processes, through joblib: a backend chosen with ``joblib.parallel_config`` is respected.
    dask : str, optional
        Address of a Dask scheduler that gets the cells instead; cells of a lost worker are run again by
        another.
    progress : bool
        Show a progress bar.

    Examples
    --------
    >>> from censcore_studies.kit.cells import Cell, run_cells
    >>> cells = [Cell(f"square-{x}", {"x": x}) for x in (2, 3)]
    >>> [result["value"] for result in run_cells(lambda s: {"value": s["x"] ** 2}, cells, progress=False)]
    [4, 9]
    """
    keys = [cell.key for cell in cells]
    if len(set(keys)) < len(keys):
        raise InvalidInputError("Two cells have the same name and settings; each must be asked for once.")
    folder = None if out is None else Path(out) / "cells"
    done = {} if folder is None else _read_finished(folder, cells)
    todo = {cell.key: cell for cell in cells if cell.key not in done}
    piece = partial(_timed, work, folder)
    runner = _on_dask(piece, todo.values(), dask) if dask else _on_joblib(piece, todo.values(), jobs)
    try:
        for key, result in track(runner, "cells", len(cells), len(done), progress):
            if folder is not None:
                write_record(folder / f"{key}.json", todo[key].content_key, result)
            done[key] = result
    except KeyboardInterrupt:
        if folder is not None:
            _log.warning("%d of %d cells are in %s; run it again to go on.", len(done), len(cells), folder)
        raise
    return [done[key] for key in keys]


def finished_cells(out: str | os.PathLike[str], tag: str) -> Iterator[dict[str, Any]]:
    """All whole results in ``out/cells`` of the study with this tag, by file name."""
    for path in sorted((Path(out) / "cells").glob("*.json")):
        result = read_record(path)
        if result is not None and result.get("fixed", {}).get("study") == tag:
            result.pop("key")
            yield result


Piece = Callable[[Cell], tuple[str, dict[str, Any]]]


def _timed(work: Work, folder: Path | None, cell: Cell) -> tuple[str, dict[str, Any]]:
    """The result of one cell, which another run on the same folder may have finished in the meantime."""
    found = {} if folder is None else _read_finished(folder, [cell])
    if found:
        return cell.key, found[cell.key]
    start = time.perf_counter()
    result = work(cell.settings)
    seconds = round(time.perf_counter() - start, 3)
    made_of = {"settings": cell.settings} | ({"fixed": dict(cell.fixed)} if cell.fixed else {})
    return cell.key, {**made_of, "seconds": seconds, **result}


def _on_joblib(piece: Piece, cells: Iterable[Cell], jobs: int) -> Iterable[tuple[str, dict[str, Any]]]:
    if jobs == 1:
        return map(piece, cells)
    return in_processes((partial(piece, cell) for cell in cells), jobs, ordered=False)


def _on_dask(piece: Piece, cells: Iterable[Cell], address: str) -> Iterable[tuple[str, dict[str, Any]]]:
    try:
        from distributed import Client, as_completed
    except ImportError as error:
        raise MissingPackageError(
            "A Dask cluster was asked for: pip install 'censcore-studies[dask]'."
        ) from error
    with Client(address) as client:
        futures = [client.submit(piece, cell, pure=False, retries=3) for cell in cells]
        for future in as_completed(futures):
            yield future.result()
            future.release()


def _read_finished(folder: Path, cells: Sequence[Cell]) -> dict[str, dict[str, Any]]:
    found = {cell.key: read_record(folder / f"{cell.key}.json", cell.content_key) for cell in cells}
    return {key: result for key, result in found.items() if result is not None}
