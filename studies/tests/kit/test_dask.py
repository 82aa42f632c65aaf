"""A study on a Dask cluster of separate processes, one of which is killed in the middle."""

from __future__ import annotations

import os
import re
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pandas as pd
import pytest

from censcore.exceptions import MissingDependencyError
from censcore_studies.kit.cells import Cell, run_cells
from censcore_studies.multivariate import multivariate_cells, run_multivariate

pytest.importorskip("distributed")

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from traced_work import square  # noqa: E402

pytestmark = [
    # threads of the cluster may still hold sockets when they are collected
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


class Cluster:
    """A scheduler and two workers, each a process of its own on the loopback interface."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        environment = os.environ | {
            "PYTHONPATH": os.pathsep.join([str(HERE), os.environ.get("PYTHONPATH", "")]),
            "DASK_DISTRIBUTED__SCHEDULER__ALLOWED_FAILURES": "10",
            "DASK_DISTRIBUTED__COMM__TIMEOUTS__CONNECT": "20s",
        }
        self.environment = environment
        file = folder / "scheduler.json"
        self.scheduler = self._start(
            "dask_scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
            "--scheduler-file", str(file),
        )  # fmt: skip
        self._wait(lambda: file.exists() and file.stat().st_size > 0)
        self.address = re.search(r"tcp://[\d.]+:\d+", file.read_text(encoding="utf-8")).group()
        self.workers = [self._worker(i) for i in range(2)]

    def _start(self, module: str, *arguments: str) -> subprocess.Popen:
        command = [sys.executable, "-m", f"distributed.cli.{module}", *arguments]
        log = (self.folder / f"{module}-{time.monotonic_ns()}.log").open("w", encoding="utf-8")
        with log:
            return subprocess.Popen(
                command, env=self.environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
            )

    def _worker(self, i: int) -> subprocess.Popen:
        return self._start(
            "dask_worker", self.address, "--nworkers", "1", "--nthreads", "1", "--no-dashboard", "--no-nanny",
            "--name", f"worker-{i}", "--local-directory", str(self.folder),
        )  # fmt: skip

    @staticmethod
    def _wait(condition, seconds: float = 90.0) -> None:
        end = time.monotonic() + seconds
        while not condition():
            assert time.monotonic() < end, "the cluster did not start"
            time.sleep(0.05)

    def close(self) -> None:
        for process in [*self.workers, self.scheduler]:
            process.kill()
            process.wait()


@pytest.fixture
def cluster(tmp_path) -> Iterator[Cluster]:
    cluster = Cluster(tmp_path)
    yield cluster
    cluster.close()


@pytest.mark.slow  # in seconds: the cells of the next test, of which some are run again
def test_the_study_survives_the_loss_of_a_worker_with_the_same_numbers(cluster, tmp_path):
    small = {"n_train": 200, "n_valid": 50, "n_test": 50, "members": 32}
    cells = multivariate_cells([2], ["lognormal"], ["uniform"], ["DGP"], repetitions=5, **small)
    cells += multivariate_cells([2], ["lognormal"], ["uniform"], ["Independent Weibull"], 1, **small)
    out = tmp_path / "out"

    def kill_one() -> None:
        Cluster._wait(lambda: any(out.glob("cells/[!.]*.json")))
        cluster.workers[0].kill()

    killer = threading.Thread(target=kill_one)
    killer.start()
    found = run_multivariate(cells, out, dask=cluster.address, progress=False)
    killer.join()
    assert cluster.workers[0].poll() is not None
    numbers = ["method", "repetition", "censoring", "censored", "latent", "censored_excess"]
    here = run_multivariate(cells, progress=False)
    pd.testing.assert_frame_equal(found[numbers], here[numbers], rtol=1e-6)
    assert len(list(out.glob("cells/*.json"))) == len(cells)


def test_cells_of_joblib_and_of_a_lost_worker(cluster, tmp_path):
    """One cluster for both: first joblib sends it cells, then a worker dies in the middle of one."""
    _joblib_sends_cells(cluster, tmp_path / "joblib")
    _a_cell_under_way_on_a_lost_worker_is_run_again(cluster, tmp_path / "lost")


def _joblib_sends_cells(cluster, traces):
    from distributed import Client
    from joblib import parallel_config

    traces.mkdir()
    cells = [Cell(f"square-{x}", {"x": x, "traces": str(traces)}) for x in range(4)]
    with Client(cluster.address) as client, parallel_config(backend="dask"):
        client.wait_for_workers(2)
        found = run_cells(square, cells, jobs=2, progress=False)
    assert [r["value"] for r in found] == [0, 1, 4, 9]
    pids = {int(path.name.split("-")[1]) for path in traces.iterdir()}
    assert pids <= {worker.pid for worker in cluster.workers}


def _a_cell_under_way_on_a_lost_worker_is_run_again(cluster, traces):
    traces.mkdir()
    cells = [Cell(f"square-{x}", {"x": x, "traces": str(traces), "sleep": 0.5}) for x in range(8)]

    def processes() -> set[str]:
        return {path.name.split("-")[1] for path in traces.iterdir()}

    def kill_one() -> None:
        Cluster._wait(lambda: len(processes()) == 2)
        cluster.workers[0].kill()

    killer = threading.Thread(target=kill_one)
    killer.start()
    found = run_cells(square, cells, dask=cluster.address, progress=False)
    killer.join()
    assert [r["value"] for r in found] == [x**2 for x in range(8)]
    assert len(list(traces.iterdir())) > 8, "the killed worker was not in the middle of a cell"


def test_without_the_extra_the_error_names_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "distributed", None)
    with pytest.raises(MissingDependencyError, match=r"censcore-studies\[dask\]"):
        run_cells(square, [Cell("square", {"x": 1})], dask="tcp://127.0.0.1:1", progress=False)
