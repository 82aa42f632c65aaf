"""Strata of estimators: the values of one column of X, each with curves of its own."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore._validation import name_subjects
from censcore.estimators.covariates import column_of
from censcore.exceptions import InvalidInputError

__all__ = ["fitted_strata", "strata_of"]


def fitted_strata(X: Any, stratify: str | int | None, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The strata of the subjects of a fit, and which of them each subject is in."""
    if stratify is None:
        return np.array(["all"]), np.zeros(n, dtype=np.intp)
    return _distinct_values(column_of(X, stratify), stratify)


def strata_of(X: Any, stratify: str | int, strata: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The strata that occur in X, as numbers of fitted ones, and which of them each subject is in."""
    values, row_value = _distinct_values(column_of(X, stratify), stratify)
    number = {stratum: i for i, stratum in enumerate(strata.tolist())}
    unknown = [value for value in values.tolist() if value not in number]
    if unknown:
        raise InvalidInputError(
            f"Column {stratify!r}: got values that were not seen in fitting, {unknown[:5]}; "
            f"expected one of {strata[:10].tolist()}."
        )
    return np.array([number[value] for value in values.tolist()]), row_value


def _distinct_values(column: np.ndarray, name: str | int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values of a column, and which of them each subject has."""
    missing = np.array([value is None or value != value for value in column.tolist()])
    if missing.any():
        raise InvalidInputError(
            f"The stratifying column {name!r} is missing in {name_subjects(np.nonzero(missing)[0])}. Leave "
            "these subjects out, or give them a separate value."
        )
    values, number = np.unique(column, return_inverse=True)
    return values, number.reshape(-1)
