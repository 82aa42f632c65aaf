"""Excess over the truth on random tables, by which the defaults of the stack and its regressions were chosen.

80 to 2,000 subjects, 3 to 30 covariates of four kinds, one or two event times. Effects are linear, rules,
curves, networks, or squares and products, alone or mixed. Times are Weibull, log-normal or log-logistic, or
have hazards that change; there are spreads that depend on covariates, subjects who are cured, frailties, and
three kinds of C. The excess is the energy distance between forecast and truth after censoring, on 300 new
subjects, in per cent of the score of the truth.

``python -m benchmarks.bench_random_tables --tables 20`` runs the first 20.
"""

from __future__ import annotations

import argparse
import warnings
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from joblib import Parallel, delayed
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import censcore as cs
from censcore_studies.kit import energy_distance
from censcore_studies.stack_scenarios.models import draws_of

TABLES, NEW, DRAWS = 140, 300, 128
NEVER = 1e6  # the time of a subject who is cured

Effect = Callable[[np.ndarray], np.ndarray]


def random_effect(p: int, rng: np.random.Generator) -> Effect:
    """A function of p covariates: linear, by rules, additive, a network, or squares and products."""
    kind = rng.integers(6)
    if kind == 0:
        slope, some = np.zeros(p), rng.choice(p, min(p, 4), replace=False)
        slope[some] = rng.normal(size=len(some))
        return lambda x: x @ slope
    if kind == 1:
        dense = rng.normal(size=p)
        return lambda x: x @ dense
    if kind == 2:
        return _rules(p, rng)
    if kind == 3:
        some = rng.choice(p, min(p, 5), replace=False)
        pace, phase = rng.uniform(0.5, 2.5, len(some)), rng.uniform(0, 6, len(some))
        size = rng.normal(size=len(some))
        return lambda x: (size * np.sin(pace * x[:, some] + phase)).sum(axis=1)
    if kind == 4:
        first = rng.normal(size=(p, 8)) / np.sqrt(min(p, 6))
        first *= rng.random((p, 8)) < 6 / max(p, 6)
        bias, last = rng.normal(size=8), rng.normal(size=8)
        return lambda x: np.tanh(1.5 * (x @ first + bias)) @ last
    a, b, c, d = np.resize(rng.choice(p, min(p, 4), replace=False), 4)
    size = rng.normal(size=4)
    return lambda x: (
        np.stack([x[:, a] * x[:, b], 0.6 * x[:, c] ** 2, x[:, d], np.abs(x[:, a])], axis=1) @ size
    )


def _rules(p: int, rng: np.random.Generator) -> Effect:
    def rule() -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
        some = rng.choice(p, min(p, int(rng.integers(1, 4))), replace=False)
        return some, rng.normal(0, 0.7, 3), rng.choice([-1, 1], 3), rng.normal()

    rules = [rule() for _ in range(int(rng.integers(3, 9)))]

    def effect(x: np.ndarray) -> np.ndarray:
        inside = [
            size * np.all(sign[: len(some)] * (x[:, some] - cut[: len(some)]) > 0, axis=1)
            for some, cut, sign, size in rules
        ]
        return np.sum(inside, axis=0)

    return effect


class RandomTable:
    """Covariates and event times of a seed."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng([77, seed])
        self.seed, self.n = seed, int(np.exp(rng.uniform(np.log(80), np.log(2000))))
        self.p = int(rng.choice([3, 5, 8, 12, 20, 30]))
        self.k = int(rng.choice([1, 1, 1, 2]))
        self.kinds = rng.choice(4, self.p, p=[0.45, 0.25, 0.15, 0.15])
        self.shared = rng.uniform(0, 0.6)
        many = self.covariates(4000, np.random.default_rng(5))

        def unit(effect: Effect) -> Effect:
            mean, spread = effect(many).mean(), effect(many).std() + 1e-9
            return lambda x: (effect(x) - mean) / spread

        def mixed() -> Effect:
            one, other = (unit(random_effect(self.p, rng)) for _ in range(2))
            share = rng.choice([0, 0, 0.5])
            return unit(lambda x: (1 - share) * one(x) + share * other(x))

        self.risk, self.other = ([mixed() for _ in range(self.k)] for _ in range(2))
        self.size = rng.uniform(0.2, 1.2, self.k)
        self.spread = rng.choice([0, 0, 0.3, 0.5], self.k)
        self.family = rng.integers(4, size=self.k)
        self.shape = np.exp(rng.uniform(-0.4, 0.9, self.k))
        self.cured, self.frailty = rng.choice([0, 0, 0, 0.3]), rng.choice([0, 0.5, 1.0])
        times = self.times(many, 1, np.random.default_rng(6))[:, 0]
        end = np.quantile(times, rng.uniform(0.3, 0.95))
        self.end = float(end if end < NEVER / 10 else np.quantile(times[times < NEVER / 10], 0.9))
        self.follow_up = int(rng.integers(3))

    def covariates(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Normal, binary, skewed and rounded ones, equally correlated."""
        z = np.sqrt(1 - self.shared) * rng.normal(size=(n, self.p))
        z = z + np.sqrt(self.shared) * rng.normal(size=(n, 1))
        kinds = [z, 2.0 * (z > 0.3) - 0.6, np.exp(0.8 * z) - 1.2, np.clip(np.round(z), -2, 2)]
        return np.choose(self.kinds, kinds)

    def times(self, X: np.ndarray, m: int, rng: np.random.Generator) -> np.ndarray:
        """Event times (n, m, k)."""
        n, log_frailty = len(X), np.zeros(1)
        if self.frailty and self.k > 1:
            log_frailty = np.log(rng.gamma(1 / self.frailty, self.frailty, size=(n, m)) + 1e-300)
        columns = []
        for j in range(self.k):
            eta = self.size[j] * self.risk[j](X)[:, None]
            if self.family[j] <= 1:
                e = np.log(rng.exponential(size=(n, m))) - log_frailty
            elif self.family[j] == 2:
                e = rng.normal(size=(n, m)) - 0.7 * log_frailty
            else:
                e = 0.7 * rng.logistic(size=(n, m)) - 0.7 * log_frailty
            scale = np.exp(self.spread[j] * self.other[j](X))[:, None] / self.shape[j]
            t = np.exp(np.clip((e - eta) * scale, -30, 11))
            columns.append(np.where(t < 0.7, t, 0.7 + 2.5 * (t - 0.7)) if self.family[j] == 1 else t)
        t = np.stack(columns, axis=-1)
        if not self.cured:
            return t
        chance = 2 * self.cured / (1 + np.exp(self.other[0](X)))[:, None]
        return np.where((rng.random(t.shape[:2]) < chance)[..., None], NEVER, t)

    def censoring(self, shape: tuple[int, int], rng: np.random.Generator) -> np.ndarray:
        """Times C."""
        if self.follow_up == 0:
            return rng.uniform(0, 1.5 * self.end, shape)
        if self.follow_up == 1:
            return np.minimum(rng.exponential(self.end, shape), 1.3 * self.end)
        return np.minimum(rng.uniform(0.3 * self.end, 1.6 * self.end, shape), 1.2 * self.end)

    def sample(self) -> tuple[np.ndarray, cs.RightCensored]:
        """Covariates and outcome of n subjects."""
        rng = np.random.default_rng([78, self.seed])
        X = self.covariates(self.n, rng)
        T, C = self.times(X, 1, rng)[:, 0], self.censoring((self.n, 1), rng)
        y, event = np.minimum(T, C), C >= T
        return X, cs.RightCensored(y, event) if self.k > 1 else cs.RightCensored(y[:, 0], event[:, 0])

    def excess(self, model: Any) -> float:
        """Of the forecasts of a fitted model, in per cent."""
        rng = np.random.default_rng([79, self.seed])
        X = self.covariates(NEW, rng)
        T, C = self.times(X, DRAWS, rng), self.censoring((NEW, DRAWS), rng)
        F = np.asarray(draws_of(model)(X, DRAWS), dtype=float).reshape(NEW, DRAWS, -1)
        return energy_distance.excess(F[:, np.random.default_rng(1).permutation(DRAWS)], T, C)[0]


def models() -> Mapping[str, Any]:
    """Unfitted models by name."""
    small = make_pipeline(StandardScaler(), cs.CoxRegression(alpha=1.0))
    margins = {
        "Kaplan-Meier": cs.KaplanMeier(),
        "Cox, penalty 1": small,
        "Cox, auto": cs.CoxRegression(alpha="auto"),
        "log-logistic, auto": cs.LogLogisticRegression(alpha="auto"),
        "trees": cs.BoostedHazards(random_state=0),
    }
    stack = cs.BestForecast(random_state=0, device="cpu", progress=False)
    return {"default stack": stack} | {name: cs.JointFromMargins(model) for name, model in margins.items()}


def excesses(seed: int) -> tuple[int, dict[str, float]]:
    """The number of subjects of a table, and the excess of every model."""
    warnings.simplefilter("ignore")
    table = RandomTable(seed)
    X, y = table.sample()
    return table.n, {name: table.excess(model.fit(X, y)) for name, model in models().items()}


def main(tables: int = TABLES) -> None:
    found = Parallel(n_jobs=-1)(delayed(excesses)(seed) for seed in range(tables))
    n = np.array([subjects for subjects, _ in found])
    parts = {"all": n > 0, "to 199": n < 200, "200 to 599": (n >= 200) & (n < 600), "from 600": n >= 600}
    print(f"{'excess %, mean over tables':28s}" + "".join(f"{name:>12s}" for name in parts))
    print(f"{'tables':28s}" + "".join(f"{int(rows.sum()):12d}" for rows in parts.values()))
    for name in found[0][1]:
        value = np.array([row[name] for _, row in found])
        means = [value[rows].mean() if rows.any() else np.nan for rows in parts.values()]
        print(f"{name:28s}" + "".join(f"{mean:12.2f}" for mean in means))


if __name__ == "__main__":
    parser = argparse.ArgumentParser()
    parser.add_argument("--tables", type=int, default=TABLES)
    main(**vars(parser.parse_args()))
