"""Strata of a Cox regression as stretches of one clock: subjects are at risk within their stratum alone."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore.estimators.covariates import column_of

__all__ = ["StratifiedTimes", "without_column"]


@dataclass(frozen=True, eq=False)
class StratifiedTimes:
    """Times by their rank, each stratum on a stretch of its own, which subjects enter at its beginning.

    So the risk sets of delayed entry are those of the strata, exactly.

    Parameters
    ----------
    values : array, (m,)
        The distinct times and entries, ascending.

    Examples
    --------
    >>> clock = StratifiedTimes(np.array([1.0, 2.0, 3.0]))
    >>> clock.codes(np.array([1.0, 3.0]), np.array([0, 1]))
    array([1., 7.])
    >>> clock.back(np.array([1.0, 7.0]))
    (array([0, 1]), array([1., 3.]))
    """

    values: np.ndarray

    @classmethod
    def of(cls, time: np.ndarray, entry: np.ndarray | None) -> StratifiedTimes:
        """The clock of some subjects."""
        return cls(np.unique(time if entry is None else np.concatenate([time, entry])))

    @property
    def stretch(self) -> int:
        """The length of a stretch."""
        return len(self.values) + 1

    def codes(self, time: np.ndarray | None, stratum: np.ndarray) -> np.ndarray:
        """Times of subjects on the clock; without any, the beginning of their stretches."""
        rank = 0 if time is None else 1 + np.searchsorted(self.values, time)
        return (rank + self.stretch * stratum).astype(np.float64)

    def back(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The strata and times that codes stand for."""
        whole = codes.astype(np.intp)
        return whole // self.stretch, self.values[whole % self.stretch - 1]


def without_column(X: Any, column: str | int) -> Any:
    """X without one of its columns; None where that was the only one."""
    column_of(X, column)  # an error where there is none
    if hasattr(X, "columns"):
        name = list(X.columns)[column] if isinstance(column, int) else column
        rest = X[[other for other in X.columns if other != name]]
        return rest if len(rest.columns) else None
    matrix = np.delete(np.asarray(X), int(column), axis=1)
    return matrix if matrix.shape[1] else None
