"""Ordinary tables as numbers: categories, missing values, and values far from those of the fit."""

from __future__ import annotations

import warnings
from dataclasses import dataclass, field
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, TransformerMixin

from censcore._arrays import check_integers
from censcore._validation import columns_of, name_subjects
from censcore.estimators.covariates import check_numbers, count_rows, scikit_learn_errors, validated
from censcore.estimators.survival_estimator import NotFitted
from censcore.exceptions import ExtrapolationWarning, InvalidInputError
from censcore.plain_text import one_line, some_of

_MISSING = "missing"  # the level of subjects without one, the last
_MARGIN = 1.0  # standard deviations beyond the range of the fit in which values are taken as they are


def text_columns(X: Any) -> dict[str, bool] | None:
    """Which columns of a frame hold text or categories, by their names; None for other tables and names."""
    if not hasattr(X, "columns"):
        return None
    columns = columns_of(X)
    named = all(isinstance(name, str) for name, _ in columns)
    return {name: is_category(column) for name, column in columns} if named else None


@dataclass(frozen=True)
class Encoding:
    """How the columns of X become those of a regression.

    ``levels`` of each column of text or categories, the first of them the reference; ``names`` of the columns
    with an indicator for every level but the reference, and one for missing numbers of each column with
    ``gaps``; which of these are an ``indicator``; which the regression has ``kept``, the others being
    constant or linear combinations of those before; and the ``median`` that missing numbers become.
    """

    levels: dict[Any, list[str]]
    names: list[str]
    indicator: np.ndarray
    kept: np.ndarray
    median: np.ndarray = field(default_factory=lambda: np.zeros(0))
    gaps: np.ndarray = field(default_factory=lambda: np.zeros(0, dtype=np.intp))

    @classmethod
    def of(cls, X: Any) -> Encoding:
        """From a frame, or from a matrix of numbers; missing ones are left alone."""
        levels: dict[Any, list[str]] = {}
        names: list[str] = []
        indicator: list[bool] = []
        columns = columns_of(X) if hasattr(X, "columns") else [(j, None) for j in range(X.shape[1])]
        for j, (name, column) in enumerate(columns):
            word = name if isinstance(name, str) else f"column {j}"
            if column is not None and is_category(column):
                levels[name] = _levels(column)
                names += [f"{word} = {level}" for level in levels[name][1:]]
            else:
                names.append(word)
            indicator += [name in levels] * (len(names) - len(indicator))
        return cls(levels, names, np.array(indicator, dtype=bool), np.arange(len(names)))

    def with_gaps(self, values: np.ndarray) -> Encoding:
        """With medians, and indicators of what is missing among the numbers of a fit."""
        missing = np.isnan(values)
        gaps = np.flatnonzero(missing.any(axis=0))
        names = [*self.names, *(f"{self.names[j]} is missing" for j in gaps)]
        indicator = np.append(self.indicator, np.ones(len(gaps), dtype=bool))
        median = np.nanmedian(np.where(missing.all(axis=0), 0.0, values), axis=0)
        return Encoding(self.levels, names, indicator, np.arange(len(names)), median, gaps)

    def matrix(self, X: Any) -> np.ndarray:
        """The columns of a frame and the indicators of levels; missing numbers are NaN.

        A level that fit did not have is the reference, with a warning.
        """
        import narwhals as nw

        parts, unseen = [], list[str]()
        for name, column in columns_of(X):
            if name not in self.levels:
                parts.append(column.cast(nw.Float64).to_numpy())
                continue
            values = np.array(_words(column), dtype=object)
            known = self.levels[name]
            new = np.nonzero(~np.isin(values, np.array(known, dtype=object)))[0]
            if new.size:
                unseen.append(f"{values[new[0]]!r} of {one_line(str(name))!r} ({name_subjects(new)})")
            parts += [(values == level).astype(np.float64) for level in known[1:]]
        if unseen:
            _warn(
                f"X: got the level {unseen[0]}{' and others' if len(unseen) > 1 else ''}, which fit did not "
                "have. It is taken as the reference level, the first of the fit."
            )
        return np.column_stack(parts)

    def completed(self, values: np.ndarray) -> np.ndarray:
        """Numbers as in the fit: missing ones are its medians, beside the indicators of what is missing."""
        missing = np.isnan(values)
        new = np.setdiff1d(np.flatnonzero(missing.any(axis=0)), self.gaps)
        if new.size:
            _warn(
                f"X: got missing values of {some_of([self.names[j] for j in new])}, of which fit "
                "had none. They are taken as the median of the fit."
            )
        complete = np.where(missing, self.median, values) if missing.any() else values
        return np.column_stack([complete, missing[:, self.gaps]]) if len(self.gaps) else complete

    @property
    def notes(self) -> list[str]:
        """What was encoded and completed, in words."""
        notes = [f"Reference level of {name}: {levels[0]}." for name, levels in self.levels.items()]
        if len(self.gaps):
            gaps = some_of([self.names[j] for j in self.gaps])
            notes.append(f"Missing numbers became the median, with an indicator: {gaps}.")
        return notes


class CompletedCovariates(TransformerMixin, BaseEstimator):
    """Covariates as a complete matrix of numbers that stays near those of the fit.

    Categories and missing numbers are those of an :class:`Encoding`, and a missing category is a level of its
    own. A number more than one standard deviation outside the range of the fit is held at that border, with
    an :class:`~censcore.exceptions.ExtrapolationWarning`: nothing is known of such subjects, and models would
    extrapolate.
    """

    _encoding: Encoding

    def fit(self, X: Any, y: Any = None) -> Self:
        """Learn levels, medians and ranges."""
        values = read_numbers(self, X, reset=True)
        known = np.where(np.isnan(values).all(axis=0), 0.0, values)
        with np.errstate(over="ignore"):  # a huge number is within a range without borders
            spread = _MARGIN * np.nanstd(known, axis=0)
        self._least, self._most = np.nanmin(known, axis=0) - spread, np.nanmax(known, axis=0) + spread
        self.names_ = [one_line(name) for name in self._encoding.names]
        return self

    def transform(self, X: Any) -> np.ndarray:
        """Covariates with the columns of the fit as numbers, (n, number of names)."""
        if not hasattr(self, "names_"):
            raise NotFitted("This CompletedCovariates is not fitted yet. Call fit(X) first.")
        values = read_numbers(self, X, reset=False)
        held = np.clip(values, self._least, self._most)
        far = (held != values) & ~np.isnan(values)
        if far.any():
            names = some_of([self.names_[j] for j in np.flatnonzero(far.any(axis=0))])
            _warn(
                f"{int(far.any(axis=1).sum())} subjects have values more than a standard deviation outside "
                f"the range of the fit, of {names}. They are held at the border: nothing was learned beyond."
            )
        return self._encoding.completed(held)


def as_matrix(estimator: Any, X: Any, *, reset: bool) -> np.ndarray | None:
    """Covariates as a complete matrix (n, p), with indicators of levels and of missing numbers; or None.

    ``n_features_in_``, ``feature_names_in_`` and the encoding of the estimator are set (``reset=True``, in
    ``fit``) or checked.
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
    matrix = read_numbers(estimator, X, reset=reset)
    encoding: Encoding = estimator._encoding
    return encoding.completed(matrix) if reset else encoding.completed(matrix)[:, encoding.kept]


def is_category(column: Any) -> bool:
    """Whether a column holds text or categories."""
    import narwhals as nw

    return column.dtype in (nw.String, nw.Categorical, nw.Object) or isinstance(column.dtype, nw.Enum)


def read_numbers(estimator: Any, X: Any, *, reset: bool) -> np.ndarray:
    """Numbers and indicators of levels, (n, ...), with NaN where a number is missing; sets the encoding."""
    from sklearn.utils.validation import check_array

    framed = hasattr(X, "columns")
    encoding: Encoding = estimator._encoding if not reset else Encoding.of(X if framed else np.zeros((0, 0)))
    check_numbers(X, encoding.levels)
    if not framed and encoding.levels:
        raise InvalidInputError(
            f"X: got {type(X).__name__}, expected a data frame, since fit had the categories of "
            f"{some_of([str(name) for name in encoding.levels])}."
        )
    finite: dict[str, Any] = {"ensure_all_finite": "allow-nan"}
    if framed:
        validated(estimator, X, None, reset=reset, skip_check_array=True)
        with scikit_learn_errors():
            values = np.asarray(check_array(encoding.matrix(X), input_name="X", **finite))
    else:
        values = np.asarray(validated(estimator, X, np.float64, reset=reset, **finite), dtype=np.float64)
        encoding = Encoding.of(values) if reset else encoding
    values = np.where(np.isnan(values), np.nan, values)  # R's NA is a signalling NaN
    check_integers(np.where(values == np.iinfo(np.int32).min, values, 0.0).astype(np.int32), "X")
    if reset:
        estimator._encoding = encoding.with_gaps(values)
    return values


def _warn(message: str) -> None:
    warnings.warn(message, ExtrapolationWarning, stacklevel=6)


def _words(column: Any) -> list[str]:
    """Levels as text, one per subject."""
    pairs = zip(column.to_list(), column.is_null().to_list(), strict=True)
    return [_MISSING if gone else str(value) for value, gone in pairs]


def _levels(column: Any) -> list[str]:
    """The levels that occur: in the order of the categories, or of the alphabet."""
    there = set(_words(column))
    known: Any = getattr(column.to_native().dtype, "categories", None)
    ordered = [str(level) for level in known] if hasattr(known, "__len__") else sorted(there - {_MISSING})
    ordered = [level for level in ordered if level != _MISSING] + [_MISSING]
    return [level for level in ordered if level in there]
