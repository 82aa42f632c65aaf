"""How much memory some work takes, counted in a process that does nothing else."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

__all__ = ["MEASURABLE", "grown", "printed_by"]

#: Memory is read from /proc, which only Linux has.
MEASURABLE = Path("/proc/self/status").exists()


def grown(work: Callable[[], object]) -> int:
    """Bytes of anonymous memory at the peak of ``work`` beyond those before it.

    Pages of a mapped file do not count: the system can take them back.
    """
    start = peak = _anonymous()
    raised: list[BaseException] = []

    def watched() -> None:
        try:
            work()
        except BaseException as error:
            raised.append(error)

    thread = threading.Thread(target=watched)
    thread.start()
    while thread.is_alive():
        peak = max(peak, _anonymous())
        time.sleep(0.001)
    if raised:
        raise raised[0]
    return peak - start


def _anonymous() -> int:
    with open("/proc/self/status", encoding="utf-8") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) * 1024


def printed_by(script: str, *arguments: str) -> Any:
    """What a Python script prints as JSON, in a process of its own that can import this module."""
    path = os.pathsep.join([str(Path(__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    done = subprocess.run(
        [sys.executable, "-c", script, *arguments],
        check=True,
        stdout=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": path},
    )
    return json.loads(done.stdout)
