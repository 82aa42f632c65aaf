"""Studies as cells: each a pure function of its settings, computed once, kept on disk, run anywhere."""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from censcore.exceptions import InvalidInputError, MissingDependencyError
from censcore.files import write_atomically

__all__ = ["Cell", "run_cells"]

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
        Everything the result depends on, seed included; plain JSON values.
    """

    name: str
    settings: dict[str, Any] = field(default_factory=dict)

    @property
    def key(self) -> str:
        """Name and a hash of the settings: other settings are another cell."""
        canonical = json.dumps(self.settings, sort_keys=True)
        return f"{self.name}-{hashlib.sha256(canonical.encode()).hexdigest()[:12]}"


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
        point loses at most the cells under way. Without it nothing is kept.
    jobs : int
        Processes, through joblib: a backend chosen with ``joblib.parallel_config`` is respected.
    dask : str, optional
        Address of a Dask scheduler that gets the cells instead; cells of a lost worker are run again by
        another.
    progress : bool
        Show a progress bar.

    Examples
    --------
    >>> from censcore_studies.kit.store import Cell, run_cells
    >>> cells = [Cell(f"square-{x}", {"x": x}) for x in (2, 3)]
    >>> [result["value"] for result in run_cells(lambda s: {"value": s["x"] ** 2}, cells, progress=False)]
    [4, 9]
    """
    keys = [cell.key for cell in cells]
    if len(set(keys)) < len(keys):
        raise InvalidInputError("Two cells have the same name and settings; each must be asked for once.")
    folder = None if out is None else Path(out) / "cells"
    done = {} if folder is None else _read_finished(folder, cells)
    todo = [cell for cell in cells if cell.key not in done]
    runner = _on_dask(work, todo, dask) if dask else _on_joblib(work, todo, jobs)
    try:
        for key, result in _with_progress(runner, len(cells), len(done), progress):
            if folder is not None:
                write_atomically(folder / f"{key}.json", json.dumps(result, indent=1))
            done[key] = result
    except KeyboardInterrupt:
        if folder is not None:
            _log.warning("%d of %d cells are in %s; run it again to go on.", len(done), len(cells), folder)
        raise
    return [done[key] for key in keys]


def _timed(work: Work, cell: Cell) -> tuple[str, dict[str, Any]]:
    start = time.perf_counter()
    result = work(cell.settings)
    seconds = round(time.perf_counter() - start, 3)
    return cell.key, {"settings": cell.settings, "seconds": seconds, **result}


def _on_joblib(work: Work, cells: Sequence[Cell], jobs: int) -> Iterable[tuple[str, dict[str, Any]]]:
    if jobs == 1:
        return (_timed(work, cell) for cell in cells)
    from joblib import Parallel, delayed

    parallel = Parallel(n_jobs=jobs, return_as="generator_unordered")
    return parallel(delayed(_timed)(work, cell) for cell in cells)


def _on_dask(work: Work, cells: Sequence[Cell], address: str) -> Iterable[tuple[str, dict[str, Any]]]:
    try:
        from distributed import Client, as_completed
    except ImportError as error:
        raise MissingDependencyError(
            "A Dask cluster was asked for: pip install 'censcore-studies[dask]'."
        ) from error
    with Client(address) as client:
        futures = [client.submit(_timed, work, cell, pure=False, retries=3) for cell in cells]
        for future in as_completed(futures):
            yield future.result()
            future.release()


def _with_progress(
    results: Iterable[tuple[str, dict[str, Any]]], total: int, finished: int, show: bool
) -> Iterable[tuple[str, dict[str, Any]]]:
    if not show:
        yield from results
        return
    try:
        from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
    except ImportError:
        yield from results
        return
    columns = (TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TimeRemainingColumn())
    with Progress(*columns, transient=True) as bar:
        task = bar.add_task("cells", total=total, completed=finished)
        for result in results:
            bar.advance(task)
            yield result


def _read_finished(folder: Path, cells: Sequence[Cell]) -> dict[str, dict[str, Any]]:
    found = {}
    for cell in cells:
        path = folder / f"{cell.key}.json"
        if path.exists():
            with suppress(ValueError):  # a damaged file is no finished cell
                found[cell.key] = json.loads(path.read_text())
    return found
