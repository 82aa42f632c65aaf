"""Competing risks with entries, strata and ties, on which Fine and Gray's regression is compared with R."""

from __future__ import annotations

import numpy as np
import pandas as pd

import censcore as cs

CASES = {"plain": (False, False), "strata": (False, True), "entry": (True, False), "both": (True, True)}
TIMES = [0.5, 1.0, 2.0]


def drawn(n: int = 300, seed: int = 5) -> pd.DataFrame:
    """A table with times on a grid, so that events, censored times and entries are tied."""
    rng = np.random.default_rng(seed)
    x, z, site = rng.normal(size=n), rng.integers(0, 2, n), rng.integers(0, 3, n)
    T = (1 + 0.5 * site) * rng.exponential(np.exp(-0.5 * x))
    C, E = rng.uniform(0.5, 3 + site, n), np.maximum(rng.uniform(-1, 0.8, n), 0.0)
    status = np.where(T <= C, 1 + (rng.random(n) < 0.3 + 0.2 * z), 0)
    time, entry = np.ceil(np.minimum(T, C) * 16) / 16, np.floor(E * 16) / 16
    table = pd.DataFrame({"x": x, "z": z, "site": site, "entry": entry, "time": time, "status": status})
    return table[entry < time].reset_index(drop=True)


def numbers(data: pd.DataFrame, case: str) -> list[float]:
    """Coefficients, and hazards at x = 0 after three times, of each stratum where there are strata."""
    late, own = CASES[case]
    y = cs.CompetingRisks(data["time"], data["status"], entry=data["entry"] if late else None)
    model = cs.FineGray(1, strata="site" if own else None).fit(
        data[["x", "z", "site"] if own else ["x", "z"]], y
    )
    sites = [0, 1, 2] if own else [0]
    X = pd.DataFrame({"x": 0.0, "z": 0.0, "site": sites} if own else {"x": [0.0], "z": 0.0})
    hazard = -np.log(model.predict_distribution(X).sf(np.tile(TIMES, (len(sites), 1))))
    return [*model.coef_, *hazard.ravel()]
