"""Checks of what kind of object something is, of options and names, and of data frames."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable
from typing import Any

from censcore.exceptions import InvalidInputError, InvalidTypeError
from censcore.plain_text import shown, some_values

__all__ = [
    "as_frame", "as_list", "as_names", "check_flag", "check_instance", "check_kind", "check_method",
    "check_option", "check_same_order", "column_names", "columns_of", "is_auto", "no_array", "shown",
]  # fmt: skip


def check_instance(value: Any, name: str) -> None:
    """Check that something is an object and not its class."""
    if isinstance(value, type):
        raise InvalidTypeError(
            f"{name}: got the class {value.__name__}, expected an instance. Write {value.__name__}(...), "
            "with parentheses."
        )


def no_array(self: Any, *_: Any, **__: Any) -> Any:
    """What ``__array__`` is of classes that have parts but are no arrays.

    Without it NumPy would go on taking parts of parts, without an end.
    """
    raise InvalidTypeError(f"got {type(self).__name__}, expected numbers.")


def check_kind(value: Any, name: str, kind: type | tuple[type, ...], expected: str) -> None:
    """Check that something is an instance of a class; ``expected`` says which, and what to do."""
    if not isinstance(value, kind):
        check_instance(value, name)
        raise InvalidTypeError(f"{name}: got {type(value).__name__}, expected {expected}.")


def check_method(value: Any, name: str, method: str, expected: str) -> None:
    """Check that something is an object with a method."""
    check_instance(value, name)
    if not callable(getattr(value, method, None)):
        raise InvalidTypeError(f"{name}: got {type(value).__name__}, expected {expected}.")


def check_option(value: Any, name: str, options: Collection[Any]) -> None:
    """Check that a choice is one of those that exist."""
    if isinstance(value, str) and value in options:
        return
    listed = [repr(option) for option in options]
    expected = " or ".join(listed) if len(listed) == 2 else f"one of {', '.join(listed)}"
    raise InvalidInputError(f"{name} must be {expected}; got {shown(value)}.")


def is_auto(value: Any) -> bool:
    """Whether a choice is left to the library."""
    return isinstance(value, str) and value == "auto"


def check_flag(value: Any, name: str) -> None:
    """Check that something is True or False."""
    if value is True or value is False:
        return
    if type(value).__name__ not in ("bool", "bool_"):
        raise InvalidTypeError(f"{name} must be True or False; got {shown(value)}.")


def as_list(values: Any, name: str, expected: str) -> list[Any]:
    """Several things as a list, where they can be listed."""
    listed = isinstance(values, Iterable) and not isinstance(values, str | bytes | dict | set | type)
    if listed and not hasattr(values, "columns") and getattr(values, "ndim", 1) != 0:
        return list(values)
    raise InvalidTypeError(f"{name}: got {shown(values)}, expected a list of {expected}.")


def as_names(names: Any, count: int | None, name: str = "names", of: str = "cause") -> tuple[str, ...]:
    """Names as text, one for each thing and all different."""
    given = tuple(str(one) for one in as_list(names, name, f"names, one per {of}"))
    if len(set(given)) != len(given) or len(given) != (len(given) if count is None else count):
        expected = "" if count is None else f"{count} "
        raise InvalidInputError(
            f"{name} must be {expected}different names, one per {of}; got {some_values(given)}."
        )
    return given


# ---- data frames ---------------------------------------------------------------------------------------


def as_frame(frame: Any, *columns: Any, name: str = "frame") -> Any:
    """A data frame of any library, behind the interface of narwhals; ``columns`` must be names."""
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


def column_names(frame: Any) -> Any:
    """Names of the columns of a frame of any library; none for other things."""
    if hasattr(frame, "collect_schema"):
        return frame.collect_schema().names()
    return getattr(frame, "column_names", getattr(frame, "columns", ()))


def _check_names(frame: Any, name: str) -> None:
    columns = column_names(frame)
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


def check_same_order(**parts: Any) -> Any:
    """Check that parts with the same labels of subjects have them in one order; give the first labels.

    Subjects are matched by position. Columns and frames of pandas have labels; outcomes and distributions
    that were made of these keep them as ``row_labels``. A default index, or other labels, say nothing about
    the subjects.

    >>> import pandas as pd
    >>> check_same_order(y=pd.Series([1.0, 2.0], ["a", "b"]), X=pd.Series([3.0, 4.0], ["b", "a"]))
    Traceback (most recent call last):
    ...
    censcore.exceptions.InvalidInputError: X: got the labels (the index) of y in another order, expected the
    same order, since subjects are matched by position. Sort by labels, X.loc[y.index], or drop them,
    X.to_numpy().
    """
    named = {
        name: part.index if hasattr(part, "iloc") else getattr(part, "row_labels", None)
        for name, part in parts.items()
    }
    labels = {
        name: index
        for name, index in named.items()
        if index is not None and type(index).__name__ != "RangeIndex" and len(index) == len(parts[name])
    }
    first, *others = labels or [""]
    for name in others:
        a, b = labels[first], labels[name]
        if len(a) == len(b) and not a.equals(b) and a[0] in b and Counter(a) == Counter(b):
            raise InvalidInputError(
                f"{name}: got the labels (the index) of {first} in another order, expected the same order, "
                f"since subjects are matched by position. Sort by labels, {name}.loc[{first}.index], or drop "
                f"them, {name}.to_numpy()."
            )
    return labels.get(first)


def columns_of(frame: Any, name: str = "X") -> list[tuple[Any, Any]]:
    """The columns of a data frame and their names, which may be numbers or dates."""
    data = as_frame(frame, name=name)
    return [(column, data.get_column(column)) for column in data.columns]
