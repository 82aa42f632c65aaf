"""A comparison of more subjects than fit into memory: rows per second and peak memory.

Three models (survival probabilities at ten and at twenty times, an ensemble of twenty draws), three scores
(integrated Brier score and Brier score at three times on the ipcw scale, CRPS), censoring distribution by
Kaplan-Meier of all subjects, with its term in the standard errors. Batches are made when they are read, from
their number, so that no disk is needed; the time of making them is measured apart. ``--parquet FOLDER``
writes them first and reads the files instead.

    python -m benchmarks.bench_stream --rows 10000000 --jobs 2
"""

from __future__ import annotations

import argparse
import json
import os
import threading
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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


def watch(stop: threading.Event, peak: list[float], cpu: dict[int, float]) -> None:
    """The largest resident memory of this process and its children together, GB, and the CPU time of each."""
    import psutil  # type: ignore[import-untyped]

    me = psutil.Process()
    while not stop.wait(0.5):
        total = 0
        for process in [me, *me.children(recursive=True)]:
            try:
                total += process.memory_info().rss
                times = process.cpu_times()
                cpu[process.pid] = times.user + times.system
            except psutil.Error:
                continue
        peak[0] = max(peak[0], total / 2**30)


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("--rows", type=int, default=1_000_000)
    options.add_argument("--batch", type=int, default=250_000)
    options.add_argument("--jobs", type=int, default=2)
    options.add_argument("--parquet", type=Path)
    options.add_argument("--store", type=Path)
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
        given.parquet.mkdir(parents=True, exist_ok=True)
        for batch in data:
            path = given.parquet / f"part{batch.number:05d}.parquet"
            if not path.exists():
                next(batch.frames(None, given.batch, ())).to_parquet(path)
        data = given.parquet
    stop, peak, cpu = threading.Event(), [0.0], dict[int, float]()
    watcher = threading.Thread(target=watch, args=(stop, peak, cpu))
    watcher.start()
    start = time.perf_counter()
    compare: Any = cs.compare
    comparison = compare(
        "columns", cs.OutcomeTable(data, "days", "died", rows=50_000), cs.Censoring(cs.KaplanMeier()),
        scores=SCORES, horizon=540.0, times=[90.0, 180.0, 365.0], discrimination=False, n_jobs=given.jobs,
        progress=given.progress, store=given.store,
    )  # fmt: skip
    wall = time.perf_counter() - start
    stop.set()
    watcher.join()
    seconds = sum(cpu.values())
    n = count * given.batch
    result = {
        "rows": n,
        "models": 3,
        "scores": SCORES,
        "processes": given.jobs,
        "source": "parquet" if given.parquet is not None else "made on the fly",
        "wall seconds": round(wall, 1),
        "rows per second": round(n / wall),
        "CPU microseconds per row": round(seconds / n * 1e6, 2),
        "of which making the data": 0 if given.parquet is not None else round(2 * making, 2),
        "peak memory of all processes, GB": round(peak[0], 2),
        "extrapolated hours for 1e9 rows at this speed": round(1e9 / (n / wall) / 3600, 1),
    }
    print(json.dumps(result, indent=2))
    print(comparison)
    if given.out is not None:
        given.out.write_text(json.dumps(result, indent=2) + "\n")


if __name__ == "__main__":
    main()
