"""Files that are complete or not there."""

from __future__ import annotations

import os
import secrets
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from censcore.exceptions import StorageError

__all__ = ["partial_file", "storing", "write_atomically"]


@contextmanager
def storing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what the system says while a file or folder is written into one sentence.

    Parameters
    ----------
    path : path
        What is written.

    Raises
    ------
    StorageError
        In place of every other OSError; it keeps the number of the error in ``errno``.

    Examples
    --------
    >>> from censcore.files import storing
    >>> with storing("results"):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
        ...
    censcore.exceptions.StorageError: results cannot be written: No space left on device. What was complete
    before is kept; make room or choose another folder, and run it again.
    """
    try:
        yield
    except StorageError:
        raise
    except OSError as error:
        where = "" if error.filename in (None, os.fspath(path)) else f" ({error.filename})"
        told = StorageError(
            f"{os.fspath(path)} cannot be written: {error.strerror or error}{where}. What was complete "
            "before is kept; make room or choose another folder, and run it again."
        )
        told.errno = error.errno
        raise told from error


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

    Raises
    ------
    StorageError
        The file cannot be written; what was at ``path`` is still there.

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
    partial = path.with_name(f".{path.name}.{secrets.token_hex(8)}.partial")
    with storing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        try:
            yield partial
            os.replace(partial, path)
        except BaseException:
            partial.unlink(missing_ok=True)
            raise
