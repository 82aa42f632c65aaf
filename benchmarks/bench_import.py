"""What ``import censcore`` costs, against ``import scipy.stats``, each in a fresh interpreter."""

from __future__ import annotations

import statistics
import subprocess
import sys
import time

REPEATS = 15
STATEMENTS = {
    "nothing": "pass",
    "import numpy": "import numpy",
    "import scipy.stats": "import scipy.stats",
    "import censcore": "import censcore",
    "... with outcomes, distributions, scores": "import censcore; censcore.scores",
    "... and estimators": "import censcore; censcore.scores, censcore.estimators",
}


def seconds(code: str) -> float:
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code], check=True)
    return time.perf_counter() - start


def main() -> None:
    # Interleaved, so that a busy moment of the machine hits all of them alike.
    times = [{name: seconds(code) for name, code in STATEMENTS.items()} for _ in range(REPEATS)]
    median = {name: statistics.median(row[name] for row in times) for name in STATEMENTS}
    base = median["nothing"]
    peer = median["import scipy.stats"] - base
    print(f"{'in a fresh interpreter':42s} {'seconds':>8s} {'of scipy.stats':>15s}")
    for name in list(STATEMENTS)[1:]:
        cost = median[name] - base
        print(f"{name:42s} {cost:8.3f} {cost / peer:15.2f}")


if __name__ == "__main__":
    main()
