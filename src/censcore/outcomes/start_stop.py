"""Intervals (start, stop] of constant covariates: the long format of lifelines and of R's survival."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore._arrays import as_float
from censcore._validation import as_frame, check_flag
from censcore.exceptions import InvalidInputError


@dataclass(frozen=True, eq=False)
class StartStop:
    """Columns (n,) of a table with one line per subject and interval, and the order by subject and start."""

    subject: np.ndarray
    start: np.ndarray
    stop: np.ndarray
    event: np.ndarray
    order: np.ndarray

    @property
    def last(self) -> np.ndarray:
        """Places in ``order`` of the last interval of each subject."""
        ordered = self.subject[self.order]
        return np.nonzero(np.append(ordered[1:] != ordered[:-1], True))[0]


def read_start_stop(
    frame: Any, id: str, start: str, stop: str, event: str, *, allow_gaps: bool = True
) -> StartStop:
    """Read and check the columns of a pandas or polars frame.

    Every interval has its columns and is not empty. Intervals of a subject do not overlap, leave no gap
    (unless allowed), and end with its event.
    """
    check_flag(allow_gaps, "allow_gaps")
    data = as_frame(frame, id, start, stop, event)
    if not len(data):
        raise InvalidInputError("frame: got no rows, expected one for each subject and interval.")
    missing = [name for name in (id, start, stop, event) if name not in data.columns]
    if missing:
        raise InvalidInputError(
            f"Columns {missing} are not in the table, which has {list(data.columns)[:20]}."
        )
    empty = [name for name in (id, start, stop, event) if _has_empty(data[name])]
    if empty:
        raise InvalidInputError(f"Columns {empty} have missing values; every interval needs all of them.")
    subject = data[id].to_numpy()
    begins, ends, ended = (
        np.asarray(as_float(data[name].to_numpy(), f"Column {name!r}"), dtype=np.float64)
        for name in (start, stop, event)
    )
    order = np.lexsort([ends, begins, _codes(subject)])
    table = StartStop(subject, begins, ends, ended, order)
    _check(table, id, allow_gaps)
    return table


def _codes(subject: np.ndarray) -> np.ndarray:
    """Numbers of the subjects, in the order of their labels, or of appearance where labels have no order."""
    try:
        return np.unique(subject, return_inverse=True)[1]
    except TypeError:
        number = {label: i for i, label in enumerate(dict.fromkeys(subject.tolist()))}
        return np.array([number[label] for label in subject.tolist()])


def _has_empty(column: Any) -> bool:
    values = column.to_numpy()
    return bool(column.is_null().any()) or (values.dtype.kind == "f" and bool(np.isnan(values).any()))


def _check(table: StartStop, id: str, allow_gaps: bool) -> None:
    order = table.order
    subject, begins, ends = table.subject[order], table.start[order], table.stop[order]
    same, event = subject[1:] == subject[:-1], table.event[order] != 0
    waits = same & (begins[1:] > ends[:-1]) & (not allow_gaps)
    gap = "" if allow_gaps else " Pass allow_gaps=True if they were not under observation in between."
    wrong = {
        "intervals must have start < stop": ~(begins < ends),
        "intervals must not overlap": np.append(same & (begins[1:] < ends[:-1]), False),
        "only the last interval may end with the event": np.append(same & event[:-1], False),
        "each interval must begin where the one before it ends": np.append(waits, False),
    }
    for rule, where in wrong.items():
        if where.any():
            i, count = int(np.nonzero(where)[0][0]), len(set(subject[where].tolist()))
            raise InvalidInputError(
                f"Of each subject, {rule}; that is not so for {count} subject{'s' if count > 1 else ''} "
                f"(first {id} = {subject[i]}, interval {begins[i]:g} to {ends[i]:g})."
                + (gap if rule.startswith("each") else "")
            )
