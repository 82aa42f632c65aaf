"""Kaplan-Meier curves against scikit-survival and lifelines: time, and bias on tied data.

The bias is that of the mean ipcw Brier score of a forecast, relative to its Brier score without censoring,
over 200 data sets of 2,000 subjects with T and C geometric(0.15) and C capped at 10.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from lifelines import KaplanMeierFitter
from sksurv.metrics import brier_score
from sksurv.nonparametric import CensoringDistributionEstimator, kaplan_meier_estimator
from sksurv.util import Surv

import censcore as cs
from benchmarks.timing import alternate

REPEATS = 15
SUBJECTS = 20_000
DATA_SETS = 200


def censoring_distribution(y: cs.RightCensored) -> Any:
    return cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()


def show_times() -> None:
    rng = np.random.default_rng(0)
    T, C = rng.weibull(1.5, SUBJECTS), rng.uniform(0, 2, SUBJECTS)
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    structured = Surv.from_arrays(y.event, y.time)
    curves = alternate(
        REPEATS,
        censcore=lambda: cs.KaplanMeier().fit(None, y),
        sksurv=lambda: kaplan_meier_estimator(y.event, y.time),
        lifelines=lambda: KaplanMeierFitter().fit(y.time, y.event),
    )
    estimates = alternate(
        REPEATS,
        censcore=lambda: censoring_distribution(y).sf_left(y.time),
        sksurv=lambda: CensoringDistributionEstimator().fit(structured).predict_ipcw(structured),
    )
    print(f"{SUBJECTS:,} subjects{'':34s} {'ms':>8s} {'times ours':>11s}")
    for what, taken in (("curve", curves), ("censoring distribution, at every y", estimates)):
        for name, (wall, _) in taken.items():
            print(f"{what:40s} {name:9s} {1e3 * wall:6.2f} {wall / taken['censcore'].wall:11.2f}")


def show_bias() -> None:
    times = np.array([2.0, 4.0, 6.0])
    print(f"\n{'bias of the ipcw Brier score, %':41s}" + "".join(f"{f't = {t:g}':>9s}" for t in times))
    for title, S in (("the true distribution, 0.85^t", 0.85**times), ("a forecast of 0.8^t", 0.8**times)):
        bias = bias_of(S, times, np.random.default_rng(7))
        for name, values in bias.items():
            print(f"{title:30s} {name:10s}" + "".join(f"{100 * value:+9.2f}" for value in values))


def bias_of(S: np.ndarray, times: np.ndarray, rng: np.random.Generator) -> dict[str, np.ndarray]:
    truth = 0.85**times
    latent = truth * (1 - S) ** 2 + (1 - truth) * S**2
    scores: dict[str, list[np.ndarray]] = {"censcore": [], "sksurv": []}
    for _ in range(DATA_SETS):
        T, C = rng.geometric(0.15, 2000), np.minimum(rng.geometric(0.15, 2000), 10)
        y = cs.RightCensored(np.minimum(T, C).astype(float), T <= C)
        ours = cs.brier_score(y, cs.Step(times, sf=S), censoring_distribution(y), times, scale="ipcw")
        structured = Surv.from_arrays(y.event, y.time)
        scores["censcore"].append(ours.mean(axis=0))
        scores["sksurv"].append(brier_score(structured, structured, np.tile(S, (2000, 1)), times)[1])
    return {name: np.mean(parts, axis=0) / latent - 1 for name, parts in scores.items()}


def main() -> None:
    show_times()
    show_bias()


if __name__ == "__main__":
    main()
