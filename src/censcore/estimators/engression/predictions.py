"""Predictions of estimators that draw samples of the event times."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterator

import numpy as np
from torch import Tensor

from censcore._arrays import Array
from censcore.distributions import Ensemble
from censcore.distributions.joint_events import JointEvent
from censcore.exceptions import InvalidInputError

__all__ = ["SamplePredictions"]


class SamplePredictions:
    """Predictions from samples, computed for a chunk of subjects at a time to save memory."""

    _joint: bool

    @abstractmethod
    def _tensor_chunks(self, X: Array | None, m: int | None, seed: int | None) -> Iterator[Tensor]:
        """Draws (subjects, m, k) of consecutive subjects, on the device of the model."""

    def _chunks(self, X: Array | None, m: int | None, seed: int | None) -> Iterator[np.ndarray]:
        for z in self._tensor_chunks(X, m, seed):
            yield z.cpu().numpy()

    def sample_chunks(
        self, X: Array | None, m: int | None = None, seed: int | None = None
    ) -> Iterator[Tensor]:
        """Draw as :meth:`sample` does, chunk by chunk of subjects, as tensors on the device of the model.

        For work that should stay on a GPU, such as scores of very many subjects.

        Parameters
        ----------
        X, m, seed
            As in :meth:`sample`.

        Yields
        ------
        tensor, (subjects, m, k)
            The draws of the next subjects.
        """
        return self._tensor_chunks(X, m, seed)

    def sample(self, X: Array | None, m: int | None = None, seed: int | None = None) -> np.ndarray:
        """Draw from the distribution of T given x.

        Parameters
        ----------
        X : array or frame, (n, d), or None
            Covariates.
        m : int, optional
            Draws per subject; ``n_samples`` of the estimator if omitted.
        seed : int, optional
            That of the fit if omitted. The draws of a subject follow from the seed and its covariates,
            whichever other subjects are asked for.

        Returns
        -------
        array, (n, m, k), or (n, m) if y was (n,)
            The draws.
        """
        times = np.concatenate(list(self._chunks(X, m, seed)))
        return times if self._joint else times[:, :, 0]

    def predict_distribution(
        self, X: Array | None = None, n_samples: int | None = None, seed: int | None = None
    ) -> Ensemble:
        """Predict the distribution of T given x, as an ensemble of draws.

        Parameters
        ----------
        X : array or frame, (n, d), or None
            Covariates.
        n_samples : int, optional
            Draws per subject; ``n_samples`` of the estimator if omitted.
        seed : int, optional
            Seed of the draws; that of the fit if omitted.

        Returns
        -------
        Ensemble
            One ensemble per subject.
        """
        return Ensemble(self.sample(X, n_samples, seed))

    def predict(self, X: Array | None, statistic: str = "median") -> np.ndarray:
        """Predict median or mean event times.

        Parameters
        ----------
        X : array or frame, (n, d), or None
            Covariates.
        statistic : {"median", "mean"}
            A mean depends on times beyond follow-up, where the model extrapolates.

        Returns
        -------
        array, (n,) or (n, k)
            Event times.
        """
        if statistic not in ("median", "mean"):
            raise InvalidInputError(f"statistic must be 'median' or 'mean'; got {statistic!r}.")
        return self._by_coordinate(X, lambda z: (np.median if statistic == "median" else np.mean)(z, axis=1))

    def predict_quantile(self, X: Array | None, levels: Array) -> np.ndarray:
        """Predict quantiles of each event time.

        Parameters
        ----------
        X : array or frame, (n, d), or None
            Covariates.
        levels : float or array, (q,)
            Strictly between 0 and 1.

        Returns
        -------
        array, (n, q), or (n, q, k) for joint outcomes
            Quantiles; without the axis q for a single level.
        """
        levels = np.asarray(levels, dtype=float)
        if levels.ndim > 1 or not ((levels > 0) & (levels < 1)).all():
            raise InvalidInputError(f"levels must be numbers strictly between 0 and 1; got {levels}.")
        many = np.atleast_1d(levels)
        values = self._by_coordinate(
            X, lambda z: np.moveaxis(np.quantile(z, many, axis=1, method="inverted_cdf"), 0, 1)
        )
        return values if levels.ndim else values[:, 0]

    def predict_survival_function(self, X: Array | None, times: Array) -> np.ndarray:
        """Predict survival probabilities P(T_j > t | x).

        Parameters
        ----------
        X : array or frame, (n, d), or None
            Covariates.
        times : array, (q,)
            Times, the same for all subjects.

        Returns
        -------
        array, (n, q), or (n, q, k) for joint outcomes
            Probabilities.
        """
        times = np.asarray(times, dtype=float).reshape(-1)
        if np.isnan(times).any():
            raise InvalidInputError("times must be numbers; got NaN.")
        return self._by_coordinate(X, lambda z: np.stack([(z > t).mean(axis=1) for t in times], axis=1))

    def probability(self, X: Array | None, event: JointEvent) -> np.ndarray:
        """Predict the probability of an event that concerns several times.

        Parameters
        ----------
        X : array or frame
            Covariates.
        event : callable
            Maps times (..., k) to booleans (...): one of :mod:`censcore.distributions.joint_events`
            (``either_before(24.0)``, ``all_before``, ``first_is``, ``in_order``) or a custom one.

        Returns
        -------
        array, (n,)
            Probabilities.
        """
        if not callable(event):
            raise InvalidInputError(
                f"event must be a callable such as either_before(24.0); got {type(event).__name__}."
            )

        def share(z: np.ndarray) -> np.ndarray:
            happened = np.asarray(event(z))
            if happened.shape != z.shape[:2]:
                raise InvalidInputError(
                    f"event, for times of shape {z.shape}: got shape {happened.shape}, expected "
                    f"booleans of shape {z.shape[:2]}."
                )
            return happened.mean(axis=1)

        return np.concatenate([share(z) for z in self._chunks(X, None, None)])

    def _by_coordinate(self, X: Array | None, statistic: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        """A statistic of samples (subjects, m, k) for all subjects; without the last axis if y was (n,)."""
        values = np.concatenate([statistic(z) for z in self._chunks(X, None, None)])
        return values if self._joint else values[..., 0]
