"""Where the sums of batches are made: in this process, in processes of joblib, or by Dask."""

from __future__ import annotations

import operator
import os
import socket
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from itertools import islice
from pathlib import Path
from typing import Any

from censcore.evaluation.parts.batches.sums import PartialSums, merged
from censcore.evaluation.parts.fold_store import model_key
from censcore.exceptions import InvalidInputError, MissingPackageError
from censcore.processes import in_processes
from censcore.progress import ProgressBar
from censcore.store import path_of
from censcore.tables import Batch, Batches

PATIENCE = 5.0  # seconds in which a scheduler must answer
AT_ONCE = 64  # batches whose results Dask hands over at a time, where they are not summed
RETRIES = 3  # of batches whose worker was killed

Work = Callable[[Any], Any]


@dataclass(frozen=True, eq=False)
class Runner:
    """Applies a task to all batches of a table, in order."""

    n_jobs: int | None = None  #: processes at a time, through joblib
    client: Any = None  #: of a Dask cluster, in place of processes
    store: Path | None = None  #: folder for the sums of finished batches
    progress: bool | None = False  #: show a bar

    def total(self, work: Callable[[Any], PartialSums], batches: Batches, what: str) -> PartialSums:
        """Add up what the task gives for each batch, in an order that the batches alone fix."""
        work = work if self.store is None else _Stored(work, self.store)
        if self._by_dask(batches):
            total: PartialSums = self._computed([merged(_tasks(work, batches))])[0]  # Dask adds them up, too
            return total
        return merged(self.each(work, batches, what))

    def each(self, work: Work, batches: Batches, what: str) -> Iterator[Any]:
        """Yield what the task gives for each batch, in order."""
        with ProgressBar(what, batches.rows, show=self.progress) as bar:
            if self._by_dask(batches):
                tasks = iter(_tasks(work, batches))
                while some := list(islice(tasks, AT_ONCE)):
                    yield from self._computed(some)
            elif self.in_one_process(batches):
                for batch in batches:
                    yield work(watched := _Watched(batch, bar))
                    bar.advance(steps=max(getattr(batch, "rows", 0) - watched.seen, 0))
            else:
                for rows, result in _in_processes(self.n_jobs, work, batches):
                    yield result
                    bar.advance(steps=rows)

    def in_one_process(self, batches: Batches) -> bool:
        """Whether all batches pass through this process."""
        return not self._by_dask(batches) and (self.n_jobs in (None, 1) or len(batches.known) == 1)

    def _by_dask(self, batches: Batches) -> bool:
        if self.client is not None and not batches.known:
            raise InvalidInputError(
                "dask: got rows that are read in this process, expected files that the workers of the "
                "cluster read themselves, or a Dask data frame."
            )
        return self.client is not None or batches.delayed

    def _computed(self, tasks: Sequence[Any]) -> list[Any]:
        """The results of tasks, from the cluster or the scheduler that Dask uses by default."""
        if self.client is None:
            return list(_dask().compute(*tasks))
        return list(self.client.gather(self.client.compute(tasks, retries=RETRIES)))


class _Watched:
    """A batch that tells a bar of its rows as they are read."""

    def __init__(self, batch: Batch, bar: ProgressBar) -> None:
        self.batch, self.bar, self.seen = batch, bar, 0

    def frames(self, *how: Any) -> Iterator[Any]:
        for frame in self.batch.frames(*how):
            yield frame
            self.seen += len(frame)
            self.bar.advance(steps=len(frame))

    def __getattr__(self, name: str) -> Any:
        return getattr(self.batch, name)

    def __str__(self) -> str:
        return str(self.batch)


def _in_processes(n_jobs: int | None, work: Work, batches: Batches) -> Iterator[tuple[int, Any]]:
    """By processes of joblib; what was under way when one of them was killed is done again by others."""
    done = lost = 0
    while True:
        sizes: list[int] = []

        def tasks(done: int = done, sizes: list[int] = sizes) -> Iterator[Callable[[], Any]]:
            for batch in islice(batches, done, None):
                sizes.append(getattr(batch, "rows", 0))
                yield partial(_in_worker, work, batch)

        try:
            for i, result in enumerate(in_processes(tasks(), n_jobs)):
                yield sizes[i], result
                done, lost = done + 1, 0
            return
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
        part = PartialSums.read(path)
        if part is None:
            part = self.work(batch)
            part.write(path)
        return part


# ---- Dask ------------------------------------------------------------------------------------------------


def _tasks(work: Work, batches: Batches) -> Iterator[Any]:
    """Tasks of Dask; the plan is one of them, so that a lost worker does not lose it."""
    delayed = _dask().delayed
    plan, run = delayed(_same, pure=False)(work), delayed(operator.call, pure=False)
    return (run(plan, batch.frame if batches.delayed else batch) for batch in batches)


def _dask() -> Any:
    import dask

    return dask


def _same(work: Work) -> Work:
    return work


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
