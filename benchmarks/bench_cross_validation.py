r"""What the intervals of a cross-validated comparison cover: three targets, in four settings.

The targets are the expected losses, under the true distributions of T and C, of

- the models as fitted in the folds, which the intervals are made for;
- models fitted to other samples of the same size (the mean of the first over data sets);
- the models fitted to all subjects.

They are known: with the true F_0 and G, :math:`E\{\mathrm{BS}(t)\}=(F-F_0)^2+F_0(1-F_0)` at each x on the
ipcw scale, times G(t) on the localized one, averaged over 2,000 new x and integrated by the trapezoidal rule.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, cast

import numpy as np

import censcore as cs
from censcore.evaluation.parts.folded import Folded

HORIZON, AT = 2.0, 1.0
GRID = np.linspace(0, HORIZON, 81)
SCORES = ["crps", "integrated_brier_score:ipcw", "brier_score:ipcw"]
TARGETS = ["fitted in the folds", "other samples", "all subjects"]


@dataclass(frozen=True)
class Setting:
    """Subjects, covariates (of which two matter), repeats, and whether C depends on the first covariate."""

    title: str
    data_sets: int
    n: int
    p: int
    repeats: int = 1
    dependent: bool = False


SETTINGS = [
    Setting("300 subjects, 3 covariates, 5 folds", 400, 300, 3),
    Setting("120 subjects, 15 covariates, 5 folds", 300, 120, 15),
    Setting("300 subjects, 3 covariates, 5 folds, C depends on x", 150, 300, 3, dependent=True),
    Setting("300 subjects, 3 covariates, 5 folds, 4 repeats", 100, 300, 3, repeats=4),
]


def main() -> None:
    for setting in SETTINGS:
        print(f"\n{setting.title}; {setting.data_sets} data sets\n")
        print(f"{'coverage of 95 % intervals':50s}" + "".join(f"{target:>21s}" for target in TARGETS))
        cells = [one_data_set(setting, seed) for seed in range(setting.data_sets)]
        for j, score in enumerate(SCORES):
            for i, what in enumerate(("mean of Cox", "Cox less Kaplan-Meier")):
                low, high, truth, full = (np.array([cell[part][i, j] for cell in cells]) for part in range(4))
                found = [truth, np.full(len(truth), truth.mean()), full]
                rates = [np.mean((low <= target) & (target <= high)) for target in found]
                line = f"{score}, {what}"
                print(f"{line:50s}" + "".join(f"{100 * rate:19.1f} %" for rate in rates), flush=True)


def one_data_set(setting: Setting, seed: int) -> tuple[np.ndarray, ...]:
    """Interval ends and two targets, (mean or difference, score)."""
    rng = np.random.default_rng([seed, setting.n])
    x, y = draw(setting, rng)
    models = {"cox": cs.CoxRegression(), "kaplan-meier": cs.KaplanMeier()}
    C = cs.Censoring(cs.CoxRegression() if setting.dependent else cs.KaplanMeier())
    found = cs.cross_validate(
        models,
        x,
        y,
        censoring=C,
        cv=cs.Folds(5, repeats=setting.repeats),
        scores=SCORES,
        times=[AT],
        horizon=HORIZON,
        discrimination=False,
        seed=seed,
    )
    ends = []
    for score in SCORES:
        cox, km = (found.estimate(model, score) for model in models)
        assert cox is not None
        assert km is not None
        ends.append([np.concatenate(estimate.interval(0.95)) for estimate in (cox, cox - km)])
    new_x = rng.normal(size=(2000, setting.p))
    folds = [
        targets(models, x[s.train], y[s.train], new_x, setting) for s in cast(Folded, found.folded).splits
    ]
    low, high = np.moveaxis(np.array(ends), [2, 1, 0], [0, 1, 2])
    return low, high, np.mean(folds, axis=0), targets(models, x, y, new_x, setting)


def risk(x: np.ndarray) -> np.ndarray:
    return np.exp(0.7 * x[:, 0] - 0.4 * x[:, 1])


def censoring(x: np.ndarray, setting: Setting) -> cs.Exponential:
    return cs.Exponential(0.35 * np.exp(0.5 * x[:, 0] * setting.dependent))


def draw(setting: Setting, rng: np.random.Generator) -> tuple[np.ndarray, cs.RightCensored]:
    x = rng.normal(size=(setting.n, setting.p))
    T = rng.weibull(1.5, setting.n) * risk(x) ** (-1 / 1.5)
    C = np.minimum(censoring(x, setting).sample(1, rng)[:, 0], 3.0)
    return x, cs.RightCensored(np.minimum(T, C), T <= C)


def targets(
    models: dict[str, Any], x: np.ndarray, y: cs.RightCensored, new_x: np.ndarray, setting: Setting
) -> np.ndarray:
    """Expected losses of the models fitted to (x, y): Cox, and Cox less Kaplan-Meier, (2, scores)."""
    F0 = 1 - np.exp(-risk(new_x)[:, None] * GRID**1.5)
    G = censoring(new_x, setting).sf(GRID[None, :])
    found = []
    for model in models.values():
        F = np.broadcast_to(model.fit(x, y).predict_distribution(new_x).cdf(GRID[None, :]), F0.shape)
        brier = (F - F0) ** 2 + F0 * (1 - F0)
        at = brier[:, np.searchsorted(GRID, AT)].mean()
        crps, ibs = (np.trapezoid(curve.mean(axis=0), GRID) for curve in (G * brier, brier))
        found.append([crps, ibs / HORIZON, at])
    cox, km = np.array(found)
    return np.stack([cox, cox - km])


if __name__ == "__main__":
    main()
