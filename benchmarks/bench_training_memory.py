"""Memory of a training run: covariates in a mapped file, known and unknown censoring times.

22 covariates and two event times, one epoch of a small network. Counted is anonymous memory beyond what the
process held before ``fit``, in a process of its own for each number: the system can take back pages of a
mapped file. The first table has known censoring times, up to the 4.8 million prediction rows of the ICU
study, and for a peer the same fit after the file was read into memory. In the second C is unknown: ``fit``
computes quantiles of C by batch, where a table of them would have the size that is shown. Linux only.
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
X = np.load(sys.argv[1], mmap_mode="r")
n, rng = len(X), np.random.default_rng(1)
c, t = rng.uniform(1, 80, n), rng.exponential(30, (n, 2))
y = cs.RightCensored(np.minimum(t, c[:, None]), t <= c[:, None])
del c, t
model().fit(np.array(X[:5000]), y[:5000])
some = slice(0, 50_000)
start = time.perf_counter()
growth = grown(lambda: model().fit(X, y, eval_set=(X[some], y[some]))) / 2**20
print(json.dumps([growth, time.perf_counter() - start]))
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
    print("      rows  MiB of covariates  MiB of a table of C  MiB of fit  bytes per row  seconds")
    for n in unknown:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "X.npy"
            _write(path, n)
            grown, seconds = printed_by(_UNKNOWN, str(path))
        covariates, quantiles = (n * 4 * numbers / 2**20 for numbers in (COLUMNS, 64))
        print(
            f"{n:10,d} {covariates:18.0f} {quantiles:20.0f} {grown:11.0f} {grown * 2**20 / n:14.0f} "
            f"{seconds:8.0f}",
            flush=True,
        )


def _write(path: Path, n: int) -> None:
    X = np.lib.format.open_memmap(path, "w+", np.float32, (n, COLUMNS))
    rng = np.random.default_rng(0)
    for start in range(0, n, 100_000):
        X[start : start + 100_000] = rng.normal(size=(min(100_000, n - start), COLUMNS))
    X.flush()


if __name__ == "__main__":
    given = tuple(int(size) for size in sys.argv[1:])
    main(given or SIZES, given or UNKNOWN)
