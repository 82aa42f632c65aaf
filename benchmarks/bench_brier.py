"""IPCW Brier score with an estimated censoring distribution, against scikit-survival and hazardous.

The validation of inputs counts. All three start from arrays of times, events and survival
probabilities and end with one mean per time; censcore gives one loss per subject and time on the way.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from hazardous.metrics import brier_score_survival
from sksurv.metrics import brier_score
from sksurv.util import Surv

import censcore as cs
from benchmarks.timing import alternate, one_thread, print_ratios

SUBJECTS, TIMES, REPEATS = 20_000, np.linspace(0.05, 2, 100), 15


def data(seed: int, end: float) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(seed)
    T, c = (
        rng.weibull(1.5, SUBJECTS),
        np.minimum(rng.exponential(1.5, SUBJECTS), end + 0.2 * rng.random(SUBJECTS)),
    )
    return np.minimum(T, c), c >= T


def main() -> None:
    train, test = data(1, 2.6), data(2, 2.3)  # the peers expect longer follow-up in the training data
    scale = np.random.default_rng(0).uniform(0.7, 1.3, (SUBJECTS, 1))
    S = np.exp(-((TIMES / scale) ** 1.5))

    def ours() -> Any:
        y_train, y_test = cs.RightCensored(*train), cs.RightCensored(*test)
        C = cs.Censoring(cs.KaplanMeier()).fit(None, y_train).predict_distribution(test[0][:, None])
        return cs.brier_score(y_test, cs.Step(TIMES, sf=S), C, TIMES, scale="ipcw").mean(axis=0)

    def ours_alone() -> Any:
        with one_thread():
            return ours()

    def sksurv() -> Any:
        outcomes = (Surv.from_arrays(event, time) for time, event in (train, test))
        return brier_score(*outcomes, S, TIMES)[1]

    def hazardous() -> Any:
        frames = (
            pd.DataFrame({"event": event.astype(int), "duration": time}) for time, event in (train, test)
        )
        return brier_score_survival(*frames, S, TIMES)

    worst = max(float(np.abs(peer() / ours() - 1).max()) for peer in (sksurv, hazardous))
    print_ratios(
        f"{SUBJECTS:,} subjects x {len(TIMES)} times (largest relative difference {worst:.0e})",
        alternate(
            REPEATS,
            **{
                "censcore": ours,
                "censcore, one thread": ours_alone,
                "scikit-survival": sksurv,
                "hazardous": hazardous,
            },
        ),
    )


if __name__ == "__main__":
    main()
