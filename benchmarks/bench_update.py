r"""Regret of the chosen rung of ``censcore.update``, beside never updating and always refitting.

A published proportional-hazards model with six covariates meets five kinds of populations: the one it was
developed in; one with another baseline hazard; one where it is overfitted (slope 0.7); one where two of six
effects differ; one where all effects and the shape of the baseline hazard do. The loss of a model is the mean
of :math:`(S-S_0)^2` at the time over 20,000 new subjects, with :math:`S_0` the true survival probability: its
expected Brier score less that of the truth. Regret is its mean less that of the best rung of the cell.
"""

from __future__ import annotations

import numpy as np

import censcore as cs
from censcore.estimators.regression.closed_test import closed_test
from censcore.evaluation.update import Ladder, simplest
from censcore.exceptions import CenscoreError

BETA, SHAPE, RATE, TIME = np.array([0.8, -0.5, 0.4, 0.3, -0.3, 0.2]), 1.2, 0.35, 1.0
#: Hazard ratio of the baseline, its shape, and the coefficients.
KINDS = {
    "the same": (1.0, SHAPE, BETA),
    "other baseline": (1.5, SHAPE, BETA),
    "overfitted": (1.3, SHAPE, 0.7 * BETA),
    "two effects": (1.2, SHAPE, BETA + np.array([0, 0.5, 0, 0, 0.4, 0])),
    "all effects": (1.4, 1.6, BETA + np.array([-0.4, 0.3, 0.3, -0.3, 0.4, 0.3])),
}
SIZES, DATA_SETS, NEW = (100, 200, 500, 1000, 2000), 30, 20_000
PUBLISHED = cs.PublishedCox(dict(enumerate(BETA)), baseline=cs.Weibull(SHAPE, RATE ** (-1 / SHAPE)))
METHODS = ("never", "within 1 SE", "within 1/2 SE", "closed test", "always, shrunken", "always, plain")


def main() -> None:
    print(f"Regret x 10,000; {DATA_SETS} data sets a cell\n")
    print(f"{'':26s}" + "".join(f"{name:>19s}" for name in METHODS))
    cells = []
    for kind in KINDS:
        new, _ = draw(kind, NEW, np.random.default_rng(99))
        truth = np.exp(-hazard(kind, new))
        for n in SIZES:
            losses = [one_data_set(kind, n, seed, new, truth) for seed in range(DATA_SETS)]
            best = min(np.mean([loss[rung] for loss in losses]) for rung in losses[0] if rung not in METHODS)
            cells.append([np.mean([loss[name] for loss in losses]) - best for name in METHODS])
            print(
                f"{kind:18s}n = {n:<6d}" + "".join(f"{1e4 * regret:19.1f}" for regret in cells[-1]),
                flush=True,
            )
    mean = np.mean(cells, axis=0)
    print(f"{'mean of all cells':26s}" + "".join(f"{1e4 * regret:19.1f}" for regret in mean))
    print()
    for rule in ("within 1 SE", "within 1/2 SE"):
        shares = mean[METHODS.index(rule)] / mean
        words = (
            f"{share:.2f} of {name}" for name, share in zip(METHODS, shares, strict=True) if name != rule
        )
        print(f"{rule}: {', '.join(words)}")


def hazard(kind: str, X: np.ndarray) -> np.ndarray:
    """The cumulative hazard at the time."""
    ratio, _, beta = KINDS[kind]
    return ratio * RATE * np.exp(X @ beta)


def draw(kind: str, n: int, rng: np.random.Generator) -> tuple[np.ndarray, cs.RightCensored]:
    """Covariates, the last one binary, and times with about 28 % censored before the time."""
    X = rng.normal(size=(n, 6))
    X[:, 1:3] = 0.8 * X[:, 1:3] + 0.6 * X[:, :1]
    X[:, 5] = X[:, 5] > 0
    T = (rng.exponential(size=n) / hazard(kind, X)) ** (1 / KINDS[kind][1])
    C = np.minimum(rng.exponential(3.0, n), rng.uniform(1.0, 3.0, n))
    return X, cs.RightCensored(np.minimum(T, C), T <= C)


def one_data_set(kind: str, n: int, seed: int, new: np.ndarray, truth: np.ndarray) -> dict[str, float]:
    """The loss of every rung and method."""
    X, y = draw(kind, n, np.random.default_rng([seed, n]))

    def loss(model: object) -> float:
        return float(np.mean((model.predict_distribution(new).sf(TIME) - truth) ** 2))  # type: ignore[attr-defined]

    ladder = Ladder(PUBLISHED, TIME, "binomial_log_score").fit(X, y)
    found = {name: loss(rung) for name, rung in ladder.rungs_.items()}
    try:
        p = {line["rung"]: line["p_value"] for line in closed_test(PUBLISHED, X, y, TIME)}
        closed = next((rung for rung, value in p.items() if value >= 0.05), "refit")
        plain = loss(cs.CoxRegression().fit(X, y.censor_at(TIME)))
    except CenscoreError:  # a covariate separates the events of a small sample
        closed, plain = "refit", found["refit"]
    return found | {
        "never": found["as it is"],
        "within 1 SE": found[ladder.chosen_],
        "within 1/2 SE": found[simplest(ladder.table_, 0.5)],
        "closed test": found[closed],
        "always, shrunken": found["refit"],
        "always, plain": plain,
    }


if __name__ == "__main__":
    main()
