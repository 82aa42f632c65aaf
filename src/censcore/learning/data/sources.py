"""Training data that are read in batches: tables on disk, and batches that the user provides."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore._numerics import scramble
from censcore._validation import as_count, as_frame, as_list, check_instance
from censcore.distributions.random_draws import keys_of
from censcore.estimators.covariates import take_rows
from censcore.exceptions import InvalidInputError, InvalidTypeError
from censcore.learning.data.checks import as_past, check_mask
from censcore.outcomes import CompetingRisks, RightCensored, SemiCompetingRisks, as_outcome
from censcore.tables import MOST_ROWS, Batch, batches_of, check_columns


@dataclass(frozen=True, eq=False)
class Block:
    """Some consecutive subjects of a part of the data.

    ``place`` has the places of the subjects in the part of this number. Where the mask (n, k) is False, an
    event time does not count, and y has an event at time zero.
    """

    X: Any
    y: Any
    weight: np.ndarray | None
    groups: np.ndarray | None
    part: int
    place: np.ndarray
    mask: np.ndarray | None = None

    def __len__(self) -> int:
        return len(self.y)

    def keys(self, seed: int) -> np.ndarray:
        """A random number for every subject, (n,), that follows from its group, or else from its place."""
        if self.groups is not None:
            return np.broadcast_to(keys_of([self.groups], seed), (len(self),))
        start = scramble(scramble(np.array([seed % 2**64], dtype=np.uint64)) ^ np.uint64(self.part))
        return scramble(start ^ scramble(self.place.astype(np.uint64)))

    def take(self, rows: np.ndarray) -> Block:
        """Some of the subjects."""
        weight, groups, mask = (None if v is None else v[rows] for v in (self.weight, self.groups, self.mask))
        X, y = take_rows(self.X, rows), self.y.take(rows)
        return Block(X, y, weight, groups, self.part, self.place[rows], mask)


def joined_blocks(blocks: Sequence[Block]) -> Block:
    """The subjects of several blocks in one."""
    first = blocks[0]
    weight, groups, mask = (
        _all_or_none([getattr(b, name) for b in blocks], told)
        for name, told in (("weight", "sample_weight"), ("groups", "groups"), ("mask", "mask"))
    )
    place = np.concatenate([b.place for b in blocks])
    X, y = _stacked([b.X for b in blocks]), type(first.y).concat([b.y for b in blocks])
    return Block(X, y, weight, groups, first.part, place, mask)


def _all_or_none(parts: Sequence[np.ndarray | None], name: str) -> np.ndarray | None:
    there = [part for part in parts if part is not None]
    if there and len(there) < len(parts):
        raise InvalidInputError(f"batches: got {name} in some of them, expected it in all or in none.")
    return np.concatenate(there) if there else None


def _stacked(tables: Sequence[Any]) -> Any:
    if tables[0] is None:
        return None
    if hasattr(tables[0], "columns"):
        import narwhals as nw

        return nw.concat([as_frame(table, name="X") for table in tables]).to_native()
    return np.concatenate([to_numpy(table) for table in tables])


Reader = Callable[[], Iterator[Block]]


@dataclass(frozen=True)
class Source:
    """Data in parts that can be read again and again, each in blocks of bounded size."""

    parts: tuple[Reader, ...]

    def share(self, rank: int, processes: int) -> Source:
        """What one of several processes reads: whole parts, or every p-th subject of p if parts are few."""
        if processes == 1:
            return self
        if len(self.parts) >= processes:
            return Source(self.parts[rank::processes])
        return Source(tuple(_thinned(read, rank, processes) for read in self.parts))


def _thinned(read: Reader, rank: int, processes: int) -> Reader:
    def blocks() -> Iterator[Block]:
        for block in read():
            rows = np.flatnonzero(block.keys(-1) % np.uint64(processes) == rank)
            if rows.size:
                yield block.take(rows)

    return blocks


@dataclass(frozen=True, eq=False)
class TrainingTable:
    """Training subjects in a table that is read in batches: Parquet or CSV files, or a frame.

    Passed to ``fit_batches`` of a neural estimator, which then holds no more than a few batches in memory.

    Parameters
    ----------
    data : path, pattern, list of paths, Dask data frame or frame
        A Parquet or CSV file, a folder of such files, a pattern such as ``"visits/*.parquet"``, or a table.
        Row groups of Parquet files are the parts that are visited in random order and shared out to several
        processes; write some hundred of them, of up to 100,000 rows each.
    time, event : str or list of str
        Columns of the observed times, and of whether each is an event; lists for several event times.
    covariates : list of str, optional
        Columns of the covariates; all others if omitted.
    censoring_time : str or list of str, optional
        Columns of the censoring times, where they are known for all subjects.
    terminal : int, optional
        Which of several events is terminal: the outcome is then :class:`~censcore.SemiCompetingRisks`.
    causes : list of str, optional
        Names of competing causes: ``event`` then holds 0 for censoring, and 1, 2, ... for these; the outcome
        is :class:`~censcore.CompetingRisks`.
    sample_weight, groups : str, optional
        Columns of the weights, and of groups, which are not separated by the validation split.
    rows : int
        How many rows to read at a time.
    mask : str or list of str, optional
        Columns that tell whether each event time counts, True or 1, or not: it is already past, or was not
        looked for. What the time and event columns hold there, for instance NaN, plays no part.

    Examples
    --------
    >>> import pandas as pd, censcore as cs
    >>> frame = pd.DataFrame({"age": [50.0, 61.0, 47.0], "days": [5.0, 2.0, 9.0], "died": [1, 0, 1]})
    >>> table = cs.TrainingTable(frame, "days", "died", rows=2)
    >>> [(list(X.columns), len(y)) for X, y, _, _ in table]
    [(['age'], 2), (['age'], 1)]
    """

    data: Any
    time: str | Sequence[str]
    event: str | Sequence[str]
    covariates: Sequence[str] | None = None
    censoring_time: str | Sequence[str] | None = None
    terminal: int | None = None
    causes: Sequence[str] | None = None
    sample_weight: str | None = None
    groups: str | None = None
    rows: int = 32_768
    mask: str | Sequence[str] | None = None
    _batches: list[Batch] = field(init=False, repr=False)
    _columns: list[str] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "rows", as_count(self.rows, "rows", most=MOST_ROWS))
        if self.covariates is not None:
            as_list(self.covariates, "covariates", "column names")
        times, masks = _names(self.time, "time"), _names(self.mask, "mask")
        if self.mask is not None and len(masks) != len(times):
            raise InvalidInputError(
                f"mask: got {len(masks)} columns, expected one for each of {len(times)} event times."
            )
        if self.mask is not None and (self.causes is not None or self.terminal is not None):
            raise InvalidInputError("mask: not available with causes or terminal; leave it out.")
        batches = batches_of(self.data, self.rows)
        there, used = batches[0].names(), self._used()
        check_columns(used, there, "the table")
        others = [name for name in there if name not in used]
        object.__setattr__(self, "_columns", others if self.covariates is None else list(self.covariates))
        check_columns(self._columns, there, "the table")
        object.__setattr__(self, "_batches", batches)

    def _used(self) -> list[str]:
        named = ("time", "event", "censoring_time", "sample_weight", "groups", "mask")
        return [name for word in named for name in _names(getattr(self, word), word)]

    def __iter__(self) -> Iterator[tuple[Any, ...]]:
        """Covariates, outcome, weights, groups, and the mask if there is one, of one batch after another."""
        for part in range(len(self._batches)):
            yield from self.read(part)

    def __len__(self) -> int:
        """Number of parts."""
        return len(self._batches)

    def read(self, part: int) -> Iterator[tuple[Any, ...]]:
        """The batches of one part."""
        wanted = [*self._columns, *self._used()]
        for frame in self._batches[part].frames(list(dict.fromkeys(wanted)), self.rows, ()):
            X = frame[self._columns] if self._columns else None
            weight, groups = (
                None if name is None else frame[name].to_numpy() for name in (self.sample_weight, self.groups)
            )
            mask = () if self.mask is None else (self._mask(frame),)
            yield X, self._outcome(frame, *mask), weight, groups, *mask

    def _mask(self, frame: Any) -> np.ndarray:
        names = _names(self.mask, "mask")
        counts = frame[names].to_numpy()
        if not np.isin(counts, (False, True)).all():
            raise InvalidInputError(
                f"mask: got values other than True and False (or 1 and 0) in {', '.join(names)}."
            )
        return counts.astype(bool)

    def _outcome(self, frame: Any, mask: np.ndarray | None = None) -> Any:
        time, event, c = (_values(frame, names) for names in (self.time, self.event, self.censoring_time))
        if mask is not None:
            counts = mask.reshape(time.shape)
            time, event = np.where(counts, time, 0.0), np.where(counts, event, True)
        if self.causes is not None:
            return CompetingRisks(time, event, c, names=list(self.causes))
        if self.terminal is not None:
            return SemiCompetingRisks(time, event, self.terminal, c)
        return RightCensored(time, event, c)


def _values(frame: Any, names: str | Sequence[str] | None) -> Any:
    return None if names is None else frame[names if isinstance(names, str) else list(names)].to_numpy()


def _names(part: str | Sequence[str] | None, word: str) -> list[str]:
    return [] if part is None else [part] if isinstance(part, str) else as_list(part, word, "column names")


def as_source(data: Any) -> Source:
    """Data in parts, from a table, a sequence of batches or a function that gives an iterator of them.

    A batch is ``(X, y)``, or has weights, groups and a mask as further entries.

    >>> y = RightCensored([1.0, 2.0], [1, 0])
    >>> source = as_source([(None, y), (None, y)])
    >>> len(source.parts), [len(block) for block in source.parts[1]()]
    (2, [2])
    """
    if isinstance(data, TrainingTable):
        return Source(tuple(_reader(i, partial(data.read, i)) for i in range(len(data))))
    check_instance(data, "batches")
    if callable(data):
        return Source((_reader(0, data),))
    if hasattr(data, "__len__") and hasattr(data, "__getitem__") and not isinstance(data, str):
        if not len(data):
            raise InvalidInputError("batches: got an empty sequence, expected at least one (X, y).")
        return Source(tuple(_reader(i, partial(map, data.__getitem__, [i])) for i in range(len(data))))
    if isinstance(data, Iterable) and not isinstance(data, str | Iterator):
        return Source((_reader(0, lambda: data),))
    raise InvalidTypeError(
        f"batches: got {type(data).__name__}, expected what can be read once per epoch: a TrainingTable of "
        "files, a list of (X, y), or a function without arguments that returns an iterator of (X, y)."
    )


def _reader(part: int, batches: Callable[[], Iterable[Any]]) -> Reader:
    def blocks() -> Iterator[Block]:
        first = 0
        for batch in batches():
            block = _block(batch, part, first)
            first += len(block)
            if len(block):
                yield block

    return blocks


def _block(batch: Any, part: int, first: int) -> Block:
    if not isinstance(batch, tuple | list) or not 2 <= len(batch) <= 5:
        got = f"{len(batch)} entries" if isinstance(batch, tuple | list) else type(batch).__name__
        raise InvalidTypeError(
            "A batch must be (X, y), or begin with them: (X, y, sample_weight, groups, mask), with None for "
            f"what there is not; got {got}."
        )
    X, y, weight, groups, mask = [*batch, None, None, None][:5]
    if not hasattr(y, "take") or not hasattr(y, "time"):
        y = as_outcome(y)
    for name, value in (("X", X), ("sample_weight", weight), ("groups", groups)):
        if value is not None and np.shape(value)[0] != len(y):
            raise InvalidInputError(
                f"{name} of a batch: got {np.shape(value)[0]} rows, expected {len(y)}, one per subject of y."
            )
    weight, groups = (None if v is None else np.asarray(v) for v in (weight, groups))
    mask = check_mask(mask, y)
    y = y if mask is None else as_past(y.require_no_entry("fit_batches"), mask)
    return Block(X, y, weight, groups, part, np.arange(first, first + len(y)), mask)
