"""How cost grows: exponents of CPU time in subjects, jumps of C, times, models, causes and event times.

Each row is the slope of log CPU seconds against log size, by least squares, in one thread. A row has a
promise: one where cost is that of sorting, less where a part does not depend on the size, two where all pairs
meet. The command fails where a slope exceeds its promise by more than ``SLACK``. ``python -m
benchmarks.bench_growth crps`` runs the rows with a word in their name.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
from threadpoolctl import threadpool_limits

import censcore as cs
from censcore import _kernels
from censcore.evaluation import concordance_estimate, dynamic_auc_estimate

SLACK = 0.25  # of sorting, whose logarithm adds 0.1 over these sizes, and of noise
LARGE, MIDDLE = (20_000, 40_000, 80_000), (4_000, 8_000, 16_000)


class Row(NamedTuple):
    """What is done, in what it grows, the promised exponent, sizes, and the work of each size."""

    what: str
    by: str
    promise: float
    sizes: tuple[int, ...]
    work: Callable[[int], Callable[[], Any]]


class Sample:
    """n subjects with three covariates, and a distribution of C from as many others."""

    def __init__(self, n: int, jumps: int | None = None) -> None:
        rng = np.random.default_rng(n)
        self.X, self.y = self._drawn(rng, n)
        self.train = self._drawn(rng, jumps or n)
        self.x, self.horizon = self.X[:, 0], 2.5
        self.weibull = cs.Weibull(1.4, 2 * np.exp(-0.5 * self.x))

    @staticmethod
    def _drawn(rng: np.random.Generator, n: int) -> tuple[np.ndarray, cs.RightCensored]:
        X = rng.normal(size=(n, 3))
        T, C = 2 * rng.weibull(1.3, n) * np.exp(-0.5 * X[:, 0]), rng.uniform(0.2, 4.0, n)
        return X, cs.RightCensored(np.minimum(T, C), T <= C)

    @property
    def kaplan_meier(self) -> cs.Distribution:
        """One distribution of C for all subjects."""
        return cs.Censoring(cs.KaplanMeier()).fit(None, self.train[1]).predict_distribution()

    @property
    def cox_censoring(self) -> cs.Distribution:
        """The distribution of C of each subject by a Cox model."""
        return cs.Censoring(cs.CoxRegression()).fit(*self.train).predict_distribution(self.X)

    def steps(self, times: int) -> cs.Step:
        """The Weibull forecasts as step functions."""
        grid = np.linspace(0.02, 2.4, times)
        return cs.Step(grid, sf=self.weibull.sf(grid[None, :]))


def score(name: str, F: str, C: str, *at: Any) -> Callable[[int], Callable[[], Any]]:
    """A score of n subjects; F and C are attributes of a sample."""

    def of(n: int) -> Callable[[], Any]:
        s = Sample(n)
        forecast = s.steps(50) if F == "steps" else getattr(s, F)
        censoring = getattr(s, C)
        return lambda: getattr(cs, name)(s.y, forecast, censoring, *at, horizon=s.horizon)

    return of


def by_jumps(jumps: int) -> Callable[[], Any]:
    s = Sample(4_000, jumps)
    C = s.kaplan_meier
    return lambda: cs.crps(s.y, s.weibull, C, horizon=s.horizon)


def by_times(q: int) -> Callable[[], Any]:
    s = Sample(10_000)
    C, times = s.kaplan_meier, np.linspace(0.1, 2.3, q)
    return lambda: cs.brier_score(s.y, s.weibull, C, times, horizon=s.horizon)


def comparison(
    n: int, models: int = 2, estimator: Any = None, scores: str = "brier_score:ipcw"
) -> Callable[[], Any]:
    s, times = Sample(n), np.linspace(0.4, 2.0, 5)
    forecasts = {f"{i}": cs.Weibull(1.2 + 0.1 * i, 2 * np.exp(-0.4 * s.x)) for i in range(models)}
    C = cs.Censoring(cs.KaplanMeier() if estimator is None else estimator)

    def work() -> Any:
        found = cs.compare(forecasts, s.y, C, X=s.X, train=s.train, scores=scores, times=times, horizon=2.2)
        return found.frame(), found.differences()

    return work


def discrimination(n: int, cox: bool) -> Callable[[], Any]:
    s = Sample(n)
    C = s.cox_censoring if cox else s.kaplan_meier
    return lambda: (
        concordance_estimate(s.y, s.x, C, horizon=2.0), dynamic_auc_estimate(s.y, s.x, C, [0.5, 1.0, 1.5])
    )  # fmt: skip


def causes(m: int) -> Callable[[], Any]:
    rng, n = np.random.default_rng(m), 200
    T, C = rng.exponential(m, (n, m)), rng.uniform(0.2, 3.0, n)
    first = T.min(axis=1)
    y = cs.CompetingRisks(np.minimum(first, C), np.where(first <= C, T.argmin(axis=1) + 1, 0), n_causes=m)
    rates = rng.uniform(0.8, 1.2, (n, m)) / m

    def work() -> Any:
        F = cs.CauseSpecificHazards([cs.Weibull(1.1, 1 / rates[:, j]) for j in range(m)])
        return cs.crps(y, F, cs.Uniform(0.2, 3.0), horizon=2.0)

    return work


def event_times(k: int) -> Callable[[], Any]:
    rng, n, m = np.random.default_rng(k), 100, 200
    z, T, C = rng.weibull(1.5, (n, m, k)), rng.weibull(1.5, (n, k)), rng.uniform(0.5, 3.0, (n, 1))
    y, F = cs.RightCensored(np.minimum(T, C), T <= C), cs.Ensemble(z)
    return lambda: cs.energy_score(y, F, cs.Uniform(0.5, 3.0))


def fit(estimator: Any) -> Callable[[int], Callable[[], Any]]:
    def of(n: int) -> Callable[[], Any]:
        s = Sample(n)
        return lambda: estimator.fit(s.X, s.y).predict_distribution(s.X)

    return of


ROWS = [
    Row("crps, Weibull under Kaplan-Meier", "n", 1.0, LARGE, score("crps", "weibull", "kaplan_meier")),
    Row("crps, 50 steps under Kaplan-Meier", "n", 1.0, LARGE, score("crps", "steps", "kaplan_meier")),
    Row("crps, 50 steps under a Cox C", "n", 1.0, MIDDLE, score("crps", "steps", "cox_censoring")),
    Row("crps, Weibull under a Cox C", "n", 1.0, MIDDLE, score("crps", "weibull", "cox_censoring")),
    Row("log_score, Weibull", "n", 1.0, LARGE, score("log_score", "weibull", "kaplan_meier")),
    Row("pinball_score, Weibull, Kaplan-Meier", "n", 1.0, LARGE,
        score("pinball_score", "weibull", "kaplan_meier", [0.25, 0.5, 0.75])),
    Row("crps, Weibull, 4,000 subjects", "jumps of C", 0.2, (2_000, 8_000, 32_000), by_jumps),
    Row("brier_score, Weibull, 10,000 subjects", "times", 1.0, (20, 40, 80), by_times),
    Row("concordance and AUC with errors, Kaplan-Meier", "n", 1.0, LARGE, lambda n: discrimination(n, False)),
    Row("concordance and AUC with errors, Cox C", "n", 1.0, MIDDLE, lambda n: discrimination(n, True)),
    Row("compare, 2 models, Brier, AUC and C, Kaplan-Meier", "n", 1.0, LARGE, comparison),
    Row("compare, 2 models, Brier, AUC and C, Cox", "n", 1.0, MIDDLE,
        lambda n: comparison(n, estimator=cs.CoxRegression())),
    Row("compare, 2 models, all scores, Cox", "n", 1.0, MIDDLE,
        lambda n: comparison(n, estimator=cs.CoxRegression(), scores="all")),
    Row("compare, Brier, AUC and C, 2,000 subjects", "models", 1.0, (4, 8, 16),
        lambda models: comparison(2_000, models)),
    Row("crps over all causes, 200 subjects", "causes", 2.0, (2, 4, 8), causes),
    Row("energy_score, 100 ensembles of 200", "event times k", 1.0, (2, 4, 8), event_times),
    Row("KaplanMeier, fit and predict", "n", 1.0, LARGE, fit(cs.KaplanMeier())),
    Row("CoxRegression, fit and predict", "n", 1.0, LARGE, fit(cs.CoxRegression())),
    Row("WeibullRegression, fit and predict", "n", 1.0, LARGE, fit(cs.WeibullRegression())),
]  # fmt: skip


def seconds(work: Callable[[], Any]) -> float:
    """The least CPU time of three runs; one before does not count."""
    work()
    taken = []
    for _ in range(3):
        start = time.process_time()
        work()
        taken.append(time.process_time() - start)
    return min(taken)


def slopes(asked: list[str]) -> Iterator[tuple[Row, float, float]]:
    """Each row with its exponent, and the seconds of the largest size."""
    for row in ROWS:
        if not asked or any(word in row.what for word in asked):
            taken = [seconds(row.work(size)) for size in row.sizes]
            yield row, float(np.polyfit(np.log(row.sizes), np.log(taken), 1)[0]), taken[-1]


def main(asked: list[str]) -> int:
    os.environ["CENSCORE_THREADS"] = "1"
    threadpool_limits(1)  # threads of BLAS that wait count as CPU time, most where the machine is busy
    _kernels.CALLS_UNTIL_LOADED = 0  # of a process that has loaded its kernels
    print(f"{'':52s} {'grows in':14s} {'sizes':>16s} {'ms':>8s} {'exponent':>9s} {'promise':>8s}")
    exceeded = 0
    for row, slope, last in slopes(asked):
        over = slope > row.promise + SLACK
        exceeded += over
        sizes = f"{row.sizes[0]:,} to {row.sizes[-1]:,}"
        print(f"{row.what:52s} {row.by:14s} {sizes:>16s} {1e3 * last:8.1f} {slope:9.2f} {row.promise:8.1f}"
              f"{'  exceeded' if over else ''}", flush=True)  # fmt: skip
    print(f"{exceeded} of the promises exceeded")
    return exceeded


if __name__ == "__main__":
    sys.exit(min(main(sys.argv[1:]), 1))
