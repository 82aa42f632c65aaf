"""Causes of events: their numbers and their names."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from censcore._arrays import Array, as_float, convert, to_numpy
from censcore._validation import MOST_CAUSES, as_cause_codes, as_count, as_names
from censcore.exceptions import InvalidInputError, InvalidTypeError
from censcore.plain_text import some_of

__all__ = ["as_cause_names", "as_causes", "cause_number"]


def cause_number(cause: int | str, names: Sequence[str]) -> int:
    """The number, from 1 to m, of a cause that is given by number or name."""
    if isinstance(cause, str):
        if cause not in names:
            raise InvalidInputError(f"There is no cause called {cause!r}; there are {some_of(names)}.")
        return list(names).index(cause) + 1
    if isinstance(cause, bool) or not isinstance(cause, int | np.integer) or not 1 <= cause <= len(names):
        raise InvalidInputError(
            f"A cause is a number from 1 to {len(names)} or one of the names {some_of(names)}; got {cause!r}."
        )
    return int(cause)


def as_causes(cause: Array, time: Array) -> Array:
    """Whole numbers in the library of ``time``, one for each subject."""
    given = _numbers(cause)
    if given.shape != tuple(time.shape) or given.ndim != 1:
        raise InvalidInputError(
            f"time and cause must both have shape (n,); got {tuple(time.shape)} and {given.shape}."
        )
    codes = as_cause_codes(given, "cause", "censored")
    return convert(codes, time)


def _numbers(cause: Any) -> np.ndarray:
    given = to_numpy(cause, "cause")
    if given.dtype.kind == "O" and not any(isinstance(value, str) for value in given.ravel()):
        given = as_float(given, "cause")
    if given.dtype.kind not in "biuf":
        raise InvalidTypeError(
            f"cause must hold whole numbers, 0 for censored and 1 to m; got an array of dtype {given.dtype}. "
            "Translate labels: cause = [['censored', 'relapse', 'death'].index(label) for label in labels]."
        )
    return given


def as_cause_names(names: Sequence[str] | None, n_causes: int | None, largest: int) -> tuple[str, ...]:
    """Names of the causes 1 to m, which are at least as many as the data have; ``largest`` is their last."""
    if n_causes is not None:
        n_causes = as_count(n_causes, "n_causes", most=MOST_CAUSES)
    if names is not None:
        names = as_names(names, n_causes)
    if largest == 0 and n_causes is None and names is None:
        raise InvalidInputError(
            "cause is 0 for every subject: all are censored, and no cause was seen. Expected a cause from 1 "
            "to m where an event was seen; where there was none, say n_causes=m."
        )
    m = n_causes if n_causes is not None else len(names) if names is not None else largest
    found = tuple(names) if names is not None else tuple(f"cause {j + 1}" for j in range(m))
    if largest > m:
        raise InvalidInputError(
            f"The data have a cause {largest}; expected causes 1 to {m} ({some_of(found)}) and 0 for "
            "censored."
        )
    return found
