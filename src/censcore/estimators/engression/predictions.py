"""Forecasts and answers to questions, for any estimator that draws samples of the event times."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from censcore.distributions import Ensemble
from censcore.distributions.joint_events import JointEvent
from censcore.exceptions import InvalidInputError

__all__ = ["SamplePredictions"]


class SamplePredictions:
    """Predictions from samples, a chunk of rows at a time, so that no more than one chunk is held."""

    _joint: bool

    @abstractmethod
    def _chunks(self, X: Any, m: int | None, seed: int | None) -> Iterator[np.ndarray]:
        """Draws (rows, m, k) of consecutive rows."""

    def sample(self, X: Any, m: int | None = None, seed: int | None = None) -> np.ndarray:
        """Draws from the distribution of T given each row of ``X``: (n, m, k), or (n, m) if y was (n,).

        The same seed and rows give the same draws; by default the seed is that of the fit.
        """
        times = np.concatenate(list(self._chunks(X, m, seed)))
        return times if self._joint else times[:, :, 0]

    def predict_distribution(
        self, X: Any = None, n_samples: int | None = None, seed: int | None = None
    ) -> Ensemble:
        """The distribution of T given each row of ``X``, as an ensemble of draws."""
        return Ensemble(self.sample(X, n_samples, seed))

    def predict(self, X: Any, statistic: str = "median") -> np.ndarray:
        """Median (or mean) event times, (n,) or (n, k); a mean reaches into what follow-up never saw."""
        if statistic not in ("median", "mean"):
            raise InvalidInputError(f"statistic must be 'median' or 'mean'; got {statistic!r}.")
        return self._by_coordinate(X, lambda z: (np.median if statistic == "median" else np.mean)(z, axis=1))

    def predict_quantile(self, X: Any, levels: Any) -> np.ndarray:
        """Quantiles of each event time: (n, q), or (n, q, k) for joint outcomes; no q for a single level."""
        levels = np.asarray(levels, dtype=float)
        if levels.ndim > 1 or not ((levels > 0) & (levels < 1)).all():
            raise InvalidInputError(f"levels must be numbers strictly between 0 and 1; got {levels}.")
        many = np.atleast_1d(levels)
        values = self._by_coordinate(
            X, lambda z: np.moveaxis(np.quantile(z, many, axis=1, method="inverted_cdf"), 0, 1)
        )
        return values if levels.ndim else values[:, 0]

    def predict_survival_function(self, X: Any, times: Any) -> np.ndarray:
        """P(T_j > t | x) at common times: (n, q), or (n, q, k) for joint outcomes."""
        times = np.asarray(times, dtype=float).reshape(-1)
        if np.isnan(times).any():
            raise InvalidInputError("times must be numbers; got NaN.")
        return self._by_coordinate(X, lambda z: np.stack([(z > t).mean(axis=1) for t in times], axis=1))

    def probability(self, X: Any, event: JointEvent) -> np.ndarray:
        """Probability of an event of all times together, (n,).

        Parameters
        ----------
        X : array or frame
            Covariates.
        event : callable
            Maps times (..., k) to booleans (...): one of :mod:`censcore.distributions.joint_events`
            (``either_before(24.0)``, ``all_before``, ``first_is``, ``in_order``) or your own.
        """
        if not callable(event):
            raise InvalidInputError(
                f"event must be a callable such as either_before(24.0); got {type(event).__name__}."
            )

        def share(z: np.ndarray) -> np.ndarray:
            happened = np.asarray(event(z))
            if happened.shape != z.shape[:2]:
                raise InvalidInputError(
                    "event must map times (n, m, k) to booleans (n, m); for times of shape "
                    f"{z.shape} it gave {happened.shape}."
                )
            return happened.mean(axis=1)

        return np.concatenate([share(z) for z in self._chunks(X, None, None)])

    def _by_coordinate(self, X: Any, statistic: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """A statistic over samples (rows, m, k) for all rows; without the last axis where y was (n,)."""
        values = np.concatenate([statistic(z) for z in self._chunks(X, None, None)])
        return values if self._joint else values[..., 0]
