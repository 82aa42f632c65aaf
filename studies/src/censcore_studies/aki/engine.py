"""The embedded database: bounded memory, spilling to disk, SQL kept in files, progress while it works."""

from __future__ import annotations

import errno
import os
import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from censcore.exceptions import InvalidInputError, MissingPackageError, StorageError

__all__ = ["Engine", "Resources", "Say", "path_in_sql", "quoted", "read_sql", "writing"]

Say = Callable[[str], None]


@dataclass(frozen=True)
class Resources:
    """What a build may use; never changes a result.

    Parameters
    ----------
    memory_limit : str
        Bound on DuckDB's buffers, e.g. ``"4GB"``; beyond it the engine spills.
    threads : int or None
        None takes every core.
    spill_directory : Path or None
        Where it spills; None is a folder inside the output directory.
    """

    memory_limit: str = "4GB"
    threads: int | None = None
    spill_directory: Path | None = None


def read_sql(name: str) -> str:
    """The text of ``sql/<name>.sql``: one statement whose ``$names`` are parameters."""
    return resources.files("censcore_studies.aki").joinpath("sql", f"{name}.sql").read_text("utf-8")


class Engine:
    """A DuckDB connection that runs the study's statements.

    Parameters
    ----------
    allowed : Resources
        Memory, threads, spilling.
    spill : Path
        The spill directory where ``allowed`` names none.
    say : callable
        Receives a line of progress now and then.
    """

    def __init__(self, allowed: Resources, spill: Path, say: Say) -> None:
        try:
            import duckdb
        except ImportError as error:
            message = "The ICU study needs DuckDB; install it with `pip install duckdb`."
            raise MissingPackageError(message) from error
        self._failure, self._out_of_memory = duckdb.Error, duckdb.OutOfMemoryException
        self._allowed, self._say = allowed, say
        config: dict[str, Any] = {
            "memory_limit": allowed.memory_limit,
            "temp_directory": str(allowed.spill_directory or spill),
            "preserve_insertion_order": "false",
        }
        if allowed.threads is not None:
            config["threads"] = allowed.threads
        try:
            self.connection = duckdb.connect(":memory:", config=config)
        except duckdb.Error as error:
            raise InvalidInputError(f"DuckDB does not accept the resources {allowed}: {error}") from None
        self.connection.execute("SET enable_progress_bar = true; SET enable_progress_bar_print = false")
        # It would turn a TRY_CAST of text into a cast by the CSV reader, which ends at the first bad record.
        known = self.connection.execute("SELECT name FROM duckdb_optimizers()").fetchall()
        if ("type_pushdown",) in known:
            self.connection.execute("SET disabled_optimizers = 'type_pushdown'")

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def run(self, statement: str, parameters: Mapping[str, Any] | None = None) -> Any:
        """Execute one statement with those of ``parameters`` that it names."""
        wanted = set(re.findall(r"\$(\w+)", statement))
        given = {name: value for name, value in (parameters or {}).items() if name in wanted}
        try:
            with writing():
                return self.connection.execute(statement, given or None)
        except self._out_of_memory:
            raise InvalidInputError(
                f"memory_limit: got {self._allowed.memory_limit!r}, which is too little for this database "
                "even with spilling; allow more."
            ) from None

    def rows(self, statement: str, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """All rows of a small result."""
        return list(self.run(statement, parameters).fetchall())

    def value(self, statement: str, parameters: Mapping[str, Any] | None = None) -> Any:
        """The single value of a result."""
        return self.rows(statement, parameters)[0][0]

    def table(self, name: str, select: str, parameters: Mapping[str, Any] | None = None) -> None:
        """Make or replace the temporary table ``name``."""
        self.run(f"CREATE OR REPLACE TEMP TABLE {name} AS {select}", parameters)

    def parquet(self, name: str, *paths: Path) -> None:
        """Make ``name`` stand for a Parquet file, or for several as one table, read in place."""
        files = ", ".join(map(path_in_sql, paths))
        self.run(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT * FROM read_parquet([{files}])")

    def csv(self, name: str, path: Path, columns: tuple[str, ...]) -> None:
        """Make ``name`` stand for a CSV file read in place as text; casting is the statement's business."""
        packed = "'gzip'" if path.suffix == ".gz" else "'none'"
        kinds = ", ".join(f"{quoted(column)}: 'VARCHAR'" for column in columns)
        self.run(
            f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT * FROM read_csv({path_in_sql(path)}, "
            f"compression = {packed}, header = true, auto_detect = false, delim = ',', quote = '\"', "
            f"escape = '\"', columns = {{{kinds}}})"
        )

    def write(self, select: str, path: Path, parameters: Mapping[str, Any] | None = None) -> int:
        """Stream a result to a Parquet file; returns its number of rows."""
        statement = f"COPY ({select}) TO {quoted(path)} (FORMAT parquet, COMPRESSION zstd)"
        return int(self.run(statement, parameters).fetchone()[0])

    @contextmanager
    def watched(self, label: str, seconds: float = 2.0) -> Iterator[None]:
        """Tell how far the statement inside is, every few seconds."""
        done = threading.Event()

        def tell() -> None:
            while not done.wait(seconds):
                share = self.connection.query_progress()
                self._say(f"{label}: {share:.0f} %" if share >= 0 else f"{label}: working")

        watcher = threading.Thread(target=tell, daemon=True)
        watcher.start()
        try:
            yield
        finally:
            done.set()
            watcher.join()

    @contextmanager
    def reading(self, path: str) -> Iterator[None]:
        """Turn an error of the engine into one that names the file and shows none of its content."""
        try:
            yield
        except self._failure as error:
            message = str(error)
            line = re.search(r"Line:?\s*(\d+)", message)
            where = f" (line {line.group(1)})" if line else ""
            kind = type(error).__name__
            raise InvalidInputError(
                f"{path}{where} cannot be read as comma-separated text: DuckDB's {kind}. The file is damaged "
                "or truncated; compare it with the SHA256SUMS.txt of its release and fetch it again."
            ) from None


# What the system says where nothing can be written.
_STORAGE = (
    errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EROFS, errno.EACCES, errno.EPERM, errno.EIO, errno.ENOTDIR,
)  # fmt: skip


@contextmanager
def writing() -> Iterator[None]:
    """Turn an error of DuckDB about a disk that is full or may not be written into one of ours."""
    import duckdb

    try:
        yield
    except duckdb.Error as error:
        text = str(error)
        for number in _STORAGE:
            if os.strerror(number) in text:
                told = StorageError(
                    f"DuckDB cannot write: {os.strerror(number)}. What was finished before is kept; make "
                    "room, or choose another folder for the output or for spilling, and run it again."
                )
                told.errno = number
                raise told from None
        raise


def path_in_sql(path: Path) -> str:
    """A file as an SQL string literal for this file alone: DuckDB takes ``*``, ``?`` and ``[`` for patterns.

    >>> path_in_sql(Path("all [2]/it's.csv"))
    "'all [[]2]/it''s.csv'"
    """
    return quoted("".join(f"[{letter}]" if letter in "*?[" else letter for letter in str(path)))


def quoted(text: object) -> str:
    """An SQL string literal."""
    return "'" + str(text).replace("'", "''") + "'"
