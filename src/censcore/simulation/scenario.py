"""A scenario is a distribution of covariates, a distribution of T given x and a censoring distribution given x; data follow from them."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore.distributions import Distribution, PointMass
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored

__all__ = ["Sample", "Scenario"]


@dataclass(frozen=True, eq=False)
class Sample:
    """Data from a scenario, with what an analyst would never see beside them.

    Attributes
    ----------
    X : array, (n, d)
        Covariates.
    T : array, (n,) or (n, k)
        Latent event times.
    C : array, (n,) or (n, k)
        Censoring times: one per row where all coordinates share it.
    """

    X: np.ndarray
    T: np.ndarray
    C: np.ndarray

    @property
    def y(self) -> RightCensored:
        """What the analyst sees: Y = min(T, C) and Delta = 1{T <= C}."""
        c = self.C[:, None] if self.C.ndim < self.T.ndim else self.C
        return RightCensored(np.minimum(self.T, c), c >= self.T)

    @property
    def y_known(self) -> RightCensored:
        """The same with C known for every row."""
        return RightCensored(self.y.time, self.y.event, censoring_time=self.C)

    @property
    def latent(self) -> RightCensored:
        """The event times themselves, uncensored."""
        return RightCensored(self.T, np.ones(self.T.shape, dtype=bool))

    def __len__(self) -> int:
        return len(self.X)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Sample):
            return NotImplemented
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in ("X", "T", "C"))

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, rows: Any) -> Sample:
        return Sample(self.X[rows], self.T[rows], self.C[rows])


class Scenario(ABC):
    """Where the distributions of T and C given x are known, so that theorems can be tested.

    A subclass gives the covariates and the two distributions; T and C are drawn independently given x.

    Examples
    --------
    >>> from censcore.simulation import WeibullScenario
    >>> scenario = WeibullScenario("uniform")
    >>> data = scenario.sample(1000, seed=0)
    >>> data.X.shape, data.y
    ((1000, 3), RightCensored(n=1000, events=788 (78.8 %), time 0.00311243 to 7.33953))
    >>> scenario.event_distribution(data.X).shape, scenario.censoring_distribution(data.X).shape
    ((1000,), (1,))
    """

    n_covariates: int

    def covariates(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Standard normal covariates, (n, d)."""
        return rng.standard_normal((n, self.n_covariates))

    @abstractmethod
    def event_distribution(self, X: np.ndarray) -> Distribution:
        """The distribution of T given each row of ``X``."""

    @abstractmethod
    def censoring_distribution(self, X: np.ndarray) -> Distribution:
        """The censoring distribution given each row of ``X``."""

    def sample(self, n: int, seed: Any = None) -> Sample:
        """``n`` rows of covariates, event times and censoring times."""
        if n < 1:
            raise InvalidInputError(f"n must be at least 1; got {n}.")
        rng = np.random.default_rng(seed)
        X = self.covariates(n, rng)
        return Sample(
            X,
            _one_draw(self.event_distribution(X), n, rng),
            _one_draw(self.censoring_distribution(X), n, rng),
        )


def _one_draw(distribution: Distribution, n: int, rng: np.random.Generator) -> np.ndarray:
    """One draw per row, also where one distribution serves all rows."""
    if isinstance(distribution, PointMass):
        return np.broadcast_to(distribution.location, (n,)).copy()
    if len(distribution) == n:
        return np.asarray(distribution.sample(1, rng))[:, 0]
    return np.asarray(distribution.sample(n, rng))[0]
