r"""What intervals of the difference of two similar models cover, by the number of repeats of the folds.

Both models estimate the true distribution, so that their losses differ by estimation alone. The target is the
difference of the expected losses of the models as fitted in the folds. It is known: with the true F_0 and G,
:math:`E\{\mathrm{BS}(t)\}=(F-F_0)^2+F_0(1-F_0)` at each x on the ipcw scale, times G(t) on the localized one,
averaged over 1,500 new x and integrated over [0, 1.8] by Gauss and Legendre. Also: how often the second
model, which is of the right kind, is rejected by the tests of calibration at time 1 and of D-calibration.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import censcore as cs
from censcore.evaluation.comparison import concluded
from censcore.evaluation.evaluation import evaluate_all
from censcore.published import d_calibration

HORIZON, END, SHAPE = 1.8, 4.0, 1.5
NODES, WEIGHTS = (HORIZON / 2 * part for part in np.polynomial.legendre.leggauss(160))
TIMES = NODES + HORIZON / 2
FOLLOWED = 1 - TIMES / END  # P(C > t)
SCORES = ["crps", "integrated_brier_score:ipcw"]


@dataclass(frozen=True)
class Setting:
    """Two models with their numbers of covariates, of which two matter, and the number of subjects."""

    title: str
    models: tuple[tuple[Any, int], tuple[Any, int]]
    n: int


COX, WEIBULL = cs.CoxRegression, cs.WeibullRegression
SETTINGS = [
    Setting("Cox less Weibull regression, 3 covariates", ((COX, 3), (WEIBULL, 3)), 250),
    Setting("Weibull regression, 3 less 6 covariates", ((WEIBULL, 3), (WEIBULL, 6)), 250),
]
DATA_SETS, REPEATS = 300, 3


def main() -> None:
    for setting in SETTINGS:
        found = [one_data_set(setting, seed) for seed in range(DATA_SETS)]
        cells, p = np.array([cell for cell, _ in found]), np.array([p_values for _, p_values in found])
        print(f"\n{setting.title}, {setting.n} subjects, 5 folds; {DATA_SETS} data sets\n")
        print(f"{'':30s}{'coverage of 95 % intervals':>30s}{'standard error / spread':>28s}")
        for b, what in enumerate(("1 repeat", f"{REPEATS} repeats")):
            for j, score in enumerate(SCORES):
                low, high, error, spread = cells[:, b, j].T
                covered, ratio = (
                    np.mean((low <= 0) & (high >= 0)),
                    np.sqrt(np.mean(spread**2) / np.var(error)),
                )
                label = f"{score.removesuffix(':ipcw')}, {what}"
                print(f"{label:40s}{100 * covered:18.1f} %{ratio:28.2f}", flush=True)
        at_1, over_time = 100 * np.mean(p < 0.05, axis=0)
        print(f"rejected at 5 %: {at_1:.1f} % by calibration at 1, {over_time:.1f} % by D-calibration")


def one_data_set(setting: Setting, seed: int) -> tuple[np.ndarray, list[float]]:
    """Interval less the target, error, standard error, (1 or all repeats, score, 4); p-values."""
    rng = np.random.default_rng([seed, setting.n])
    p = max(columns for _, columns in setting.models)
    x, new_x = rng.normal(size=(setting.n, p)), rng.normal(size=(1500, p))
    T, C = rng.weibull(SHAPE, setting.n) * risk(x) ** (-1 / SHAPE), rng.uniform(0, END, setting.n)
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    truth = np.exp(-risk(new_x)[:, None] * TIMES**SHAPE)
    losses: list[list[np.ndarray]] = [[], []]
    models = {
        name: recorded(model, columns, new_x, truth, kept)
        for name, (model, columns), kept in zip("ab", setting.models, losses, strict=True)
    }
    found = cs.cross_validate(
        models,
        x,
        y,
        cv=cs.Folds(5, repeats=REPEATS),
        scores=SCORES,
        horizon=HORIZON,
        discrimination=False,
        reference=None,
        seed=seed,
    )
    R = np.array(losses[0]) - np.array(losses[1])
    lines = [
        _lines(concluded(evaluate_all(found.decided, found.repeats[:1])), R[:5].mean(axis=0)),
        _lines(found, R.mean(axis=0)),
    ]
    whole = d_calibration(found.outcome, found.cases["b"].F).p_value
    return np.array(lines), [found.calibration("b", time=1.0).p_value, whole]


def _lines(found: Any, target: np.ndarray) -> list[list[float]]:
    lines = []
    for score, R in zip(SCORES, target, strict=True):
        difference = found.estimate("a", score) - found.estimate("b", score)
        low, high = difference.interval(0.95)
        error = difference.value[0] - R
        lines.append([low[0] - R, high[0] - R, error, difference.standard_error[0]])
    return lines


def risk(x: np.ndarray) -> np.ndarray:
    return np.exp(0.7 * x[:, 0] - 0.4 * x[:, 1])


def recorded(
    model: Any, columns: int, new_x: np.ndarray, truth: np.ndarray, kept: list[np.ndarray]
) -> Callable[..., Any]:
    """A model of the first columns, whose expected losses are kept at every fit."""

    def fit(X: np.ndarray, y: cs.RightCensored, X_test: np.ndarray) -> cs.Distribution:
        fitted = model().fit(X[:, :columns], y)
        S = fitted.predict_distribution(new_x[:, :columns]).sf(TIMES[None, :])
        excess = ((S - truth) ** 2).mean(axis=0)
        kept.append(np.array([WEIGHTS @ (FOLLOWED * excess), WEIGHTS @ excess / HORIZON]))
        return fitted.predict_distribution(X_test[:, :columns])

    return fit


if __name__ == "__main__":
    main()
