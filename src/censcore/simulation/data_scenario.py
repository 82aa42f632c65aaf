"""Data-generating processes that imitate a data set."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore._arrays import as_float
from censcore._validation import as_frame, as_number, check_method
from censcore.distributions import Distribution
from censcore.exceptions import InvalidInputError
from censcore.simulation.scenario import Scenario

__all__ = ["DataScenario"]


@dataclass(frozen=True, eq=False)
class DataScenario(Scenario):
    """Covariates of a data set, drawn with replacement, with T and C from fitted models.

    The fitted models are the truth, so that theorems can be tested with the covariates, event rates and
    follow-up of real studies.

    Parameters
    ----------
    X : array, (n, d)
        Covariates of the data set.
    event_model, censoring_model : estimators
        Fitted; anything with ``predict_distribution(X)``. ``Censoring(CoxRegression())`` gives the second.
    end : float
        Follow-up never exceeds this time, such as the largest one in the data.
    severity : float
        Divides the end of follow-up: above 1 the study ends earlier.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.simulation import DataScenario, WeibullScenario
    >>> study = WeibullScenario("conditional").sample(300, seed=0)   # in place of real data
    >>> T = cs.WeibullRegression().fit(study.X, study.y)
    >>> C = cs.Censoring(cs.CoxRegression()).fit(study.X, study.y)
    >>> scenario = DataScenario(study.X, T, C, end=float(study.y.time.max()))
    >>> data = scenario.sample(1000, seed=1)
    >>> bool(abs(data.y.event.mean() - study.y.event.mean()) < 0.06)
    True
    """

    X: np.ndarray
    event_model: Any
    censoring_model: Any
    end: float = np.inf
    severity: float = 1.0

    def __post_init__(self) -> None:
        X = as_float(as_frame(self.X, name="X").to_numpy() if hasattr(self.X, "columns") else self.X, "X")
        if X.ndim != 2 or not len(X):
            raise InvalidInputError(f"X must be (n, d); got an array of shape {tuple(X.shape)}.")
        object.__setattr__(self, "X", X)
        for name in ("event_model", "censoring_model"):
            check_method(getattr(self, name), name, "predict_distribution", "a fitted estimator")
        object.__setattr__(self, "end", as_number(self.end, "end", above=0, infinite=True))
        object.__setattr__(self, "severity", as_number(self.severity, "severity", above=0))

    def covariates(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """Covariates of subjects of the data set, drawn with replacement."""
        return self.X[rng.integers(len(self.X), size=n)]

    def event_distribution(self, X: np.ndarray) -> Distribution:
        """The fitted distribution of T given x."""
        return self.event_model.predict_distribution(X)

    def censoring_distribution(self, X: np.ndarray) -> Distribution:
        """The fitted distribution of C given x, censored at the end of follow-up."""
        distribution: Distribution = self.censoring_model.predict_distribution(X)
        return distribution if np.isinf(self.end) else distribution.censor_at(self.end / self.severity)
