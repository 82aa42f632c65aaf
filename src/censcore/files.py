"""Files that are complete or not there."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["partial_file", "write_atomically"]


def write_atomically(path: str | os.PathLike[str], content: str | bytes) -> Path:
    """Write a file in one piece: a reader sees the old content or the new, never a part.

    The content goes to a temporary file in the same folder, is flushed to the disk and replaces ``path`` in
    one step. Several processes may write the same path; the last of them wins. A process that is killed
    leaves ``path`` as it was.

    Parameters
    ----------
    path : path
        Where to write; missing folders are made.
    content : str or bytes
        Text is encoded as UTF-8.

    Returns
    -------
    Path
        ``path``.

    Examples
    --------
    >>> import tempfile
    >>> from censcore.files import write_atomically
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(f"{folder}/notes/result.txt", "0.25").read_text()
    '0.25'
    """
    with partial_file(path) as partial, partial.open("xb") as file:
        file.write(content.encode() if isinstance(content, str) else content)
        file.flush()
        os.fsync(file.fileno())
    return Path(path)


@contextmanager
def partial_file(path: str | os.PathLike[str]) -> Iterator[Path]:
    """A temporary path in the folder of ``path``, which it replaces when all is written; gone after an error.

    Examples
    --------
    >>> import tempfile
    >>> from censcore.files import partial_file
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with partial_file(f"{folder}/table.csv") as partial:
    ...         _ = partial.write_text("a,b")
    ...     Path(folder, "table.csv").read_text()
    'a,b'
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
    try:
        yield partial
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
