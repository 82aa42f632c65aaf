"""Columns of an ordinary table as those of a regression: categories encoded, aliased columns left out."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore._validation import columns_of, name_subjects
from censcore.exceptions import ExtrapolationWarning
from censcore.plain_text import one_line, some_of

__all__ = ["Encoding", "column_encoder", "is_category"]

_MISSING = "missing"  # the level of subjects without one, the last


@dataclass(frozen=True)
class Encoding:
    """How the columns of X become those of a regression.

    Attributes
    ----------
    levels : dict
        Of each column of text or categories: its levels, the first of them the reference.
    names : list of str
        The columns with an indicator for every level but the reference.
    indicator : array of bool
        Which of these are indicators of a level.
    kept : array of int
        Which of them the regression has; the others are constant or linear combinations of those before.

    Examples
    --------
    >>> import pandas as pd
    >>> X = pd.DataFrame({"age": [50.0, 60.0, 70.0], "stage": ["I", "III", "II"]})
    >>> encoding = Encoding.of(X)
    >>> encoding.names, encoding.levels
    (['age', 'stage = II', 'stage = III'], {'stage': ['I', 'II', 'III']})
    >>> encoding.matrix(X)
    array([[50.,  0.,  0.],
           [60.,  0.,  1.],
           [70.,  1.,  0.]])
    """

    levels: dict[Any, list[str]]
    names: list[str]
    indicator: np.ndarray
    kept: np.ndarray

    @classmethod
    def of(cls, X: Any) -> Encoding:
        """From a frame, or from a matrix of numbers."""
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

    def matrix(self, X: Any) -> np.ndarray:
        """The columns of a frame with categories, (n, number of names); missing numbers are NaN.

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
            warnings.warn(
                f"X: got the level {unseen[0]}{' and others' if len(unseen) > 1 else ''}, which fit did not "
                "have. It is taken as the reference level, the first of the fit.",
                ExtrapolationWarning,
                stacklevel=5,
            )
        return np.column_stack(parts)

    @property
    def dropped(self) -> list[str]:
        """Names of the columns that the regression does not have."""
        return [name for j, name in enumerate(self.names) if j not in self.kept]

    @property
    def notes(self) -> list[str]:
        """What was encoded and left out, in words."""
        notes = [f"Reference level of {name}: {levels[0]}." for name, levels in self.levels.items()]
        if self.dropped:
            dropped = [one_line(name) for name in self.dropped]
            notes.append(f"Left out, constant or linear combinations of columns before: {some_of(dropped)}.")
        return notes


def column_encoder(text: list[Any], numbers: list[Any], *further: Any) -> Any:
    """A transformer of ordinary columns: text becomes indicators, a missing number the median.

    An indicator says that a number was missing; ``further`` transformers are applied to the numbers.
    """
    from sklearn.compose import make_column_transformer
    from sklearn.impute import SimpleImputer
    from sklearn.pipeline import make_pipeline
    from sklearn.preprocessing import OneHotEncoder

    levels = OneHotEncoder(drop="first", handle_unknown="ignore", sparse_output=False)
    median = SimpleImputer(strategy="median", add_indicator=True)
    return make_column_transformer((levels, text), (make_pipeline(median, *further), numbers))


def is_category(column: Any) -> bool:
    """Whether a column holds text or categories."""
    import narwhals as nw

    return column.dtype in (nw.String, nw.Categorical, nw.Object) or isinstance(column.dtype, nw.Enum)


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
