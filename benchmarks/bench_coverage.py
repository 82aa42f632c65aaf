"""Coverage of 95 % intervals when the law of C is estimated.

Two worlds and two sizes. In "one law" C is uniform and its law is estimated by Kaplan-Meier. In "two strata"
C depends on a binary covariate and is estimated within its strata, on times rounded up to 1/20, so that most
are tied. The law is fitted to as many other rows as are scored, or to the scored rows themselves. Two fixed
forecasts are compared up to a fixed horizon. ``default`` are intervals of ``compare``; ``naive`` are those
from the spread of losses over rows, which take the law of C as known; ``pair`` is the difference of the two
forecasts. The truth comes from 2 million rows scored under the true law of C.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

import censcore as cs
from censcore.distributions import Grouped

DATA_SETS = 1000
SIZES = (500, 2000)
HORIZON = 2.0
GRID = np.linspace(0.05, HORIZON, 40)
SCORES = [
    "crps",
    "brier_score",
    "brier_score:ipcw",
    "integrated_brier_score:ipcw",
    "binomial_log_score",
    "pinball_score",
]
OPTIONS: dict[str, Any] = {
    "scores": SCORES,
    "times": [0.5, 1.5],
    "levels": [0.5],
    "horizon": HORIZON,
    "reference": None,
    "discrimination": False,
}


@dataclass(frozen=True)
class World:
    """Draws rows (x, y), and knows the law of C."""

    draw: Callable[[int, np.random.Generator], tuple[np.ndarray, cs.RightCensored]]
    true_law: Callable[[np.ndarray], cs.Distribution]
    estimator: cs.Censoring


def draw_one_law(n: int, rng: np.random.Generator) -> tuple[np.ndarray, cs.RightCensored]:
    x = rng.normal(size=(n, 1))
    T, C = rng.weibull(1.5, n) * np.exp(0.5 * x[:, 0]), rng.uniform(0, 2.5, n)
    return x, cs.RightCensored(np.minimum(T, C), T <= C)


def draw_two_strata(n: int, rng: np.random.Generator) -> tuple[np.ndarray, cs.RightCensored]:
    x = (rng.random((n, 1)) < 0.4).astype(float)
    T = np.ceil(20 * rng.gamma(2.0, 0.5, n) * np.exp(0.4 * x[:, 0])) / 20
    C = np.ceil(20 * rng.exponential(np.where(x[:, 0] > 0, 1.2, 2.5))) / 20
    return x, cs.RightCensored(np.minimum(T, C), T <= C)


def law_of_strata(x: np.ndarray) -> cs.Distribution:
    steps = np.arange(1, 2000) / 20
    laws = [cs.Step(steps, sf=np.exp(-steps / mean)[None, :]) for mean in (2.5, 1.2)]
    return Grouped(laws, x[:, 0].astype(int))


WORLDS = {
    "one law": World(draw_one_law, lambda x: cs.Uniform(0.0, 2.5), cs.Censoring(cs.KaplanMeier())),
    "two strata": World(draw_two_strata, law_of_strata, cs.Censoring(cs.KaplanMeier(stratify=0))),
}


def forecasts(x: np.ndarray) -> dict[str, cs.Distribution]:
    sharp, blunt = np.exp(0.5 * x), np.full_like(x, 1.1)
    return {
        "sharp": cs.Step(GRID, sf=np.exp(-((GRID / sharp) ** 1.5))),
        "blunt": cs.Step(GRID, sf=np.exp(-((GRID / blunt) ** 1.2))),
    }


def truth(world: World, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Expected losses of both forecasts and their differences."""
    sums = []
    for _ in range(20):
        x, y = world.draw(100_000, rng)
        found = cs.compare(forecasts(x), y, world.true_law(x), **OPTIONS)
        sums.append((found.frame()["mean"].to_numpy(), found.differences("none")["difference"].to_numpy()))
    means, pairs = (np.mean(part, axis=0) for part in zip(*sums, strict=True))
    return means, pairs


def covers(world: World, n: int, same_rows: bool, target: Any, rng: np.random.Generator) -> list[np.ndarray]:
    """Whether each interval of one data set holds the truth."""
    x, y = world.draw(n, rng)
    train = None if same_rows else world.draw(n, rng)
    found = cs.compare(forecasts(x), y, world.estimator, X=x, train=train, **OPTIONS)
    frame, pairs = found.frame(), found.differences("none")
    means, differences = target
    columns = [
        found.losses.values[row.model, row.score][:, j]
        for row, j in zip(frame.itertuples(), _column_numbers(frame), strict=True)
    ]
    naive = 1.96 * np.array([np.std(column, ddof=1) for column in columns]) / np.sqrt(n)
    return [
        (frame["low"] <= means).to_numpy() & (means <= frame["high"]).to_numpy(),
        np.abs(frame["mean"].to_numpy() - means) <= naive,
        (pairs["low"] <= differences).to_numpy() & (differences <= pairs["high"]).to_numpy(),
    ]


def _column_numbers(frame: Any) -> list[int]:
    """The column of the losses that a line of the table belongs to."""
    return (frame.groupby(["score", "model"], sort=False).cumcount()).tolist()


def main() -> None:
    print(f"coverage of 95 % intervals in {DATA_SETS} data sets, %; its own standard error is 0.7")
    for name, world in WORLDS.items():
        rng = np.random.default_rng(1)
        target = truth(world, rng)
        for n in SIZES:
            for same_rows in (False, True):
                show(name, world, n, same_rows, target, rng)


def show(name: str, world: World, n: int, same_rows: bool, target: Any, rng: np.random.Generator) -> None:
    counts = [covers(world, n, same_rows, target, rng) for _ in range(DATA_SETS)]
    default, naive, pair = (100 * np.mean(part, axis=0) for part in zip(*counts, strict=True))
    x, y = world.draw(50, rng)
    frame = cs.compare(forecasts(x), y, world.true_law(x), **OPTIONS).frame()
    print(f"\n{name}, {n} rows, law of C fitted to {'the same rows' if same_rows else 'as many others'}")
    print(f"{'':34s}{'sharp':>16s}{'blunt':>16s}{'':>9s}")
    print(f"{'':34s}{'default  naive':>16s}{'default  naive':>16s}{'pair':>9s}")
    for i in range(0, len(frame), 2):
        line = frame.iloc[i]
        title = line["score"] + ("" if np.isnan(line["at"]) else f" at {line['at']:g}")
        cells = "".join(f"{default[j]:9.1f}{naive[j]:7.1f}" for j in (i, i + 1))
        print(f"{title:34s}{cells}{pair[i // 2]:9.1f}", flush=True)
    low, high = (f"{value:9.1f}{'':7s}" for value in (default.min(), default.max()))
    print(f"{'smallest, largest; smallest pair':34s}{low}{high}{pair.min():9.1f}")


if __name__ == "__main__":
    main()
