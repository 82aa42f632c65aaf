"""Coverage of the 95 % intervals of ``compare`` for competing risks, at its defaults.

As ``bench_coverage``, whose quadrature gives the expected losses: the score of one cause is that of the time
of that cause, which is infinite if the event is of another one. The score of all causes is half the sum of
those of each cause and of any.

``python -m benchmarks.bench_competing_coverage --replications 100 --settings ties`` runs a part of it.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np

import censcore as cs
from benchmarks.bench_coverage import QUANTITIES, TARGET, Population, Process
from censcore.evaluation.kinds.causes import ALL_CAUSES, ANY_CAUSE

REPLICATIONS = 1000
X = np.array([-1.0, 0.0, 1.0])
NAMES = ["relapse", "death"]


def parts_of_truth(x: np.ndarray) -> list[cs.Weibull]:
    """Independent times with the hazards of the causes, of which the first is seen."""
    return [cs.Weibull(1.5, 1.3 * np.exp(-0.5 * x)), cs.Weibull(1.1, 2.0 * np.exp(0.3 * x))]


def hazards(x: np.ndarray) -> dict[str, cs.CauseSpecificHazards]:
    """The truth, and two fixed forecasts, given the covariate."""
    one = np.ones_like(x)
    parts: dict[str, list[Any]] = {
        "truth": parts_of_truth(x),
        "sharp": [cs.Weibull(1.4, 1.4 * np.exp(-0.4 * x)), cs.Weibull(1.0, 2.2 * np.exp(0.2 * x))],
        "blunt": [cs.Weibull(1.2, 1.5 * one), cs.Exponential(0.6 * one)],
    }
    return {name: cs.CauseSpecificHazards(hazard, names=NAMES) for name, hazard in parts.items()}


GRID, FINE = np.linspace(0.1, 6.0, 60), np.linspace(0.004, 8.0, 2000)
STATES = list(hazards(X).values())
TRUTH = cs.CumulativeIncidence(FINE, STATES[0].cif(FINE), interpolation="linear", names=NAMES)
#: The forecasts of the three states, as matrices that are interpolated: they are scored fast, and exactly.
FORECASTS = {
    name: cs.CumulativeIncidence(GRID, F.cif(GRID), interpolation="linear", names=NAMES)
    for name, F in zip(("sharp", "blunt"), STATES[1:], strict=True)
}


@dataclass(frozen=True)
class Setting:
    """Sizes of the samples, the distribution of C (one entry per state), how it is estimated, and ties."""

    title: str
    n: int
    n_train: int
    C: Any
    censoring: Any
    step: float = 0.0


RATE = cs.Exponential(np.full(3, 0.6))
KM, COX = cs.Censoring(cs.KaplanMeier()), cs.Censoring(cs.CoxRegression())
SETTINGS = {
    "train": Setting("200 subjects, 200 for training", 200, 200, RATE, KM),
    "in_sample": Setting("200 subjects, C fitted to the same subjects", 200, 0, RATE, KM),
    "ties": Setting("all times rounded up to tenths, 200 and 200", 200, 200, RATE, KM, step=0.1),
    "cox": Setting("C by Cox regression, 200 and 200", 200, 200, cs.Exponential(0.6 * np.exp(0.4 * X)), COX),
}


def draw(setting: Setting, n: int, rng: np.random.Generator) -> tuple[np.ndarray, cs.CompetingRisks]:
    """Covariates and outcomes of n subjects."""
    state = rng.integers(3, size=n)
    latent = np.stack([F.take(state).sample(1, seed=rng)[:, 0] for F in parts_of_truth(X)])
    time, cause = latent.min(axis=0), 1 + latent.argmin(axis=0)
    c = setting.C.take(state).sample(1, seed=rng)[:, 0]
    if setting.step:
        time, c = (np.ceil(part / setting.step) * setting.step for part in (time, c))
    y = cs.CompetingRisks(np.minimum(time, c), np.where(time <= c, cause, 0), names=NAMES)
    return X[state][:, None], y


def expected(setting: Setting, found: Any) -> dict[str, dict[tuple[str, str], np.ndarray]]:
    """Expected losses by model, then by score and outcome."""
    case = next(iter(found.cases.values()))
    forecasts = {m: FORECASTS.get(m, c.F) for m, c in found.cases.items()}
    values: dict[str, dict[tuple[str, str], np.ndarray]] = {m: {} for m in forecasts}
    for j, outcome in enumerate([ANY_CAUSE, *NAMES]):
        T = TRUTH.cause(j) if j else TRUTH.any_cause()
        process = Process(np.full(3, 1 / 3), X, T, setting.C, step=setting.step)
        of = Population(process, process.share, found.horizon)
        for m, F in forecasts.items():
            F_j = F.cause(j) if j else F.any_cause()
            one = of.expected(F_j, case.times, case.levels, density=False)
            values[m] |= {(score, outcome): value for score, value in one.items()}
    for of_model in values.values():
        for score in ("crps", "integrated_brier_score:ipcw", "brier_score:ipcw"):
            parts = [of_model[score, outcome] for outcome in (ANY_CAUSE, *NAMES)]
            of_model[score, ALL_CAUSES] = np.sum(parts, axis=0) / 2
    return values


def covers(setting: Setting, seed: int) -> dict[tuple[str, str, str], list[float]]:
    """By quantity, outcome and score: 1 where an interval holds the truth, 0 where not, NaN without one."""
    rng = np.random.default_rng([seed, 21])
    x, y = draw(setting, setting.n, rng)
    train = draw(setting, setting.n_train, rng) if setting.n_train else None
    models = {m: F.take(x[:, 0].astype(int) + 1) for m, F in FORECASTS.items()}
    found = cs.compare(models, y, setting.censoring, X=x, train=train, discrimination=False)
    truth = expected(setting, found)
    cells: dict[tuple[str, str, str], list[float]] = defaultdict(list)

    def count(quantity: str, row: Any, target: float, low: float, high: float) -> None:
        inside = np.nan if np.isnan(low + high) else float(low <= target <= high)
        cells[quantity, row.outcome, row.score].append(inside)

    for part in (found.frame(), found.differences("none")):
        keys = ["score", "outcome", "model"] + (["versus"] if "versus" in part else [])
        for row in part.assign(column=part.groupby(keys).cumcount()).itertuples():
            mean = {m: v[row.score, row.outcome][row.column] for m, v in truth.items()
                    if (row.score, row.outcome) in v}  # fmt: skip
            if row.model not in ("sharp", "blunt") or not mean:
                continue
            if hasattr(row, "versus"):
                if row.versus in ("sharp", "blunt"):
                    count("difference", row, mean[row.model] - mean[row.versus], row.low, row.high)
                continue
            count("mean", row, mean[row.model], row.low, row.high)
            if found.reference in mean:
                target = 1 - mean[row.model] / mean[found.reference]
                count("skill", row, target, row.skill_low, row.skill_high)
    return cells


def show(setting: Setting, runs: list[dict[tuple[str, str, str], list[float]]]) -> None:
    """Coverage by outcome and score, and its range."""
    cells: dict[tuple[str, str, str], list[float]] = defaultdict(list)
    for run in runs:
        for key, values in run.items():
            cells[key] += values
    percent = {key: 100 * float(np.nanmean(values)) for key, values in cells.items()}
    print(f"\n{setting.title}, {len(runs)} data sets")
    for outcome, score in dict.fromkeys(key[1:] for key in cells):
        found = [percent.get((what, outcome, score), np.nan) for what in QUANTITIES]
        marks = ["" if np.isnan(v) else f"{v:.1f}" + " !"[not TARGET[0] <= v <= TARGET[1]] for v in found]
        print(f"{outcome:12s}{score:30s}" + "".join(f"{mark:>12s}" for mark in marks))
    for what in QUANTITIES:
        found = [value for key, value in percent.items() if key[0] == what]
        if found:
            print(f"{what}: {min(found):.1f} to {max(found):.1f}")
    print(end="", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description="Coverage of 95 % intervals for competing risks.")
    parser.add_argument("--replications", type=int, default=REPLICATIONS)
    parser.add_argument("--settings", nargs="*", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    print(f"{'outcome':12s}{'score':30s}" + "".join(f"{what:>12s}" for what in QUANTITIES))
    for name in options.settings:
        setting = SETTINGS[name]
        seeds = range(options.replications)
        show(setting, joblib.Parallel(options.jobs)(joblib.delayed(covers)(setting, seed) for seed in seeds))


if __name__ == "__main__":
    main()
