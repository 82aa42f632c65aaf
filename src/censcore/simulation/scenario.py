"""Data-generating processes: distributions of the covariates, of T given x and of C given x."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore._validation import as_count, as_generator
from censcore.distributions import Distribution, PointMass
from censcore.outcomes import RightCensored


@dataclass(frozen=True, eq=False)
class SimulatedData:
    """Data from a scenario, with the event and censoring times that an analyst does not see.

    Attributes
    ----------
    X : array, (n, d)
        Covariates.
    T : array, (n,) or (n, k)
        Latent event times.
    C : array, (n,) or (n, k)
        Censoring times: one per subject where all coordinates share it.

    Examples
    --------
    >>> from censcore.simulation import WeibullScenario
    >>> data = WeibullScenario("uniform").sample(100, seed=0)
    >>> len(data), bool((data.y.time == data.T)[data.y.event].all())
    (100, True)
    >>> data[:10] == data[:10], data == data[:10]
    (True, False)
    """

    X: np.ndarray
    T: np.ndarray
    C: np.ndarray

    @property
    def y(self) -> RightCensored:
        """The observed outcome: Y = min(T, C) and Delta = 1{T <= C}."""
        c = self.C[:, None] if self.C.ndim < self.T.ndim else self.C
        return RightCensored(np.minimum(self.T, c), c >= self.T)

    @property
    def y_known(self) -> RightCensored:
        """The observed outcome with C known for every subject."""
        return RightCensored(self.y.time, self.y.event, censoring_time=self.C)

    @property
    def latent(self) -> RightCensored:
        """The event times themselves, uncensored."""
        return RightCensored(self.T, np.ones(self.T.shape, dtype=bool))

    def __len__(self) -> int:
        return len(self.X)

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, SimulatedData):
            return NotImplemented
        return all(np.array_equal(getattr(self, name), getattr(other, name)) for name in ("X", "T", "C"))

    __hash__ = None  # type: ignore[assignment]

    def __getitem__(self, rows: Any) -> SimulatedData:
        return SimulatedData(self.X[rows], self.T[rows], self.C[rows])


class Scenario(ABC):
    """Base class of data-generating processes in which the distributions of T and C given x are known.

    A subclass defines :meth:`event_distribution` and :meth:`censoring_distribution`, and
    :meth:`covariates` or ``n_covariates``; T and C are drawn independently given x.

    See Also
    --------
    WeibullScenario, LogNormalScenario, TargetedScenario, DataScenario : The scenarios of this library.

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
        """Draw covariates, standard normal unless a subclass says otherwise.

        Parameters
        ----------
        n : int
            Number of subjects.
        rng : numpy.random.Generator
            Source of randomness.

        Returns
        -------
        array, (n, d)
            The covariates.
        """
        return rng.standard_normal((n, self.n_covariates))

    @abstractmethod
    def event_distribution(self, X: np.ndarray) -> Distribution:
        """The distribution of T given the covariates of each subject, (n, d)."""

    @abstractmethod
    def censoring_distribution(self, X: np.ndarray) -> Distribution:
        """The censoring distribution given the covariates of each subject, (n, d)."""

    def sample(self, n: int, seed: Any = None) -> SimulatedData:
        """Draw covariates, event times and censoring times.

        Parameters
        ----------
        n : int
            Number of subjects.
        seed : int, sequence of int or numpy.random.Generator, optional
            Seed of the draws.

        Returns
        -------
        SimulatedData
            The data.
        """
        n, rng = as_count(n, "n", most=MOST_SUBJECTS), as_generator(seed)
        X = self.covariates(n, rng)
        T = _one_draw(self.event_distribution(X), n, rng)
        return SimulatedData(X, T, _one_draw(self.censoring_distribution(X), n, rng))


#: Subjects of one sample: more than fit into the memory of any machine.
MOST_SUBJECTS = 10**9


def _one_draw(distribution: Distribution, n: int, rng: np.random.Generator) -> np.ndarray:
    """One draw per subject, also where one distribution serves all subjects."""
    if isinstance(distribution, PointMass):
        return np.broadcast_to(distribution.location, (n,)).copy()
    if len(distribution) == n:
        return np.asarray(distribution.sample(1, rng))[:, 0]
    return np.asarray(distribution.sample(n, rng))[0]
