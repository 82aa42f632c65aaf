"""The embedded database: bounded memory, spilling to disk, SQL kept in files, progress while it works."""

from __future__ import annotations

import re
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from importlib import resources
from pathlib import Path
from typing import Any

from censcore.exceptions import InvalidInputError, MissingDependencyError

__all__ = ["Engine", "Resources", "Say", "read_sql"]

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
            raise MissingDependencyError(message) from error
        self._failure = duckdb.Error
        self._say = say
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

    def __enter__(self) -> Engine:
        return self

    def __exit__(self, *_: object) -> None:
        self.connection.close()

    def run(self, statement: str, parameters: Mapping[str, Any] | None = None) -> Any:
        """Execute one statement with those of ``parameters`` that it names."""
        wanted = set(re.findall(r"\$(\w+)", statement))
        given = {name: value for name, value in (parameters or {}).items() if name in wanted}
        return self.connection.execute(statement, given) if given else self.connection.execute(statement)

    def rows(self, statement: str, parameters: Mapping[str, Any] | None = None) -> list[tuple[Any, ...]]:
        """All rows of a small result."""
        return list(self.run(statement, parameters).fetchall())

    def value(self, statement: str, parameters: Mapping[str, Any] | None = None) -> Any:
        """The single value of a result."""
        return self.rows(statement, parameters)[0][0]

    def table(self, name: str, select: str, parameters: Mapping[str, Any] | None = None) -> None:
        """Make or replace the temporary table ``name``."""
        self.run(f"CREATE OR REPLACE TEMP TABLE {name} AS {select}", parameters)

    def parquet(self, name: str, path: Path) -> None:
        """Make ``name`` stand for a Parquet file (or a glob of them), read in place."""
        self.run(f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT * FROM read_parquet({quoted(path)})")

    def csv(self, name: str, path: Path, columns: tuple[str, ...]) -> None:
        """Make ``name`` stand for a CSV file read in place as text; casting is the statement's business."""
        kinds = ", ".join(f"{quoted(column)}: 'VARCHAR'" for column in columns)
        self.run(
            f"CREATE OR REPLACE TEMP VIEW {name} AS SELECT * FROM read_csv({quoted(path)}, header = true, "
            f"auto_detect = false, delim = ',', quote = '\"', escape = '\"', columns = {{{kinds}}})"
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


def quoted(text: object) -> str:
    """An SQL string literal."""
    return "'" + str(text).replace("'", "''") + "'"
