"""A comparison of more subjects than fit into memory: rows per second and peak memory.

Three models (survival probabilities at ten and at twenty times, an ensemble of twenty draws), three scores
(integrated Brier score and Brier score at three times on the ipcw scale, CRPS), censoring distribution by
Kaplan-Meier of all subjects, with its term in the standard errors. Batches are made when they are read, from
their number, so that no disk is needed; the time of making them is measured apart. ``--parquet FOLDER``
writes them first and reads the files instead.

    python -m benchmarks.bench_stream --rows 10000000 --jobs 2
    python -m benchmarks.bench_stream --rows 100000000 --parquet FOLDER --store SUMS --kill 600
"""

from __future__ import annotations

import argparse
import json
import os
import signal
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

import censcore as cs

SCORES = ["integrated_brier_score:ipcw", "crps", "brier_score:ipcw"]
TIMES = np.array([30.0, 60, 90, 120, 180, 240, 300, 365, 450, 540])
FINE = np.arange(30.0, 601, 30)
MEMBERS = 20


@dataclass(frozen=True)
class MadeBatch:
    """A batch that is made from its number."""

    number: int
    size: int

    def names(self) -> list[str]:
        """Names of the columns."""
        return list(make(0, 2).columns)

    def frames(self, columns: Sequence[str] | None, rows: int, text: Sequence[str]) -> Iterator[Any]:
        """Frames of at most ``rows`` rows."""
        for start in range(0, self.size, rows):
            few = columns is not None and not any("__" in name for name in columns)
            frame = make(self.number * self.size + start, min(rows, self.size - start), outcome_only=few)
            yield frame if columns is None else frame[list(columns)]

    @property
    def identity(self) -> str:
        """What the content follows from."""
        return f"made {self.number} {self.size}"


def make(seed: int, n: int, outcome_only: bool = False) -> pd.DataFrame:
    """Times in days of n subjects, and the forecasts of three models."""
    rng = np.random.default_rng(seed)
    x = rng.standard_normal(n)
    scale = 200 * np.exp(0.4 * x)
    T = rng.weibull(1.3, n) * scale
    C = np.minimum(rng.exponential(500.0, n), 730.0)
    frame = pd.DataFrame({"days": np.ceil(np.minimum(T, C)), "died": T <= C})
    if outcome_only:
        return frame
    curves = np.exp(-((TIMES[None, :] / (1.1 * scale[:, None])) ** 1.2)).astype(np.float32)
    draws = (rng.weibull(1.3, (n, MEMBERS)) * scale[:, None]).astype(np.float32)
    fine = np.exp(-((FINE[None, :] / (210 * np.exp(0.2 * x)[:, None])) ** 1.3)).astype(np.float32)
    parts = [
        pd.DataFrame(curves, columns=[f"curves__sf@{t:g}" for t in TIMES]),
        pd.DataFrame(draws, columns=[f"draws__sample@{i}" for i in range(MEMBERS)]),
        pd.DataFrame(fine, columns=[f"fine__sf@{t:g}" for t in FINE]),
    ]
    return pd.concat([frame, *parts], axis=1)


@dataclass
class Watch:
    """Memory and CPU time of this process and its children, and the end of one of them on purpose."""

    kill_after: float | None = None
    peak: float = 0.0
    largest: float = 0.0
    cpu: dict[int, float] = field(default_factory=dict)
    killed: list[int] = field(default_factory=list)

    def __call__(self, stop: threading.Event) -> None:
        """Look twice a second."""
        import psutil  # type: ignore[import-untyped]

        me, start = psutil.Process(), time.perf_counter()
        while not stop.wait(0.5):
            sizes = {}
            for process in [me, *me.children(recursive=True)]:
                try:
                    sizes[process.pid] = process.memory_info().rss / 2**30
                    times = process.cpu_times()
                    self.cpu[process.pid] = times.user + times.system
                except psutil.Error:
                    continue
            self.peak = max(self.peak, sum(sizes.values()))
            self.largest = max(self.largest, *sizes.values())
            others = [pid for pid in sizes if pid != me.pid]
            late = self.kill_after is not None and time.perf_counter() - start > self.kill_after
            if late and others and not self.killed:
                self.killed.append(max(others, key=lambda pid: self.cpu.get(pid, 0.0)))
                os.kill(self.killed[0], signal.SIGKILL)


def write(folder: Path, batches: Sequence[MadeBatch]) -> None:
    """One Parquet file per batch; a file that is there already is complete."""
    folder.mkdir(parents=True, exist_ok=True)
    for batch in batches:
        path = folder / f"part{batch.number:05d}.parquet"
        if not path.exists():
            frame = next(batch.frames(None, batch.size, ()))
            frame.to_parquet(path.with_suffix(".tmp"), compression="zstd", use_dictionary=False)
            path.with_suffix(".tmp").rename(path)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--batch", type=int, default=250_000)
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--parquet", type=Path)
    options.add_argument("--store", type=Path)
    options.add_argument("--kill", type=float, help="seconds after which one worker is killed, on purpose")
    options.add_argument("--progress", action="store_true")
    options.add_argument("--out", type=Path)
    given = options.parse_args()
    os.environ.setdefault("CENSCORE_THREADS", "1")
    count = -(-given.rows // given.batch)
    data: Any = [MadeBatch(i, given.batch) for i in range(count)]
    start = time.process_time()
    make(1, min(given.batch, 250_000))
    making = (time.process_time() - start) / min(given.batch, 250_000) * 1e6
    if given.parquet is not None:
        write(given.parquet, data)
        data = [given.parquet / f"part{i:05d}.parquet" for i in range(count)]
    stop, watch = threading.Event(), Watch(given.kill)
    watcher = threading.Thread(target=watch, args=(stop,))
    watcher.start()
    start = time.perf_counter()
    table = cs.OutcomeTable(data, "days", "died", rows=50_000, n_jobs=given.jobs, store=given.store)
    compare: Any = cs.compare
    comparison = compare(
        "columns", table, cs.Censoring(cs.KaplanMeier()), scores=SCORES, horizon=540.0,
        times=[90.0, 180.0, 365.0], discrimination=False, progress=given.progress,
    )  # fmt: skip
    wall = time.perf_counter() - start
    stop.set()
    watcher.join()
    seconds = sum(watch.cpu.values())
    n = count * given.batch
    result = {
        "rows": n,
        "models": 3,
        "scores": SCORES,
        "processes": given.jobs,
        "source": "parquet" if given.parquet is not None else "made on the fly",
        "wall seconds": round(wall, 1),
        "rows per second": round(n / wall),
        "CPU seconds": round(seconds, 1),
        "cores busy on average": round(seconds / wall, 2),
        "CPU microseconds per row": round(seconds / n * 1e6, 2),
        "of which making the data": 0 if given.parquet is not None else round(2 * making, 2),
        "rows per CPU second": round(n / seconds),
        "peak memory of all processes, GB": round(watch.peak, 2),
        "peak memory of the largest process, GB": round(watch.largest, 2),
        "workers killed on purpose": len(watch.killed),
        "hours for 1e9 rows at the speed of this run": round(1e9 / (n / wall) / 3600, 1),
        "hours for 1e9 rows on two free cores": round(1e9 * seconds / n / 2 / 3600, 2),
    }
    print(json.dumps(result, indent=2))
    print(comparison)
    if given.out is not None:
        given.out.write_text(json.dumps(result, indent=2) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
