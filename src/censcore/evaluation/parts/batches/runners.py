"""Sums over batches, and where they are made: here, in processes of joblib, or on a Dask cluster."""

from __future__ import annotations

import operator
import os
import socket
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from censcore.evaluation.parts.fold_store import load_value, model_key, save_value
from censcore.exceptions import InvalidInputError, MissingPackageError
from censcore.processes import in_processes
from censcore.progress import ProgressBar
from censcore.store import path_of
from censcore.tables import Batch, FrameBatch

PATIENCE = 5.0  # seconds in which a scheduler must answer
AT_ONCE = 256  # tasks that a cluster is given at a time
RETRIES = 3  # of batches whose worker was killed
LARGEST = 2**63 - 1  # number of a key

Work = Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class Runner:
    """Applies a task to all batches of a table, in order."""

    n_jobs: int | None = None  #: processes at a time, through joblib
    client: Any = None  #: of a Dask cluster, in place of processes
    store: Path | None = None  #: folder for the sums of finished batches
    progress: bool | None = False  #: show a bar

    def total(self, work: Callable[[Any], PartialSums], batches: Sequence[Batch], what: str) -> PartialSums:
        """The sum of what the task gives for each batch."""
        work = work if self.store is None else _Stored(work, self.store)
        return merged(self.each(work, batches, what))

    def each(self, work: Work, batches: Sequence[Batch], what: str) -> Iterator[Any]:
        """What the task gives for each batch, in order."""
        with ProgressBar(what, len(batches), show=self.progress) as bar:
            for result in self._results(work, batches):
                yield result
                bar.advance()

    def in_one_process(self, batches: Sequence[Batch]) -> bool:
        """Whether all batches pass through this process, and nothing is stored."""
        elsewhere = self.client is not None or self.store is not None or _is_delayed(batches[0])
        return not elsewhere and (self.n_jobs in (None, 1) or len(batches) == 1)

    def _results(self, work: Work, batches: Sequence[Batch]) -> Iterator[Any]:
        if self.client is not None:
            yield from _on_cluster(self.client, work, batches)
        elif _is_delayed(batches[0]):
            yield from _by_dask(work, batches)
        elif self.n_jobs in (None, 1) or len(batches) == 1:
            yield from map(work, batches)
        else:
            yield from _in_processes(self.n_jobs, work, batches)


def _is_delayed(batch: Batch) -> bool:
    """Whether a batch is a partition that Dask has still to compute."""
    return isinstance(batch, FrameBatch) and batch.delayed


def _in_processes(n_jobs: int | None, work: Work, batches: Sequence[Batch]) -> Iterator[Any]:
    """By processes of joblib; what was under way when one of them was killed is done again by others."""
    done = lost = 0
    while done < len(batches):
        tasks = (partial(_in_worker, work, batch) for batch in batches[done:])
        try:
            for result in in_processes(tasks, n_jobs):
                yield result
                done, lost = done + 1, 0
        except BrokenProcessPool:
            lost += 1
            if lost > RETRIES:
                raise


def _in_worker(work: Work, batch: Any) -> Any:
    """One thread in each process: the processes fill the cores."""
    os.environ.setdefault("CENSCORE_THREADS", "1")
    return work(batch)


class _Stored:
    """A task whose results are kept, by a hash of everything that they depend on."""

    def __init__(self, work: Callable[[Any], PartialSums], folder: Path) -> None:
        self.work, self.folder, self.token = work, folder, model_key("comparison", work, None)

    def __call__(self, batch: Any) -> PartialSums:
        """The result that was stored, or a new one."""
        identity = getattr(batch, "identity", "")
        if not identity:
            return self.work(batch)
        path = path_of(self.folder, self.token, identity)
        part = read_partial(path)
        if part is None:
            part = self.work(batch)
            write_partial(path, part)
        return part


# ---- Dask ------------------------------------------------------------------------------------------------


def _tasks(work: Work, batches: Sequence[Batch]) -> list[Any]:
    """Tasks of Dask; the plan is one of them, so that a lost worker does not lose it."""
    delayed = _dask().delayed
    plan = delayed(_same, pure=False)(work)
    run = delayed(operator.call, pure=False)
    return [run(plan, getattr(batch, "frame", batch) if _is_delayed(batch) else batch) for batch in batches]


def _dask() -> Any:
    import dask

    return dask


def _same(work: Work) -> Work:
    return work


def _by_dask(work: Work, batches: Sequence[Batch]) -> Iterator[Any]:
    """By the scheduler that Dask uses by default, a few partitions at a time."""
    tasks = _tasks(work, batches)
    for start in range(0, len(tasks), 8):
        yield from _dask().compute(*tasks[start : start + 8])


def _on_cluster(client: Any, work: Work, batches: Sequence[Batch]) -> Iterator[Any]:
    tasks = _tasks(work, batches)
    waiting: list[Any] = []
    for start in range(0, len(tasks), AT_ONCE):
        waiting += client.compute(tasks[start : start + AT_ONCE], retries=RETRIES)
        while len(waiting) > AT_ONCE // 2 or (start + AT_ONCE >= len(tasks) and waiting):
            yield waiting.pop(0).result()


@contextmanager
def cluster(dask: Any) -> Iterator[Any]:
    """A client of the cluster at an address, or the client that is given; None without any."""
    if not isinstance(dask, str):
        yield dask
        return
    try:
        from distributed import Client
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            "A Dask cluster needs distributed: pip install 'censcore[dask]'."
        ) from error
    _check_scheduler(dask)
    try:
        client = Client(dask, timeout=PATIENCE)
    except (OSError, TimeoutError, ValueError) as error:
        raise InvalidInputError(_no_scheduler(dask, str(error))) from error
    with client:
        yield client


def _check_scheduler(address: str) -> None:
    """Whether anything listens there; Dask would try for half a minute."""
    host, _, port = address.removeprefix("tcp://").removeprefix("tls://").rpartition(":")
    if not host or not port.isdigit():
        raise InvalidInputError(
            f"dask: got {address!r}, expected the address of a scheduler, such as tcp://127.0.0.1:8786."
        )
    try:
        socket.create_connection((host.strip("[]"), int(port)), PATIENCE).close()
    except (OSError, OverflowError) as error:
        raise InvalidInputError(_no_scheduler(address, str(error))) from None


def _no_scheduler(address: str, why: str) -> str:
    return f"dask: there is no Dask scheduler at {address} ({why}); start one with 'dask scheduler'."


@dataclass(frozen=True, eq=False)
class Keyed:
    """Sums (or largest values) for each distinct key.

    >>> sums = Keyed.of((np.array(["b", "a", "b"]),), np.array([[1.0], [2.0], [3.0]]))
    >>> sums.keys[0].tolist(), sums.values.ravel()
    (['a', 'b'], array([2., 4.]))
    """

    keys: tuple[np.ndarray, ...]  #: columns (K,) that together make up a key
    values: np.ndarray  #: what belongs to it, (K, c)
    largest: bool = False  #: whether values of equal keys are combined by their maximum, not their sum

    @classmethod
    def of(cls, keys: tuple[np.ndarray, ...], values: np.ndarray, largest: bool = False) -> Keyed:
        """From keys that repeat."""
        if not len(values):
            return cls(keys, values, largest)
        number = np.zeros(len(values), dtype=np.int64)
        for key in keys:
            distinct, code = np.unique(key, return_inverse=True)
            if number.max() >= LARGEST // len(distinct):  # millions of several times: number what there is
                number = np.unique(number, return_inverse=True)[1].reshape(-1)
            number = number * len(distinct) + code.reshape(-1)
        order = np.argsort(number)
        first = np.flatnonzero(np.diff(number[order], prepend=-1))
        combine = np.maximum if largest else np.add
        return cls(tuple(key[order[first]] for key in keys), combine.reduceat(values[order], first), largest)

    def __add__(self, other: Keyed) -> Keyed:
        keys = tuple(np.concatenate(pair) for pair in zip(self.keys, other.keys, strict=True))
        return Keyed.of(keys, np.concatenate([self.values, other.values]), self.largest)


@dataclass(frozen=True, eq=False)
class PartialSums:
    """What a batch contributes: sums by name, sums by name and key, and what is not available and why."""

    sums: dict[str, np.ndarray] = field(default_factory=dict)
    keyed: dict[str, Keyed] = field(default_factory=dict)
    unavailable: dict[str, str] = field(default_factory=dict)

    def __add__(self, other: PartialSums) -> PartialSums:
        with np.errstate(invalid="ignore"):  # an infinite loss has no spread
            sums = {**self.sums, **other.sums} | {
                name: self.sums[name] + other.sums[name] for name in self.sums.keys() & other.sums.keys()
            }
        keyed = {**self.keyed, **other.keyed} | {
            name: self.keyed[name] + other.keyed[name] for name in self.keyed.keys() & other.keyed.keys()
        }
        return PartialSums(sums, keyed, {**other.unavailable, **self.unavailable})


def merged(parts: Iterable[PartialSums]) -> PartialSums:
    """The sum of all parts, pair by pair: rounding and work grow with the logarithm of their number.

    The order of additions follows from the order of the parts alone.

    >>> parts = [PartialSums({"n": np.array(float(i))}) for i in range(10)]
    >>> float(merged(parts).sums["n"])
    45.0
    """
    stack: list[tuple[int, PartialSums]] = []
    for part in parts:
        level = 0
        while stack and stack[-1][0] == level:
            part, level = stack.pop()[1] + part, level + 1
        stack.append((level, part))
    total = PartialSums()
    for _, part in reversed(stack):
        total = part + total
    return total


# ---- on disk ---------------------------------------------------------------------------------------------


def write_partial(path: Path, part: PartialSums) -> None:
    """Write the sums of a batch in one piece, as arrays that are read without pickle."""
    keyed = {name: (values.keys, values.values, values.largest) for name, values in part.keyed.items()}
    save_value(path, {"sums": part.sums, "keyed": keyed, "unavailable": part.unavailable})


def read_partial(path: Path) -> PartialSums | None:
    """The sums of a batch; None where they were not stored, or the file is damaged."""

    def read(value: Any) -> PartialSums:
        keyed = {name: Keyed(*parts) for name, parts in value["keyed"].items()}
        return PartialSums(dict(value["sums"]), keyed, dict(value["unavailable"]))

    part: PartialSums | None = load_value(path, read)
    return part
