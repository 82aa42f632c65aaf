"""Work in processes of joblib, which end when the process that started them does."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from functools import cache
from multiprocessing import parent_process
from threading import Thread
from time import sleep
from typing import TypeVar

Result = TypeVar("Result")

PATIENCE = 1.0  # seconds between two looks at the process that started this one


def in_processes(
    tasks: Iterable[Callable[[], Result]], n_jobs: int | None, *, ordered: bool = True
) -> Iterator[Result]:
    """Yield the results of tasks, in their order or as they are ready, from ``n_jobs`` processes of joblib.

    A backend chosen with ``joblib.parallel_config`` is respected.

    >>> from functools import partial
    >>> list(in_processes([partial(pow, 2, 3), partial(pow, 2, 4)], n_jobs=1))
    [8, 16]
    """
    from joblib import Parallel, delayed

    parallel = Parallel(n_jobs=n_jobs, return_as="generator" if ordered else "generator_unordered")
    results: Iterator[Result] = parallel(delayed(_run)(task) for task in tasks)
    return results


def _run(task: Callable[[], Result]) -> Result:
    _end_with_parent()
    return task()


@cache
def _end_with_parent() -> None:
    """Watch, in a process that another one started, whether that is still there, and end with it.

    A process that is killed cannot tell its workers, and these would compute on for nobody.
    """
    parent = parent_process()
    if parent is not None:
        Thread(target=_watch, args=(parent.pid,), daemon=True).start()


def _watch(parent: int) -> None:
    while os.getppid() == parent:
        sleep(PATIENCE)
    os._exit(1)
