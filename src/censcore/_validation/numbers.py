"""Checks of numbers: single ones, counts and seeds, arrays, and the weights and labels of subjects."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from censcore._arrays import Array, as_float, convert, is_torch, possibly, to_numpy
from censcore._validation.kinds import shown
from censcore.exceptions import InvalidInputError, InvalidTypeError

__all__ = [
    "MOST_CAUSES", "as_cause_codes", "as_codes", "as_confidence", "as_coordinate", "as_count", "as_events",
    "as_generator", "as_index", "as_labels", "as_number", "as_numbers", "as_seed", "as_weights",
    "check_between", "check_finite", "check_levels", "check_not_nan", "check_positive",
    "check_probabilities", "name_subjects",
]  # fmt: skip

#: What Python and NumPy call integers, and callers do not.
_NO_NUMBERS = (bool, np.timedelta64)


def as_number(
    value: Any,
    name: str,
    *,
    above: float | None = None,
    least: float | None = None,
    below: float | None = None,
    most: float | None = None,
    infinite: bool = False,
) -> float:
    """One real number of Python, NumPy or torch, or an array of one, inside its bounds, as a float.

    It must not reach the bounds ``above`` and ``below``, and may reach ``least`` and ``most``.
    """
    number = value if type(value) is float else _as_float(value, name)
    good = (
        number == number
        and (above is None or number > above)
        and (least is None or number >= least)
        and (below is None or number < below)
        and (most is None or number <= most)
        and (infinite or not math.isinf(number))
    )
    if not good:
        raise InvalidInputError(
            f"{name} must be {_described(above, least, below, most, infinite)}; got {shown(value)}."
        )
    return number


def _as_float(value: Any, name: str) -> float:
    if isinstance(value, int | float | np.integer | np.floating) and not isinstance(value, _NO_NUMBERS):
        try:
            return float(value)
        except OverflowError as error:
            raise InvalidInputError(
                f"{name}: got an integer that is too large for a float. Use another unit."
            ) from error
    if hasattr(value, "dtype") and getattr(value, "shape", None) in ((), (1,)):
        array = to_numpy(value).reshape(-1)
        if array.dtype.kind in "fiu":
            return float(array[0])
    raise InvalidTypeError(f"{name} must be a number; got {shown(value)}.")


def _described(above: Any, least: Any, below: Any, most: Any, infinite: bool) -> str:
    bounds = {"above": above, "of at least": least, "below": below, "of at most": most}
    limits = " and ".join(f"{word} {bound:g}" for word, bound in bounds.items() if bound is not None)
    kind = "a number" if infinite else "a finite number"
    return f"{kind} {limits}".rstrip()


def as_count(value: Any, name: str, *, least: int = 1, most: int | None = None) -> int:
    """A whole number of at least ``least``."""
    count: int | None = None
    if isinstance(value, int | np.integer) and not isinstance(value, _NO_NUMBERS):
        count = int(value)
    elif isinstance(value, float | np.floating):
        count = int(value) if float(value).is_integer() else None
    else:
        raise InvalidTypeError(f"{name} must be a whole number; got {shown(value)}.")
    if count is None or count < least or (most is not None and count > most):
        limits = f"of at least {least}" if most is None else f"from {least} to {most}"
        raise InvalidInputError(f"{name} must be a whole number {limits}; got {shown(value)}.")
    return count


def as_index(value: Any, name: str) -> int:
    """A whole number, which may be negative: a place counted from the end."""
    return value if type(value) is int else as_count(value, name, least=-(2**63), most=2**63)


def as_coordinate(j: Any, k: int, whose: str) -> int:
    """One of k event times, from 0; negative ones are counted from the end."""
    place = as_index(j, "j")
    if not -k <= place < k:
        raise InvalidInputError(f"{whose} has {k} event times; number {j} was asked for.")
    return place % k


def as_confidence(value: Any, name: str = "confidence") -> float:
    """The level of an interval, strictly between 0 and 1."""
    try:
        return as_number(value, name, above=0, below=1)
    except (InvalidInputError, InvalidTypeError) as error:
        raise InvalidInputError(
            f"{name}: got {shown(value)}, expected a number between 0 and 1, such as 0.95."
        ) from error


def as_generator(seed: Any, name: str = "seed") -> np.random.Generator:
    """The random numbers of a seed, or the generator itself."""
    whole = isinstance(seed, float) and seed.is_integer() and abs(seed) < 2**53  # R has no other numbers
    try:
        return np.random.default_rng(int(seed) if whole else seed)
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise InvalidInputError(
            f"{name} must be a whole number of at least 0, a list of them, a numpy.random.Generator or None; "
            f"got {shown(seed)}."
        ) from error


def as_seed(seed: Any, name: str = "seed") -> int:
    """A seed that is one whole number of at least 0: random numbers are drawn more than once from it."""
    return as_count(seed, name, least=0)


# ---- arrays --------------------------------------------------------------------------------------------


def _check(good: Array, values: Array, name: str, expected: str, advice: str = "") -> None:
    held = good.all()
    if held if type(held) is np.bool_ else possibly(held):
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
    if good.all() is np.True_:
        return
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
    """Whole numbers as an array of integers; others are an error."""
    codes = to_numpy(as_float(values, name))
    _check((codes == np.round(codes)) & (np.abs(codes) < 2**53), codes, name, "whole numbers")
    return codes.astype(np.intp)


#: Kinds of event: many more than anybody distinguishes, few enough to be named.
MOST_CAUSES = 10**4


def as_cause_codes(codes: np.ndarray, name: str, zero: str) -> np.ndarray:
    """Causes as integers, 0 for ``zero`` and 1 to m; every one of these has a place in a forecast."""
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
    """Event indicators as booleans beside times (n, k): numbers that are zero for no event."""
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


# ---- subjects ------------------------------------------------------------------------------------------


def name_subjects(rows: Any, limit: int = 5) -> str:
    """Say which subjects, by their places from 0, without listing thousands of them."""
    rows = [int(row) for row in rows]
    shown = ", ".join(str(row) for row in rows[:limit]) + (", ..." if len(rows) > limit else "")
    return f"{len(rows)} subject{'s' if len(rows) != 1 else ''} ({shown})"


def as_weights(weights: Any, n: int, name: str = "sample_weight") -> np.ndarray:
    """Weights of n subjects, (n,), in double precision: non-negative, finite and not all zero."""
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


def as_labels(
    labels: Any, n: int, name: str = "groups", of: str = "subject", missing: bool = False
) -> np.ndarray:
    """One label per subject, (n,), of any kind that can be ordered; of any kind where some may be missing."""
    values = to_numpy(labels, name)
    if values.shape != (n,):
        raise InvalidInputError(f"{name} must have one label per {of}, ({n},); got {values.shape}.")
    nested = [x for x in values.tolist() if isinstance(x, list | dict | set | np.ndarray)]
    if values.dtype.kind == "O" and nested:
        raise InvalidTypeError(f"{name}: got {type(nested[0]).__name__}, expected one label for each {of}.")
    if missing:
        return values
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
