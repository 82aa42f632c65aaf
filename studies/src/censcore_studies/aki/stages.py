"""Resumable stages: a folder that is either finished, with the key of what made it, or not there.

A stage writes into ``<name>.partial`` and is renamed when done, so an interruption loses only the stage
that was running. Its key is a hash of everything the result depends on; a stage whose folder carries the
same key is skipped.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from censcore.exceptions import InvalidInputError

__all__ = ["Stage", "content_key", "locked", "read_stage", "run_stage", "write_json"]

_RECORD = "stage.json"


class Stage:
    """A finished stage: its folder, key and summary."""

    def __init__(self, folder: Path, key: str, summary: Mapping[str, Any], skipped: bool) -> None:
        self.folder = folder
        self.key = key
        self.summary = summary
        self.skipped = skipped


def content_key(*parts: Any) -> str:
    """A hash of JSON-ready values.

    >>> content_key({"a": 1, "b": 2}) == content_key({"b": 2, "a": 1})
    True
    """
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"))
    return hashlib.sha256(text.encode()).hexdigest()


def run_stage(
    out: Path, name: str, key: str, make: Callable[[Path], Mapping[str, Any]], say: Callable[[str], None]
) -> Stage:
    """Run ``make(folder)`` unless ``out/name`` already holds the result with this key."""
    finished = read_stage(out, name)
    if finished is not None and finished.key == key:
        say(f"{name}: already done")
        return finished
    target, partial = out / name, out / f"{name}.partial"
    shutil.rmtree(partial, ignore_errors=True)
    partial.mkdir(parents=True)
    try:
        say(f"{name}: started")
        summary = dict(make(partial))
        sizes = {path.name: path.stat().st_size for path in sorted(partial.iterdir())}
        write_json(partial / _RECORD, {"key": key, "files": sizes, "summary": summary})
    except BaseException:
        shutil.rmtree(partial, ignore_errors=True)
        raise
    shutil.rmtree(target, ignore_errors=True)
    partial.rename(target)
    say(f"{name}: done")
    return Stage(target, key, summary, skipped=False)


def read_stage(out: Path, name: str) -> Stage | None:
    """The finished stage ``name``, or None when it is missing, unreadable or lacks a file."""
    folder = out / name
    try:
        record = json.loads((folder / _RECORD).read_text("utf-8"))
        sizes = {path.name: path.stat().st_size for path in folder.iterdir() if path.name != _RECORD}
    except (OSError, ValueError):
        return None
    return Stage(folder, record["key"], record["summary"], skipped=True) if sizes == record["files"] else None


def write_json(path: Path, content: Any) -> None:
    """Write JSON so that the file is either the old one or the complete new one."""
    partial = path.with_name(path.name + ".partial")
    partial.write_text(json.dumps(content, indent=1, sort_keys=True, allow_nan=False), "utf-8")
    partial.replace(path)


@contextmanager
def locked(out: Path) -> Iterator[None]:
    """Hold ``out`` for one writer; a second one is refused, a killed one leaves nothing behind."""
    out.mkdir(parents=True, exist_ok=True)
    try:
        import fcntl
    except ImportError:  # a system without advisory locks
        yield
        return
    with (out / ".lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            message = f"Another run is writing to {out}; wait for it or choose another output directory."
            raise InvalidInputError(message) from None
        yield
