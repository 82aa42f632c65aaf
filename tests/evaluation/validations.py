"""Subjects and models that tests of validations share."""

from __future__ import annotations

import numpy as np

import censcore as cs

T0 = 1.0


def drawn(n: int, seed: int, last: float = 3.0) -> tuple[np.ndarray, cs.RightCensored]:
    """Covariates with hazards exp(x), seen until a uniform C."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    T, C = rng.exponential(np.exp(-x)), rng.uniform(0.2, last, n)
    return x, cs.RightCensored(np.minimum(T, C), T <= C)


def two_causes(n: int, seed: int) -> tuple[np.ndarray, cs.CompetingRisks]:
    """Two kinds of event, of which the first is more frequent where x is large."""
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    each = np.stack([rng.exponential(np.exp(-0.7 * x)), rng.exponential(2.0, n)])
    C = rng.uniform(0.2, 3.0, n)
    first = np.minimum(each.min(axis=0), C)
    cause = np.where(first == C, 0, 1 + each.argmin(axis=0))
    return x, cs.CompetingRisks(first, cause, names=["relapse", "death"])


def of_two_causes(x: np.ndarray) -> cs.CauseSpecificHazards:
    """The true risks."""
    return cs.CauseSpecificHazards(
        [cs.Exponential(np.exp(0.7 * x)), cs.Exponential(0.5)], names=["relapse", "death"]
    )


def rotterdam() -> cs.PublishedCox:
    """The model of McLernon et al. (2023)."""
    nodes = cs.column("pnodes").capped(high=19)
    return cs.PublishedCox(
        {
            cs.column("tsize").bands(20, 50): [0.342, 0.574],
            nodes.spline(0, 1, 9): [0.304, -0.811],
            "tgrade": {"I": 0.0, "II": 0.0, "III": 0.362},
        },
        baseline={5.0: 0.804},
    )
