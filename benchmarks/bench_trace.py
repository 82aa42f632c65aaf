"""How large the library is, and how much of it a comparison passes through.

    python -m benchmarks.bench_trace                      # this code alone
    python -m benchmarks.bench_trace --before PATH/src    # and the package under PATH/src

Lines of code are counted by package, without docstrings, comments and blanks. Files that are visited, changes
from one file to another, and calls of Python functions of the library (and of ``evaluation/`` alone) are
traced in the second call of each comparison at default settings. Three are of 400 subjects, two forecasts and
an estimated censoring distribution, without the null model, which older versions did not have. Two are of a
Cox and a Weibull regression: fitted to 1,000 subjects and judged on 1,000 others, and in three folds. Single
calls of scores, of 1,000 subjects up to a horizon, are traced in the same way.
"""

from __future__ import annotations

import argparse
import ast
import io
import json
import os
import subprocess
import sys
import tokenize
import warnings
from collections import Counter
from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from types import FrameType
from typing import Any

import numpy as np
import pandas as pd
from sklearn.base import clone

ROOT = Path(__file__).parents[1]


def comparisons() -> dict[str, Callable[[], Any]]:
    """Fitted models, models in folds, one time, two causes, and a table that is read in four batches."""
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
    n = 2000
    X = rng.normal(size=(n, 2))
    T, C = np.exp(0.5 * X[:, 0]) * rng.weibull(1.5, n), rng.uniform(0, 3, n)
    every = cs.RightCensored(np.minimum(T, C), T <= C)
    a, b = np.arange(1000), np.arange(1000, n)
    models: dict[str, Any] = {"cox": cs.CoxRegression(), "weibull": cs.WeibullRegression()}
    fitted = {name: clone(model).fit(X[a], every.take(a)) for name, model in models.items()}
    train = (X[a], every.take(a))
    return {
        "models": lambda: cs.compare(fitted, every.take(b), km, X=X[b], train=train),
        "folds": lambda: cs.cross_validate(models, X[a], every.take(a), cv=3),
        "one time": lambda: cs.compare(fixed, y, km, reference=None),
        "causes": lambda: cs.compare({"truth": truth, "other": other}, causes, km, reference=None),
        "stream": lambda: cs.compare(by_rows, table, km, reference=None),
    }


def single_scores() -> dict[str, Callable[[], Any]]:
    """Single calls of scores: smooth and step forecasts, step and smooth censoring distributions."""
    import censcore as cs

    rng, n = np.random.default_rng(0), 1000
    x = rng.normal(size=n)
    T, C = np.exp(0.5 * x) * rng.weibull(1.5, n), rng.uniform(0, 3, n)
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    grid, weibull, uniform = np.linspace(0.05, 3, 50), cs.Weibull(1.5, np.exp(0.5 * x)), cs.Uniform(0.0, 3.0)
    steps = cs.Step(grid, sf=weibull.sf(grid[None, :]))
    km = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution(np.zeros((n, 1)))
    return {
        "crps, km": lambda: cs.crps(y, weibull, km, horizon=2.0),
        "crps, steps": lambda: cs.crps(y, steps, uniform, horizon=2.5),
        "brier": lambda: cs.brier_score(y, weibull, km, 1.0, horizon=2.0),
        "log": lambda: cs.log_score(y, weibull, km),
    }


def traced(work: Callable[[], Any], root: str) -> list[int]:
    """Files of the library that are visited, changes of file, and calls: of all, and of ``evaluation/``."""
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
    inside = str(Path(root, "evaluation", ""))
    return [
        len(set(visited)),
        changes,
        len(visited),
        sum(file.startswith(inside + os.sep) for file in visited),
    ]


NOT_CODE = (
    tokenize.COMMENT, tokenize.NL, tokenize.NEWLINE, tokenize.INDENT, tokenize.DEDENT, tokenize.ENDMARKER,
)  # fmt: skip
DOCUMENTED = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef


def code_lines(source: str) -> int:
    """Lines of code without docstrings, comments and blanks."""
    lines: set[int] = set()
    for token in tokenize.generate_tokens(io.StringIO(source).readline):
        if token.type not in NOT_CODE:
            lines.update(range(token.start[0], token.end[0] + 1))
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, DOCUMENTED) and ast.get_docstring(node, clean=False) is not None:
            lines.difference_update(range(node.body[0].lineno, (node.body[0].end_lineno or 0) + 1))
    return len(lines)


def sizes(source: Path) -> Counter[str]:
    """Lines of code of the library under a folder, by package; modules at the top are one."""
    count: Counter[str] = Counter()
    top = source / "censcore"
    for path in top.rglob("*.py"):
        *packages, _ = path.relative_to(top).parts
        count[packages[0] if packages else "top"] += code_lines(path.read_text(encoding="utf-8"))
    return count


def numbers(source: Path) -> dict[str, list[int]]:
    """Those of the package in a folder, in a process of its own."""
    command = [sys.executable, "-m", "benchmarks.bench_trace", "--json"]
    paths = {"PYTHONPATH": os.pathsep.join([str(source), str(ROOT)])}
    done = subprocess.run(command, check=True, capture_output=True, text=True, env=os.environ | paths)
    return dict(json.loads(done.stdout))


def main() -> None:
    """Print a line per package, and one per comparison and score."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.bench_trace")
    parser.add_argument("--before", type=Path, help="the folder of another package, PATH/src")
    parser.add_argument("--json", action="store_true", help=argparse.SUPPRESS)
    asked = parser.parse_args()
    if asked.json:
        import censcore

        warnings.simplefilter("ignore")
        root = str(Path(censcore.__file__).parent)
        walks = comparisons() | single_scores()
        print(json.dumps({name: traced(work, root) for name, work in walks.items()}))
        return
    sources = {"now": ROOT / "src"} if asked.before is None else {"before": asked.before, "now": ROOT / "src"}
    lines = {when: sizes(source) for when, source in sources.items()}
    print(f"{'lines of code':20}" + "".join(f"{when:>10}" for when in lines))
    for package in sorted(lines["now"]):
        print(f"{package:20}" + "".join(f"{count[package]:10,}" for count in lines.values()))
    print(f"{'all':20}" + "".join(f"{count.total():10,}" for count in lines.values()))
    print(f"\n{'':12}{'':8}{'files':>8}{'changes':>10}{'calls':>10}{'evaluation':>12}")
    found = {when: numbers(source) for when, source in sources.items()}
    for name in found["now"]:
        for when, rows in found.items():
            files, changes, calls, inside = rows[name]
            print(f"{name:12}{when:8}{files:8,}{changes:10,}{calls:10,}{inside:12,}")


if __name__ == "__main__":
    main()
