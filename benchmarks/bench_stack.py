"""The default stack, its members alone and models of other libraries where the truth is known.

Excess of the censored energy score over the true distribution, in per cent, on 1,000 new subjects: the energy
distance of forecast and truth after censoring, without the noise of outcomes. C is uniform. Models of one
time are joined by a Clayton copula (``JointFromMargins``). The scenarios:

- sine and sign: 30 covariates, of which a few act by a sine and by the sign of a product; two times, gamma
  frailty;
- linear: proportional hazards, six covariates, two times, gamma frailty;
- spread: log-normal, the spread depends on covariates, two times;
- cure: about 45 % never have the event; also the root mean squared error of P(T > 5);
- never: the same, and that of P(T > 20), long after the follow-up of 6;
- exchangeable: three times that differ by chance alone; also that of P(T_1 is the first);
- pair: two such times; also that of P(T_1 < T_2);
- rare: a Weibull time that is censored in about 75 % of the subjects.

The first two, with other draws and a slightly other scale of time, have served to choose leaves, penalty
and calibration of the trees (seed 0, 300 to 3,000 subjects). On the others, and with these seeds, the prior
of baselines, the order of times and the tail after the last event were tried.

``python -m benchmarks.bench_stack --sizes 300 --seeds 0 1 --scenarios cure`` runs some of it.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from scipy.special import expit
from sksurv.ensemble import GradientBoostingSurvivalAnalysis, RandomSurvivalForest

import censcore as cs
from benchmarks import energy_distance

SIZES, SEEDS, NEW, DRAWS = (300, 1000), (0,), 1000, 128

Times = Callable[[np.ndarray, int, np.random.Generator], np.ndarray]


def frail(risk: Callable[..., list[np.ndarray]], shape: list[float], variance: float) -> Times:
    """Weibull times with log hazard ratios of the covariates, which a gamma frailty ties together."""

    def times(X: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
        eta = np.stack(risk(X.T), axis=1)
        E = rng.exponential(size=(len(X), m, len(shape)))
        V = variance * rng.gamma(1 / variance, size=(len(X), m, 1))
        return 1.7 * (E / V / np.exp(eta)[:, None]) ** (1 / np.array(shape))

    return times


def spread(X: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
    x = X.T
    mu = np.stack([0.4 * x[0] + 0.3 * np.abs(x[1]), 0.5 * x[2] - 0.3 * x[0] * x[1]], axis=1)
    sigma = np.exp(np.stack([0.4 * x[3] - 0.5, -0.3 - 0.3 * x[0]], axis=1))
    shared, own = rng.normal(size=(len(X), m, 1)), rng.normal(size=(len(X), m, 2))
    return np.exp(mu[:, None] + sigma[:, None] * np.sqrt(0.5) * (shared + own))


def cure(X: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
    x = X.T
    ill = rng.random((len(X), m)) < expit(0.3 + 0.8 * x[0] - 0.6 * x[1])[:, None]
    return np.where(ill, rng.weibull(1.4, (len(X), m)) * np.exp(-0.3 * x[2])[:, None], 1e6)[:, :, None]


def waves(x: np.ndarray) -> list[np.ndarray]:
    sign = 0.9 * np.sign(x[1] * x[2])
    return [1.2 * np.sin(2 * x[0]) + sign, 0.8 * np.sin(2 * x[3]) + sign]


def lines(x: np.ndarray) -> list[np.ndarray]:
    return [0.6 * x[0] - 0.4 * x[1] + 0.3 * x[2], 0.4 * x[0] + 0.5 * x[3]]


def alike(k: int) -> Callable[[np.ndarray], list[np.ndarray]]:
    return lambda x: [0.6 * x[0] - 0.4 * x[1]] * k


def rare(X: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
    x = X.T
    hazard = np.exp(0.6 * x[0] - 0.5 * x[1] + 0.3 * x[2])
    return 6 * (rng.exponential(size=(len(X), m)) / hazard[:, None])[:, :, None] ** (1 / 1.3)


@dataclass(frozen=True)
class Scenario:
    """Standard normal covariates, times given these, and a probability that is looked at."""

    covariates: int
    times: Times
    end: float
    event: Callable[[np.ndarray], np.ndarray] | None = None

    def sample(self, n: int, seed: int) -> tuple[np.ndarray, cs.RightCensored]:
        """Covariates and outcome of n subjects."""
        rng = np.random.default_rng([seed, n])
        X = rng.normal(size=(n, self.covariates))
        T, C = self.times(X, 1, rng)[:, 0], rng.uniform(0, self.end, (n, 1))
        y, d = np.minimum(T, C), C >= T
        return X, cs.RightCensored(y[:, 0], d[:, 0]) if y.shape[1] == 1 else cs.RightCensored(y, d)

    def judge(self, draw: Callable[[np.ndarray, int], np.ndarray], seed: int) -> tuple[float, float]:
        """Excess in per cent, and root mean squared error of the probability."""
        rng = np.random.default_rng([seed, 1])
        X = rng.normal(size=(NEW, self.covariates))
        G, C = self.times(X, DRAWS, rng), rng.uniform(0, self.end, (NEW, DRAWS))
        F = np.asarray(draw(X, DRAWS), dtype=float).reshape(NEW, DRAWS, -1)[:, rng.permutation(DRAWS)]
        error = np.nan
        if self.event is not None:
            many = np.asarray(draw(X, 1000), dtype=float).reshape(NEW, 1000, -1)
            truth = self.event(self.times(X, 4000, rng)).mean(axis=1)
            error = float(np.sqrt(np.mean((self.event(many).mean(axis=1) - truth) ** 2)))
        return energy_distance.excess(F, G, C)[0], error


SCENARIOS = {
    "sine and sign": Scenario(30, frail(waves, [1.3, 1.0], 0.8), 5.0),
    "linear": Scenario(6, frail(lines, [1.3, 0.9], 1.0), 6.0),
    "spread": Scenario(5, spread, 6.0),
    "cure": Scenario(5, cure, 6.0, lambda z: z[..., 0] > 5.0),
    "never": Scenario(5, cure, 6.0, lambda z: z[..., 0] > 20.0),
    "exchangeable": Scenario(4, frail(alike(3), [1.0] * 3, 1.0), 5.0, lambda z: z.argmin(axis=-1) == 0),
    "pair": Scenario(4, frail(alike(2), [1.0] * 2, 1.0), 5.0, lambda z: z[..., 0] < z[..., 1]),
    "rare": Scenario(5, rare, 4.0),
}

LEAF = {"min_samples_leaf": 15, "random_state": 0}
ALONE: dict[str, Any] = {
    "Kaplan-Meier": cs.KaplanMeier(),
    "Cox": cs.CoxRegression(alpha=1.0),
    "Weibull": cs.WeibullRegression(alpha=1.0),
    "trees": cs.BoostedHazards(random_state=0),
    "sksurv forest": cs.Adapted(RandomSurvivalForest(100, **LEAF)),
    "sksurv boosting": cs.Adapted(GradientBoostingSurvivalAnalysis(random_state=0)),
}


def sampler(model: Any) -> Callable[[np.ndarray, int], np.ndarray]:
    """Draws of event times (n, m, k) from forecasts."""

    def draw(X: np.ndarray, m: int) -> np.ndarray:
        if hasattr(model, "sample"):
            return np.asarray(model.sample(X, m))
        F = model.predict_distribution(X)
        return np.asarray(F.sample(m if len(F) > 1 else m * len(X), 3))

    return draw


def main(
    sizes: Sequence[int] = SIZES,
    seeds: Sequence[int] = SEEDS,
    scenarios: Sequence[str] = tuple(SCENARIOS),
    device: str = "cpu",
) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    print(f"{'':15s}{'n':>6s}{'seed':>5s}  {'':18s}{'excess %':>9s}{'error of P':>11s}{'CPU s':>7s}")
    for name in scenarios:
        for n in sizes:
            for seed in seeds:
                X, y = SCENARIOS[name].sample(n, seed)
                models = {title: cs.JointFromMargins(model) for title, model in ALONE.items()}
                stack = cs.BestForecast(random_state=seed, device=device)
                for title, model in {"default stack": stack, **models}.items():
                    start = time.process_time()
                    model.fit(X, y)
                    taken = time.process_time() - start
                    excess, error = SCENARIOS[name].judge(sampler(model), seed)
                    shown = "" if np.isnan(error) else f"{error:.3f}"
                    print(f"{name:15s}{n:6d}{seed:5d}  {title:18s}{excess:9.2f}{shown:>11s}{taken:7.1f}")
                told = ", ".join(f"{member} {weight:.2f}" for member, weight in stack.weights_.items())
                print(f"{'':28s}{told}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--scenarios", nargs="+", choices=SCENARIOS, default=tuple(SCENARIOS))
    parser.add_argument("--device", default="cpu")
    main(**vars(parser.parse_args()))
