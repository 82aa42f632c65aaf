"""Coverage of the 95 % intervals of ``validate``, and the size of its joint test of calibration.

The hazard is exp(x) with x standard normal, so that the truth of every measure is a quadrature: the slope of
a model with the rate c exp(b x) is 1 / b, and Royston's D is sqrt(8 / pi).

``python -m benchmarks.bench_validation_coverage --replications 100 --settings right`` runs a part of it.
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import joblib
import numpy as np
from scipy.optimize import brentq
from scipy.special import ndtri

import censcore as cs

REPLICATIONS, LEVEL, NODES, TIMES = 1000, 0.05, 400, 60
THETA = 0.5
KM, COX = cs.Censoring(cs.KaplanMeier()), cs.Censoring(cs.CoxRegression())
Draw = Callable[[np.random.Generator, np.ndarray], np.ndarray]


@dataclass(frozen=True)
class Setting:
    """Subjects, the time, the model c exp(b x), how C is drawn and estimated, and its survival given x."""

    title: str
    n: int
    time: float = 1.0
    b: float = 1.0
    c: float = 1.0
    by_x: bool = False  #: C is exponential with a rate that depends on x, else uniform on 0.2 to 3

    def censoring_times(self, rng: np.random.Generator, x: np.ndarray) -> np.ndarray:
        """Draw C."""
        return rng.exponential(2.5 * np.exp(-0.5 * x)) if self.by_x else rng.uniform(0.2, 3.0, len(x))

    def followed(self, s: np.ndarray, x: np.ndarray) -> np.ndarray:
        """P(C > s | x)."""
        if self.by_x:
            return np.exp(-s * 0.4 * np.exp(0.5 * x))
        return np.clip((3.0 - s) / 2.8, 0.0, 1.0)


SETTINGS = {
    "right 100": Setting("the true model, 100 subjects", 100),
    "right": Setting("the true model, 200 subjects", 200),
    "right 500": Setting("the true model, 500 subjects", 500),
    "early": Setting("the true model at an early time, 200 subjects", 200, time=0.15),
    "wrong": Setting("risks too high and too extreme, 200 subjects", 200, b=1.4, c=1.4),
    "by x": Setting("C depends on x, by Cox regression, 200 subjects", 200, b=1.2, by_x=True),
}


def truth(setting: Setting) -> dict[str, float]:
    """The values of all measures, in the population."""
    x, t = ndtri((np.arange(NODES) + 0.5) / NODES), setting.time
    rate, forecast = np.exp(x), setting.c * np.exp(setting.b * x)
    right, p = -np.expm1(-rate * t), -np.expm1(-forecast * t)

    def equation(a: float) -> float:
        m = np.exp(a) * forecast * t
        return float((right * m / np.expm1(m) - (1 - right) * m).mean())

    higher = x[:, None] > x
    pairs = right[:, None] * (1 - right)
    s = (np.arange(TIMES) + 0.5) / TIMES * t
    first = rate[:, None, None] * np.exp(-(rate[:, None] + rate)[:, :, None] * s)
    G = np.stack([setting.followed(u, x) * np.ones(NODES) for u in s], axis=-1)
    harrell, uno = (first * G[:, None] * G).sum(axis=-1), first.sum(axis=-1)
    off = ~np.eye(NODES, dtype=bool)
    brier = float((right * (1 - p) ** 2 + (1 - right) * p**2).mean())
    benefit = np.where(p > THETA, right - THETA / (1 - THETA) * (1 - right), 0.0).mean()
    everybody = (right - THETA / (1 - THETA) * (1 - right)).mean()
    eta = np.log(forecast * t)
    return {
        "observed": right.mean(), "expected": p.mean(), "O/E": right.mean() / p.mean(),
        "calibration intercept": brentq(equation, -1.5, 1.5), "calibration slope": 1 / setting.b,
        "calibration slope, Cox": 1 / setting.b, "ICI": np.abs(right - p).mean(),
        "concordance, Harrell": (harrell * higher)[off].sum() / harrell[off].sum(),
        "concordance, Uno": (uno * higher)[off].sum() / uno[off].sum(),
        "AUC": (pairs * higher)[off].sum() / pairs[off].sum(),
        "Royston D": np.sqrt(8 / np.pi), "Brier": brier,
        "IPA": 1 - brier / (right.mean() * (1 - right.mean())),
        f"net benefit at {THETA}": benefit, f"standardised net benefit at {THETA}": benefit / right.mean(),
        f"net benefit at {THETA}, less treating all": benefit - everybody,
        "linear predictor, mean": eta.mean(), "linear predictor, sd": setting.b,
        "AUC if right": ((p[:, None] * (1 - p)) * higher)[off].sum() / (p[:, None] * (1 - p))[off].sum(),
    }  # fmt: skip


def one(setting: Setting, seed: int, true: dict[str, float]) -> dict[str, float]:
    """By measure: whether its interval holds the truth, or the bound of the ICI is above it."""
    rng = np.random.default_rng([seed, 48])
    x = rng.normal(size=setting.n)
    T, C = rng.exponential(np.exp(-x)), setting.censoring_times(rng, x)
    y, F = cs.RightCensored(np.minimum(T, C), T <= C), cs.Exponential(setting.c * np.exp(setting.b * x))
    estimator = COX if setting.by_x else KM
    found = cs.validate(F, y, estimator, X=x[:, None], time=setting.time, thresholds=[THETA])
    lines: dict[str, Any] = {line["measure"]: line for line in found.lines}
    inside = {}
    for name, value in true.items():
        low, high = (lines[name][end] for end in ("low", "high"))
        low = -np.inf if name == "ICI" else low
        inside[name] = np.nan if np.isnan(low + high) else float(low <= value <= high)
    if setting.b == setting.c == 1:
        joint = lines["calibration, joint test"]["p"]
        inside |= {
            "rejected by the joint test": float(joint < LEVEL),
            "rejected by ICI": lines["ICI"]["p"] < LEVEL,
        }
    return inside


def main() -> None:
    parser = argparse.ArgumentParser(description="Coverage of the 95 % intervals of validate.")
    parser.add_argument("--replications", type=int, default=REPLICATIONS)
    parser.add_argument("--settings", nargs="*", default=list(SETTINGS), choices=list(SETTINGS))
    parser.add_argument("--jobs", type=int, default=2)
    options = parser.parse_args()
    percent: dict[str, dict[str, float]] = defaultdict(dict)
    for name in options.settings:
        setting, seeds = SETTINGS[name], range(options.replications)
        true = truth(setting)
        runs = joblib.Parallel(options.jobs)(joblib.delayed(one)(setting, seed, true) for seed in seeds)
        for measure in runs[0]:
            percent[measure][name] = 100 * float(np.nanmean([run[measure] for run in runs]))
    print(f"coverage in percent, {options.replications} data sets; standard error at 95 %: "
          f"{100 * np.sqrt(0.95 * 0.05 / options.replications):.1f}")  # fmt: skip
    for name in options.settings:
        print(f"{name}: {SETTINGS[name].title}")
    print(f"{'':42s}" + "".join(f"{name:>10s}" for name in options.settings))
    for measure, of in percent.items():
        print(
            f"{measure:42s}"
            + "".join(f"{of[name]:10.1f}" if name in of else " " * 10 for name in options.settings)
        )


if __name__ == "__main__":
    main()
