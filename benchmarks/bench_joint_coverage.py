"""Do the intervals of joint comparisons cover? Energy score, scores of each event time, joint events.

For every setting data sets are drawn, and the share is counted in which the 95 % intervals of mean losses and
of the paired difference of two forecasts hold the expected value: an average over many subjects under
the true censoring distribution.

    python -m benchmarks.bench_joint_coverage --replications 300
"""

from __future__ import annotations

import argparse
from collections import defaultdict
from dataclasses import dataclass
from typing import Any

import numpy as np

import censcore as cs

MARGINALS = [cs.Exponential(1.0), cs.Exponential(0.5)]
TRUTH = cs.Copula("clayton", MARGINALS, theta=3.0)
HORIZON, TIMES = 2.0, [0.5, 1.5]
SCORES = ["energy_score", "crps", "brier_score", "brier_score:ipcw"]
FORECASTS: dict[str, cs.Distribution] = {
    "true": cs.Ensemble(TRUTH.sample(200, seed=1)),
    "independent": cs.Ensemble(cs.Independent(MARGINALS).sample(200, seed=2)),
}


@dataclass(frozen=True)
class Setting:
    """How data are drawn and the censoring distribution is estimated."""

    componentwise: bool
    n: int = 200
    n_train: int = 200  # zero: fitted to the scored subjects
    masked: bool = False
    cluster: int = 1

    def sample(
        self, n: int, rng: np.random.Generator
    ) -> tuple[cs.RightCensored, np.ndarray | None, np.ndarray]:
        """Outcomes, mask and labels of clusters; subjects of one cluster share the frailty behind T."""
        groups = np.arange(n) // self.cluster
        V = np.repeat(rng.gamma(1 / 3, 1.0, groups[-1] + 1), self.cluster)[:n, None]
        T = np.log1p(rng.exponential(size=(n, 2)) / V) / 3 / np.array([1.0, 0.5])
        C = rng.uniform(0, 4, (n, 2 if self.componentwise else 1))
        mask = rng.random((n, 2)) < 0.8 if self.masked else None
        return cs.RightCensored(np.minimum(T, C), T <= C), mask, groups


SETTINGS = {
    "shared C, 200 and 200 for training": Setting(False),
    "shared C, fitted to the 200 scored subjects": Setting(False, n_train=0),
    "one C per event time, 200 and 200": Setting(True),
    "one C per event time, fitted to the 200 scored subjects": Setting(True, n_train=0),
    "shared C, a fifth not followed, 200 and 200": Setting(False, masked=True),
    "shared C, 40 clusters of 5, 40 others for training": Setting(False, cluster=5),
}


#: What all comparisons have in common.
OPTIONS: dict[str, Any] = {
    "scores": SCORES,
    "times": TIMES,
    "horizon": HORIZON,
    "discrimination": False,
    "reference": None,
    "names": ["first event", "second event"],
}


def truth(setting: Setting, n: int = 60_000) -> dict[tuple[str, int], tuple[float, float]]:
    """Expected losses and differences, under the true censoring distribution."""
    y, mask, _ = setting.sample(n, np.random.default_rng(99))
    C: cs.Distribution = cs.Uniform(0.0, 4.0)
    if setting.componentwise:
        C = cs.Independent([cs.Uniform(0.0, 4.0), cs.Uniform(0.0, 4.0)])
    found = cs.compare(FORECASTS, cs.Sample(None, y, mask=mask), C, **OPTIONS)
    expected = {(s, j): _values(found, s, j) for s, j in _columns(found)}
    # scores of single times are known better from uncensored times: P(C > t) E(B - p)^2
    T, never = TRUTH.sample(10 * n, seed=98)[0], np.ones((10 * n, 2), dtype=bool)
    whole = cs.compare(
        FORECASTS,
        cs.RightCensored(T, never),
        **OPTIONS | {"scores": "brier_score", "horizon": 99.0},
    )
    for score, j in expected:
        base, _, outcome = score.partition("[")
        if base.startswith("brier"):
            C_times = (
                2 if setting.componentwise and "[" + outcome not in ("[first event]", "[second event]") else 1
            )
            share = 1.0 if base.endswith("ipcw") else (1 - TIMES[j] / 4) ** C_times
            a, b = _values(whole, f"brier_score[{outcome}", j)
            expected[score, j] = share * a, share * b
    return expected


def _columns(found: cs.Comparison) -> list[tuple[str, int]]:
    return [(score.name, j) for score in found.scores for j in range(len(found.places(score)))]


def _values(found: cs.Comparison, score: str, j: int) -> tuple[float, float]:
    a, b = (found.means[0, model, score] for model in FORECASTS)
    return float(a.value[j]), float((a - b).value[j])


def coverage(setting: Setting, replications: int) -> dict[tuple[str, int], np.ndarray]:
    """The share of intervals of the mean of the true forecast, and of the difference, that hold the truth."""
    expected = truth(setting)
    held: dict[tuple[str, int], list[tuple[bool, ...]]] = defaultdict(list)
    for r in range(replications):
        rng = np.random.default_rng([r, 7])
        y, mask, groups = setting.sample(setting.n, rng)
        more: dict[str, Any] = {"groups": groups} if setting.cluster > 1 else {}
        if setting.n_train:
            y_train, mask_train, groups_train = setting.sample(setting.n_train, rng)
            labels = groups_train + groups[-1] + 1 if setting.cluster > 1 else None
            more["train"] = cs.Sample(None, y_train, groups=labels, mask=mask_train)
        scored = cs.Sample(None, y, mask=mask)
        found = cs.compare(FORECASTS, scored, cs.Censoring(cs.KaplanMeier()), **OPTIONS, **more)
        for score, j in _columns(found):
            a, b = (found.means[0, model, score] for model in FORECASTS)
            ends = [estimate.interval(0.95) for estimate in (a, a - b)]
            held[score, j].append(
                tuple(
                    bool(low[j] <= value <= high[j])
                    for (low, high), value in zip(ends, expected[score, j], strict=True)
                )
            )
    return {key: np.mean(values, axis=0) for key, values in held.items()}


def main() -> None:
    """Print a table per setting."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--replications", type=int, default=300)
    parser.add_argument("--settings", type=int, nargs="*", default=list(range(len(SETTINGS))))
    given = parser.parse_args()
    for number in given.settings:
        name = list(SETTINGS)[number]
        print(f"{name}; {given.replications} data sets", flush=True)
        for (score, j), (mean, difference) in coverage(SETTINGS[name], given.replications).items():
            print(f"  {score:42} {j}  mean {100 * mean:5.1f}  difference {100 * difference:5.1f}", flush=True)


if __name__ == "__main__":
    main()
