"""Predictions of estimators that forecast by draws of the event times."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from censcore._arrays import Array, ArrayLike, Covariates, as_float, to_numpy
from censcore._validation import as_numbers, check_option
from censcore.distributions.joint_events import JointEvent
from censcore.estimators.tails import with_tail
from censcore.exceptions import ExtrapolationWarning, InvalidInputError

MOST_SAMPLES = 10**6  # for every subject


class SamplePredictions:
    """Predictions from samples, computed for a chunk of subjects at a time to save memory.

    All methods take the covariates X, an array or frame (n, d), or None.
    """

    _joint: bool
    _follow_up: np.ndarray
    _causes: Any  # names, of competing risks
    check_fitted: Callable[[], None]

    @abstractmethod
    def _chunks(self, X: Array | None, m: int | None, seed: int | None) -> Iterator[np.ndarray]:
        """Draws (subjects, m, k) of consecutive subjects."""

    def sample(self, X: Covariates | None, m: int | None = None, seed: int | None = None) -> np.ndarray:
        """Draw from the distribution of T given x: m times, ``n_samples`` of the estimator if omitted.

        The seed is that of the fit if omitted. The draws of a subject follow from the seed and its
        covariates, whichever other subjects are asked for.

        Returns
        -------
        array, (n, m, k), or (n, m) if y was (n,)
            The draws.
        """
        times = np.concatenate(list(self._chunks(X, m, seed)))
        return times if self._joint else times[:, :, 0]

    def predict_cumulative_incidence(self, X: Covariates | None, times: ArrayLike) -> np.ndarray:
        """Predict cumulative incidences P(T <= t, cause j | x) of competing risks at times (q,).

        Returns
        -------
        array, (n, m, q)
            One curve per cause.
        """
        self.check_fitted()
        if self._causes is None:
            raise InvalidInputError(
                "predict_cumulative_incidence: got a model of event times, expected one that was fitted to "
                "CompetingRisks(time, cause). predict_survival_function gives P(T > t)."
            )
        t = as_numbers(times, "times")
        shares = [np.stack([(z <= at).mean(axis=1) for at in t], axis=2) for z in self._chunks(X, None, None)]
        return np.concatenate(shares)

    @property
    def follow_up_(self) -> np.ndarray | float:
        """The end of follow-up: the largest time, for each event time, about which the data say anything."""
        self.check_fitted()
        return self._follow_up if self._joint else float(self._follow_up[0])

    def predict(
        self, X: Covariates | None, statistic: str = "median", *, beyond: str = "later"
    ) -> np.ndarray:
        r"""Predict median or mean event times.

        Parameters
        ----------
        X : array or frame, (n, d), or None
            Covariates.
        statistic : {"median", "mean", "restricted mean"}
            A mean is infinite wherever the event may come after follow-up, unless a tail is named. The
            restricted mean is that of :math:`\min(T,\tau)` with the end of follow-up :math:`\tau`.
        beyond : {"later", "exponential", "extrapolate"}
            What is said of times beyond ``follow_up_``. ``"later"``: infinity, to be read as "later than
            ``follow_up_``, or never". ``"exponential"``: a tail with the constant hazard that the subject has
            on average over the second half of follow-up. ``"extrapolate"``: what the model draws.

        Returns
        -------
        array, (n,) or (n, k)
            Event times.
        """
        check_option(statistic, "statistic", ("median", "mean", "restricted mean"))
        if statistic == "restricted mean":
            return self._by_coordinate(X, lambda z: np.minimum(z, self._follow_up).mean(axis=1))
        of = np.median if statistic == "median" else np.mean
        return self._by_coordinate(X, lambda z: of(with_tail(z, self._follow_up, beyond), axis=1))

    def predict_quantile(
        self, X: Covariates | None, levels: ArrayLike, *, beyond: str = "later"
    ) -> np.ndarray:
        """Predict quantiles of each event time.

        Parameters
        ----------
        X, beyond
            As in :meth:`predict`.
        levels : float or array, (q,)
            Strictly between 0 and 1.

        Returns
        -------
        array, (n, q), or (n, q, k) for joint outcomes
            Quantiles; without the axis q for a single level.
        """
        levels = to_numpy(as_float(levels, "levels"))
        if levels.ndim > 1 or not ((levels > 0) & (levels < 1)).all():
            raise InvalidInputError(f"levels must be numbers strictly between 0 and 1; got {levels}.")
        many = np.atleast_1d(levels)

        def quantiles(z: np.ndarray) -> np.ndarray:
            drawn = with_tail(z, self._follow_up, beyond)
            return np.moveaxis(np.quantile(drawn, many, axis=1, method="inverted_cdf"), 0, 1)

        values = self._by_coordinate(X, quantiles)
        return values if levels.ndim else values[:, 0]

    def predict_survival_function(self, X: Covariates | None, times: ArrayLike) -> np.ndarray:
        """Predict survival probabilities P(T_j > t | x) at times (q,), the same for all subjects.

        Times later than ``follow_up_`` bring an ExtrapolationWarning.

        Returns
        -------
        array, (n, q), or (n, q, k) for joint outcomes
            Probabilities.
        """
        times = as_numbers(times, "times")
        self.check_fitted()
        end = float(self._follow_up.min())
        if (times > end).any():
            warnings.warn(
                f"Survival probabilities were asked for at times up to {times.max():g}, and follow-up ends "
                f"at {end:g}. Later ones are extrapolated; all that the data say is P(T > {end:g}).",
                ExtrapolationWarning,
                stacklevel=2,
            )
        return self._by_coordinate(X, lambda z: np.stack([(z > t).mean(axis=1) for t in times], axis=1))

    def probability(self, X: Covariates | None, event: JointEvent) -> np.ndarray:
        """Predict the probability of an event that concerns several times, (n,).

        Parameters
        ----------
        X : array or frame
            Covariates.
        event : callable
            Maps times (..., k) to booleans (...): one of :mod:`censcore.distributions.joint_events`
            (``either_before(24.0)``, ``all_before``, ``first_is``, ``before``, ``in_order``) or a custom one.
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
