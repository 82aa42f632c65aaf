"""Fair timing: the functions take turns, so that a busy moment of the machine hits all of them alike."""

from __future__ import annotations

import os
import statistics
import time
from collections.abc import Callable
from contextlib import contextmanager
from typing import Any, NamedTuple


class Cost(NamedTuple):
    """Seconds on the clock, and seconds of CPU over all threads, which a busy machine hardly changes."""

    wall: float
    cpu: float


def cost(function: Callable[[], Any]) -> Cost:
    wall, cpu = time.perf_counter(), time.process_time()
    function()
    return Cost(time.perf_counter() - wall, time.process_time() - cpu)


def alternate(repeats: int, **functions: Callable[[], Any]) -> dict[str, Cost]:
    """Median cost of each over rounds in which all run in turn; the first round does not count."""
    for function in functions.values():
        function()
    rounds = [{name: cost(function) for name, function in functions.items()} for _ in range(repeats)]
    return {
        name: Cost(*(statistics.median(part) for part in zip(*(row[name] for row in rounds), strict=True)))
        for name in functions
    }


@contextmanager
def one_thread() -> Any:
    """Work on one core inside the block."""
    before = os.environ.get("CENSCORE_THREADS")
    os.environ["CENSCORE_THREADS"] = "1"
    try:
        yield
    finally:
        os.environ.pop("CENSCORE_THREADS") if before is None else os.environ.update(CENSCORE_THREADS=before)


def print_ratios(title: str, costs: dict[str, Cost]) -> None:
    """Milliseconds, and how many times longer each takes than the first; the same of CPU time."""
    ours = next(iter(costs.values()))
    print(f"{title:58s} {'ms':>8s} {'times ours':>11s} {'CPU ms':>9s} {'times ours':>11s}")
    for name, (wall, cpu) in costs.items():
        print(
            f"  {name:56s} {1e3 * wall:8.2f} {wall / ours.wall:11.2f} {1e3 * cpu:9.2f} {cpu / ours.cpu:11.2f}"
        )
    print()
