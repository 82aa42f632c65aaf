"""Memory of a training run on covariates in a mapped file, against the size of the file.

22 covariates and two event times, up to the 4.8 million prediction rows of the ICU study. Counted is
anonymous memory beyond what the process held before ``fit``, in a process of its own for each size: the
system can take back pages of a mapped file. The peer is the same fit after the file was read into memory.
Linux only.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

SIZES = (250_000, 1_000_000, 4_831_810)
COLUMNS = 22

_FIT = """
import json, sys, threading, time
import numpy as np
import censcore as cs

def anonymous():
    with open("/proc/self/status") as file:
        return next(int(line.split()[1]) for line in file if line.startswith("RssAnon")) / 1024

def grown(fit):
    start = peak = anonymous()
    thread = threading.Thread(target=fit)
    thread.start()
    while thread.is_alive():
        peak = max(peak, anonymous())
        time.sleep(0.001)
    return peak - start

X = np.load(sys.argv[1], mmap_mode="r")
n, rng = len(X), np.random.default_rng(0)
c, t = rng.uniform(1, 80, n), rng.exponential(30, (n, 2))
y = cs.RightCensored(np.minimum(t, c[:, None]), t <= c[:, None], c)
del c, t
groups, some = np.arange(n) // 65, slice(0, 500)
def model():
    return cs.CensoredEngression(
        width=8, depth=1, noise_dim=4, samples=2, epochs=1, batch_size=8192, time_transform="log1p"
    )
model().fit(np.array(X[some]), y[some])
def fit(copied):
    matrix = np.array(X) if copied else X
    model().fit(matrix, y, groups=groups, eval_set=(X[some], y[some]))
print(json.dumps([grown(lambda: fit(copied)) for copied in (False, True)]))
"""


def main(sizes: tuple[int, ...] = SIZES) -> None:
    if not Path("/proc/self/status").exists():
        print("memory is read from /proc, on Linux only")
        return
    print("      rows  MiB of covariates  MiB, mapped  bytes per row  MiB, read first")
    for n in sizes:
        with tempfile.TemporaryDirectory() as folder:
            path = Path(folder) / "X.npy"
            _write(path, n)
            command = [sys.executable, "-c", _FIT, str(path)]
            found = json.loads(subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout)
            size = path.stat().st_size / 2**20
        mapped, copied = found
        print(f"{n:10,d} {size:18.0f} {mapped:12.0f} {mapped * 2**20 / n:14.0f} {copied:16.0f}", flush=True)


def _write(path: Path, n: int) -> None:
    X = np.lib.format.open_memmap(path, "w+", np.float32, (n, COLUMNS))
    rng = np.random.default_rng(0)
    for start in range(0, n, 100_000):
        X[start : start + 100_000] = rng.normal(size=(min(100_000, n - start), COLUMNS))
    X.flush()


if __name__ == "__main__":
    main(tuple(int(size) for size in sys.argv[1:]) or SIZES)
