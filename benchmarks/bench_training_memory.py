"""Memory of a training run: covariates in a mapped file, an unknown censoring distribution, Parquet files.

22 covariates and two event times, one epoch of a small network. Counted is anonymous memory beyond what the
process held before ``fit``, in a process of its own for each number: the system can take back pages of a
mapped file. The first table has known censoring times, up to the 4.8 million prediction rows of the ICU
study, and for a peer the same fit after the file was read into memory. In the second C is unknown: ``fit``
computes quantiles of C by batch, where a table of them would have the size that is shown, and ``fit_batches``
reads everything from Parquet files, row group by row group. Linux only.
"""

from __future__ import annotations

import sys
import tempfile
from pathlib import Path

import numpy as np

from benchmarks.growth import MEASURABLE, printed_by

SIZES = (250_000, 1_000_000, 4_831_810)
UNKNOWN = (5_000_000,)
COLUMNS = 22

_MEASURE = """
import json, sys, time
import numpy as np
import censcore as cs
from benchmarks.growth import grown

def model():
    return cs.CensoredEngression(
        epochs=1, n_networks=1, network=cs.learning.Network(width=8, depth=1, noise_dim=4),
        training=cs.learning.Training(samples=2, batch_size=8192, time_transform="log1p"),
    )
"""

_FIT = (
    _MEASURE
    + """
X = np.load(sys.argv[1], mmap_mode="r")
n, rng = len(X), np.random.default_rng(0)
c, t = rng.uniform(1, 80, n), rng.exponential(30, (n, 2))
y = cs.RightCensored(np.minimum(t, c[:, None]), t <= c[:, None], c)
del c, t
groups, some = np.arange(n) // 65, slice(0, 500)
model().fit(np.array(X[some]), y[some])
def fit(copied):
    matrix = np.array(X) if copied else X
    model().fit(matrix, y, groups=groups, eval_set=(X[some], y[some]))
print(json.dumps([grown(lambda: fit(copied)) / 2**20 for copied in (False, True)]))
"""
)

_UNKNOWN = (
    _MEASURE
    + """
folder, kind = sys.argv[1:]
X = np.load(f"{folder}/X.npy", mmap_mode="r")
if kind == "files":
    table = cs.TrainingTable(f"{folder}/rows/*.parquet", ["t0", "t1"], ["d0", "d1"])
    first = next(iter(table))
    model().fit_batches([first[:2]])
    del first
    fit = lambda: model().fit_batches(table)
else:
    import pyarrow.parquet
    columns = pyarrow.parquet.read_table(f"{folder}/rows", columns=["t0", "t1", "d0", "d1"])
    t, d = (np.column_stack([columns[f"{c}{j}"].to_numpy() for j in range(2)]) for c in "td")
    y = cs.RightCensored(t, d)
    del columns, t, d
    model().fit(np.array(X[:5000]), y[:5000])
    some = slice(0, 50_000)  # as many as fit_batches holds out
    fit = lambda: model().fit(X, y, eval_set=(X[some], y[some]))
start = time.perf_counter()
print(json.dumps([grown(fit) / 2**20, time.perf_counter() - start]))
"""
)


def main(sizes: tuple[int, ...] = SIZES, unknown: tuple[int, ...] = UNKNOWN) -> None:
    if not MEASURABLE:
        print("memory is read from /proc, on Linux only")
        return
    print("      rows  MiB of covariates  MiB, mapped  bytes per row  MiB, read first")
    for n in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "X.npy"
            _write(path, n)
            mapped, copied = printed_by(_FIT, str(path))
            size = path.stat().st_size / 2**20
        print(f"{n:10,d} {size:18.0f} {mapped:12.0f} {mapped * 2**20 / n:14.0f} {copied:16.0f}", flush=True)
    print("\nC unknown")
    print(
        "      rows  MiB of covariates  MiB of a table of C           data  MiB of fit  "
        "bytes per row  seconds"
    )
    for n in unknown:
        with tempfile.TemporaryDirectory() as folder:
            _write(Path(folder) / "X.npy", n)
            _write_parquet(Path(folder), n)
            for kind, words in _KINDS.items():
                grown, seconds = printed_by(_UNKNOWN, folder, kind)
                covariates, quantiles = (n * 4 * numbers / 2**20 for numbers in (COLUMNS, 64))
                print(
                    f"{n:10,d} {covariates:18.0f} {quantiles:20.0f} {words:>14s} {grown:11.0f} "
                    f"{grown * 2**20 / n:14.0f} {seconds:8.0f}",
                    flush=True,
                )


_KINDS = {"mapped": "mapped", "files": "Parquet files"}


def _write_parquet(folder: Path, n: int) -> None:
    """The covariates, and two times with a shared C, in row groups of 50,000."""
    import pyarrow as pa
    import pyarrow.parquet as pq

    X, rng = np.load(folder / "X.npy", mmap_mode="r"), np.random.default_rng(1)
    (folder / "rows").mkdir()
    for file in range(4):
        rows, writer = range(file * n // 4, (file + 1) * n // 4), None
        for start in range(rows.start, rows.stop, 50_000):
            part = X[start : min(rows.stop, start + 50_000)]
            c, t = rng.uniform(1, 80, len(part)), rng.exponential(30, (len(part), 2))
            columns = {f"x{j}": part[:, j] for j in range(COLUMNS)}
            columns |= {f"t{j}": np.minimum(t[:, j], c) for j in range(2)}
            columns |= {f"d{j}": t[:, j] <= c for j in range(2)}
            block = pa.table(columns)
            writer = writer or pq.ParquetWriter(folder / "rows" / f"part{file}.parquet", block.schema)
            writer.write_table(block)
        if writer is not None:
            writer.close()


def _write(path: Path, n: int) -> None:
    X = np.lib.format.open_memmap(path, "w+", np.float32, (n, COLUMNS))
    rng = np.random.default_rng(0)
    for start in range(0, n, 100_000):
        X[start : start + 100_000] = rng.normal(size=(min(100_000, n - start), COLUMNS))
    X.flush()


if __name__ == "__main__":
    given = tuple(int(size) for size in sys.argv[1:])
    main(given or SIZES, given or UNKNOWN)
