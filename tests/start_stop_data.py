"""Histories of subjects with a hazard that changes at visits, as a table of intervals."""

from __future__ import annotations

import numpy as np
import pandas as pd

import censcore as cs

VISITS = np.array([0.0, 1.0, 2.5, 4.0, 6.0])  # the last is the end of the study


def histories(n: int = 200, seed: int = 0) -> tuple[pd.DataFrame, np.ndarray, cs.RightCensored]:
    """Intervals with a hazard that changes at visits, all hazards, and the outcome of each subject."""
    rng = np.random.default_rng(seed)
    rates = 0.15 * np.exp(np.cumsum(rng.normal(0, 0.6, (n, 4)), axis=1))
    T = cs.PiecewiseExponential(VISITS[1:-1], rates).icdf(rng.random((n, 1)))[:, 0]
    y = cs.RightCensored(np.minimum(T, 6.0), T <= 6.0, 6.0)
    i, j = np.nonzero(VISITS[:-1] < y.time[:, None])
    stop = np.minimum(VISITS[j + 1], y.time[i])
    event = y.event[i] & (stop == y.time[i])
    table = pd.DataFrame(
        {
            "id": i, "start": VISITS[j], "stop": stop, "event": event.astype(int), "rate": rates[i, j],
            "planned": VISITS[j + 1],
        }
    )  # fmt: skip
    return table.sample(frac=1.0, random_state=seed), rates, y
