"""A table of predictions, as the command line reads it."""

from __future__ import annotations

import numpy as np
import pandas as pd

import censcore as cs

TIMES = np.array([0.25, 0.5, 1.0, 1.5, 2.0])
LEVELS = np.array([0.1, 0.5, 0.9])


def sample(n: int, seed: int) -> pd.DataFrame:
    rng = np.random.default_rng(seed)
    x = rng.normal(size=n)
    T, C = rng.exponential(np.exp(0.5 * x)), rng.uniform(0, 3, n)
    frame = pd.DataFrame({"days": np.minimum(T, C), "died": (T <= C).astype(int), "x": x})
    frame["sex"] = np.where(rng.random(n) < 0.5, "f", "m")
    distribution = cs.Exponential(np.exp(-0.5 * x))
    survival = pd.DataFrame(distribution.sf(TIMES[None, :]), columns=[f"exact__sf@{t:g}" for t in TIMES])
    quantiles = pd.DataFrame(
        distribution.icdf(LEVELS[None, :]), columns=[f"quantiles__q@{a:g}" for a in LEVELS]
    )
    draws = pd.DataFrame(distribution.sample(8, seed=1), columns=[f"draws__sample@{i}" for i in range(8)])
    return pd.concat([frame, survival, quantiles, draws], axis=1)
