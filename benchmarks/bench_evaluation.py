"""CPU time of comparisons, pages and streams, of this code and of another checkout in one run.

    python -m benchmarks.bench_evaluation                          # this code alone
    python -m benchmarks.bench_evaluation --before PATH/src        # and the package under PATH/src
    python -m benchmarks.bench_evaluation cox page --before ...    # rows with a word in their name

Both codes take turns, each row in a process of its own, in one thread; a number is the least CPU time of
``REPEATS`` calls after one that does not count. riskRegression's ``Score`` took 0.84 s for the work of
the first row and 12.8 s for that of the second, elsewhere (``bench_r_score`` runs it where R is).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np

REPEATS, ROUNDS = 3, 2
LONG = 5.0  # CPU seconds
ROOT = Path(__file__).parents[1]


def score_work(n: int, estimator: str) -> Callable[[], Any]:
    """What riskRegression's ``Score`` does: two models and the null model, five times, with errors."""
    import censcore as cs
    from benchmarks.bench_r_score import Subjects

    subjects = Subjects(n)
    return lambda: subjects.compare(getattr(cs, estimator)(), auc=True)


def all_scores(n: int, estimator: str, forecasts: str) -> Callable[[], Any]:
    """All scores and measures of two models and the null model, with errors."""
    import censcore as cs
    from benchmarks.bench_growth import Sample

    s = Sample(n)
    F: dict[str, Any] = {"weibull": s.weibull, "steps": s.steps(50)}
    if forecasts == "cox":
        F = {f"cox {k}": cs.CoxRegression().fit(s.train[0][:, :k], s.train[1]) for k in (1, 3)}
        F = {name: model.predict_distribution(s.X[:, : int(name[-1])]) for name, model in F.items()}
    C, times = cs.Censoring(getattr(cs, estimator)()), np.linspace(0.4, 2.0, 5)

    def work() -> Any:
        compared = cs.compare(F, s.y, C, X=s.X, train=s.train, scores="all", horizon=2.2, times=times)
        return compared.frame(), compared.differences()

    return work


def causes() -> Callable[[], Any]:
    """Competing risks: five forecasts by smooth cause-specific hazards of 100 subjects."""
    import censcore as cs

    rng, n = np.random.default_rng(0), 100
    x = rng.normal(size=n)
    T = rng.weibull(1.3, (n, 2)) * np.exp(np.outer(x, [-0.5, 0.3]))
    c, first = rng.uniform(0.2, 3.0, n), T.min(axis=1)
    y = cs.CompetingRisks(np.minimum(first, c), np.where(first <= c, 1 + T.argmin(axis=1), 0), n_causes=2)

    def work() -> Any:
        F = {
            f"{b:g}": cs.CauseSpecificHazards(
                [cs.Weibull(1.3, np.exp(-b * x)), cs.Weibull(1.3, np.exp(b * x))]
            )
            for b in (0.1, 0.2, 0.3, 0.4, 0.5)
        }
        return cs.compare(F, y, cs.Censoring(cs.KaplanMeier()), horizon=1.5).frame()

    return work


def page(n: int) -> Callable[[], Any]:
    """``to_html`` of six models and the null model."""
    import censcore as cs
    from benchmarks.bench_growth import Sample

    s = Sample(n)
    F = {f"m{i}": cs.Weibull(1.2 + 0.05 * i, 2 * np.exp(-(0.1 + 0.1 * i) * s.x)) for i in range(6)}
    compared = [cs.compare(F, s.y, cs.Censoring(cs.KaplanMeier()), horizon=2.2) for _ in range(REPEATS + 1)]
    folder = Path(tempfile.mkdtemp())
    return lambda: compared.pop().to_html(folder / "page.html")


def stream(n: int) -> Callable[[], Any]:
    """Three models and three scores of ``bench_stream``, from a frame that is read in parts."""
    import censcore as cs
    from benchmarks.bench_stream import SCORES, make

    frame, compare = make(0, n), cast(Any, cs.compare)

    def work() -> Any:
        table = cs.OutcomeTable(frame, "days", "died", rows=50_000, n_jobs=1)
        return compare(
            "columns", table, cs.Censoring(cs.KaplanMeier()), scores=SCORES, horizon=540.0,
            times=[90.0, 180.0, 365.0], discrimination=False, progress=False,
        )  # fmt: skip

    return work


def many(n: int) -> Callable[[], Any]:
    """The default scores of two models of many subjects."""
    import censcore as cs
    from benchmarks.bench_growth import Sample

    s = Sample(n)
    F = {"weibull": s.weibull, "steps": s.steps(50)}
    return lambda: cs.compare(
        F, s.y, cs.Censoring(cs.KaplanMeier()), train=(None, s.train[1]), horizon=2.2, discrimination=False
    ).frame()


ROWS: dict[str, Callable[[], Callable[[], Any]]] = {
    "compare, Brier, AUC and C, 5 times, Kaplan-Meier, 20,000": lambda: score_work(20_000, "KaplanMeier"),
    "compare, Brier, AUC and C, 5 times, cox, 5,000": lambda: score_work(5_000, "CoxRegression"),
    "compare, all scores, cox, 20,000": lambda: all_scores(20_000, "CoxRegression", ""),
    "compare, all scores, forecasts and C by cox, 20,000": lambda: all_scores(20_000, "CoxRegression", "cox"),
    "compare, all scores, Kaplan-Meier, 20,000": lambda: all_scores(20_000, "KaplanMeier", ""),
    "compare, default scores, Kaplan-Meier, 100,000": lambda: many(100_000),
    "compare, causes, 5 smooth forecasts, 100": causes,
    "page of 6 models, 1,000": lambda: page(1_000),
    "stream, 3 models, 3 scores, 400,000": lambda: stream(400_000),
}


def measure(name: str) -> float:
    """The least CPU seconds of a row; what takes long is done once."""
    work, taken = ROWS[name](), list[float]()
    while len(taken) <= REPEATS and sum(taken) < LONG:
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken[1:] or taken)


def measured_in(source: Path, name: str) -> float:
    """The same in a process that imports the package from ``source``."""
    path = os.pathsep.join([str(source), str(ROOT)])
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.bench_evaluation", "--row", name],
        env=os.environ | {"PYTHONPATH": path, "CENSCORE_THREADS": "1", "OMP_NUM_THREADS": "1"},
        cwd=ROOT, check=True, stdout=subprocess.PIPE, text=True,
    )  # fmt: skip
    return float(json.loads(done.stdout))


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawTextHelpFormatter)
    options.add_argument("words", nargs="*")
    options.add_argument("--before", type=Path, help="folder that holds another version of the package")
    options.add_argument("--row", help=argparse.SUPPRESS)
    asked = options.parse_args()
    if asked.row is not None:
        print(json.dumps(measure(asked.row)))
        return
    sources = (
        {"after": ROOT / "src"} if asked.before is None else {"before": asked.before, "after": ROOT / "src"}
    )
    print(
        f"{'CPU seconds':58s}"
        + "".join(f"{name:>9s}" for name in sources)
        + "   ratio"[: 8 * len(sources) - 8]
    )
    for row in ROWS:
        if asked.words and not any(word in row for word in asked.words):
            continue
        least = dict.fromkeys(sources, np.inf)
        for _ in range(ROUNDS):
            for name, source in sources.items():
                if not LONG < least[name] < np.inf:
                    least[name] = min(least[name], measured_in(source, row))
        ratio = f"{least['before'] / least['after']:8.2f}" if asked.before is not None else ""
        print(f"{row:58s}" + "".join(f"{value:9.3f}" for value in least.values()) + ratio, flush=True)


if __name__ == "__main__":
    main()
