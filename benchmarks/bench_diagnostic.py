"""Level and power of the test "covariates do not predict censoring".

Power: C depends on x by a trend, a curve, an interaction, or hazards that cross, strongly enough that a
pooled censoring distribution changes the gain of the true forecast over one that understates the effects on T
(ipcw Brier score at 0.8, 200,000 subjects). Level: T depends on x and C does not, in settings that are hard
for such a test. ``kind`` is how often the test named the right departure.
"""

from __future__ import annotations

from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor

import numpy as np

import censcore as cs
from censcore.estimators.censoring.covariate_test import CensoringTest, covariates_predict

POWER_SETS, LEVEL_SETS, SIZES, COLUMNS, TIME = 300, 400, (500, 1000), 5, 0.8
Draw = tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]  # x, T, C, groups


def effect(case: str, x: np.ndarray) -> np.ndarray:
    """The log hazard ratio of T, with mean zero and variance one."""
    if case == "quadratic":
        return (x[:, 0] ** 2 - 1) / np.sqrt(2)
    return x[:, 0] * x[:, 1] if case == "interaction" else x[:, 0]


def dependent(case: str, n: int, rng: np.random.Generator) -> Draw:
    x = rng.normal(size=(n, COLUMNS))
    eta = effect(case, x)
    T = rng.exponential(np.exp(-0.7 * eta))
    if case == "crossing hazards":
        C = 1.5 * np.where(eta > 0, rng.weibull(2.5, n), rng.weibull(0.6, n))
    else:
        C = rng.exponential(1.5 * np.exp(0.5 * eta))
    return x, T, C, None


def bias_of_gain(case: str) -> float:
    """Relative change, by a pooled Kaplan-Meier distribution of C, of the difference of two Brier scores."""
    x, T, C, _ = dependent(case, 200_000, np.random.default_rng(0))
    truth, understated = (cs.Exponential(np.exp(b * effect(case, x))) for b in (0.7, 0.2))
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    pooled = cs.Censoring(cs.KaplanMeier()).fit(None, y).predict_distribution()

    def gain(outcome: cs.RightCensored, G: cs.Distribution) -> float:
        a, b = (cs.brier_score(outcome, F, G, TIME, scale="ipcw").mean() for F in (truth, understated))
        return float(b - a)

    return gain(y, pooled) / gain(cs.RightCensored(T, np.ones(len(T))), cs.PointMass(np.inf)) - 1


def independent(p: int, n: int, mean: float = 1.5) -> Callable[[np.random.Generator], Draw]:
    def draw(rng: np.random.Generator) -> Draw:
        x = rng.normal(size=(n, p))
        return x, rng.exponential(np.exp(-0.7 * x[:, 0])), rng.exponential(mean, n), None

    return draw


def clustered(g: int, m: int) -> Callable[[np.random.Generator], Draw]:
    """Columns and the hazard of C vary between clusters, independently of each other."""

    def draw(rng: np.random.Generator) -> Draw:
        groups = np.repeat(np.arange(g), m)
        x = 0.9 * rng.normal(size=(g, 4))[groups] + 0.4 * rng.normal(size=(g * m, 4))
        C = rng.exponential(np.exp(0.7 * rng.normal(size=g)[groups]))
        return x, rng.exponential(np.exp(-0.7 * x[:, 0])), C, groups

    return draw


def rare_levels(rng: np.random.Generator) -> Draw:
    """Indicators of 1, 2 and 5 % of the subjects, a heavy tail, a constant column."""
    x = np.column_stack([rng.random((300, 3)) < [0.01, 0.02, 0.05], rng.lognormal(2, 2, 300), np.ones(300)])
    return x, rng.exponential(1 + x[:, 2]), rng.exponential(2.0, 300), None


def visits_and_end(rng: np.random.Generator) -> Draw:
    """C on a grid of visits, and the end of the study for half of the subjects."""
    x = rng.normal(size=(300, 3))
    C = np.minimum(np.ceil(4 * rng.exponential(2.0, 300)) / 4, 1.5)
    return x, rng.exponential(2 * np.exp(-x[:, 0])), C, None


LEVELS = {
    "5 columns, n = 500": independent(5, 500),
    "30 columns, n = 300": independent(30, 300),
    "3 columns, n = 80": independent(3, 80),
    "few censored (9 of 100), n = 200": independent(3, 200, 12.0),
    "50 clusters of 10": clustered(50, 10),
    "12 clusters of 20": clustered(12, 20),
    "rare levels, heavy tail, n = 300": rare_levels,
    "visits, end of study, n = 300": visits_and_end,
}
NAMED = {
    "linear": "trend in column 0",
    "quadratic": "curve in column 0",
    "interaction": "interaction of column 0 and column 1",
    "crossing hazards": "trend in column 0 that changes over time",
}


def tested(draw: Draw) -> CensoringTest | str:
    x, T, C, groups = draw
    return covariates_predict(x, cs.RightCensored(np.minimum(T, C), T <= C), groups=groups)


def power(case: str) -> str:
    text = f"{case:33s}{100 * bias_of_gain(case):+12.0f}%"
    for n in SIZES:
        rng = np.random.default_rng(1)
        text = line(text, [tested(dependent(case, n, rng)) for _ in range(POWER_SETS)], NAMED[case])
    return text


def level(case: str) -> str:
    rng = np.random.default_rng(2)
    return line(f"{case:46s}", [tested(LEVELS[case](rng)) for _ in range(LEVEL_SETS)])


def line(title: str, found: list[CensoringTest | str], name: str = "") -> str:
    done = [test for test in found if isinstance(test, CensoringTest)]
    p = np.array([test.p_value for test in done])
    text = title + "".join(f"{100 * np.mean(p < alpha):9.1f}%" for alpha in (0.05, 0.01))
    if name:
        text += f"{100 * np.mean([test.kind == name for test in done]):7.0f}%"
    return text + (f"   not tested in {len(found) - len(done)}" if len(done) < len(found) else "")


def main() -> None:
    with ProcessPoolExecutor() as pool:
        powers, levels = pool.map(power, NAMED), pool.map(level, LEVELS)
        print(f"C depends on x: {POWER_SETS} data sets of n subjects with {COLUMNS} columns")
        print(f"{'':46s}" + "".join(f"{f'n = {n}':^28s}" for n in SIZES))
        each = f"{'p < 0.05':>10s}{'p < 0.01':>10s}{'kind':>8s}"
        print(f"{'by':33s}{'bias of gain':>13s}" + each * len(SIZES), flush=True)
        for text in powers:
            print(text, flush=True)
        print(f"\nC does not depend on x: {LEVEL_SETS} data sets", flush=True)
        for text in levels:
            print(text, flush=True)


if __name__ == "__main__":
    main()
