"""Finished work on disk: found again by everything it depends on, and never shown in part.

A small result is a *record*, a JSON file with the key of what made it and a checksum. One that holds arrays
is a file of :mod:`censcore.model_files`. Both are written in one piece; what is missing, damaged or of
another key counts as not there, and its work is done again.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from censcore.files import write_atomically


def content_key(*parts: Any) -> str:
    """Return a hash of JSON values and bytes, whatever the order of the names in a mapping.

    Examples
    --------
    >>> from censcore.store import content_key
    >>> content_key({"a": 1, "b": b"data"}) == content_key({"b": b"data", "a": 1})
    True
    """
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), default=_digest)
    return hashlib.sha256(text.encode()).hexdigest()


def _digest(data: Any) -> str:
    if not isinstance(data, bytes):
        raise TypeError(f"A key is made of JSON values and bytes; got {type(data).__name__}.")
    return hashlib.sha256(data).hexdigest()


def path_of(folder: Path, *parts: Any) -> Path:
    """Return where a result with arrays that depends on these parts is kept, or would be."""
    return folder / f"{content_key(*parts)[:32]}.safetensors"


def write_record(path: Path, key: str, content: Mapping[str, Any]) -> None:
    """Write a record: ``content``, the key of what made it, and a checksum of both."""
    record = json.loads(json.dumps({**content, "key": key}))
    write_atomically(path, json.dumps({**record, "checksum": content_key(record)}, indent=1))


def read_record(path: Path, key: str | None = None) -> dict[str, Any] | None:
    """Return the content of a record; None where it is missing, damaged or made from something else.

    Without ``key`` any record that is whole will do, and its key is part of what is returned.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> from censcore.store import content_key, read_record, write_record
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     path, key = Path(folder, "mean.json"), content_key({"n": 100, "seed": 0})
    ...     write_record(path, key, {"mean": 0.25})
    ...     read_record(path, key), read_record(path, content_key({"n": 200, "seed": 0}))
    ({'mean': 0.25}, None)
    """
    try:
        record = json.loads(path.read_text("utf-8"))
        checksum = record.pop("checksum")
    except (OSError, ValueError, KeyError, TypeError, AttributeError, RecursionError):
        return None
    if checksum != content_key(record) or key not in (None, record.get("key")):
        return None
    return record if key is None else {name: value for name, value in record.items() if name != "key"}
