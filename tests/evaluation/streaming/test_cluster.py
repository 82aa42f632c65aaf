"""A comparison on a Dask cluster of separate processes, one of which is killed in the middle."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from pathlib import Path

import numpy as np
import pytest
from tests.evaluation.streaming.tables import assert_same, make_table

import censcore as cs

pytest.importorskip("distributed")
pytestmark = [
    pytest.mark.slow,
    # threads of the cluster may still hold sockets when they are collected
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]
KM = cs.Censoring(cs.KaplanMeier())


def start(folder: Path, module: str, *arguments: str) -> subprocess.Popen:
    command = [sys.executable, "-m", f"distributed.cli.{module}", *arguments]
    environment = os.environ | {"DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "10"}
    with (folder / f"{module}-{time.monotonic_ns()}.log").open("w", encoding="utf-8") as log:
        return subprocess.Popen(
            command, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )


def wait(condition, seconds: float = 120) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.1)


def worker(folder: Path, address: str) -> subprocess.Popen:
    return start(
        folder, "dask_worker", address, "--no-nanny", "--nthreads", "1", "--no-dashboard",
        "--local-directory", str(folder),
    )  # fmt: skip


@pytest.fixture
def cluster(tmp_path):
    file = tmp_path / "scheduler.json"
    scheduler = start(
        tmp_path, "dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
        "--scheduler-file", str(file),
    )  # fmt: skip
    wait(lambda: file.exists() and file.stat().st_size > 0)
    address = re.search(r"tcp://[\d.]+:\d+", file.read_text(encoding="utf-8")).group()
    workers = [worker(tmp_path, address) for _ in range(2)]
    yield address, workers
    for process in (*workers, scheduler):
        process.kill()


class Slow:
    """A forecast that takes its time, so that a worker can be killed while it works."""

    columns = ("scale",)

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds

    def __call__(self, rows):
        time.sleep(self.seconds)
        scale = np.asarray(rows["scale"], dtype=float)
        return cs.Ensemble(scale[:, None] * np.linspace(0.2, 1.8, 9))


def test_a_killed_worker_loses_nothing(cluster, tmp_path):
    address, workers = cluster
    table = make_table(400)
    table.to_parquet(tmp_path / "table.parquet", row_group_size=20)

    def compared(dask, seconds):
        data = cs.OutcomeTable(tmp_path / "table.parquet", "t", "d", rows=20, dask=dask)
        models = {"slow": Slow(seconds), "good": "good"}
        return cs.compare(models, data, KM, scores="crps", groups="clinic", discrimination=False)

    def kill() -> None:
        time.sleep(12)
        workers[0].kill()

    killer = threading.Thread(target=kill)
    killer.start()
    found = compared(address, 0.5)
    killer.join()
    assert workers[0].poll() is not None
    assert_same(compared(None, 0.0), found)
