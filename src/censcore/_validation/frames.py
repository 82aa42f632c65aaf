"""Checks of data frames: their columns have one name each."""

from __future__ import annotations

from collections import Counter
from typing import Any

from censcore._validation.kinds import shown
from censcore.exceptions import InvalidInputError, InvalidTypeError

__all__ = ["as_frame", "columns_of"]


def as_frame(frame: Any, *columns: Any, name: str = "frame") -> Any:
    """A data frame of any library, behind the interface of narwhals; ``columns`` must be names.

    >>> import pandas as pd
    >>> as_frame(3.0)
    Traceback (most recent call last):
    ...
    censcore.exceptions.InvalidTypeError: frame: got float, expected a data frame of pandas, polars or
    pyarrow.
    >>> as_frame(pd.DataFrame([[1.0, 2.0]], columns=["age", "age"]), name="X")
    Traceback (most recent call last):
    ...
    censcore.exceptions.InvalidInputError: X: got the name 'age' of 2 columns, expected one column of each
    name. Rename them, or leave out all but one.
    """
    import narwhals as nw

    bad = [column for column in columns if not isinstance(column, str)]
    if bad:
        raise InvalidTypeError(f"A column: got {shown(bad[0])}, expected its name, a text.")
    _check_names(frame, name)
    try:
        return nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise InvalidTypeError(
            f"{name}: got {type(frame).__name__}, expected a data frame of pandas, polars or pyarrow."
        ) from error


def _check_names(frame: Any, name: str) -> None:
    columns: Any = getattr(frame, "column_names", getattr(frame, "columns", ()))
    if getattr(columns, "nlevels", 1) > 1:
        raise InvalidInputError(
            f"{name}: got columns with names of {columns.nlevels} levels, expected one name for each. Join "
            "them, for instance by frame.columns = ['_'.join(map(str, name)) for name in frame.columns]."
        )
    label, count = Counter(map(str, columns)).most_common(1)[0] if len(columns) else ("", 1)
    if count > 1:
        raise InvalidInputError(
            f"{name}: got the name {shown(label)} of {count} columns, expected one column of each name. "
            "Rename them, or leave out all but one."
        )


def columns_of(frame: Any, name: str = "X") -> list[tuple[Any, Any]]:
    """The columns of a data frame and their names, which may be numbers or dates.

    >>> import pandas as pd
    >>> [(name, column.to_list()) for name, column in columns_of(pd.DataFrame([[1.5, 2.5]]))]
    [(0, [1.5]), (1, [2.5])]
    """
    data = as_frame(frame, name=name)
    return [(column, data.get_column(column)) for column in data.columns]
