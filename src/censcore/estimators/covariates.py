"""Covariates and weights: checks, and the subjects and columns of X, whatever kind of table it is."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from censcore._arrays import check_entries, check_integers, to_numpy
from censcore._validation import as_frame, as_index, as_weights, check_instance, columns_of
from censcore.distributions import Distribution
from censcore.estimators.encoding import Encoding, is_category
from censcore.estimators.pipelines import last_estimator, weight_argument
from censcore.exceptions import CenscoreError, InvalidInputError, InvalidTypeError
from censcore.plain_text import some_of

__all__ = [
    "as_matrix",
    "check_numbers",
    "check_rows",
    "check_weights",
    "column_of",
    "fit_weighted",
    "take_rows",
    "validated",
]


def check_rows(X: Any, n: int) -> None:
    """Check that covariates, where there are any, have one row for each of the n subjects of the outcome.

    >>> check_rows([[0.1], [0.2]], 2)
    """
    if X is None:
        return
    rows = count_rows(X)
    if rows != n:
        raise InvalidInputError(f"X: got {rows} rows, expected {n}, one per subject of y.")


def count_rows(X: Any) -> int:
    """The number of subjects that covariates describe.

    >>> count_rows([[0.1], [0.2]])
    2
    """
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
    """The covariates of some subjects, in the same kind of table; None for None.

    >>> take_rows([[0.1], [0.2], [0.3]], np.array([2, 0]))
    array([[0.3],
           [0.1]])
    """
    if X is None:
        return None
    if hasattr(X, "columns"):
        return as_frame(X, name="X")[rows].to_native()
    return (X if hasattr(X, "shape") else np.asarray(X))[rows]


def column_of(X: Any, column: str | int) -> np.ndarray:
    """One column of X, (n,), by its name in a frame, or by its number.

    >>> column_of(np.array([[0.1, 1.0], [0.2, 2.0]]), 1)
    array([1., 2.])
    """
    if X is None:
        raise InvalidInputError(f"X is needed for its column {column!r}; got None.")
    if hasattr(X, "columns"):
        columns = columns_of(X)
        names = [name for name, _ in columns]
        if isinstance(column, str) and column not in names:
            raise InvalidInputError(f"X has no column {column!r}; got the columns {names[:20]}.")
        place = names.index(column) if isinstance(column, str) else as_index(column, "The number of a column")
        if not -len(names) <= place < len(names):
            raise InvalidInputError(f"X of shape {(count_rows(X), len(names))} has no column number {place}.")
        return columns[place][1].to_numpy()
    if not isinstance(column, str):
        column = as_index(column, "The number of a column")
    else:
        raise InvalidTypeError(
            f"Column {column!r}: got X as {type(X).__name__}, which has no names. Pass a data frame, or "
            "the number of the column."
        )
    array = to_numpy(X, "X")
    if array.ndim != 2 or not -array.shape[1] <= column < array.shape[1]:
        raise InvalidInputError(f"X of shape {array.shape} has no column number {column}.")
    return array[:, column]


def check_weights(sample_weight: Any, n: int) -> np.ndarray:
    """The weights of n subjects, checked, (n,) in double precision; ones for None.

    >>> check_weights(None, 2), check_weights([1, 3], 2)
    (array([1., 1.]), array([1., 3.]))
    """
    if sample_weight is None:
        return np.ones(n)
    return as_weights(sample_weight, n)


def fit_weighted(estimator: Any, X: Any, y: Any, sample_weight: np.ndarray | None, **options: Any) -> Any:
    """Call ``estimator.fit``, with weights where there are any; an error if the estimator takes none.

    A ``Pipeline`` receives them for its last step, as ``step__sample_weight``.

    >>> import censcore as cs
    >>> y = cs.RightCensored([1.0, 2.0], [1, 1])
    >>> fit_weighted(cs.KaplanMeier(), None, y, np.array([1.0, 3.0])).predict_distribution().sf(1.0)
    array([0.75])
    """
    if sample_weight is None:
        return estimator.fit(X, y, **options)
    argument = weight_argument(estimator)
    if argument is None:
        raise InvalidInputError(
            f"{type(last_estimator(estimator)).__name__}.fit takes no sample_weight, so that it cannot be "
            "fitted to weighted subjects. Use an estimator that does, such as KaplanMeier() or "
            "CoxRegression(), or repeat each subject as often as it counts and pass groups=."
        )
    return estimator.fit(X, y, **{argument: sample_weight}, **options)


def as_matrix(estimator: Any, X: Any, *, reset: bool) -> np.ndarray | None:
    """Covariates as a matrix (n, p) of numbers, with indicators of the levels of categories; or None.

    ``n_features_in_``, ``feature_names_in_`` and the encoding of the estimator are set (``reset=True``, in
    ``fit``) or checked.

    >>> import censcore as cs
    >>> as_matrix(cs.CoxRegression(), [[1, 2], [3, 4]], reset=True)
    array([[1., 2.],
           [3., 4.]])
    """
    if X is not None:
        count_rows(X)
    if X is None or (hasattr(X, "shape") and len(X.shape) == 2 and X.shape[1] == 0):
        if not reset and estimator.n_features_in_:
            raise InvalidInputError(
                f"This {type(estimator).__name__} was fitted with {estimator.n_features_in_} covariates; "
                "got none."
            )
        if reset:
            estimator.n_features_in_ = 0
            vars(estimator).pop("feature_names_in_", None)
        return None
    if not reset and estimator.n_features_in_ == 0:
        return None
    encoding: Encoding | None = None if reset else estimator._encoding
    if reset and hasattr(X, "columns"):
        encoding = Encoding.of(X)
    check_numbers(X, categories=encoding is not None and bool(encoding.levels))
    _check_no_missing(estimator, X)
    if encoding is not None and encoding.levels:
        matrix = _encoded(estimator, X, encoding, reset)
    else:
        matrix = validated(estimator, X, np.float64, reset=reset)
    check_integers(np.where(matrix == np.iinfo(np.int32).min, matrix, 0.0).astype(np.int32), "X")
    if reset:
        estimator._encoding = encoding or Encoding.of(matrix)
        return matrix
    return matrix[:, estimator._encoding.kept]


def _encoded(estimator: Any, X: Any, encoding: Encoding, reset: bool) -> np.ndarray:
    """Numbers and indicators of levels, after scikit-learn has set or checked the names of the columns."""
    from sklearn.utils.validation import check_array, validate_data

    if not hasattr(X, "columns"):
        raise InvalidInputError(
            f"X: got {type(X).__name__}, expected a data frame, since fit had the categories of "
            f"{some_of([str(name) for name in encoding.levels])}."
        )
    with scikit_learn_errors():
        validate_data(estimator, X, reset=reset, skip_check_array=True)
        return np.asarray(check_array(encoding.matrix(X), dtype=np.float64))


def validated(estimator: Any, X: Any, dtype: Any, *, reset: bool) -> np.ndarray:
    """Covariates, also a tensor, as a matrix (n, p), by scikit-learn, which sets or checks number and names.

    >>> import censcore as cs
    >>> validated(cs.CoxRegression(), [[1, 2], [3, 4]], np.float32, reset=True)
    array([[1., 2.],
           [3., 4.]], dtype=float32)
    """
    from sklearn.utils.validation import validate_data

    framed = hasattr(X, "columns")
    if framed and not reset and len(X.columns) != estimator.n_features_in_:  # before a warning of its names
        raise InvalidInputError(
            f"X has {len(X.columns)} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input."
        )
    X = X if framed or hasattr(X, "tocsr") else to_numpy(X, "X")  # sparse: scikit-learn raises
    with scikit_learn_errors():
        return np.asarray(validate_data(estimator, X, reset=reset, dtype=dtype), dtype=dtype)


@contextmanager
def scikit_learn_errors() -> Iterator[None]:
    """Give what scikit-learn says of covariates as an error of this library, in the same words.

    >>> with scikit_learn_errors():
    ...     raise ValueError("Expected 2D array, got scalar array instead")
    Traceback (most recent call last):
    ...
    censcore.exceptions.InvalidInputError: Expected 2D array, got scalar array instead
    """
    try:
        yield
    except CenscoreError:
        raise
    except TypeError as error:
        raise InvalidTypeError(str(error)) from error
    except (ValueError, OverflowError) as error:
        raise InvalidInputError(str(error)) from error


def check_numbers(X: Any, *, categories: bool) -> None:
    """Check that columns hold numbers or, in a frame where ``categories`` are read, text and categories."""
    kinds = _kinds_without_numbers(X, categories)
    if kinds:
        raise InvalidTypeError(
            f"X must hold numbers; got {', '.join(kinds[:10])}. Pass categories to fit and to predictions in "
            "the columns of a data frame, or encode them, for instance by "
            "sklearn.preprocessing.OneHotEncoder(drop='first') in a pipeline."
        )


def _kinds_without_numbers(X: Any, categories: bool) -> list[str]:
    """Columns that hold text or something else, and what kind of thing."""
    if hasattr(X, "columns"):
        import narwhals as nw

        columns = [column for column in columns_of(X) if not (categories and is_category(column[1]))]
        kinds = [(name, column.dtype) for name, column in columns]
        return [f"{name!r} ({kind})" for name, kind in kinds if not (kind.is_numeric() or kind == nw.Boolean)]
    values = np.zeros((0, 0)) if hasattr(X, "tocsr") else to_numpy(X, "X")
    if values.ndim != 2 or values.dtype.kind not in "OUST":
        return []
    words = [next((v for v in column if isinstance(v, str | bytes)), None) for column in values.T.tolist()]
    return [f"the text {word!r:.60} in column {j}" for j, word in enumerate(words) if word is not None]


def _check_no_missing(estimator: Any, X: Any) -> None:
    """Check that no number is missing, and name the columns where some are."""
    missing = _missing(X)
    columns = np.nonzero(missing.any(axis=0))[0]
    if len(columns):
        names = [repr(str(X.columns[j])) if hasattr(X, "columns") else str(j) for j in columns[:10]]
        name = type(estimator).__name__
        raise InvalidInputError(
            f"X contains NaN: got missing values of {int(missing.any(axis=1).sum())} subjects in columns "
            f"{', '.join(names)}{', ...' if len(columns) > 10 else ''}; {name} expected none. Impute them "
            f"first, for instance by make_pipeline(SimpleImputer(), {name}())."
        )


def _missing(X: Any) -> np.ndarray:
    """Which numbers are missing, (n, p); where X is no matrix of numbers scikit-learn says so, not this."""
    if hasattr(X, "columns"):
        columns = [column for _, column in columns_of(X)]
        unequal = [False if is_category(c) else (c != c).fill_null(False).to_numpy() for c in columns]
        found = [c.is_null().to_numpy().astype(bool) | odd for c, odd in zip(columns, unequal, strict=True)]
        return np.column_stack(found) if found else np.zeros((0, 0), dtype=bool)
    values = np.zeros((0, 0)) if hasattr(X, "tocsr") else to_numpy(X, "X")
    if values.dtype.kind == "O":
        try:
            values = values.astype(np.float64)
        except (TypeError, ValueError, OverflowError):
            return np.zeros((0, 0), dtype=bool)
    if values.ndim != 2 or values.dtype.kind != "f":
        return np.zeros((0, 0), dtype=bool)
    return np.isnan(values)
