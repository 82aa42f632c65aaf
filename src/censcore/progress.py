"""Progress bars of long work: training, bootstrap samples, studies."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Self, TypeVar

from censcore._validation import check_flag
from censcore.exceptions import MissingPackageError
from censcore.plain_text import one_line

__all__ = ["ProgressBar", "track"]

Item = TypeVar("Item")


class ProgressBar:
    """A bar on the standard error stream, which needs rich; nothing where it is not to be shown.

    Parameters
    ----------
    what : str
        In front of the bar.
    total, done : int
        Steps in all, and those finished before.
    show : bool
        Whether there is a bar at all.

    Examples
    --------
    >>> from censcore.progress import ProgressBar
    >>> with ProgressBar("training", total=3, show=False) as bar:
    ...     for epoch in range(3):
    ...         bar.advance(note=f"loss {1 / (epoch + 1):.2f}")
    """

    def __init__(self, what: str, total: int, done: int = 0, show: bool = True) -> None:
        check_flag(show, "progress")
        self._progress: Any = None
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
        if self._progress is not None:
            self._progress.start()
        return self

    def advance(self, note: str = "", steps: int = 1) -> None:
        """One step more, or several; the note stands beside the bar."""
        if self._progress is not None:
            self._progress.update(self._task, advance=steps, description=one_line(note))

    def __exit__(self, *_: Any) -> None:
        if self._progress is not None:
            self._progress.stop()


def track(items: Iterable[Item], what: str, total: int, done: int = 0, show: bool = True) -> Iterator[Item]:
    """The items, with a bar that advances as each is finished.

    Examples
    --------
    >>> from censcore.progress import track
    >>> list(track(range(3), "refits", total=3, show=False))
    [0, 1, 2]
    """
    with ProgressBar(what, total, done, show) as bar:
        for item in items:
            yield item
            bar.advance()
