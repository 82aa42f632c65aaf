"""Checks of single numbers, counts and seeds."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore._validation.kinds import shown
from censcore.exceptions import InvalidInputError, InvalidTypeError

__all__ = ["as_confidence", "as_count", "as_generator", "as_index", "as_number", "as_seed"]


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
    """One real number inside its bounds, as a float.

    Parameters
    ----------
    value : number
        A number of Python, NumPy or torch, or an array of one.
    name : str
        What it is called.
    above, below : float, optional
        Bounds that it must not reach.
    least, most : float, optional
        Bounds that it may reach.
    infinite : bool
        Admit infinity.

    Examples
    --------
    >>> as_number(np.float32(2.0), "horizon", above=0)
    2.0
    >>> as_number(-1, "horizon", above=0)
    Traceback (most recent call last):
    ...
    censcore.exceptions.InvalidInputError: horizon must be a finite number above 0; got -1.
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
    if hasattr(value, "shape") and hasattr(value, "dtype") and tuple(value.shape) in ((), (1,)):
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
    """A whole number of at least ``least``.

    >>> as_count(10, "bins")
    10
    >>> as_count(2.5, "bins")
    Traceback (most recent call last):
    ...
    censcore.exceptions.InvalidInputError: bins must be a whole number of at least 1; got 2.5.
    """
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
    """A whole number, which may be negative: a place counted from the end.

    >>> as_index(np.int64(-1), "j")
    -1
    """
    return value if type(value) is int else as_count(value, name, least=-(2**63), most=2**63)


def as_confidence(value: Any, name: str = "confidence") -> float:
    """The level of an interval, strictly between 0 and 1.

    >>> as_confidence(95)
    Traceback (most recent call last):
    ...
    censcore.exceptions.InvalidInputError: confidence: got 95, expected a number between 0 and 1, such as
    0.95.
    """
    try:
        return as_number(value, name, above=0, below=1)
    except (InvalidInputError, InvalidTypeError) as error:
        raise InvalidInputError(
            f"{name}: got {shown(value)}, expected a number between 0 and 1, such as 0.95."
        ) from error


def as_generator(seed: Any, name: str = "seed") -> np.random.Generator:
    """The random numbers of a seed, or the generator itself.

    >>> as_generator(1e300)
    Traceback (most recent call last):
    ...
    censcore.exceptions.InvalidInputError: seed must be a whole number of at least 0, a list of them, a
    numpy.random.Generator or None; got 1e+300.
    """
    try:
        return np.random.default_rng(seed)
    except (TypeError, ValueError, RecursionError, OverflowError) as error:
        raise InvalidInputError(
            f"{name} must be a whole number of at least 0, a list of them, a numpy.random.Generator or None; "
            f"got {shown(seed)}."
        ) from error


def as_seed(seed: Any, name: str = "seed") -> int:
    """A seed that is one whole number of at least 0, where random numbers are drawn more than once from it.

    >>> as_seed(7)
    7
    """
    return as_count(seed, name, least=0)
