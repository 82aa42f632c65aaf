"""What every estimator of event times is: ``fit(X, y)`` and ``predict_distribution(X)``."""

from __future__ import annotations

from abc import ABC, abstractmethod
from typing import Any, Self

from sklearn.base import BaseEstimator
from sklearn.exceptions import NotFittedError as SklearnNotFittedError

from censcore.distributions import Distribution
from censcore.exceptions import InvalidInputError, NotFittedError
from censcore.outcomes import RightCensored, as_outcome

__all__ = ["NotFitted", "SurvivalEstimator", "one_event_time"]


class NotFitted(NotFittedError, SklearnNotFittedError):
    """The library's error, and the one that scikit-learn's tools look for."""


class SurvivalEstimator(BaseEstimator, ABC):
    """An estimator of the distribution of an event time given covariates.

    A subclass keeps the arguments of its ``__init__`` unchanged under their own names, as scikit-learn
    asks, and ends what it learns in an underscore; ``get_params``, ``set_params`` and
    ``sklearn.base.clone`` then work. The same estimator serves events and, through
    :class:`~censcore.Censoring`, censoring times.
    """

    @property
    def represents_atoms(self) -> bool:
        """Whether predictions are consistent where the time has atoms, as Kaplan-Meier curves are.

        Atoms are common in censoring times: an administrative end of follow-up, closing dates, a grid of
        visits. False unless a class says otherwise, for instance by ``represents_atoms = True`` in its body;
        :class:`~censcore.Censoring` then treats a common end itself and raises an error for other atoms.
        """
        return False

    @abstractmethod
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Learn from covariates X (n rows, or None) and an outcome y."""

    @abstractmethod
    def predict_distribution(self, X: Any = None) -> Distribution:
        """The distribution of the event time of each row of X; one distribution for all rows where X plays no part."""

    def _check_fitted(self) -> None:
        if not any(name.endswith("_") and not name.startswith("_") for name in vars(self)):
            raise NotFitted(f"This {type(self).__name__} is not fitted yet. Call fit(X, y) first.")


def one_event_time(y: Any, estimator: str) -> RightCensored:
    """``y`` as an outcome of one event time per row."""
    y = as_outcome(y)
    if y.time.ndim > 1:
        raise InvalidInputError(
            f"{estimator} estimates the distribution of one event time; the outcome has {y.k} per row. Fit it to "
            "y.marginal(j) for each j, or to y.first()."
        )
    return y
