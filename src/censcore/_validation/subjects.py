"""Checks of what belongs to subjects: their number, weights and groups."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore._arrays import as_float, to_numpy
from censcore.exceptions import InvalidInputError, InvalidTypeError

__all__ = ["as_labels", "as_weights", "name_subjects"]


def name_subjects(rows: Any, limit: int = 5) -> str:
    """Say which subjects, by their places from 0, without listing thousands of them.

    >>> name_subjects([3])
    '1 subject (3)'
    >>> name_subjects(range(12))
    '12 subjects (0, 1, 2, 3, 4, ...)'
    """
    rows = [int(row) for row in rows]
    shown = ", ".join(str(row) for row in rows[:limit]) + (", ..." if len(rows) > limit else "")
    return f"{len(rows)} subject{'s' if len(rows) != 1 else ''} ({shown})"


def as_weights(weights: Any, n: int, name: str = "sample_weight") -> np.ndarray:
    """Weights of n subjects, (n,), in double precision: non-negative, finite and not all zero.

    >>> as_weights([1, 3], 2)
    array([1., 3.])
    """
    values = to_numpy(as_float(weights, name)).astype(np.float64)
    if values.shape != (n,):
        raise InvalidInputError(f"{name} must have one weight per subject, ({n},); got {values.shape}.")
    bad = np.nonzero(~((values >= 0) & (values < np.inf)))[0]
    if bad.size:
        raise InvalidInputError(
            f"{name} must be non-negative and finite; got {values[bad[0]]}, in {name_subjects(bad)}."
        )
    if not values.any():
        raise InvalidInputError(f"{name}: got zero for every subject, expected at least one positive weight.")
    with np.errstate(over="ignore"):
        total = values.sum()
    if total == np.inf:
        raise InvalidInputError(
            f"{name}: the sum of the weights is not finite; got weights up to {values.max():g}. Divide them "
            "by their largest."
        )
    return values


def as_labels(labels: Any, n: int, name: str = "groups", of: str = "subject") -> np.ndarray:
    """One label per subject, (n,), of any kind that can be ordered.

    >>> as_labels(["a", "b", "a"], 3)
    array(['a', 'b', 'a'], dtype='<U1')
    """
    values = to_numpy(labels, name)
    if values.shape != (n,):
        raise InvalidInputError(f"{name} must have one label per {of}, ({n},); got {values.shape}.")
    bad = np.nonzero(_is_missing(values))[0]
    if bad.size:
        raise InvalidInputError(f"{name}: got {values[bad[0]]}, expected a label, in {name_subjects(bad)}.")
    if values.dtype.kind == "O":
        try:
            np.unique(values)
        except TypeError as error:
            raise InvalidTypeError(
                f"{name}: got labels that cannot be compared with each other ({error}). Pass numbers or text."
            ) from error
    return values


def _is_missing(labels: np.ndarray) -> np.ndarray:
    if labels.dtype.kind != "O":
        return labels != labels  # NaN, and dates that are none
    return np.array([label is None or _is_nothing(label) for label in labels.tolist()])


def _is_nothing(label: Any) -> bool:
    """NaN, and what pandas has in the place of it."""
    return type(label).__name__ in ("NAType", "NaTType") or (isinstance(label, float) and label != label)
