"""Comparing 5 models by 6 scores, with intervals, against one integrated Brier score of scikit-survival.

Both work on survival matrices of 20,000 subjects by 100 times. The comparison fits the censoring distribution
and gives 30 mean scores with standard errors that cover its estimation, and the paired differences.
"""

from __future__ import annotations

import numpy as np
from sksurv.metrics import integrated_brier_score
from sksurv.util import Surv

import censcore as cs
from benchmarks.timing import alternate

SUBJECTS, TIMES, MODELS, REPEATS = 20_000, 100, 5, 5
SCORES = [
    "crps",
    "brier_score",
    "brier_score:ipcw",
    "integrated_brier_score:ipcw",
    "binomial_log_score",
    "pinball_score",
]


def main() -> None:
    rng = np.random.default_rng(0)
    x = rng.normal(size=(2 * SUBJECTS, 1))
    T, C = rng.weibull(1.5, 2 * SUBJECTS) * np.exp(0.5 * x[:, 0]), rng.uniform(0, 2.5, 2 * SUBJECTS)
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    train, test = y[:SUBJECTS], y[SUBJECTS:]
    grid = np.linspace(0.02, 2.2, TIMES)
    matrices = [
        np.exp(-((grid / np.exp(slope * x[SUBJECTS:])) ** 1.5)) for slope in np.linspace(0.1, 0.9, MODELS)
    ]
    theirs = [Surv.from_arrays(part.event, part.time) for part in (train, test)]

    def one_score() -> object:
        return integrated_brier_score(theirs[0], theirs[1], matrices[0], grid)

    def comparison() -> object:
        forecasts = {f"model {i}": cs.Step(grid, sf=S) for i, S in enumerate(matrices)}
        found = cs.compare(
            forecasts,
            test,
            cs.Censoring(cs.KaplanMeier()),
            train=(None, train),
            scores=SCORES,
            times=[0.4, 0.8, 1.6],
            levels=[0.25, 0.5, 0.75],
            horizon=2.2,
            reference=None,
            discrimination=False,
        )
        return found.frame(), found.differences()

    taken = alternate(REPEATS, peer=one_score, ours=comparison)
    peer, ours = taken["peer"].wall, taken["ours"].wall
    print(f"{SUBJECTS:,} subjects, {TIMES} times; median of {REPEATS}")
    print(f"scikit-survival, one integrated Brier score      {1e3 * peer:8.0f} ms")
    print(f"censcore, {MODELS} models x {len(SCORES)} scores with intervals    {1e3 * ours:8.0f} ms")
    print(f"ratio                                            {ours / peer:8.1f}   (aim: below 15)")


if __name__ == "__main__":
    main()
