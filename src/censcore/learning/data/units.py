"""Units of training data: means and spreads of covariates, sums of times, read in blocks."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from censcore.exceptions import InvalidInputError
from censcore.learning.data.standardised import blocks


def means_and_spreads(X: np.ndarray, rows: np.ndarray | slice = slice(None)) -> tuple[np.ndarray, np.ndarray]:
    """Return means and standard deviations of the columns of X (n, d), over all subjects or some.

    >>> means_and_spreads(np.array([[1.0], [3.0], [8.0]]), np.array([0, 1]))
    (array([2.]), array([1.]))
    """
    X, chosen = (X[rows], None) if isinstance(rows, slice) else (X, rows)  # a slice copies nothing
    n, d = len(X if chosen is None else chosen), X.shape[1]

    def mean_of(term: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        parts = (X[block if chosen is None else chosen[block]] for block in blocks(n, d))
        return sum((term(part.astype(np.float64)).sum(axis=0) for part in parts), np.zeros(d)) / n

    mean = mean_of(lambda part: part)
    return mean, np.sqrt(mean_of(lambda part: (part - mean) ** 2))


def time_sums(time: np.ndarray) -> np.ndarray:
    """Number of positive times, their sum, and the sums of log t and log log(1 + t), for each column, (4, k).

    >>> time_sums(np.array([[1.0], [0.0], [3.0]])).round(3).ravel()
    array([ 2.   ,  4.   ,  1.099, -0.04 ])
    """
    total = np.zeros((4, time.shape[1]))
    for rows in blocks(*time.shape):
        t = time[rows].astype(np.float64, copy=False)
        positive = t > 0
        t = np.where(positive, t, 1.0)
        parts = [np.ones_like(t), t, np.log(t), np.log(np.log1p(t))]
        total += np.stack([np.where(positive, part, 0.0).sum(axis=0) for part in parts])
    return total


def mean_time(sums: np.ndarray) -> float:
    """Return the mean of all positive times, from :func:`time_sums`."""
    count, total = sums[:2].sum(axis=1)
    if not count:
        raise InvalidInputError("Times: got zeros only, expected positive times.")
    return float(total / count)
