"""Covariates that single precision can hold, and that are numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore._validation import columns_of, name_subjects
from censcore.exceptions import InvalidInputError
from censcore.plain_text import one_line

__all__ = ["check_no_categories", "check_single_precision"]


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


def check_no_categories(X: Any) -> None:
    """Say which columns hold no numbers, before they are converted."""
    if hasattr(X, "columns"):
        words = [str(name) for name, column in columns_of(X) if not _numeric(column.to_numpy())]
    else:
        array = to_numpy(X, "X")
        words = [] if array.ndim != 2 or _numeric(array) else _columns_without_numbers(array)
    if words:
        raise InvalidInputError(
            f"X: got columns that hold categories or text ({', '.join(words[:5])}), expected numbers. Encode "
            "them first, for instance with sklearn.preprocessing.OneHotEncoder in a Pipeline."
        )


def _columns_without_numbers(array: np.ndarray) -> list[str]:
    return [f"column {j}" for j in range(array.shape[1]) if not _numeric(array[:, j])]


def _numeric(values: np.ndarray) -> bool:
    """Whether values are numbers, or objects that are no text; scikit-learn has messages for the rest."""
    if values.dtype.kind in "biufc":
        return True
    if values.dtype.kind == "O" and any(isinstance(value, str | bytes) for value in values.ravel()):
        return False
    try:
        values.astype(np.float32)
    except ValueError:
        return False
    except TypeError:
        return True
    return values.dtype.kind == "O"
