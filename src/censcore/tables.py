"""Tables that are read in batches: Parquet and CSV files, frames of Dask, polars, DuckDB, and iterables."""

from __future__ import annotations

import glob
import hashlib
import io
import json
import os
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, Protocol

import numpy as np

from censcore._validation import as_count, as_frame, check_kind
from censcore.exceptions import CenscoreError, InvalidInputError, InvalidTypeError, MissingPackageError
from censcore.plain_text import one_line, some_of

if TYPE_CHECKING:
    import pandas as pd

PARQUET, CSV = (".parquet", ".pq"), (".csv", ".tsv", ".txt")
SAMPLE = 2**20  # bytes of a CSV file from which the length of its lines is learned
MOST_ROWS = 10**12  # in a batch


@contextmanager
def readable(table: Any, start: int = 0) -> Iterator[None]:
    """Turn what a parser says of a table into an error of the library with the file and, if known, the line.

    ``start`` is the byte at which the part that is parsed begins, after the line of the names.
    """
    try:
        yield
    except CenscoreError:
        raise
    except Exception as error:
        why = str(error) or type(error).__name__
        if isinstance(error, UnicodeDecodeError):
            why = f"{_place_of_bad_byte(str(table))}, expected UTF-8. Save the table as UTF-8 text ({why})"
        elif start:
            with open(str(table), "rb") as file:
                before = file.read(start).count(b"\n") - 1
            why = re.sub(r"(?<=line )\d+", lambda line: str(int(line[0]) + before), why)
        raise InvalidInputError(f"{one_line(str(table))} could not be read as a table: {why}") from error


def _place_of_bad_byte(path: str) -> str:
    """Where a file is not UTF-8."""
    if os.path.isfile(path):
        with open(path, "rb") as file:
            for number, line in enumerate(file, 1):
                if line.decode(errors="replace").encode() != line:
                    return f"got a byte that is not UTF-8 in line {number}"
    return "got a byte that is not UTF-8"


def open_parquet(source: Any) -> Any:
    """Open a Parquet file, by its path or its bytes, to be read without threads.

    Where there is no memory for another thread, those of Arrow wait for each other without an end.
    """
    try:
        import pyarrow.parquet
    except ModuleNotFoundError as error:
        raise MissingPackageError("Parquet files need pyarrow: pip install 'censcore[cli]'.") from error
    return pyarrow.parquet.ParquetFile(source, pre_buffer=False)


class Batch(Protocol):
    """A part of a table that one task reads, in pieces of bounded size."""

    rows: int  #: how many rows it has, about; zero, or missing, where that is not known

    def names(self) -> list[str]:
        """Names of the columns."""

    def frames(self, columns: Sequence[str] | None, rows: int, text: Sequence[str]) -> Iterator[Any]:
        """Frames of at most about ``rows`` rows; ``text`` columns are labels that CSV files do not type."""

    @property
    def identity(self) -> str:
        """What the content follows from, for stored results; empty where that is not known."""
        return ""


@dataclass(frozen=True)
class FileBatch(Batch):
    """A part of a file; its fields, with the size and the date of the file, identify its content."""

    path: str
    version: str
    rows: int

    @property
    def identity(self) -> str:
        """The file as it is now, and the part."""
        return " ".join(str(getattr(self, field.name)) for field in fields(self))

    def __str__(self) -> str:
        return self.path


@dataclass(frozen=True)
class ParquetBatch(FileBatch):
    """Some row groups of a Parquet file."""

    groups: tuple[int, ...]

    def names(self) -> list[str]:
        """Names of the columns; an index that pandas stored as a range counts as one."""
        with readable(self), open_parquet(self.path) as file:
            return [*file.schema_arrow.names, *_range_index(file)]

    def frames(self, columns: Sequence[str] | None, rows: int, text: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Frames of at most ``rows`` rows."""
        with readable(self), open_parquet(self.path) as file:
            stored, index = list(file.schema_arrow.names), _range_index(file)
            wanted = [*stored, *index] if columns is None else list(columns)
            check_columns(wanted, [*stored, *index], str(self))
            read = [name for name in wanted if name in stored]
            first = sum(file.metadata.row_group(i).num_rows for i in range(self.groups[0]))
            groups = list(self.groups)
            for part in file.iter_batches(rows, groups, columns=read, use_threads=False):
                # a name is read as the beginning of names, too; pandas is to make no index of a column
                frame = part.select(read).replace_schema_metadata(None).to_pandas(use_threads=False)
                for name in set(wanted) - set(read):
                    frame[name] = index[name].start + index[name].step * np.arange(first, first + len(part))
                first += len(part)
                yield frame if len(read) == len(wanted) else frame[wanted]


@dataclass(frozen=True)
class CsvBatch(FileBatch):
    """Some lines of a CSV file, by the bytes that they occupy."""

    start: int
    stop: int
    header: bytes

    @property
    def _separator(self) -> str:
        return "\t" if self.path.lower().endswith(".tsv") else ","

    def names(self) -> list[str]:
        """Names of the columns."""
        import pandas as pd

        with readable(self):
            return list(pd.read_csv(io.BytesIO(self.header), sep=self._separator, nrows=0).columns)

    def frames(self, columns: Sequence[str] | None, rows: int, text: Sequence[str]) -> Iterator[pd.DataFrame]:
        """One frame."""
        import pandas as pd

        if columns is not None:
            check_columns(columns, self.names(), str(self))
        with open(self.path, "rb") as file:
            file.seek(self.start)
            content = io.BytesIO(self.header + file.read(self.stop - self.start))
        with readable(self, self.start):
            types = dict.fromkeys(text, str)
            # all columns: told to use some, pandas does not see that a line has too many
            frame = pd.read_csv(content, sep=self._separator, dtype=types)
        yield from FrameBatch(frame, frame.columns).frames(columns, rows, text)


@dataclass(frozen=True, eq=False)
class FrameBatch(Batch):
    """A frame in memory, or a partition of a Dask data frame: a task of Dask, whose result is a frame."""

    frame: Any
    columns: Sequence[Any]
    delayed: bool = False
    first: int = 0  #: the number of its first row in the table

    def names(self) -> list[str]:
        """Names of the columns."""
        return [str(name) for name in self.columns]

    @property
    def rows(self) -> int:  # type: ignore[override]  # read alone
        """Those of the frame; zero where Dask is still to compute it."""
        return 0 if self.delayed else len(self.frame)

    @property
    def identity(self) -> str:
        """A hash of the content."""
        if self.delayed:
            return ""
        import pandas as pd

        digest = hashlib.blake2b(repr(list(self.columns)).encode(), digest_size=16)
        for name in self.frame:
            digest.update(pd.util.hash_pandas_object(self.frame[name], index=False).to_numpy().tobytes())
        return digest.hexdigest()

    def frames(self, columns: Sequence[str] | None, rows: int, text: Sequence[str]) -> Iterator[pd.DataFrame]:
        """Slices of ``rows`` rows; a partition is computed here."""
        frame = self.frame.compute() if self.delayed else self.frame
        if columns is not None:
            check_columns(columns, self.names(), str(self))
        for start in range(0, len(frame), rows):
            part = frame.iloc[start : start + rows]
            yield part if columns is None else part[list(columns)]

    def __str__(self) -> str:
        return "the Dask data frame" if self.delayed else "the table"


@dataclass(frozen=True, eq=False)
class Batches:
    """The batches of a table, in a fixed order, whenever they are gone through."""

    known: Sequence[Batch]  #: those that tasks read themselves; none where rows pass through this process
    rows: int | None  #: of the table, about; None where that is not known
    delayed: bool = False  #: whether they are partitions that Dask is still to compute
    stream: Callable[[], Iterator[FrameBatch]] | None = None  #: in place of ``known``

    def __iter__(self) -> Iterator[Any]:
        return iter(self.known) if self.stream is None else self.stream()

    @classmethod
    def of(cls, known: Sequence[Any], delayed: bool = False) -> Batches:
        """From batches that tasks read themselves."""
        return cls(known, sum(getattr(batch, "rows", 0) for batch in known) or None, delayed)


def batches_of(data: Any, rows: int) -> Batches:
    """The parts of a table that tasks read, of about ``rows`` rows each; row groups of Parquet are not split.

    ``data`` is a Parquet or CSV file, a folder of such files, a pattern with ``*``, a list of paths, a Dask
    data frame, a lazy frame of polars, a relation of DuckDB, a frame in memory, a list or another iterable of
    frames, a function that gives one, or a list of objects with the methods of :class:`Batch`.

    >>> import pandas as pd
    >>> [len(frame) for batch in batches_of(pd.DataFrame({"t": range(5)}), 2)
    ...  for frame in batch.frames(None, 2, ())]
    [2, 2, 1]
    """
    rows, listed = as_count(rows, "rows", most=MOST_ROWS), isinstance(data, list | tuple) and bool(data)
    if isinstance(data, str | os.PathLike):
        paths = _files(str(data))
    elif listed and all(isinstance(x, str | os.PathLike) for x in data):
        paths = [file for path in data for file in _files(str(path))]
    elif listed and all(hasattr(part, "frames") for part in data):
        return Batches.of(data)
    elif hasattr(data, "to_delayed"):
        return Batches.of([FrameBatch(x, list(data.columns), True) for x in data.to_delayed()], True)
    elif (of_frames := _frames(data, rows)) is not None:
        frames, count = of_frames
        return Batches((), count, stream=lambda: _in_rows(frames(), rows))
    else:
        return Batches.of(list(_in_rows([data], rows)))
    batches = [batch for path in paths for batch in _parts(path, rows)]
    if not batches:
        raise InvalidInputError(f"{some_of(paths)}: got a table without rows, expected at least one subject.")
    return Batches.of(batches)


def is_lazy(data: Any) -> bool:
    """Whether a table is computed only when it is read: of Dask, polars or DuckDB."""
    return hasattr(data, "to_delayed") or hasattr(data, "collect_batches") or hasattr(data, "to_arrow_reader")


def _frames(data: Any, rows: int) -> tuple[Callable[[], Iterable[Any]], int | None] | None:
    """What gives the frames of a table in order, and the number of rows if it is known; None of a frame."""
    if hasattr(data, "collect_batches"):  # polars
        import polars as pl

        count = int(data.select(pl.len()).collect().item())
        return partial(data.collect_batches, chunk_size=rows, maintain_order=True), count
    if hasattr(data, "to_arrow_reader"):  # a relation of DuckDB, which is read once
        return lambda: (part.to_pandas() for part in data.project("*").to_arrow_reader(rows)), data.shape[0]
    if hasattr(data, "columns") or hasattr(data, "column_names") or isinstance(data, dict):
        return None
    if callable(data):
        return data, None
    if isinstance(data, Iterator):
        raise InvalidTypeError(
            f"data: got {type(data).__name__}, which can be gone through once, expected frames that are read "
            "several times: a list, or a function without arguments that begins again, such as lambda: "
            "read_parts(folder)."
        )
    if isinstance(data, Iterable):
        return lambda: data, sum(map(len, data)) if isinstance(data, list | tuple) else None
    raise InvalidTypeError(
        f"data: got {type(data).__name__}, expected a path of Parquet or CSV files, a list of paths, a lazy "
        "frame of Dask or polars, a relation of DuckDB, a data frame, or an iterable of frames."
    )


def _in_rows(frames: Iterable[Any], rows: int) -> Iterator[FrameBatch]:
    """Batches of ``rows`` rows each, however many the frames have; the last one has fewer."""
    import pandas as pd

    waiting, count, first = list[pd.DataFrame](), 0, 0
    for frame in frames:
        waiting.append(as_frame(frame, name="data").to_pandas())
        count += len(waiting[-1])
        if count >= rows:
            whole = pd.concat(waiting, ignore_index=True) if len(waiting) > 1 else waiting[0]
            for start in range(0, count - rows + 1, rows):
                yield FrameBatch(whole.iloc[start : start + rows], whole.columns, first=first)
                first += rows
            waiting, count = [whole.iloc[count - count % rows :]], count % rows
    if count:
        whole = pd.concat(waiting, ignore_index=True)
        yield FrameBatch(whole, whole.columns, first=first)


def memory_of(path: Path) -> float:
    """Bytes that the numbers of a file take in memory, eight for each; zero for one not read in parts."""
    ending = path.suffix.lower()
    if ending in PARQUET:
        try:
            with open_parquet(path) as table:
                metadata = table.metadata
        except Exception:  # reading the file says what is wrong with it
            return 0.0
        return 8.0 * metadata.num_rows * metadata.num_columns
    if ending not in CSV:
        return 0.0
    with open(path, "rb") as file:
        columns, sample = file.readline().count(b"\t" if ending == ".tsv" else b",") + 1, file.read(SAMPLE)
    return 8.0 * columns * path.stat().st_size * sample.count(b"\n") / max(len(sample), 1)


def check_columns(wanted: Sequence[str], there: Sequence[str], where: str) -> None:
    """Every wanted column must be there."""
    for name in wanted:
        check_kind(name, f"{where}, the name of a column", str, "a text")
    missing = [name for name in wanted if name not in there]
    if missing:
        shown = some_of(there, 12)
        raise InvalidInputError(f"{where}: there is no column {', '.join(missing)}. There are: {shown}")


def _files(text: str) -> list[str]:
    """The files that a path or a pattern stands for, in order."""
    path = Path(text)
    if path.is_dir():
        files = [file for file in path.rglob("*") if file.suffix.lower() in (*PARQUET, *CSV)]
        shown = [file for file in files if not any(x[0] in "._" for x in file.relative_to(path).parts)]
        paths = sorted(map(str, shown))
        if not paths:
            raise InvalidInputError(f"The folder {text} holds no .parquet or .csv files.")
        kinds = {Path(file).suffix.lower() in PARQUET for file in paths}
        if len(kinds) > 1:
            raise InvalidInputError(f"The folder {text} holds Parquet and CSV files; expected one kind.")
        return paths
    pattern = any(sign in text for sign in "*?[") and not path.exists()  # a name may hold these signs
    paths = sorted(glob.glob(text)) if pattern else [text]
    if not paths or not all(os.path.exists(file) for file in paths):
        raise InvalidInputError(f"There is no file {text}.")
    return paths


def _parts(path: str, rows: int) -> list[Batch]:
    ending = Path(path).suffix.lower()
    state = os.stat(path)
    version = f"{state.st_size} {state.st_mtime_ns}"
    if ending in PARQUET:
        return list(_row_groups(path, rows, version))
    if ending in CSV:
        return list(_line_ranges(path, rows, version))
    raise InvalidInputError(
        f"{path}: got {ending or 'no ending'}, expected .parquet, .csv or .tsv (compressed CSV files cannot "
        "be read in parts; unpack them or write Parquet)."
    )


def _row_groups(path: str, rows: int, version: str) -> Iterator[ParquetBatch]:
    """Consecutive row groups, as many as make up ``rows`` rows."""
    with readable(path), open_parquet(path) as file:
        metadata = file.metadata
    groups: list[int] = []
    count = 0
    for number in range(metadata.num_row_groups):
        groups.append(number)
        count += metadata.row_group(number).num_rows
        if count >= rows or number == metadata.num_row_groups - 1:
            yield ParquetBatch(path, version, count, tuple(groups))
            groups, count = [], 0


def _line_ranges(path: str, rows: int, version: str) -> Iterator[CsvBatch]:
    """Consecutive bytes that end with a line; a line break between quotation marks does not count."""
    with open(path, "rb") as file:
        header = file.readline()
        sample = file.read(SAMPLE)
        length = len(sample) / max(sample.count(b"\n"), 1)
        total, start = os.path.getsize(path), len(header)
        size = min(max(int(rows * length), 1), total)
        while start < total:
            file.seek(start)
            block = file.read(size)
            if start + len(block) < total:
                end = block.rfind(b"\n") + 1
                while end > 0 and block.count(b'"', 0, end) % 2:
                    end = block.rfind(b"\n", 0, end - 1) + 1
                if not end:
                    size *= 2  # a line that is longer than the block
                    continue
                block = block[:end]
            yield CsvBatch(path, version, int(len(block) / length), start, start + len(block), header)
            start += len(block)


def _range_index(file: Any) -> dict[str, range]:
    """An index by its name that pandas wrote as first, last and step, beside the columns; none is usual."""
    stored = file.schema_arrow
    try:
        (index,) = json.loads(stored.metadata[b"pandas"])["index_columns"]
        name, values = index["name"], range(index["start"], index["stop"], index["step"])
        np.array([index["start"], index["stop"]], dtype=np.int64)
        fits = index["kind"] == "range" and len(values) == file.metadata.num_rows
    except (KeyError, TypeError, ValueError, OverflowError, RecursionError):  # metadata of any form
        return {}
    return {name: values} if fits and isinstance(name, str) and name not in stored.names else {}
