"""Checks shared by outcomes, distributions and scores: each error says what was expected and what was got."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore._arrays import Array, possibly, to_numpy
from censcore.exceptions import InvalidInputError, InvalidTypeError

__all__ = [
    "check_finite",
    "check_instance",
    "check_levels",
    "check_not_nan",
    "check_positive",
    "check_probabilities",
    "name_subjects",
]


def name_subjects(rows: Any, limit: int = 5) -> str:
    """Say which subjects, by their places from 0, without listing thousands of them.

    Examples
    --------
    >>> from censcore._validation import name_subjects
    >>> name_subjects([3])
    '1 subject (3)'
    >>> name_subjects(range(12))
    '12 subjects (0, 1, 2, 3, 4, ...)'
    """
    rows = [int(row) for row in rows]
    shown = ", ".join(str(row) for row in rows[:limit]) + (", ..." if len(rows) > limit else "")
    return f"{len(rows)} subject{'s' if len(rows) != 1 else ''} ({shown})"


def _check(good: Array, values: Array, name: str, expected: str) -> None:
    if possibly(good.all()):
        return
    where = np.argwhere(~to_numpy(good))
    example = to_numpy(values)[tuple(where[0])]
    rows = np.unique(where[:, 0]) if where.shape[1] else [0]
    raise InvalidInputError(f"{name} must be {expected}; got {example}, in {name_subjects(rows)}.")


def check_instance(value: Any, name: str) -> None:
    """Check that something is an object and not its class.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore._validation import check_instance
    >>> check_instance(cs.KaplanMeier, "censoring")
    Traceback (most recent call last):
    ...
    censcore.exceptions.InvalidTypeError: censoring: got the class KaplanMeier, expected an instance. Write
    KaplanMeier(...), with parentheses.
    """
    if isinstance(value, type):
        raise InvalidTypeError(
            f"{name}: got the class {value.__name__}, expected an instance. Write {value.__name__}(...), "
            "with parentheses."
        )


def check_not_nan(values: Array, name: str) -> None:
    """Check that no value is NaN."""
    _check(values == values, values, name, "free of NaN")


def check_finite(values: Array, name: str) -> None:
    """Check that all values are finite."""
    _check(abs(values) < np.inf, values, name, "finite")


def check_positive(values: Array, name: str, *, zero: bool = False, infinite: bool = False) -> None:
    """Check that all values are positive (or also zero) and, unless allowed, finite; none may be NaN."""
    good = values >= 0 if zero else values > 0
    if not infinite:
        good = good & (values < np.inf)
    expected = ("non-negative" if zero else "positive") + ("" if infinite else " and finite")
    _check(good, values, name, expected)


def check_probabilities(values: Array, name: str) -> None:
    """Check that all values lie in [0, 1]."""
    _check((values >= 0) & (values <= 1), values, name, "between 0 and 1")


def check_levels(values: Array, name: str = "levels") -> None:
    """Check that all values lie in the open interval (0, 1)."""
    _check((values > 0) & (values < 1), values, name, "strictly between 0 and 1")
