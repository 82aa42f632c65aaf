"""Intervals from one row per subject and dated measurements."""

from __future__ import annotations

import warnings
from typing import Any

import narwhals as nw
import numpy as np

from censcore._arrays import as_float
from censcore._validation import as_frame
from censcore.exceptions import InvalidInputError, RepairWarning
from censcore.outcomes.start_stop import latest
from censcore.plain_text import some_of


def merged(
    baseline: Any, measurements: Any, id: str, time: str, event: str, entry: str | None, at: str
) -> tuple[Any, tuple[np.ndarray, ...]]:
    """Covariates on each interval, and label, start, stop and event of each, by subject and time."""
    base = _read(baseline, "baseline", *[name for name in (id, time, event, entry) if name is not None])
    dated = _read(measurements, "measurements", id, at)
    label = base[id].to_numpy()
    number = {value: i for i, value in enumerate(label.tolist())}
    if len(number) < len(label):
        twice = next(value for value in label.tolist() if label.tolist().count(value) > 1)
        raise InvalidInputError(f"baseline: got several rows of {id} = {twice}, expected one per subject.")
    strangers = sorted({str(value) for value in dated[id].to_list() if value not in number})
    if strangers:
        raise InvalidInputError(
            f"measurements: got {len(strangers)} subjects that are not in baseline "
            f"({some_of(strangers, 5)}), expected its subjects. Leave them out."
        )
    of = np.array([number[value] for value in dated[id].to_list()], dtype=np.intp)
    when, ends = (_times(frame, name) for frame, name in ((dated, at), (base, time)))
    begins = np.zeros(len(base)) if entry is None else _times(base, entry)
    _note_late(when > ends[of])
    inside = (when > begins[of]) & (when < ends[of])
    subject = np.concatenate([np.arange(len(base)), of[inside]])
    subject, start = np.unique(np.column_stack([subject, np.append(begins, when[inside])]), axis=0).T
    subject = subject.astype(np.intp)
    stop = np.where(np.diff(subject, append=-1) == 0, np.append(start[1:], 0.0), ends[subject])
    ended = np.diff(subject, append=-1) != 0
    happened = np.where(ended, base[event].to_numpy()[subject], 0)
    constant = [
        name for name in base.columns if name not in (id, time, event, entry, *_values(dated, id, at))
    ]
    columns = {name: base[name][subject] for name in constant}
    for name in _values(dated, id, at):
        before = base[name].to_numpy()[subject] if name in base.columns else None
        columns[name] = _in_force(dated[name], name, of, when, subject, start, before)
    rows = nw.from_dict(columns, backend=nw.get_native_namespace(base)).to_native()
    return rows, (label[subject], start, stop, happened)


def _values(dated: Any, id: str, at: str) -> list[str]:
    return [name for name in dated.columns if name not in (id, at)]


def _read(frame: Any, called: str, *names: str) -> Any:
    """A frame with these columns, of which no cell is empty."""
    data = as_frame(frame, *names, name=called)
    missing = [name for name in names if name not in data.columns]
    if missing:
        raise InvalidInputError(f"{called}: columns {missing} are not there; got {list(data.columns)[:20]}.")
    if not len(data):
        raise InvalidInputError(f"{called}: got no rows, expected at least one.")
    empty = [name for name in names if _is_empty(data[name].to_numpy()).any()]
    if empty:
        raise InvalidInputError(
            f"{called}: columns {empty} have missing values; every row needs all of them."
        )
    return data


def _times(data: Any, name: str) -> np.ndarray:
    return np.asarray(as_float(data[name].to_numpy(), f"Column {name!r}"), dtype=np.float64)


def _is_empty(values: np.ndarray) -> np.ndarray:
    if values.dtype.kind == "O":
        return np.array([value is None or value != value for value in values.tolist()], dtype=bool)
    return np.isnan(values) if values.dtype.kind == "f" else np.zeros(len(values), dtype=bool)


def _note_late(late: np.ndarray) -> None:
    if late.any():
        warnings.warn(
            f"measurements: {int(late.sum())} of {len(late)} are after the end of their subject's follow-up, "
            "and play no part. Check that follow-up does not go on longer.",
            RepairWarning,
            stacklevel=4,
        )


def _in_force(
    column: Any,
    name: str,
    of: np.ndarray,
    when: np.ndarray,
    subject: np.ndarray,
    start: np.ndarray,
    before: np.ndarray | None,
) -> np.ndarray:
    """The value in force at each start: the last one measured, else that before, else missing."""
    values = column.to_numpy()
    known = np.nonzero(~_is_empty(values))[0]
    order = known[np.lexsort([when[known], of[known]])]
    tied = (np.diff(of[order]) == 0) & (np.diff(when[order]) == 0) & (values[order[1:]] != values[order[:-1]])
    if tied.any():
        i = order[np.nonzero(tied)[0][0]]
        raise InvalidInputError(
            f"measurements: got two values of {name!r} of one subject at time {when[i]:g} ({values[i]} and "
            "another one), expected one. Take their mean, or the later one."
        )
    there = latest(of[known], when[known], subject, start) if len(known) else np.full(len(subject), -1)
    kind = values.dtype if values.dtype.kind == "f" else np.float64 if values.dtype.kind in "iub" else object
    missing = np.full(len(subject), np.nan if kind is not object else None, dtype=kind)
    otherwise = missing if before is None else before
    if not len(known):
        return otherwise
    return np.where(there >= 0, values[known[there]], otherwise)
