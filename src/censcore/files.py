"""Files that are complete or not there."""

from __future__ import annotations

import os
import secrets
from pathlib import Path

__all__ = ["write_atomically"]


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
    path = Path(path)
    data = content.encode() if isinstance(content, str) else content
    path.parent.mkdir(parents=True, exist_ok=True)
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
    try:
        with partial.open("xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise
    return path
