"""Scenarios whose truth is known: standard normal covariates, one or two event times, uniform C."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.special import expit

from censcore.outcomes import RightCensored
from censcore_studies.kit import energy_distance

__all__ = ["SCENARIOS", "Scenario"]

NEW, DRAWS = 1000, 128

Times = Callable[[np.ndarray, int, np.random.Generator], np.ndarray]


@dataclass(frozen=True)
class Scenario:
    """Event times given covariates, and how long subjects are followed at most.

    Attributes
    ----------
    covariates : int
        Their number.
    times : callable
        ``times(X, m, rng)`` draws (n, m, k) event times.
    end : float
        C is uniform on [0, end].
    fresh : bool
        No choice of the stack was made on it.
    """

    covariates: int
    times: Times
    end: float
    fresh: bool = False

    def sample(self, n: int, seed: int) -> tuple[np.ndarray, RightCensored]:
        """Covariates and outcome of n subjects."""
        rng = np.random.default_rng([seed, n])
        X = rng.normal(size=(n, self.covariates))
        T, C = self.times(X, 1, rng)[:, 0], rng.uniform(0, self.end, (n, 1))
        y, d = np.minimum(T, C), C >= T
        return X, RightCensored(y[:, 0], d[:, 0]) if y.shape[1] == 1 else RightCensored(y, d)

    def excess(self, draw: Callable[[np.ndarray, int], np.ndarray], seed: int) -> float:
        """Energy distance of forecast and truth after censoring, in per cent of the score of the truth."""
        rng = np.random.default_rng([seed, 1])
        X = rng.normal(size=(NEW, self.covariates))
        G, C = self.times(X, DRAWS, rng), rng.uniform(0, self.end, (NEW, DRAWS))
        F = np.asarray(draw(X, DRAWS), dtype=float).reshape(NEW, DRAWS, -1)[:, rng.permutation(DRAWS)]
        return energy_distance.excess(F, G, C)[0]


def _frail(risk: Callable[..., list[np.ndarray]], shape: list[float], variance: float) -> Times:
    """Weibull times with log hazard ratios of the covariates, which a gamma frailty ties together."""

    def times(X: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
        eta = np.stack(risk(X.T), axis=1)
        E = rng.exponential(size=(len(X), m, len(shape)))
        V = variance * rng.gamma(1 / variance, size=(len(X), m, 1))
        return 1.7 * (E / V / np.exp(eta)[:, None]) ** (1 / np.array(shape))

    return times


def _waves(x: np.ndarray) -> list[np.ndarray]:
    sign = 0.9 * np.sign(x[1] * x[2])
    return [1.2 * np.sin(2 * x[0]) + sign, 0.8 * np.sin(2 * x[3]) + sign]


def _lines(x: np.ndarray) -> list[np.ndarray]:
    return [0.6 * x[0] - 0.4 * x[1] + 0.3 * x[2], 0.4 * x[0] + 0.5 * x[3]]


def _alike(x: np.ndarray) -> list[np.ndarray]:
    return [0.6 * x[0] - 0.4 * x[1]] * 2


def _squares(x: np.ndarray) -> list[np.ndarray]:
    return [0.5 * x[0] ** 2 - 0.5 * x[1], 0.6 * x[2] * x[3] + 0.4 * x[0]]


def _spread(X: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
    x = X.T
    mu = np.stack([0.4 * x[0] + 0.3 * np.abs(x[1]), 0.5 * x[2] - 0.3 * x[0] * x[1]], axis=1)
    sigma = np.exp(np.stack([0.4 * x[3] - 0.5, -0.3 - 0.3 * x[0]], axis=1))
    shared, own = rng.normal(size=(len(X), m, 1)), rng.normal(size=(len(X), m, 2))
    return np.exp(mu[:, None] + sigma[:, None] * np.sqrt(0.5) * (shared + own))


def _cure(X: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
    x = X.T
    ill = rng.random((len(X), m)) < expit(0.3 + 0.8 * x[0] - 0.6 * x[1])[:, None]
    return np.where(ill, rng.weibull(1.4, (len(X), m)) * np.exp(-0.3 * x[2])[:, None], 1e6)[:, :, None]


def _rare(X: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
    x = X.T
    hazard = np.exp(0.6 * x[0] - 0.5 * x[1] + 0.3 * x[2])
    return 6 * (rng.exponential(size=(len(X), m)) / hazard[:, None])[:, :, None] ** (1 / 1.3)


def _steps(X: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
    x = X.T
    hazard = np.exp(1.2 * (x[0] > 0.3) - 1.0 * ((x[1] > 0) & (x[2] < 0.5)))
    return 2 * (rng.exponential(size=(len(X), m)) / hazard[:, None])[:, :, None] ** (1 / 1.2)


def _crossing(X: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
    """Log-logistic, with a shape that depends on covariates: survival curves cross."""
    x = X.T
    shape = np.exp(0.4 + 0.5 * x[0])[:, None]
    scale = np.exp(0.3 + 0.3 * x[1])[:, None]
    return (scale * np.exp(rng.logistic(size=(len(X), m)) / shape))[:, :, None]


def _sparse(X: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
    hazard = np.exp(0.7 * X[:, 0] - 0.5 * X[:, 1] + 0.4 * X[:, 2])
    return 1.5 * (rng.exponential(size=(len(X), m)) / hazard[:, None])[:, :, None] ** (1 / 1.5)


SCENARIOS = {
    "sine and sign, 30 covariates": Scenario(30, _frail(_waves, [1.3, 1.0], 0.8), 5.0),
    "proportional hazards": Scenario(6, _frail(_lines, [1.3, 0.9], 1.0), 6.0),
    "spread depends on covariates": Scenario(5, _spread, 6.0),
    "cure": Scenario(5, _cure, 6.0),
    "exchangeable pair": Scenario(4, _frail(_alike, [1.0] * 2, 1.0), 5.0),
    "75 % censored": Scenario(5, _rare, 4.0),
    "squares and products": Scenario(6, _frail(_squares, [1.2, 1.0], 0.6), 5.0),
    "steps": Scenario(6, _steps, 6.0, fresh=True),
    "crossing curves": Scenario(4, _crossing, 5.0, fresh=True),
    "3 of 25 covariates": Scenario(25, _sparse, 4.0, fresh=True),
}
