"""Workers end with the process that started them, however that ends."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

WORK = """
import os, sys, time
from functools import partial
from censcore.processes import in_processes

def work(folder, i):
    open(os.path.join(folder, str(os.getpid())), "w").close()
    end = time.monotonic() + 600
    while time.monotonic() < end:
        sum(range(10_000))

if __name__ == "__main__":
    list(in_processes([partial(work, sys.argv[1], i) for i in range(2)], 2))
"""


def _lives(process: int) -> bool:
    """Whether a process is there and no zombie."""
    try:
        with open(f"/proc/{process}/stat", encoding="ascii") as file:
            return file.read().rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def _wait(ready, seconds=120.0):
    """Wait until something holds; how long that takes is the machine's affair."""
    end = time.monotonic() + seconds
    while not ready() and time.monotonic() < end:
        time.sleep(0.1)
    return ready()


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="needs a list of processes")
@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_workers_end_with_the_process_that_started_them(tmp_path, how):
    script, folder = tmp_path / "work.py", tmp_path / "workers"
    script.write_text(WORK, encoding="utf-8")
    folder.mkdir()
    with subprocess.Popen([sys.executable, script, folder], stderr=subprocess.DEVNULL) as parent:
        try:
            assert _wait(lambda: len(os.listdir(folder)) == 2)
        finally:
            parent.send_signal(how)
    workers = [int(name) for name in os.listdir(folder)]
    try:
        assert _wait(lambda: not any(map(_lives, workers)))
    finally:
        for worker in filter(_lives, workers):
            os.kill(worker, signal.SIGKILL)
