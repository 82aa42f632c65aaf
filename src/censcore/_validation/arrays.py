"""Checks of the numbers in an array."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore._arrays import Array, as_float, convert, is_torch, possibly, to_numpy
from censcore._validation.subjects import name_subjects
from censcore.exceptions import InvalidInputError

__all__ = [
    "MOST_CAUSES",
    "as_cause_codes",
    "as_codes",
    "as_events",
    "as_numbers",
    "check_between",
    "check_finite",
    "check_levels",
    "check_not_nan",
    "check_positive",
    "check_probabilities",
]


def _check(good: Array, values: Array, name: str, expected: str, advice: str = "") -> None:
    if possibly(good.all()):
        return
    where = np.argwhere(~to_numpy(good))
    example = to_numpy(values)[tuple(where[0])]
    rows = np.unique(where[:, 0]) if where.shape[1] else [0]
    raise InvalidInputError(f"{name} must be {expected}; got {example}, in {name_subjects(rows)}.{advice}")


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


def check_between(values: Array, name: str, low: float, high: float) -> None:
    """Check that all values lie in [low, high], outside of which a formula has no digits left."""
    if values.dtype in (np.float32, np.float16):  # which have no such numbers, and would warn of them
        limits = np.finfo(values.dtype)
        low, high = max(low, float(limits.min)), min(high, float(limits.max))
        low = low if low <= 0 else max(low, float(limits.tiny))
    if possibly(((values >= low) & (values <= high)).all()):
        return
    kind = "finite" if low < 0 else "positive and finite" if low > 0 else "non-negative and finite"
    expected = f"{kind}, between {low:g} and {high:g}, where the formulas have digits"
    _check((values >= low) & (values <= high), values, name, expected, f" {_OUT_OF_RANGE}")


_OUT_OF_RANGE = "Check the unit of time, and the covariates that it was computed from."


def check_probabilities(values: Array, name: str) -> None:
    """Check that all values lie in [0, 1]."""
    _check((values >= 0) & (values <= 1), values, name, "between 0 and 1")


def as_codes(values: Any, name: str) -> np.ndarray:
    """Whole numbers as an array of integers; others are an error.

    >>> as_codes([0.0, 2.0], "group")
    array([0, 2])
    """
    codes = to_numpy(as_float(values, name))
    _check((codes == np.round(codes)) & (np.abs(codes) < 2**53), codes, name, "whole numbers")
    return codes.astype(np.intp)


#: Kinds of event: many more than anybody distinguishes, few enough to be named.
MOST_CAUSES = 10**4


def as_cause_codes(codes: np.ndarray, name: str, zero: str) -> np.ndarray:
    """Causes as integers, 0 for ``zero`` and 1 to m; every one of these has a place in a forecast.

    >>> as_cause_codes(np.array([0.0, 2.0]), "cause", "censored")
    array([0, 2])
    """
    whole = (codes >= 0) & (codes < np.inf) & (codes == np.round(codes))
    expected = f"whole numbers, 0 for {zero} and 1 to m for the causes"
    _check(whole, codes, name, expected, " Were times and causes swapped?")
    if codes.size and codes.max() > MOST_CAUSES:
        raise InvalidInputError(
            f"{name}: got the code {codes.max():.17g}, expected numbers from 1 to at most {MOST_CAUSES}. A "
            "forecast has a place for every cause from 1 to m. Number those that occur: found, cause = "
            f"numpy.unique(codes, return_inverse=True), where 0 stays the code for {zero}."
        )
    return codes.astype(np.int64)


def as_events(event: Any, time: Array) -> Array:
    """Event indicators as booleans beside times (n, k): numbers that are zero for no event.

    >>> as_events([1, 0], np.array([[1.0], [2.0]]))
    array([[ True],
           [False]])
    """
    values = as_float(event, "event", like=time)
    check_not_nan(values, "event")
    if is_torch(time) != is_torch(values):
        values = convert(values, time)
    if values.ndim < 2 and time.shape[1] == 1:
        values = values.reshape(-1, 1)
    serves_all = (time.shape[1] == 1 and values.shape[0] == 1) or (time.shape[0] == 1 and values.ndim == 2)
    if (tuple(values.shape) != tuple(time.shape) and not serves_all) or 0 in values.shape:
        raise InvalidInputError(
            f"event must have the shape of time, {tuple(time.shape)}; got {tuple(values.shape)}."
        )
    return values != 0


def check_levels(values: Array, name: str = "levels") -> None:
    """Check that all values lie in the open interval (0, 1)."""
    _check((values > 0) & (values < 1), values, name, "strictly between 0 and 1")


def as_numbers(values: Any, name: str) -> np.ndarray:
    """One or several numbers as an array, (q,)."""
    numbers = np.atleast_1d(to_numpy(as_float(values, name)).astype(np.float64))
    if numbers.ndim != 1 or not numbers.size:
        raise InvalidInputError(
            f"{name}: got shape {numbers.shape}, expected one or several numbers, such as [1.0, 2.0]."
        )
    bad = np.nonzero(np.isnan(numbers))[0]
    if bad.size:
        raise InvalidInputError(f"{name}: got NaN in entry {bad[0]}, expected numbers. Leave it out.")
    return numbers
