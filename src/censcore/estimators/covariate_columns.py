"""Any table of covariates as numbers for a test: ranks, categories, missing values."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore._validation import columns_of
from censcore.exceptions import InvalidInputError
from censcore.plain_text import some_of

LEVELS = 20  # of a category, at most, that get a column
LEAST = 5  # subjects of a level that gets a column


@dataclass
class Columns:
    """Columns (n, p) with mean zero and variance one, without missing values.

    ``sources`` numbers the column of X that each comes from, ``graded`` says which have more than two values,
    and ``notes`` what was changed on the way.
    """

    weight: np.ndarray
    parts: list[np.ndarray] = field(default_factory=list)
    names: list[str] = field(default_factory=list)
    sources: list[int] = field(default_factory=list)
    graded: list[bool] = field(default_factory=list)
    notes: list[str] = field(default_factory=list)

    @property
    def values(self) -> np.ndarray:
        """All columns, (n, p)."""
        return np.column_stack(self.parts) if self.parts else np.zeros((len(self.weight), 0))

    def add(self, values: np.ndarray, name: str, source: int) -> None:
        """Keep a column unless it is constant."""
        distinct = np.unique(values)
        if len(distinct) < 2:
            return
        mean = np.average(values, weights=self.weight)
        spread = np.sqrt(np.average((values - mean) ** 2, weights=self.weight))
        self.parts.append((values - mean) / spread)
        self.names.append(name)
        self.sources.append(source)
        self.graded.append(len(distinct) > 2)


def read_columns(X: Any, weight: np.ndarray, labels: Mapping[str, np.ndarray] | None = None) -> Columns:
    """Numbers as their ranks, text as indicators of its levels; subjects have positive weights.

    ``labels`` are further columns of text, by name; those with the name of a column of X are this column.
    Ranks make the test indifferent to outliers and to monotone transformations of a column. A missing number
    gets the middle rank, and one more column marks it as missing.
    """
    n = len(weight)
    columns = Columns(weight)
    constant, missing_in, missing = [], [], np.zeros(n, dtype=bool)
    raw = [] if X is None else list(_raw_columns(X))
    known = {name for name, *_ in raw}
    for name, values in (labels or {}).items():
        if name not in known:
            raw.append((name, values.astype(str).astype(object), np.zeros(len(values), dtype=bool)))
    for source, (name, values, gone) in enumerate(raw):
        if len(values) != n:
            raise InvalidInputError(f"got X with {len(values)} rows, expected {n}, one per subject.")
        if gone.any():
            missing |= gone
            missing_in.append(name)
        before = len(columns.parts)
        if values.dtype.kind == "f":
            columns.add(_ranks(values, gone, weight), name, source)
        else:
            _add_levels(columns, values, gone, name, source)
        if len(columns.parts) == before:
            constant.append(name)
        if gone.any():
            columns.add(gone.astype(np.float64), f"{name} is missing", source)
    if missing_in:
        columns.notes.append(
            f"{int(missing.sum())} subjects have missing values ({some_of(missing_in, limit=5)}): they get "
            "the middle rank, and whether a value is missing is tested too"
        )
    if constant:
        columns.notes.append(
            f"nothing to test in {some_of(constant, limit=5)}: one value, or no level with {LEAST} subjects"
        )
    return columns


def numeric_columns(X: Any) -> Iterator[tuple[str, np.ndarray]]:
    """Name and values of the columns of numbers without missing values, of a frame or an array (n, p)."""
    if hasattr(X, "columns"):
        named = [(repr(name), column.to_numpy()) for name, column in columns_of(X)]
    else:
        array = X if isinstance(X, np.ndarray) else np.empty(0)
        named = [(str(j), values) for j, values in enumerate(array.T)] if array.ndim == 2 else []
    for name, values in named:
        if values.dtype.kind in "biuf" and not np.isnan(values).any():
            yield name, values.astype(np.float64)


def _raw_columns(X: Any) -> Iterator[tuple[str, np.ndarray, np.ndarray]]:
    """Name, values (floats, or objects for text) and where they are missing."""
    if hasattr(X, "columns"):
        for name, column in columns_of(X):
            yield (str(name), *_numbers_or_text(column.to_numpy(), column.is_null().to_numpy()))
        return
    table = X.toarray() if hasattr(X, "toarray") else to_numpy(X, "X") if hasattr(X, "shape") else X
    array = np.asarray(table)
    array = array if array.dtype.kind in "biuf" else np.asarray(table, dtype=object)
    array = array[:, None] if array.ndim == 1 else array
    if array.ndim != 2:
        raise InvalidInputError(f"got X of shape {array.shape}, expected (n, p).")
    for j, values in enumerate(array.T):
        gone = np.array([value is None or value != value for value in values])
        yield (f"column {j}", *_numbers_or_text(values, gone))


def _numbers_or_text(values: np.ndarray, gone: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    if values.dtype.kind in "mM":
        values = values.astype("int64")
    known = values[~gone]
    try:
        if known.dtype.kind in "US" or (known.dtype.kind == "O" and any(isinstance(v, str) for v in known)):
            raise ValueError
        numbers = np.full(len(values), np.nan)
        numbers[~gone] = known.astype(np.float64)
    except (TypeError, ValueError):
        text = np.full(len(values), "", dtype=object)
        text[~gone] = [str(value) for value in known]
        return text, gone
    gone = np.isnan(numbers)
    return np.where(gone, 0.0, numbers), gone


def _ranks(values: np.ndarray, gone: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Shares of subjects below, and half of those alike, less 1/2; missing values at 0."""
    scores = np.zeros(len(values))
    if not gone.all():
        _, level = np.unique(values[~gone], return_inverse=True)
        alike = np.bincount(level, weight[~gone])
        scores[~gone] = ((np.cumsum(alike) - alike / 2) / alike.sum() - 0.5)[level]
    return scores


def _add_levels(columns: Columns, values: np.ndarray, gone: np.ndarray, name: str, source: int) -> None:
    """Indicators of the frequent levels but the first; rare ones are merged."""
    levels, code, count = np.unique(values[~gone].astype(str), return_inverse=True, return_counts=True)
    order = np.argsort(-count, kind="stable")
    frequent = [level for level in order if count[level] >= LEAST][:LEVELS]
    if len(levels) > len(frequent):
        columns.notes.append(f"{len(levels) - len(frequent)} rare levels of {name} are taken together")
    # without a rest, one level follows from the others
    rest = len(frequent) < len(levels)
    for level in frequent if rest else frequent[1:]:
        indicator = np.zeros(len(values))
        indicator[~gone] = code == level
        columns.add(indicator, f"{name} = {levels[level]}", source)
