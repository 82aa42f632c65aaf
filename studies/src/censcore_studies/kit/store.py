"""Stages of a study: folders of files in the store, each complete or not there.

A small result is a record (see :mod:`censcore.store` and :mod:`censcore_studies.kit.cells`); a large one is a
*stage*, a folder of files with a record ``stage.json`` that lists them. A stage that is missing, damaged, of
another key or with other files than its record says counts as not there, and its work is done again.

Everything is written beside its place and moved there when it is complete: a process that is killed, even by
force, loses the work that was under way and nothing else.
"""

from __future__ import annotations

import hashlib
import json
import shutil
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

from censcore.exceptions import InvalidInputError
from censcore.files import storing, write_atomically
from censcore.store import read_record, write_record

__all__ = [
    "Stage",
    "file_hash",
    "locked",
    "read_stage",
    "run_stage",
    "write_json",
]

_RECORD = "stage.json"


def write_json(path: Path, content: Any) -> None:
    """Write JSON without NaN or infinity, in one piece."""
    write_atomically(path, json.dumps(content, indent=1, sort_keys=True, allow_nan=False))


@dataclass(frozen=True)
class Stage:
    """A finished stage.

    Attributes
    ----------
    folder : Path
        Where its files are.
    key : str
        Hash of everything it depends on.
    summary : mapping
        What its maker returned.
    skipped : bool
        Whether it was there already.
    cost : mapping
        What making it took: ``seconds``, and the largest memory so far, ``memory_gib`` of the process and
        ``gpu_gib`` of the stage on a GPU.
    """

    folder: Path
    key: str
    summary: Mapping[str, Any]
    skipped: bool
    cost: Mapping[str, float] = field(default_factory=dict)


def run_stage(
    out: Path, name: str, key: str, make: Callable[[Path], Mapping[str, Any]], say: Callable[[str], None]
) -> Stage:
    """Run ``make(folder)`` unless ``out/name`` already holds the result with this key.

    Parameters
    ----------
    out : Path
        The folder of the study, held by :func:`locked`.
    name : str
        Place of the stage below it.
    key : str
        Hash of everything the result depends on, see :func:`censcore.store.content_key`.
    make : callable
        Writes files into the folder it is given and returns a summary of JSON values.
    say : callable
        Receives lines of progress.
    """
    finished = read_stage(out, name)
    if finished is not None and finished.key == key:
        say(f"{name}: already done")
        return finished
    target, partial = out / name, out / f"{name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    with storing(target):
        partial.mkdir(parents=True)
        try:
            say(f"{name}: started")
            cost = _Cost()
            summary = dict(make(partial))
            spent = cost.so_far()
            files = {path.name: _describe(path) for path in sorted(partial.iterdir())}
            write_record(partial / _RECORD, key, {"files": files, "summary": summary, "cost": spent})
        except BaseException:
            shutil.rmtree(partial, ignore_errors=True)
            raise
        shutil.rmtree(target, ignore_errors=True)
        partial.rename(target)
    say(f"{name}: done in {spent['seconds']:.1f} s")
    return Stage(target, key, summary, skipped=False, cost=spent)


class _Cost:
    """Time and memory from here on."""

    def __init__(self) -> None:
        self._began = time.perf_counter()
        self._cuda = self._gpu()
        if self._cuda is not None:
            self._cuda.reset_peak_memory_stats()

    @staticmethod
    def _gpu() -> Any:
        """torch.cuda where the process has loaded it and there is one."""
        torch = sys.modules.get("torch")
        return torch.cuda if torch is not None and torch.cuda.is_available() else None

    def so_far(self) -> dict[str, float]:
        """Seconds, and GiB of memory."""
        cost = {"seconds": round(time.perf_counter() - self._began, 2)}
        if sys.platform != "win32":
            import resource

            unit = 1 if sys.platform == "darwin" else 1024
            peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * unit
            cost["memory_gib"] = round(peak / 2**30, 2)
        if (cuda := self._gpu()) is not None:
            cost["gpu_gib"] = round(cuda.max_memory_allocated() / 2**30, 2)
        return cost


def read_stage(out: Path, name: str) -> Stage | None:
    """The finished stage ``name``; None when it is missing, damaged, or its files are not those it wrote."""
    folder = out / name
    record = read_record(folder / _RECORD)
    if record is None:
        return None
    try:
        written = (folder / _RECORD).stat().st_mtime_ns
        same = {path.name for path in folder.iterdir()} == {_RECORD, *record["files"]} and all(
            _is(folder / file, described, written) for file, described in record["files"].items()
        )
    except (OSError, KeyError):
        return None
    if not same:
        return None
    return Stage(folder, record["key"], record["summary"], skipped=True, cost=record.get("cost", {}))


def _describe(path: Path) -> dict[str, Any]:
    return {"size": path.stat().st_size, "sha256": file_hash(path)}


def _is(path: Path, described: Mapping[str, Any], written: int) -> bool:
    """Whether a file is the one described; it is read again only if it changed since that was ``written``."""
    status = path.stat()
    if status.st_size != described["size"]:
        return False
    return status.st_mtime_ns < written or file_hash(path) == described["sha256"]


def file_hash(path: Path) -> str:
    """SHA-256 of a file, read a part at a time."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Hold ``out`` for one writer of stages; a second one gets an error, and a killed one lets go."""
    with storing(out):
        out.mkdir(parents=True, exist_ok=True)
        lock = (out / ".lock").open("a", encoding="utf-8")  # nothing that a link leads to is emptied
    with lock as file:
        try:
            _lock(file)
        except (BlockingIOError, PermissionError):
            message = f"Another run is writing to {out}; wait for it or choose another output directory."
            raise InvalidInputError(message) from None
        yield


def _lock(file: IO[str]) -> None:
    """Lock an open file until it is closed, or its process ends."""
    if sys.platform == "win32":
        import msvcrt

        file.seek(0)
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    else:
        import fcntl

        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
