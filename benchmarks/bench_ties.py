"""One Brier score, five implementations: their values on tied data, and which is unbiased.

Times are whole numbers, so that most are tied: T and C are geometric(0.15), C at most 10. The forecast is the
true distribution, whose Brier score without censoring is known: S(t)(1 - S(t)). The bias is over many data
sets.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable

import numpy as np
import pandas as pd
import torch
from hazardous.metrics import brier_score_survival
from pycox.evaluation import EvalSurv
from sksurv.metrics import brier_score
from sksurv.util import Surv
from torchsurv.metrics.brier_score import BrierScore
from torchsurv.stats.ipcw import get_ipcw

import censcore as cs

TIMES = np.array([2.0, 4.0, 6.0])
DATA_SETS, SUBJECTS = 200, 1000
Data = tuple[np.ndarray, np.ndarray, np.ndarray]  # times, events, survival matrix


def with_censcore(time: np.ndarray, event: np.ndarray, S: np.ndarray) -> np.ndarray:
    y = cs.RightCensored(time, event)
    C = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()
    return cs.brier_score(y, cs.Step(TIMES, sf=S), C, TIMES, scale="ipcw").mean(axis=0)


def with_scikit_survival(time: np.ndarray, event: np.ndarray, S: np.ndarray) -> np.ndarray:
    y = Surv.from_arrays(event, time)
    return brier_score(y, y, S, TIMES)[1]


def with_hazardous(time: np.ndarray, event: np.ndarray, S: np.ndarray) -> np.ndarray:
    y = pd.DataFrame({"event": event.astype(int), "duration": time})
    return np.asarray(brier_score_survival(y, y, S, TIMES))


def with_pycox(time: np.ndarray, event: np.ndarray, S: np.ndarray) -> np.ndarray:
    survival = pd.DataFrame(np.column_stack([np.ones(len(time)), S]).T, index=[0.0, *TIMES])
    found = EvalSurv(survival, time, event.astype(int), censor_surv="km").brier_score(TIMES)
    return np.asarray(found)


def with_torchsurv(time: np.ndarray, event: np.ndarray, S: np.ndarray) -> np.ndarray:
    t, e, at = torch.as_tensor(time), torch.as_tensor(event), torch.as_tensor(TIMES)
    weight, weight_then = get_ipcw(e, t), get_ipcw(e, t, at)
    found = BrierScore()(torch.as_tensor(S), e, t, new_time=at, weight=weight, weight_new_time=weight_then)
    return found.numpy()


LIBRARIES: dict[str, Callable[[np.ndarray, np.ndarray, np.ndarray], np.ndarray]] = {
    "censcore": with_censcore,
    "scikit-survival": with_scikit_survival,
    "hazardous": with_hazardous,
    "pycox": with_pycox,
    "torchsurv": with_torchsurv,
}


def tied(rng: np.random.Generator) -> Data:
    T, C = rng.geometric(0.15, SUBJECTS), np.minimum(rng.geometric(0.15, SUBJECTS), 10)
    return np.minimum(T, C).astype(float), T <= C, np.tile(0.85**TIMES, (SUBJECTS, 1))


def untied(rng: np.random.Generator) -> Data:
    T, C = (
        rng.exponential(6.0, SUBJECTS),
        np.minimum(rng.exponential(6.0, SUBJECTS), rng.uniform(9.9, 10, SUBJECTS)),
    )
    return np.minimum(T, C), T <= C, np.tile(np.exp(-TIMES / 6.0), (SUBJECTS, 1))


def main() -> None:
    warnings.simplefilter("ignore")
    for title, draw in (("untied times", untied), ("whole-number times", tied)):
        rng = np.random.default_rng(0)
        found: dict[str, list[np.ndarray]] = {name: [] for name in LIBRARIES}
        for _ in range(DATA_SETS):
            data = draw(rng)
            for name, score in LIBRARIES.items():
                found[name].append(score(*data))
        S = data[2][0]
        truth = S * (1 - S)
        print(f"\n{title}: ipcw Brier score of the true distribution, {DATA_SETS} data sets of {SUBJECTS}")
        print(f"{'':18s}{'mean':^27s}{'bias, %':^27s}")
        print(f"{'':18s}" + 2 * "".join(f"{f't = {t:g}':>9s}" for t in TIMES))
        print(f"{'no censoring':18s}" + "".join(f"{value:9.4f}" for value in truth))
        for name, values in found.items():
            mean, error = np.mean(values, axis=0), np.std(values, axis=0) / np.sqrt(DATA_SETS)
            bias = "".join(f"{100 * value:+9.2f}" for value in mean / truth - 1)
            print(f"{name:18s}" + "".join(f"{value:9.4f}" for value in mean) + bias, flush=True)
        print(f"{'standard error':18s}{'':27s}" + "".join(f"{100 * v:9.2f}" for v in error / truth))


if __name__ == "__main__":
    main()
