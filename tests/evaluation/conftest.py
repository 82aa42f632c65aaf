from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import pytest

import censcore as cs


@dataclass(frozen=True)
class Split:
    x: np.ndarray
    y: cs.RightCensored
    train: tuple[np.ndarray, cs.RightCensored]
    forecasts: dict[str, object]


@pytest.fixture(scope="session")
def split() -> Split:
    """Three forecasts of 300 subjects, fitted to 300 others."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(600, 2))
    T, C = rng.weibull(1.5, 600) * np.exp(0.7 * x[:, 0]), rng.uniform(0, 3, 600)
    y = cs.RightCensored(np.minimum(T, C), T <= C)
    a, b = slice(0, 300), slice(300, 600)
    cox, weibull = cs.CoxRegression().fit(x[a], y[a]), cs.WeibullRegression().fit(x[a], y[a])
    return Split(x[b], y[b], (x[a], y[a]), {"cox": cox, "weibull": weibull})
