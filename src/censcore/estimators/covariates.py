"""Covariates and weights: checks, and the subjects and columns of X, whatever kind of table it is."""

from __future__ import annotations

from collections.abc import Container, Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from censcore._arrays import check_entries, to_numpy
from censcore._validation import as_frame, as_index, as_weights, check_instance, columns_of
from censcore.distributions import Distribution
from censcore.exceptions import CenscoreError, InvalidInputError, InvalidTypeError


def check_rows(X: Any, n: int) -> None:
    """Check that covariates, where there are any, have one row for each of the n subjects of the outcome."""
    if X is None:
        return
    rows = count_rows(X)
    if rows != n:
        raise InvalidInputError(f"X: got {rows} rows, expected {n}, one per subject of y.")


def count_rows(X: Any) -> int:
    """The number of subjects that covariates describe."""
    check_instance(X, "X")
    check_entries(X, "X")
    if hasattr(X, "columns"):
        return len(as_frame(X, name="X"))
    shape = getattr(X, "shape", None)
    if isinstance(shape, tuple) and len(shape) and not isinstance(X, Distribution):
        return int(shape[0])
    if not isinstance(X, list | tuple):
        raise InvalidTypeError(
            f"X: got {type(X).__name__}, expected covariates as an array (n, p) or a data frame, or None."
        )
    return len(X)


def take_rows(X: Any, rows: np.ndarray) -> Any:
    """The covariates of some subjects, in the same kind of table; None for None."""
    if X is None:
        return None
    if hasattr(X, "columns"):
        return as_frame(X, name="X")[rows].to_native()
    return (X if hasattr(X, "shape") else np.asarray(X))[rows]


def column_of(X: Any, column: str | int) -> np.ndarray:
    """One column of X, (n,), by its name in a frame, or by its number."""
    if X is None:
        raise InvalidInputError(f"X is needed for its column {column!r}; got None.")
    columns = columns_of(X) if hasattr(X, "columns") else None
    names = [] if columns is None else [name for name, _ in columns]
    if isinstance(column, str) and columns is None:
        raise InvalidTypeError(
            f"Column {column!r}: got X as {type(X).__name__}, which has no names. Pass a data frame, or "
            "the number of the column."
        )
    if isinstance(column, str) and column not in names:
        raise InvalidInputError(f"X has no column {column!r}; got the columns {names[:20]}.")
    place = names.index(column) if isinstance(column, str) else as_index(column, "The number of a column")
    array = to_numpy(X, "X") if columns is None else np.empty((count_rows(X), len(names)), dtype=bool)
    if array.ndim != 2 or not -array.shape[1] <= place < array.shape[1]:
        raise InvalidInputError(f"X of shape {array.shape} has no column number {place}.")
    return array[:, place] if columns is None else columns[place][1].to_numpy()


def check_weights(sample_weight: Any, n: int) -> np.ndarray:
    """The weights of n subjects, checked, (n,) in double precision; ones for None."""
    if sample_weight is None:
        return np.ones(n)
    return as_weights(sample_weight, n)


def validated(estimator: Any, X: Any, dtype: Any, *, reset: bool, **options: Any) -> Any:
    """Covariates, also a tensor, as a matrix (n, p), by scikit-learn, which sets or checks number and names.

    ``options`` are those of ``sklearn.utils.validation.validate_data``.
    """
    from sklearn.utils.validation import validate_data

    framed, named = hasattr(X, "columns"), hasattr(estimator, "feature_names_in_")
    if framed and not reset and not named and len(X.columns) != estimator.n_features_in_:  # before a warning
        raise InvalidInputError(
            f"X has {len(X.columns)} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    X = X if framed or hasattr(X, "tocsr") else to_numpy(X, "X")  # sparse: scikit-learn raises
    with scikit_learn_errors():
        return validate_data(estimator, X, reset=reset, dtype=dtype, **options)


@contextmanager
def scikit_learn_errors() -> Iterator[None]:
    """Give what scikit-learn says of covariates as an error of this library, in the same words."""
    try:
        with np.errstate(invalid="ignore"):  # R's NA is a signalling NaN
            yield
    except CenscoreError:
        raise
    except TypeError as error:
        raise InvalidTypeError(str(error)) from error
    except (ValueError, OverflowError) as error:
        raise InvalidInputError(str(error)) from error


def check_numbers(X: Any, encoded: Container[str] = ()) -> None:
    """Check that columns hold numbers but for those of a frame that are encoded."""
    if hasattr(X, "columns"):
        import narwhals as nw

        kinds = [(name, column.dtype) for name, column in columns_of(X) if name not in encoded]
        bad = [f"{name!r} ({kind})" for name, kind in kinds if not (kind.is_numeric() or kind == nw.Boolean)]
    else:
        values = np.zeros((0, 0)) if hasattr(X, "tocsr") else to_numpy(X, "X")
        table = values.T.tolist() if values.ndim == 2 and values.dtype.kind in "OUST" else []
        words = [next((v for v in column if isinstance(v, str | bytes)), None) for column in table]
        bad = [f"the text {word!r:.60} in column {j}" for j, word in enumerate(words) if word is not None]
    if bad:
        raise InvalidTypeError(
            f"X must hold numbers; got {', '.join(bad[:10])}. Encode categories, for instance by "
            "sklearn.preprocessing.OneHotEncoder(drop='first') in a pipeline; regressions take them in the "
            "columns of a data frame, in fit and in predictions."
        )
