"""Files that are complete or not there."""

from __future__ import annotations

import errno
import io
import os
import stat
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import BinaryIO

from censcore.exceptions import InvalidInputError, InvalidTypeError, StorageError
from censcore.plain_text import one_line

STANDARD_OUTPUT = 1  # its number among the open files of a process
MOST_LINKS = 40  # in a row, as Linux has it


def as_path(path: str | os.PathLike[str], name: str = "path") -> Path:
    """Return the path that a text or a :class:`os.PathLike` means, which no system may be unable to look up.

    >>> as_path("a/b.csv").name
    'b.csv'
    """
    text = os.fspath(path) if isinstance(path, os.PathLike) else path
    if not isinstance(text, str):
        raise InvalidTypeError(
            f"{name}: got {type(path).__name__}, expected a path, as a text or a pathlib.Path."
        )
    try:
        os.lstat(text)
    except (OSError, ValueError) as error:  # that nothing is there is no mistake, nor that it may not be read
        if isinstance(error, ValueError) or error.errno in (errno.ENAMETOOLONG, errno.EINVAL):
            why = getattr(error, "strerror", None) or error
            shown = text if len(text) <= 60 else f"{text[:57]}..."
            raise InvalidInputError(f"{name}: got {one_line(shown)}, which is no path ({why}).") from error
    return Path(text)


@contextmanager
def storing(path: str | os.PathLike[str]) -> Iterator[None]:
    """Turn what the system says while a file or folder is written into one sentence.

    A StorageError takes the place of every other OSError and keeps its number in ``errno``.

    >>> with storing("results"):
    ...     raise OSError(28, "No space left on device")
    Traceback (most recent call last):
        ...
    censcore.exceptions.StorageError: results cannot be written: No space left on device. What was complete
    before is kept; make room or choose another folder, and run it again.
    """
    path = as_path(path)
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
    """Write a file in one piece, text as UTF-8: a reader sees the old content or the new, never a part.

    The content goes to a temporary file in the same folder, is flushed to the disk and replaces the old file
    in one step; missing folders are made, but for one in the root, which is more likely mistyped. Several
    processes may write the same path; the last of them wins. A process that is killed leaves the file as it
    was. Symbolic links stay, and the file that they lead to is
    replaced. What is not a regular file (a device, a pipe) is never replaced but written to, and ``"-"`` is
    standard output. Where the file cannot be written, a StorageError says so, and what was there is still
    there.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     write_atomically(f"{folder}/notes/result.txt", "0.25").read_text()
    '0.25'
    """
    with partial_file(path) as file:
        file.write(content.encode() if isinstance(content, str) else content)
    return Path(path)


@contextmanager
def partial_file(path: str | os.PathLike[str]) -> Iterator[BinaryIO]:
    """A file to write to, which replaces ``path`` when all is written and is gone after an error.

    The rules for paths are those of :func:`write_atomically`.

    >>> import tempfile
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     with partial_file(f"{folder}/table.csv") as file:
    ...         _ = file.write(b"a,b")
    ...     Path(folder, "table.csv").read_text()
    'a,b'
    """
    with storing(path), _opened(_target(path)) as file:
        yield file


def is_standard_output(path: str | os.PathLike[str]) -> bool:
    """Whether a path means standard output: ``-``, ``/dev/stdout``, or a link to it.

    >>> is_standard_output("-"), is_standard_output("table.csv")
    (True, False)
    """
    with storing(path):
        return _target(path) == STANDARD_OUTPUT


def is_stream(path: str | os.PathLike[str]) -> bool:
    """Whether a path means something that is written to and not replaced: standard output, a device, a pipe.

    >>> is_stream("-"), is_stream("table.csv")
    (True, False)
    """
    with storing(path):
        target = _target(path)
        return isinstance(target, int) or _is_special(target)


def _target(path: str | os.PathLike[str]) -> Path | int:
    """Where links lead: to a file, which may be there or not, or to one that is open, by its number."""
    path = Path(path)
    if path == Path("-"):
        return STANDARD_OUTPUT
    open_files = (Path("/dev/fd"), Path(f"/proc/{os.getpid()}/fd"))
    for _ in range(MOST_LINKS):
        path = Path(os.path.realpath(path.parent), path.name)
        if path.parent in open_files and path.name.isdecimal():
            return int(path.name)
        if not path.is_symlink():
            return path
        path = path.parent / path.readlink()
    raise OSError(errno.ELOOP, os.strerror(errno.ELOOP))


def _is_special(target: Path) -> bool:
    return target.exists() and not stat.S_ISREG(target.stat().st_mode)


def _opened(target: Path | int) -> AbstractContextManager[BinaryIO]:
    if target == STANDARD_OUTPUT:
        return _standard_output()
    if isinstance(target, int):
        return open(target, "wb", closefd=False)
    if target.is_socket():
        raise OSError(errno.ENXIO, "it is a socket")
    return target.open("wb") if _is_special(target) else _replacing(target)


@contextmanager
def _replacing(path: Path) -> Iterator[BinaryIO]:
    partial = path.with_name(f".{path.name}.{os.urandom(8).hex()}.partial")
    there = next(folder for folder in path.parents if folder.exists())
    if there == Path(path.anchor) != path.parent:  # most likely mistyped
        missing = Path(path.anchor, path.relative_to(path.anchor).parts[0])
        raise FileNotFoundError(errno.ENOENT, f"there is no folder {missing}; make it if it is meant")
    path.parent.mkdir(parents=True, exist_ok=True)
    try:
        with partial.open("xb") as file:
            yield file
            file.flush()
            os.fsync(file.fileno())
        os.replace(partial, path)
    except BaseException:
        partial.unlink(missing_ok=True)
        raise


@contextmanager
def _standard_output() -> Iterator[BinaryIO]:
    """The stream below ``sys.stdout``, so that bytes arrive as they are whatever encoding it has."""
    with storing("standard output"):
        if sys.stdout is None:
            raise OSError(errno.EBADF, "it is closed")
        sys.stdout.flush()
        binary = getattr(sys.stdout, "buffer", None)
        if binary is not None:
            yield binary
            binary.flush()
            return
        content = io.BytesIO()  # of a notebook, which takes text alone
        yield content
        try:
            sys.stdout.write(content.getvalue().decode())
        except UnicodeDecodeError:
            raise OSError(errno.EINVAL, "it takes text, and this is not") from None
