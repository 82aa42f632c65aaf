"""How the cost of scores grows: ratios of CPU time in one run, what they were and what they should be.

One thread, and CPU seconds of the process alone, so that a busy machine does not change the ratios. "Old" is
the ratio before panels, risks and antiderivatives were shared between subjects; rows that compare with that
route run it here, subject by subject. ``python -m benchmarks.bench_speed_table 3 6`` runs some rows only.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import time
import tracemalloc
from collections.abc import Callable, Iterator
from functools import cache, partial
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import censcore as cs
from censcore import _kernels
from censcore.distributions import Copula
from censcore.scores.inputs.scoring_inputs import scoring_inputs
from censcore.scores.integration.routes import exactly

HORIZON = 2.5
LEVELS = np.linspace(0.1, 0.9, 9)
TIMES = np.linspace(0.02, 2.4, 100)


class Line(NamedTuple):
    """A ratio: what it was, what it is, what it should be."""

    what: str
    old: str
    new: float
    goal: str


def cpu(function: Callable[[], Any], repeats: int = 5) -> float:
    """The least CPU seconds of several runs; the first does not count."""
    function()
    taken = []
    for _ in range(repeats):
        start = time.process_time()
        function()
        taken.append(time.process_time() - start)
    return min(taken)


def ratio(above: Callable[[], Any], below: Callable[[], Any], repeats: int = 5) -> float:
    return cpu(above, repeats) / cpu(below, repeats)


class Subjects:
    """Outcomes, forecasts and censoring distributions of n subjects, estimated from as many others."""

    def __init__(self, n: int, train: int | None = None) -> None:
        self.n, rng = n, np.random.default_rng(0)
        self.x, self.y, self.c = self._drawn(rng, n)
        self._others = self._drawn(np.random.default_rng(1), train or n)
        scale = np.exp(0.4 * self.x)
        self.weibull = cs.Weibull(1.4 + 0.2 * rng.random(n), scale)
        self.weibull_censoring = cs.Weibull(np.full(n, 1.2), 2.0 * np.exp(0.2 * self.x))
        self.mixture = cs.Mixture([self.weibull, cs.Weibull(2.0, 1.5 * scale)], [0.6, 0.4])
        self.first = Copula("clayton", [self.weibull, cs.Weibull(1.2, 2 * scale)], 1.5).first()
        grid = np.linspace(0.03, 3.0, 100)
        self.steps = cs.Step(grid, sf=self.weibull.sf(grid[None, :]))
        levels = np.linspace(0.05, 0.95, 19)
        self.quantiles = cs.Quantiles(levels, self.weibull.icdf(levels[None, :]))

    @staticmethod
    def _drawn(rng: np.random.Generator, n: int) -> tuple[np.ndarray, cs.RightCensored, np.ndarray]:
        x = rng.normal(size=n)
        T, c = rng.weibull(1.5, n) * np.exp(0.5 * x), 2 * rng.weibull(1.2, n) * np.exp(0.2 * x)
        return x, cs.RightCensored(np.minimum(T, c), c >= T), c

    @property
    def cox(self) -> Any:
        """Forecasts of a Cox model."""
        x, y, _ = self._others
        return cs.CoxRegression().fit(x[:, None], y).predict_distribution(self.x[:, None])

    @property
    def kaplan_meier(self) -> Any:
        """One censoring distribution for all subjects."""
        return cs.Censoring(cs.KaplanMeier()).fit(None, self._others[1]).predict_distribution()

    @property
    def cox_censoring(self) -> Any:
        """The censoring distribution of each subject by a Cox model."""
        x, y, _ = self._others
        return cs.Censoring(cs.CoxRegression()).fit(x[:, None], y).predict_distribution(self.x[:, None])

    def crps(self, F: Any, C: Any) -> Callable[[], Any]:
        """What is timed."""
        return lambda: cs.crps(self.y, F, C, horizon=HORIZON)

    def one_by_one(self, F: Any, C: Any) -> Callable[[], Any]:
        """The route without anything shared between subjects."""
        inputs = scoring_inputs(self.y, F, C, HORIZON)
        return lambda: exactly(inputs)


@cache
def subjects(n: int, train: int | None = None) -> Subjects:
    return Subjects(n, train)


def row_1() -> Iterator[Line]:
    s = subjects(2_000)
    x, y, _ = s._others

    def compare(estimator: Any, covariates: bool) -> Callable[[], Any]:
        X, X_train = (s.x[:, None], x[:, None]) if covariates else (None, None)
        return lambda: cs.compare(
            {"Weibull": s.steps}, s.y, cs.Censoring(estimator), X=X, train=(X_train, y),
            scores=["crps"], horizon=HORIZON, reference=None, discrimination=False,
        )  # fmt: skip

    new = ratio(compare(cs.CoxRegression(), True), compare(cs.KaplanMeier(), False), 2)
    yield Line("compare with a Cox censoring distribution / with Kaplan-Meier, n = 2,000", "83", new, "5")


def row_2() -> Iterator[Line]:
    s = subjects(10_000)
    F, C, KM = s.cox, s.weibull_censoring, s.kaplan_meier
    yield Line("crps of a Cox forecast, Weibull C per subject / Kaplan-Meier", "84",
               ratio(s.crps(F, C), s.crps(F, KM)), "5")  # fmt: skip

    def ipcw(censoring: Any) -> Callable[[], Any]:
        return lambda: cs.integrated_brier_score(s.y, F, censoring, scale="ipcw", horizon=HORIZON)

    yield Line("... on the ipcw scale", "272", ratio(ipcw(C), ipcw(KM)), "5")


def row_3() -> Iterator[Line]:
    few, many = subjects(10_000, 6_700), subjects(10_000, 67_000)
    C_few, C_many = few.kaplan_meier, many.kaplan_meier
    yield Line("crps of a Weibull forecast, 20,000 jumps of C / 2,000", "7",
               ratio(few.crps(few.weibull, C_many), few.crps(few.weibull, C_few)), "1.2")  # fmt: skip
    yield Line("... subject by subject / now, 2,000 jumps", "1",
               ratio(few.one_by_one(few.weibull, C_few), few.crps(few.weibull, C_few)), "10")  # fmt: skip


def row_4() -> Iterator[Line]:
    s = subjects(10_000)
    C, KM = s.cox_censoring, s.kaplan_meier
    yield Line(
        "crps of step curves, Cox C / Kaplan-Meier", "92", ratio(s.crps(s.steps, C), s.crps(s.steps, KM)), "3"
    )
    for name, F in (("step curves", s.steps), ("Weibull", s.weibull), ("Cox", s.cox)):

        def pinball(censoring: Any, F: Any = F) -> Callable[[], Any]:
            return lambda: cs.pinball_score(s.y, F, censoring, LEVELS, horizon=HORIZON)

        yield Line(f"pinball of {name}, Cox C / Kaplan-Meier", "9 to 27", ratio(pinball(C), pinball(KM)), "2")


def row_5() -> Iterator[Line]:
    seconds = {}
    for n in (10_000, 30_000):
        s = subjects(n)
        seconds[n] = cpu(s.crps(s.cox, s.kaplan_meier))
    growth = np.log(seconds[30_000] / seconds[10_000]) / np.log(3)
    yield Line(
        "Cox forecast under Kaplan-Meier: growth exponent of n = J, 10,000 to 30,000", "2.2", growth, "1.1"
    )


def row_6() -> Iterator[Line]:
    s = subjects(10_000)
    C = cs.PointMass(s.c)
    yield Line("crps of 19 quantiles / of a 100-step curve, C known", "350",
               ratio(s.crps(s.quantiles, C), s.crps(s.steps, C)), "3")  # fmt: skip


def row_7() -> Iterator[Line]:
    s, few = subjects(4_000, 6_700), subjects(500, 6_700)
    C = s.kaplan_meier
    new = ratio(s.one_by_one(s.mixture, C), s.crps(s.mixture, C))
    yield Line("mixture under Kaplan-Meier, subject by subject / now", "1", new, "10")
    yield Line("joint.first() under Kaplan-Meier, subject by subject / now", "1",
               ratio(few.one_by_one(few.first, few.kaplan_meier), few.crps(few.first, few.kaplan_meier), 2),
               "10")  # fmt: skip


def row_8() -> Iterator[Line]:
    s = subjects(2_000)
    F = cs.Ensemble(s.weibull.sample(1_000, 1))
    yield Line("ensemble of 1,000: Weibull C / Kaplan-Meier", "29",
               ratio(s.crps(F, s.weibull_censoring), s.crps(F, s.kaplan_meier)), "2")  # fmt: skip


def row_9() -> Iterator[Line]:
    s = subjects(10_000)
    C = s.kaplan_meier

    def score(name: str) -> Callable[[], Any]:
        return lambda: getattr(cs, name)(s.y, s.steps, C, TIMES, horizon=HORIZON)

    yield Line("binomial log / Brier score of step curves", "25",
               ratio(score("binomial_log_score"), score("brier_score")), "2.5")  # fmt: skip
    tracemalloc.start()
    loss = score("binomial_log_score")()
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    yield Line("... peak memory / result", "8", peak / loss.nbytes, "1.5")


def row_10() -> Iterator[Line]:
    from sksurv.metrics import integrated_brier_score
    from sksurv.util import Surv

    s = subjects(20_000)
    train = s._others[1]
    grid = np.linspace(0.03, 2.4, 100)
    curves = {str(i): s.weibull.sf(grid[None, :]) ** (0.6 + 0.2 * i) for i in range(5)}
    kept = s.y.time < HORIZON
    theirs = [Surv.from_arrays(y.event, y.time) for y in (train, s.y[kept])]

    def comparison() -> Any:
        return cs.compare(
            {name: cs.Step(grid, sf=S) for name, S in curves.items()}, s.y, cs.Censoring(cs.KaplanMeier()),
            train=(None, train), times=[0.4, 0.8, 1.6], levels=[0.25, 0.5, 0.75], horizon=2.4, reference=None,
            discrimination=False,
            scores=["crps", "brier_score", "brier_score:ipcw", "integrated_brier_score:ipcw",
                    "binomial_log_score", "pinball_score"],
        ).differences()  # fmt: skip

    new = ratio(comparison, lambda: integrated_brier_score(*theirs, curves["0"][kept], grid), 2)
    yield Line("compare, 5 models x 6 scores at 20,000 / one integrated score of scikit-survival", "13 to 15",
               new, "7")  # fmt: skip


def row_11() -> Iterator[Line]:
    import numba

    from censcore.scores.kernels.energy_pairs import fastest_terms

    @numba.njit(fastmath=True)
    def roots(z):  # type: ignore[no-untyped-def]
        total = z[0, 0, 0] * 0
        for i in range(z.shape[0]):
            for a in range(z.shape[2]):
                for b in range(a):
                    u, v = z[i, 0, a] - z[i, 0, b], z[i, 1, a] - z[i, 1, b]
                    total += np.sqrt(u * u + v * v)
        return total

    rng, n, m, draws = np.random.default_rng(0), 40, 1024, 32
    for kind, (old, goal), (old_lagged, goal_lagged) in (
        (np.float64, ("1.9", "1.15"), ("2.85", "1.4")),
        (np.float32, ("5.0", "1.4"), ("5.2", "2.6")),
    ):
        z, y = rng.weibull(1.5, (n, m, 2)).astype(kind), rng.weibull(1.5, (n, 2)).astype(kind)
        c = np.full((n, 1, 1), np.inf, kind)
        terms = fastest_terms(z, None, 1e12)
        flat = np.ascontiguousarray(z.transpose(0, 2, 1))
        bare = cpu(partial(roots, flat))
        new, name = cpu(partial(terms, z, None, y, c, 1.0)) / bare, np.dtype(kind).name
        yield Line(f"all pairs of the energy score / bare square roots, {name}", old, new, goal)
        c, lags = rng.uniform(1, 4, (n, draws, 1)).astype(kind), rng.integers(1, m, (n, draws))
        lagged = cpu(partial(terms, z, None, y, c, 1.0, lags)) / (n * draws * 2 * m)
        new = lagged / (bare / (n * m * (m - 1) / 2))
        yield Line(f"lagged pairs / bare square roots, per distance, {name}", old_lagged, new, goal_lagged)


FIRST = """
import sys, time, numpy as np, censcore as cs
from censcore import _kernels
if sys.argv[1] == "formula":
    _kernels.WORTH_COMPILING = float("inf")
grid, n = np.linspace(0.03, 3.0, 100), 10_000
rng = np.random.default_rng(0)
F = cs.Step(grid, sf=np.exp(-grid[None] * rng.uniform(0.5, 2, (n, 1))))
y = cs.RightCensored(rng.weibull(1.5, n), rng.random(n) < 0.6)
C = cs.Step(np.sort(rng.random(300) * 3), sf=np.linspace(0.99, 0.01, 300))
cs.crps
start = time.process_time()
cs.crps(y, F, C, horizon=2.5)
print(time.process_time() - start)
"""


def row_12() -> Iterator[Line]:
    def first(how: str) -> float:
        command = [sys.executable, "-c", FIRST, how]
        return min(float(subprocess.run(command, check=True, capture_output=True).stdout) for _ in range(3))

    yield Line("first crps of a process / by formulas alone, 10,000 step curves", "17 to 78",
               first("as it comes") / first("formula"), "1.5")  # fmt: skip


def row_13() -> Iterator[Line]:
    _, y, _ = Subjects._drawn(np.random.default_rng(0), 1_000_000)

    def folds() -> Any:
        return cs.Censoring(cs.KaplanMeier(), cv=5).fit_predict_distribution(None, y)

    def six_fits() -> None:
        for _ in range(6):
            cs.Censoring(cs.KaplanMeier()).fit(None, y)

    yield Line(
        "out-of-fold Kaplan-Meier (cv=5) / six fits, n = 1,000,000", "4", ratio(folds, six_fits, 2), "1.2"
    )


def _cpu_of(code: str) -> float:
    def once() -> float:
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run([sys.executable, "-c", code], check=True, stdout=subprocess.DEVNULL)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime

    return min(once() for _ in range(4))


def row_14() -> Iterator[Line]:
    called = _cpu_of("import sys; sys.argv = ['censcore', '--help']; from censcore.cli.app import app; "
                     "app(standalone_mode=False)")  # fmt: skip
    yield Line(
        "censcore --help / import of typer and rich", "19", called / _cpu_of("import typer, rich"), "3"
    )


def row_15() -> Iterator[Line]:
    s = subjects(4_000, 6_700)
    y, F = s.y[1:2], s.weibull.take(slice(1, 2))  # an event
    for name, C in (("Kaplan-Meier", s.kaplan_meier), ("exponential C", cs.Exponential(0.5))):

        def many(C: Any = C) -> None:
            for _ in range(20):
                cs.crps(y, F, C, horizon=HORIZON)

        yield Line(f"crps of one subject, Weibull forecast, {name}: milliseconds", "0.6 to 1.0",
                   cpu(many) / 20 * 1e3, "0.25")  # fmt: skip


def row_16() -> Iterator[Line]:
    y, F, C = cs.RightCensored([1.3], [1]), cs.Weibull(np.array([1.5]), np.array([2.0])), cs.Uniform(0.0, 5.0)

    def many(score: Callable[..., Any], horizon: float | None, *C: Any) -> Callable[[], Any]:
        return lambda: [score(y, F, *C, horizon=horizon) for _ in range(50)]

    yield Line("crps of one subject / its log score, uniform C", "3.2",
               ratio(many(cs.crps, None, C), many(cs.log_score, None, C), 9), "2")  # fmt: skip
    yield Line("... nothing censored, up to a horizon", "",
               ratio(many(cs.crps, HORIZON), many(cs.log_score, HORIZON), 9), "2")  # fmt: skip
    calls = 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    cs.crps(y, F, C)
    sys.setprofile(None)
    yield Line("... calls of Python functions in crps, uniform C", "272", calls, "80")


def row_17() -> Iterator[Line]:
    import scoringrules

    s = subjects(2_000)
    x, T = s.weibull.sample(1_000, 1), np.random.default_rng(2).weibull(1.5, 2_000)
    events = cs.RightCensored(T, np.ones(2_000))
    peer = cpu(lambda: scoringrules.crps_ensemble(T, x, estimator="qd", backend="numba"), 15)
    for name, y, C, horizon in (
        ("uncensored", events, cs.PointMass(np.inf), None),
        ("Kaplan-Meier C", s.y, s.kaplan_meier, HORIZON),
        ("uniform C", s.y, cs.Uniform(0.0, 20.0), HORIZON),
    ):

        def score(y: Any = y, C: Any = C, horizon: Any = horizon) -> Any:
            return cs.crps(y, cs.Ensemble(x), C, horizon=horizon)

        yield Line(f"scoringrules / crps of an ensemble of 1,000, {name}", "", peer / cpu(score, 15), "4")


def row_18() -> Iterator[Line]:
    from sksurv.metrics import brier_score
    from sksurv.util import Surv

    s, grid = subjects(20_000), np.linspace(0.02, 2.0, 100)
    S, seen, train = s.weibull.sf(grid[None, :]), s.y.censor_at(HORIZON), s._others[1].censor_at(3.0)
    theirs = cpu(lambda: brier_score(*(Surv.from_arrays(y.event, y.time) for y in (train, seen)), S, grid), 7)

    def ours() -> Any:
        C = cs.Censoring(cs.KaplanMeier()).fit(None, train).predict_distribution()
        return cs.brier_score(seen, cs.Step(grid, sf=S), C, grid, scale="ipcw").mean(axis=0)

    compiled = theirs / cpu(ours, 15)
    loaded, _kernels.WORTH_COMPILING = _kernels.WORTH_COMPILING, np.inf  # type: ignore[assignment]
    formula = theirs / cpu(ours, 15)
    _kernels.WORTH_COMPILING = loaded
    yield Line("scikit-survival / ipcw Brier score, estimated C, 20,000 x 100, kernels", "3.8", compiled, "5")
    yield Line("... by the formula alone", "", formula, "5")


ROWS = [
    row_1, row_2, row_3, row_4, row_5, row_6, row_7, row_8, row_9, row_10, row_11, row_12, row_13, row_14,
    row_15, row_16, row_17, row_18,
]  # fmt: skip


def main(asked: list[str]) -> None:
    os.environ["CENSCORE_THREADS"] = "1"
    threadpool_limits(1)  # of BLAS, whose threads burn CPU while they wait for a busy machine
    _kernels.CALLS_UNTIL_LOADED = 0  # ratios of a process that has loaded its kernels
    print(f"{'#':>3s}  {'ratio of CPU time within this run':82s} {'old':>10s} {'new':>8s} {'goal':>6s}")
    for number, row in enumerate(ROWS, 1):
        if asked and str(number) not in asked:
            continue
        for what, old, new, goal in row():
            print(f"{number:3d}  {what:82s} {old:>10s} {new:8.3g} {goal:>6s}", flush=True)


if __name__ == "__main__":
    main(sys.argv[1:])
