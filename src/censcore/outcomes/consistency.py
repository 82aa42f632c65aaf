"""Checks that the parts of a right-censored outcome agree with each other."""

from __future__ import annotations

import numpy as np

from censcore._arrays import Array, namespace, to_numpy
from censcore._validation import check_positive, name_subjects
from censcore.exceptions import InvalidInputError

__all__ = ["check_censoring_time", "check_entry", "check_times"]


def check_times(time: Array, event: Array) -> None:
    """Check observed times Y, (n,) or (n, k), and that there is an event indicator for each."""
    if time.ndim not in (1, 2):
        raise InvalidInputError(
            f"time must have shape (n,) or (n, k); got an array of shape {tuple(time.shape)}."
        )
    if tuple(event.shape) != tuple(time.shape):
        raise InvalidInputError(
            f"event must have the shape of time, {tuple(time.shape)}; got {tuple(event.shape)}."
        )
    if 0 in time.shape:
        raise InvalidInputError(
            f"An outcome needs at least one subject and coordinate; got shape {tuple(time.shape)}."
        )
    if time.ndim == 2 and bool(namespace(time).isnan(time).any()):
        bad = np.unique(np.nonzero(np.isnan(to_numpy(time)))[0])
        raise InvalidInputError(
            f"time must be non-negative and finite; got NaN in {name_subjects(bad)}. A time that does "
            "not count gets any number, such as 0 with event 1, and False in the mask of the function "
            "that uses it (fit(..., mask=mask), energy_score(..., mask=mask))."
        )
    check_positive(time, "time", zero=True)


def check_censoring_time(censoring_time: Array, time: Array, event: Array) -> None:
    """Check that Y = min(T, C): no time exceeds C, and a censored one equals it."""
    check_positive(censoring_time, "censoring_time", zero=True, infinite=True)
    xp, c = namespace(time), censoring_time
    c = c[:, None] if c.ndim < time.ndim else c
    late = to_numpy(time > c)
    if late.any():
        rows = name_subjects(np.unique(np.nonzero(late)[0]))
        raise InvalidInputError(
            f"time must not exceed censoring_time; it does in {rows}. Y = min(T, C), so cut the times at C."
        )
    unequal = to_numpy(~event & (time != c) & xp.isfinite(time))
    if unequal.any():
        raise InvalidInputError(
            "A censored time must equal its censoring_time; it is smaller in "
            f"{name_subjects(np.unique(np.nonzero(unequal)[0]))}. Either it is an event or C is wrong."
        )


def check_entry(entry: Array, time: Array) -> None:
    """Check that every subject enters before the first of its times."""
    check_positive(entry, "entry", zero=True)
    earliest = time if time.ndim == 1 else namespace(time).min(time, axis=1)
    late = np.nonzero(to_numpy((entry >= earliest) & (entry > 0)))[0]
    if late.size:
        i = int(late[0])
        raise InvalidInputError(
            f"entry must be below time; it is not in {name_subjects(late)} (got entry "
            f"{float(entry[i]):g} and time {float(earliest[i]):g}). A subject is in the data only "
            "if its event comes after its entry: leave those out whose follow-up ends at or before it."
        )
