"""An estimator under examination, with data whose distributions are known."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone

from censcore._arrays import to_numpy
from censcore.distributions import Distribution, Ensemble
from censcore.estimators import Censoring
from censcore.outcomes import RightCensored
from censcore.simulation import LogNormalScenario, WeibullScenario

__all__ = ["Candidate", "EstimatorRule"]

_ROWS = 240
_LEVELS = np.array([0.1, 0.3, 0.5, 0.7, 0.9])


class Candidate:
    """An estimator, and rows to fit it to: k event times under uniform censoring, with covariates."""

    def __init__(self, estimator: Any, k: int, seed: int) -> None:
        self.estimator, self.k, self.seed = estimator, k, seed
        scenario: Any = WeibullScenario("uniform") if k == 1 else LogNormalScenario(k, mixture=False)
        data = scenario.sample(_ROWS, seed=seed)
        self.X, self.y = data.X, data.y
        self.times = np.quantile(self.y.time, _LEVELS)
        self.of_censoring = isinstance(estimator, Censoring)
        forecast = data.C if self.of_censoring else data.T
        self.latent = RightCensored(forecast, np.ones(forecast.shape))
        self.last_time = 0.8 * float(data.C.max())

    def new(self) -> Any:
        """An unfitted copy, seeded where that is possible."""
        copy = clone(self.estimator)
        return copy.set_params(random_state=self.seed) if self.is_seeded else copy

    @property
    def is_seeded(self) -> bool:
        """Whether the estimator takes a seed."""
        return "random_state" in self.estimator.get_params(deep=False)

    @property
    def is_random(self) -> bool:
        """Whether fitting is: the seed of :class:`Censoring` is for folds only."""
        return self.is_seeded and not self.of_censoring

    @property
    def takes_weights(self) -> bool:
        """Whether ``fit`` has an argument ``sample_weight``."""
        return "sample_weight" in inspect.signature(self.estimator.fit).parameters

    @cached_property
    def fitted(self) -> Any:
        """Fitted to all rows; not to be changed."""
        return self.new().fit(self.X, self.y)

    @cached_property
    def distribution(self) -> Distribution:
        """What the fitted estimator forecasts for its rows."""
        return self.fitted.predict_distribution(self.X)

    def survival(self, distribution: Distribution) -> np.ndarray:
        """P(T_j > t) of all rows, (n, q, k), whether rows share a distribution or not."""
        parts: list[Any] = [
            distribution if distribution.k == 1 else distribution.marginal(j) for j in range(distribution.k)
        ]
        values = [to_numpy(part.sf(self.times[None, :])).astype(np.float64) for part in parts]
        return np.stack([np.broadcast_to(v, (_ROWS, len(self.times))) for v in values], axis=2)

    def expect_same(
        self,
        distribution: Distribution,
        expected: np.ndarray,
        what: str,
        redrawn: bool = False,
        rtol: float = 1e-6,
    ) -> None:
        """The distribution has the expected survival probabilities, up to sampling error where samples are redrawn."""
        assert isinstance(distribution, Distribution), (
            f"{what}: predict_distribution gives {type(distribution).__name__}."
        )
        got = self.survival(distribution)
        tolerance = rtol * np.ones_like(got)
        if redrawn and isinstance(distribution, Ensemble):
            p = (got + expected) / 2
            tolerance = 6 * np.sqrt(2 * p * (1 - p) / distribution.m) + 2 / distribution.m
        off = np.abs(got - expected) > tolerance
        assert not off.any(), (
            f"{what}: P(T > t) differs, {got[off][0]:.6g} instead of {expected[off][0]:.6g}."
        )


EstimatorRule = Callable[[Candidate], None]
