"""One small data set that all libraries are fitted to."""

from __future__ import annotations

import numpy as np
import pytest

import censcore as cs


@pytest.fixture(scope="session")
def data():
    """Covariates (300, 3) and outcomes with a third censored; the first 200 subjects are for training."""
    rng = np.random.default_rng(7)
    X = rng.normal(size=(300, 3))
    T = rng.weibull(1.5, 300) * 2 * np.exp(0.5 * X[:, 0])
    C = rng.uniform(0.2, 8.0, 300)
    return X, cs.RightCensored(np.minimum(T, C), T <= C)
