"""The default stack beside simple models, from 300 subjects on.

Excess of the censored energy score over the true distribution, in per cent: the energy distance between
forecast and truth after censoring, on new covariates, without the noise of outcomes. Two event times share
one C: a mixture of two regimes and one regime (log-normal, four covariates), a gamma frailty (six covariates,
C uniform, or an early administrative end), the same without any effect of ten covariates, two regimes with
30 covariates of which six matter, with interactions, and independent Weibull times that depend on five
covariates by an absolute value and a product. Seeds from 2 on and all designs but the last have served to
choose how network and simple models are weighed.

``python -m benchmarks.bench_engression_baselines --sizes 300 1000 --seeds 1 --device cuda`` runs some of it.
"""

from __future__ import annotations

import argparse
import time
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np
import torch
from scipy.special import expit

import censcore as cs
from censcore.simulation import LogNormalScenario, OneFactorLogNormal
from censcore_studies.kit import energy_distance

SIZES, SEEDS, NEW, DRAWS = (300, 1000, 2000), (0,), 2000, 192

Draw = Callable[[np.ndarray, int], np.ndarray]


@dataclass(frozen=True)
class Design:
    """Standard normal covariates, times of an early and a late regime or of a frailty, and C."""

    covariates: int
    times: Callable[[np.ndarray, int, np.random.Generator], np.ndarray]
    end: float = 6.0
    administrative: bool = False

    def censoring(self, shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
        """Draws of C."""
        return np.full(shape, self.end) if self.administrative else rng.uniform(0, self.end, shape)

    def sample(self, n: int, seed: list[int]) -> tuple[np.ndarray, cs.RightCensored]:
        """Covariates and outcome of n subjects."""
        rng = np.random.default_rng(seed)
        X = rng.normal(size=(n, self.covariates))
        T, C = self.times(X, 1, rng)[:, 0], self.censoring((n,), rng)
        return X, cs.RightCensored(np.minimum(T, C[:, None]), C[:, None] >= T)

    def excess(self, draw: Draw, seed: int) -> float:
        """Energy distance after censoring, in per cent of the score of the truth."""
        rng = np.random.default_rng([seed, 1])
        X = rng.normal(size=(NEW, self.covariates))
        G, C = self.times(X, DRAWS, rng), self.censoring((NEW, DRAWS), rng)
        F = np.asarray(draw(X, DRAWS), dtype=float)[:, rng.permutation(DRAWS)]  # components are in turn
        return energy_distance.excess(F, G, C)[0]


def log_normal(mixture: bool) -> Callable[..., np.ndarray]:
    scenario = LogNormalScenario(k=2, mixture=mixture)
    return lambda X, m, rng: np.asarray(scenario.event_distribution(X).sample(m, int(rng.integers(2**31))))


def frailty(effect: float) -> Callable[..., np.ndarray]:
    def times(X: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
        E, V = rng.exponential(size=(len(X), m, 2)), rng.gamma(1.0, size=(len(X), m, 1))
        first = 0.5 * X[:, 0] - 0.4 * X[:, 1] + 0.3 * X[:, 2]
        risk = np.exp(effect * np.stack([first, 0.4 * X[:, 0] + 0.4 * X[:, 3]], axis=1))
        return (E / V / risk[:, None]) ** (1 / np.array([1.3, 0.9])) * np.array([1.5, 2.0])

    return times


def many(X: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
    """Two regimes; six of the covariates matter, two of them by their product and one by its square."""
    x = X.T
    mu = np.stack(
        [
            0.3 + 0.45 * x[0] - 0.3 * x[1] + 0.3 * np.sin(1.5 * x[4]),
            0.4 - 0.35 * x[1] + 0.4 * x[2] + 0.25 * x[5],
        ],
        axis=1,
    )
    late = expit(1.2 * x[3] * x[0] + 0.9 * (x[2] ** 2 - 1) - 0.8 * x[5])
    sigma = np.full(mu.shape, 0.35)
    regimes = OneFactorLogNormal(
        np.stack([mu - 1, mu + 1], axis=1),
        np.stack([0.85 * sigma, 1.1 * sigma], axis=1),
        [0.6, 0.2],
        np.stack([1 - late, late], axis=1),
    )
    return np.asarray(regimes.sample(m, int(rng.integers(2**31))))


def nonlinear(X: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
    E, x = rng.exponential(size=(len(X), m, 2)), X.T
    risk = np.stack([0.6 * x[0] + 0.4 * np.abs(x[1]), -0.5 * x[2] + 0.3 * x[0] * x[3]], axis=1)
    return (E * np.exp(-risk)[:, None]) ** (1 / np.array([0.8, 1.6])) * np.array([2.0, 1.5])


DESIGNS = {
    "two regimes": Design(4, log_normal(True), 5.0),
    "one regime": Design(4, log_normal(False), 5.0),
    "frailty": Design(6, frailty(1.0)),
    "frailty, 70 % censored": Design(6, frailty(1.0), 0.6, True),
    "no effects": Design(10, frailty(0.0)),
    "30 covariates": Design(30, many),
    "nonlinear": Design(5, nonlinear, 5.0),
}


def simple_models(X: np.ndarray, y: cs.RightCensored) -> dict[str, Draw]:
    curves = [cs.KaplanMeier().fit(None, y.marginal(j)).predict_distribution() for j in range(2)]
    cox = [cs.CoxRegression(alpha=1.0).fit(X, y.marginal(j)) for j in range(2)]
    clayton = cs.CopulaWeibull("clayton", random_state=0).fit(X, y)
    grid = cs.JointGridModel(random_state=0).fit(X, y)

    def pooled(new: np.ndarray, m: int) -> np.ndarray:
        u = np.random.default_rng(0).random((2, len(new) * m))
        draws = [np.asarray(F.icdf(levels)).reshape(len(new), m) for F, levels in zip(curves, u, strict=True)]
        return np.stack(draws, axis=-1)

    def each(new: np.ndarray, m: int) -> np.ndarray:
        parts = [model.predict_distribution(new).sample(m, j) for j, model in enumerate(cox)]
        return np.stack([np.asarray(part).reshape(len(new), m) for part in parts], axis=-1)

    return {
        "KM": pooled,
        "Cox": each,
        "Clayton": lambda new, m: np.asarray(clayton.predict_distribution(new).sample(m, 0)),
        "grid": lambda new, m: np.asarray(grid.predict_distribution(new).sample(m, 0)),
    }


def main(
    sizes: Sequence[int] = SIZES,
    seeds: Sequence[int] = SEEDS,
    designs: Sequence[str] = tuple(DESIGNS),
    device: str = "cpu",
) -> None:
    torch.set_num_threads(1)
    warnings.simplefilter("ignore")
    columns = ("KM", "Cox", "Clayton", "grid", "stack")
    print(f"{'':24s}{'n':>6s}{'seed':>5s}" + "".join(f"{c:>11s}" for c in columns) + "  CPU s  weights")
    for n in sizes:
        for name in designs:
            design = DESIGNS[name]
            for seed in seeds:
                X, y = design.sample(n, [seed, n])
                found = [design.excess(draw, seed) for draw in simple_models(X, y).values()]
                start = time.process_time()
                model = cs.BestForecast(random_state=seed, device=device).fit(X, y)
                taken = time.process_time() - start
                found.append(design.excess(model.sample, seed))
                shown = "".join(f"{value:11.2f}" for value in found)
                told = ", ".join(f"{member} {weight:.2f}" for member, weight in model.weights_.items())
                print(f"{name:24s}{n:6d}{seed:5d}{shown}{taken:7.0f}  {told}", flush=True)


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--sizes", type=int, nargs="+", default=SIZES)
    parser.add_argument("--seeds", type=int, nargs="+", default=SEEDS)
    parser.add_argument("--designs", nargs="+", choices=DESIGNS, default=tuple(DESIGNS))
    parser.add_argument("--device", default="cpu")
    main(**vars(parser.parse_args()))
