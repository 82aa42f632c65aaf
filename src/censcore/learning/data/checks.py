"""Checks of training data: covariates in single precision, masks, ties and the order of event times."""

from __future__ import annotations

import warnings
from itertools import combinations
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore._validation import name_subjects
from censcore.exceptions import CensoringWarning, InvalidInputError
from censcore.outcomes import RightCensored
from censcore.outcomes.ended_follow_up import ended_follow_up, found_in_words
from censcore.plain_text import one_line

# Times in days or months coincide by chance in about one subject in a hundred.
_BY_CHANCE = 0.02


def check_mask(mask: Any, y: Any, *, needed: bool = False) -> np.ndarray | None:
    """A mask as booleans of shape (n, k), of which some must be True if that is asked for.

    >>> check_mask([[True, False]], RightCensored([[1.0, 3.0]], [[1, 0]]))
    array([[ True, False]])
    """
    if mask is None:
        return None
    if not isinstance(y, RightCensored):
        raise InvalidInputError(f"mask: not available for {type(y).__name__}; leave it out.")
    mask = to_numpy(mask, "mask")
    mask = mask.reshape(-1, 1) if mask.ndim == 1 and y.k == 1 else mask
    if mask.dtype != bool or mask.shape != (len(y), y.k):
        raise InvalidInputError(
            f"mask: got {mask.dtype} of shape {mask.shape}, expected booleans of shape {(len(y), y.k)}, True "
            "where a time counts."
        )
    if needed and not mask.any():
        raise InvalidInputError("mask: got False everywhere, expected an event time that counts.")
    return mask


def as_past(y: RightCensored, mask: np.ndarray | None) -> RightCensored:
    """The outcome with an event at time zero, which says nothing of T or C, wherever the mask is False.

    >>> y = as_past(RightCensored([[2.0, 3.0]], [[1, 0]]), np.array([[True, False]]))
    >>> y.time, y.event
    (array([[2., 0.]]), array([[ True,  True]]))
    """
    if mask is None:
        return y
    counts = mask.reshape(y.shape)
    known = None if y.censoring_time is None else to_numpy(y.censoring_time)
    return RightCensored(np.where(counts, to_numpy(y.time), 0.0), to_numpy(y.event) | ~counts, known)


def leave_out_times(y: RightCensored, mask: Any) -> RightCensored:
    """The outcome with masked event times censored at zero, which certainly exceed it: their factor is one.

    >>> y = leave_out_times(RightCensored([[2.0, 3.0]], [[True, True]]), [[True, False]])
    >>> y.time, y.event
    (array([[2., 0.]]), array([[ True, False]]))
    """
    if (mask := check_mask(mask, y)) is None:
        return y
    past = as_past(y, mask)
    return RightCensored(past.time, past.event & mask.reshape(y.shape))


def check_single_precision(X: Any, fitting: bool) -> None:
    """Check that covariates keep their digits in single precision, in which networks are trained."""
    limits, framed = np.finfo(np.float32), hasattr(X, "iloc")
    if not (framed or isinstance(X, np.ndarray)) or len(X.shape) != 2:
        return
    for j in range(X.shape[1]):
        column = np.asarray(X.iloc[:, j] if framed else X[:, j])
        if column.dtype.kind not in "fiu" or column.dtype.itemsize < 8 or not len(column):
            continue
        name = one_line(str(X.columns[j])) if framed else f"column {j}"
        size = np.abs(column)
        with np.errstate(invalid="ignore"):
            far = np.nonzero((size > limits.max) & (size < np.inf))[0]
            spread = float(np.ptp(column)) if fitting else 0.0
        if far.size:
            raise InvalidInputError(
                f"X: got {column[far[0]]:g} in {name} of {name_subjects(far)}, expected at most "
                f"{limits.max:.0e} in size, the largest number of single precision. Check its unit."
            )
        if 0 < spread < 100 * limits.eps * size.max():
            raise InvalidInputError(
                f"X: got values from {column.min():.9g} to {column.max():.9g} in {name}, which single "
                "precision, in which networks are trained, cannot tell apart. Subtract their mean first."
            )


def warn_of_ties(y: RightCensored, mask: np.ndarray | None = None) -> None:
    """Warn of a death coded as censoring of another event, and of "recurrence or death" beside death.

    Times that do not count, where the mask is False, are no ties.

    >>> t = np.arange(1.0, 21.0)
    >>> y = RightCensored(np.column_stack([t, t]), np.column_stack([t < 5, t % 2 == 0]))
    >>> with warnings.catch_warnings(record=True) as caught:
    ...     warnings.simplefilter("always")
    ...     warn_of_ties(y)
    >>> len(caught)
    2
    """
    for pattern in ended_follow_up(y, mask):
        warnings.warn(f"y: got {found_in_words(pattern)}", CensoringWarning, stacklevel=5)
    time, counts = _counted(y, mask)
    event = to_numpy(y.event).reshape(len(y), -1) & counts
    for i, j in combinations(range(y.k), 2):
        both = (time[:, i] == time[:, j]) & event[:, i] & event[:, j]
        if both.mean() > _BY_CHANCE:
            warnings.warn(
                f"Events {i} and {j} happen at the same time in {name_subjects(np.nonzero(both)[0])}. The "
                "model has no ties, so which of them comes first will be wrong. If event "
                f'{i} is "something or event {j}", use SemiCompetingRisks.from_first_event(y).',
                CensoringWarning,
                stacklevel=5,
            )


def _counted(y: RightCensored, mask: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
    """Times (n, k), and whether each counts."""
    time = to_numpy(y.time).reshape(len(y), -1)
    return time, np.ones(time.shape, dtype=bool) if mask is None else mask


def check_order(y: RightCensored, mask: np.ndarray | None = None) -> None:
    """Check that the times of every subject, those that count, come in the order of the coordinates.

    >>> check_order(RightCensored([[1.0, 3.0]], [[1, 0]]))
    """
    time, counts = _counted(y, mask)
    latest = np.maximum.accumulate(np.where(counts, time, 0.0), axis=1)
    late = (counts & (time < latest)).any(axis=1)
    if y.k < 2 or late.any():
        problem = "one event time" if y.k < 2 else f"another order in {name_subjects(np.nonzero(late)[0])}"
        raise InvalidInputError(
            "ordered=True needs two or more event times in the order of the coordinates; got "
            f"{problem}. Sort the coordinates, or leave ordered out."
        )


def single_holds(unit: float) -> bool:
    """Whether times of this size, and others far from it, are numbers of single precision."""
    return 1e-25 < unit < 1e25
