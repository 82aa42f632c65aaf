"""How much of the library a comparison passes through: files visited, and changes from one file to another.

    python -m benchmarks.bench_trace                      # this code alone
    python -m benchmarks.bench_trace --before PATH/src    # and the package under PATH/src

Calls of Python functions of the library are traced in the second call of each comparison of 400 subjects, two
forecasts and an estimated censoring distribution at default settings. The null model is left out, which
older versions did not have.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd

ROOT = Path(__file__).parents[1]


def comparisons() -> dict[str, Callable[[], Any]]:
    """One time, two causes, and a table that is read in four batches."""
    import censcore as cs

    rng, n, km = np.random.default_rng(0), 400, cs.Censoring(cs.KaplanMeier())
    x = rng.normal(size=n)
    T, C = np.exp(0.5 * x) * rng.weibull(1.5, n), rng.uniform(0, 3, n)
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    names = ["relapse", "death"]
    truth, other = (
        cs.CauseSpecificHazards([cs.Exponential(a), cs.Exponential(b)], names=names)
        for a, b in [(0.4, 0.2), (0.2, 0.4)]
    )
    time, cause = (draws[0] for draws in truth.sample(n, seed=1))
    c = rng.uniform(0, 6, n)
    causes = cs.CompetingRisks(np.minimum(time, c), np.where(time <= c, cause, 0), names=names)
    table = cs.OutcomeTable(pd.DataFrame({"t": y.time, "d": y.event, "x": x}), "t", "d", rows=100)
    plain = cs.Weibull(1.5, 1.0)
    fixed = {"with x": cs.Weibull(1.5, np.exp(0.5 * x)), "without": plain}
    by_rows = {"with x": lambda rows: cs.Weibull(1.5, np.exp(0.5 * rows["x"].to_numpy())), "without": plain}
    return {
        "one time": lambda: cs.compare(fixed, y, km, reference=None),
        "causes": lambda: cs.compare({"truth": truth, "other": other}, causes, km, reference=None),
        "stream": lambda: cs.compare(by_rows, table, km, reference=None),
    }


def traced(work: Callable[[], Any], root: str) -> list[int]:
    """Files of the library that are visited, changes of file, and calls."""
    work()
    visited: list[str] = []

    def note(frame: FrameType, event: str, _: Any) -> None:
        if event == "call" and frame.f_code.co_filename.startswith(root):
            visited.append(frame.f_code.co_filename)

    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(None)
    changes = sum(a != b for a, b in pairwise(visited))
    return [len(set(visited)), changes, len(visited)]


def numbers(source: Path) -> dict[str, list[int]]:
    """Those of the package in a folder, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.bench_trace", "--json"]
    paths = {"PYTHONPATH": os.pathsep.join([str(source), str(ROOT)])}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | paths)
    return dict(json.loads(done.stdout))


def main() -> None:
    """Print a line per comparison."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_trace")
    parser.add_argument("--before", type=Path, help="the folder of another package, PATH/src")
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.json:
        import censcore

        warnings.simplefilter("ignore")
        root = str(Path(censcore.__file__).parent)
        print(json.dumps({name: traced(work, root) for name, work in comparisons().items()}))
        return
    sources = {"now": ROOT / "src"} if asked.before is None else {"before": asked.before, "now": ROOT / "src"}
    print(f"{'':10}{'':8}{'files':>8}{'changes':>10}{'calls':>10}")
    found = {when: numbers(source) for when, source in sources.items()}
    for name in found["now"]:
        for when, rows in found.items():
            files, changes, calls = rows[name]
            print(f"{name:10}{when:8}{files:8,}{changes:10,}{calls:10,}")


if __name__ == "__main__":
    main()
