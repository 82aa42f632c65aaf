"""Progress bars of long work: training, bootstrap samples, studies."""

from __future__ import annotations

import sys
from collections.abc import Iterable, Iterator
from importlib.util import find_spec
from multiprocessing import parent_process
from time import perf_counter
from typing import Any, ClassVar, Self, TypeVar

from censcore._validation import check_flag
from censcore.exceptions import MissingPackageError
from censcore.plain_text import one_line

Item = TypeVar("Item")

PATIENCE = 2.0  # seconds before a bar appears by default


class ProgressBar:
    """A bar on the standard error stream, which needs rich; nothing where it is not to be shown.

    Parameters
    ----------
    what : str
        In front of the bar.
    total, done : int
        Steps in all, None where that is not known, and those finished before.
    show : bool, optional
        Whether there is a bar at all. None shows one in a terminal or a notebook, once the work has
        taken two seconds. Bars are not nested.

    Examples
    --------
    >>> with ProgressBar("training", total=3, show=False) as bar:
    ...     for epoch in range(3):
    ...         bar.advance(note=f"loss {1 / (epoch + 1):.2f}")
    """

    _seen: ClassVar[ProgressBar | None] = None

    def __init__(self, what: str, total: int | None, done: int = 0, show: bool | None = True) -> None:
        self._progress: Any = None
        self._waits, self._began = show is None, perf_counter()
        if show is None:
            show = _is_watched()
        check_flag(show, "progress")
        if not show:
            return
        try:
            from rich.console import Console
            from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn
        except ImportError as error:
            raise MissingPackageError(
                "A progress bar was asked for, which needs rich: pip install 'censcore[cli]', or pass "
                "progress=False."
            ) from error
        # names may stand in these texts: neither rich's markup nor format's braces are read in them
        before = TextColumn("{task.fields[what]}", markup=False)
        beside = TextColumn("{task.description}", markup=False)
        columns = (before, BarColumn(), MofNCompleteColumn(), beside)
        console = Console(stderr=True)
        self._progress = Progress(*columns, TimeRemainingColumn(), console=console, transient=True)
        self._task = self._progress.add_task("", total=total, completed=done, what=one_line(what))

    def __enter__(self) -> Self:
        if not self._waits:
            self._start()
        return self

    def _start(self) -> None:
        if self._progress is not None and ProgressBar._seen is None:
            ProgressBar._seen = self
            self._progress.start()

    def advance(self, note: str = "", steps: int = 1) -> None:
        """One step more, or several; the note stands beside the bar."""
        if self._progress is not None:
            self._progress.update(self._task, advance=steps, description=one_line(note))
            if self._waits and perf_counter() - self._began >= PATIENCE:
                self._waits = False
                self._start()

    def __exit__(self, *_: Any) -> None:
        if ProgressBar._seen is self:
            self._progress.stop()
            ProgressBar._seen = None


def _is_watched() -> bool:
    """Whether the standard error stream is a terminal or a notebook, and rich is there to draw on it.

    Processes that work for another one are not watched.
    """
    somewhere = "ipykernel" in sys.modules or sys.stderr.isatty()
    return somewhere and parent_process() is None and find_spec("rich") is not None


def track(
    items: Iterable[Item], what: str, total: int, done: int = 0, show: bool | None = True
) -> Iterator[Item]:
    """The items, with a bar that advances as each is finished.

    >>> list(track(range(3), "refits", total=3, show=False))
    [0, 1, 2]
    """
    with ProgressBar(what, total, done, show) as bar:
        for item in items:
            yield item
            bar.advance()
