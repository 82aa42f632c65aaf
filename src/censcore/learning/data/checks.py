"""Checks of training data: covariates that are numbers of single precision, masks of event times."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore._validation import name_subjects
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored
from censcore.plain_text import one_line

__all__ = ["as_past", "check_mask", "check_single_precision", "leave_out_times"]


def check_mask(mask: Any, y: Any, *, some: bool = False) -> np.ndarray | None:
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
    if some and not mask.any():
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
    kept = mask.reshape(y.shape)
    known = None if y.censoring_time is None else to_numpy(y.censoring_time)
    return RightCensored(np.where(kept, to_numpy(y.time), 0.0), to_numpy(y.event) | ~kept, known)


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
