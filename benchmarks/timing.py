"""Fair timing: the functions take turns, so that a busy moment of the machine hits all of them alike."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any


def seconds(function: Callable[[], Any]) -> float:
    start = time.perf_counter()
    function()
    return time.perf_counter() - start


def alternate(repeats: int, **functions: Callable[[], Any]) -> dict[str, float]:
    """Median seconds of each over rounds in which all run in turn; the first round does not count."""
    for function in functions.values():
        function()
    rounds = [{name: seconds(function) for name, function in functions.items()} for _ in range(repeats)]
    return {name: statistics.median(row[name] for row in rounds) for name in functions}


@contextmanager
def one_thread() -> Any:
    """Work on one core inside the block."""
    before = os.environ.get("CENSCORE_THREADS")
    os.environ["CENSCORE_THREADS"] = "1"
    try:
        yield
    finally:
        os.environ.pop("CENSCORE_THREADS") if before is None else os.environ.update(CENSCORE_THREADS=before)


def print_ratios(title: str, times: dict[str, float]) -> None:
    """Milliseconds, and how many times longer each takes than the first."""
    ours = next(iter(times.values()))
    print(f"{title:58s} {'ms':>9s} {'times ours':>11s}")
    for name, value in times.items():
        print(f"  {name:56s} {1e3 * value:9.2f} {value / ours:11.2f}")
    print()
