"""Coverage of calibration and decision curves at a time, and the level of the test of calibration.

x is standard normal, T is exponential with rate exp(x + b), C uniform; the forecast has the rate
exp(a x + b), so that a = 1 is the truth. The censoring distribution is the Kaplan-Meier estimate from the
scored subjects.
"""

from __future__ import annotations

import numpy as np

import censcore as cs
from censcore.evaluation.measures.calibration_curve import _bin_numbers
from censcore.evaluation.measures.net_benefit import decision_lines

DATA_SETS = 600
TIME = 1.0
THRESHOLDS = np.array([0.2, 0.4, 0.6])
#: Subjects, slope a, shift b, end of C.
SETTINGS = [
    (150, 1.0, 0.0, 2.5),
    (400, 1.0, 0.0, 2.5),
    (400, 1.0, 0.0, 1.5),
    (400, 1.0, -2.0, 2.5),
    (400, 0.6, 0.0, 2.5),
]


def main() -> None:
    print(f"95 % intervals that hold the truth, and true forecasts rejected at 5 %, {DATA_SETS} data sets")
    names = ("bins", "curve", "risk", "net benefit", "gain", "rejected")
    print(f"{'n':>5s}{'a':>6s}{'b':>6s}{'end':>6s}" + "".join(f"{name:>13s}" for name in names))
    for setting in SETTINGS:
        found = held(*setting)
        n, a, b, end = setting
        cells = "".join(f"{100 * found[name]:12.1f}%" for name in names)
        print(f"{n:5d}{a:6.1f}{b:6.1f}{end:6.1f}{cells}", flush=True)


def risk(x: np.ndarray, a: float, b: float) -> np.ndarray:
    """P(T <= TIME) for the rate exp(a x + b)."""
    return -np.expm1(-TIME * np.exp(a * x + b))


def held(n: int, a: float, b: float, end: float) -> dict[str, float]:
    rng = np.random.default_rng(5)
    many = np.random.default_rng(99).normal(size=400_000)
    true, p = risk(many, 1.0, b), risk(many, a, b)
    odds = THRESHOLDS / (1 - THRESHOLDS)
    benefit = np.array(
        [np.mean((p > t) * (true - o * (1 - true))) for t, o in zip(THRESHOLDS, odds, strict=True)]
    )
    gain = benefit - np.maximum(true.mean() - odds * (1 - true.mean()), 0.0)
    found: dict[str, list[bool]] = {
        name: [] for name in ("bins", "curve", "risk", "net benefit", "gain", "rejected")
    }
    for _ in range(DATA_SETS):
        x = rng.normal(size=n)
        T, C = rng.exponential(np.exp(-x - b)), rng.uniform(0, end, n)
        y, F = cs.RightCensored(np.minimum(T, C), T <= C), cs.Exponential(np.exp(a * x + b))
        comparison = cs.compare(
            {"F": F}, y, cs.Censoring(cs.KaplanMeier()), times=[TIME], horizon=1.2 * TIME, reference=None,
            scores="brier_score:ipcw", discrimination=False,
        )  # fmt: skip
        curve = comparison.calibration("F")
        number = _bin_numbers(risk(x, a, b), np.full(n, 1 / n), len(curve.binned))
        for j, line in enumerate(curve.binned):
            found["bins"].append(line["low"] <= risk(x[number == j], 1.0, b).mean() <= line["high"])
        for line in curve.smoothed:
            with np.errstate(divide="ignore"):
                at = (np.log(-np.log1p(-line["predicted"]) / TIME) - b) / a
            found["curve"].append(line["low"] <= risk(at, 1.0, b) <= line["high"])
        found["risk"].append(curve.observed_low <= true.mean() <= curve.observed_high)
        found["rejected"].append(curve.p_value < 0.05)
        for k, line in enumerate(decision_lines(comparison, None, THRESHOLDS)[: len(THRESHOLDS)]):
            if np.isfinite(line["low"] + line["gain_low"]):
                found["net benefit"].append(line["low"] <= benefit[k] <= line["high"])
                found["gain"].append(line["gain_low"] <= gain[k] <= line["gain_high"])
    return {name: float(np.mean(values)) for name, values in found.items()}


if __name__ == "__main__":
    main()
