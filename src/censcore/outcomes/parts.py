"""The parts of an outcome as checked arrays that agree: times, events, causes, censoring times."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from censcore._arrays import (
    Array,
    as_float,
    check_integers,
    convert,
    is_torch,
    namespace,
    one_namespace,
    to_numpy,
)
from censcore._validation import (
    MOST_CAUSES,
    as_cause_codes,
    as_count,
    as_frame,
    as_list,
    as_names,
    check_positive,
    name_subjects,
)
from censcore.exceptions import InvalidInputError, InvalidTypeError, UnsupportedOutcomeError
from censcore.plain_text import some_of

FEWEST = 5  # events, at different times or beside as many censored, whose C cannot have one pattern by chance
MOST_CODES = 20  # of competing risks; more different whole numbers are times


def as_event(event: Array, time: Array) -> Array:
    """Delta as booleans, from 0/1 or booleans; other codes are an error that says what they may be."""
    if is_torch(time):
        return _check_codes(convert(event, time), time) != 0
    array = _codes(event, "event")
    check_integers(array, "event")
    if array.dtype.kind not in "biuf":
        values = list(dict.fromkeys(array.ravel().tolist()))[:6]
        raise InvalidTypeError(
            f"event must be 0/1 or boolean; got values such as {values}. Pass a comparison with the value "
            f"that means an event: event == {max(values, key=str)!r}, if it is this one."
        )
    return array if array.dtype.kind == "b" else _check_codes(array, time) != 0


def _codes(values: Any, name: str) -> np.ndarray:
    """Codes as an array, of numbers where objects hold them."""
    array = to_numpy(values, name)
    if array.dtype.kind == "O" and not any(isinstance(value, str) for value in array.ravel()):
        return as_float(array, name)
    return array


def _check_codes(event: Array, time: Array) -> Array:
    codes = np.unique(to_numpy(event, "event"))
    if np.isnan(codes).any():
        missing = np.atleast_1d(np.isnan(to_numpy(event)))
        gone = np.nonzero(missing.reshape(len(missing), -1).any(axis=1))[0]
        raise InvalidInputError(
            f"event must be 0/1 or boolean; got a missing value (NaN, None or NA) in {name_subjects(gone)}. "
            "Leave these subjects out: an unknown status is not a censored one."
        )
    if set(codes.tolist()) <= {0, 1}:
        return event
    whole = np.isfinite(codes).all() and (codes == np.round(codes)).all() and codes.min() >= 0
    times = set(np.unique(to_numpy(time)).tolist())
    swapped = times == {0.0, 1.0} or (times <= {0.0, 1.0} and codes.max() > MOST_CODES)
    if whole and not swapped and len(codes) <= MOST_CODES:
        raise UnsupportedOutcomeError(
            f"event must be 0 or 1; got the codes {codes[:6].tolist()}. If they are competing risks, pass "
            "CompetingRisks(time, cause=event): to choose one of them and call the others censored would "
            "give wrong scores. If 1/2 means censored/event, pass event - 1."
        )
    listed = f"{len(codes)} values, such as {codes[:6].tolist()}" if len(codes) > 6 else str(codes.tolist())
    hint = ", while all times are 0 or 1" if swapped else ""
    raise InvalidInputError(
        f"event must be 0/1 or boolean; got {listed}{hint}. Were time and event swapped? Expected "
        "RightCensored(time, event)."
    )


def one_each(values: Array, time: Array, name: str, *, coordinates: bool = False) -> Array:
    """A number for all subjects, or one for each, (n,); with ``coordinates`` also one for each time."""
    if type(values) is type(time) is np.ndarray and values.dtype == time.dtype and values.shape == ():
        return np.broadcast_to(values, (time.shape[0],))
    xp = one_namespace(**{name: values, "outcome": time})
    a = as_float(values, name, like=time)
    if a.ndim == 0:
        a = xp.broadcast_to(a, (time.shape[0],))
    shapes = [(time.shape[0],), *([tuple(time.shape)] if coordinates else [])]
    if tuple(a.shape) not in shapes:
        listed = f"a number or one per subject, {shapes[0]}"
        expected = f"a number, {shapes[0]} or {shapes[1]}" if coordinates else listed
        raise InvalidInputError(f"{name} must be {expected}; got {tuple(a.shape)}.")
    return xp.astype(a, time.dtype, copy=False)


def check_times(time: Array, event: Array) -> None:
    """Check observed times Y, (n,) or (n, k), and that there is an event indicator for each."""
    if time.ndim not in (1, 2):
        raise InvalidInputError(
            f"time must have shape (n,) or (n, k); got an array of shape {tuple(time.shape)}."
        )
    if tuple(event.shape) != tuple(time.shape):
        raise InvalidInputError(
            f"event must have the shape of time, {tuple(time.shape)}; got {tuple(event.shape)}."
        )
    if 0 in time.shape:
        raise InvalidInputError(
            f"An outcome needs at least one subject and coordinate; got shape {tuple(time.shape)}."
        )
    if time.ndim == 2 and bool(namespace(time).isnan(time).any()):
        bad = np.unique(np.nonzero(np.isnan(to_numpy(time)))[0])
        raise InvalidInputError(
            f"time must be non-negative and finite; got NaN in {name_subjects(bad)}. A time that does "
            "not count gets any number, such as 0 with event 1, and False in the mask of the function "
            "that uses it (fit(..., mask=mask), energy_score(..., mask=mask))."
        )
    check_positive(time, "time", zero=True)


def check_censoring_time(censoring_time: Array, time: Array, event: Array) -> None:
    """Check that Y = min(T, C): no time exceeds C, and a censored one equals it."""
    check_positive(censoring_time, "censoring_time", zero=True, infinite=True)
    xp, c = namespace(time), censoring_time
    c = c[:, None] if c.ndim < time.ndim else c
    late = to_numpy(time > c)
    if late.any():
        rows = name_subjects(np.unique(np.nonzero(late)[0]))
        raise InvalidInputError(
            f"time must not exceed censoring_time; it does in {rows}. Y = min(T, C), so cut the times at C."
        )
    unequal = to_numpy(~event & (time != c) & xp.isfinite(time))
    if unequal.any():
        raise InvalidInputError(
            "A censored time must equal its censoring_time; it is smaller in "
            f"{name_subjects(np.unique(np.nonzero(unequal)[0]))}. Either it is an event or C is wrong."
        )
    _check_independent(*np.broadcast_arrays(*map(to_numpy, (c, time, event))))


def _check_independent(c: np.ndarray, time: np.ndarray, event: np.ndarray) -> None:
    """Check that C is not made up from the event: its own time after every one, or infinite after these."""
    own = (c == time)[event].all() and len(np.unique(time[event])) >= FEWEST
    endless = np.isinf(c[event]).all() and min(event.sum(), (~event).sum()) >= FEWEST
    if own or endless:
        raise InvalidInputError(
            f"censoring_time must be known whether or not the event happened; got {'time' if own else 'inf'} "
            f"for all {event.sum()} events, so that it depends on them. Pass the time until which these "
            "subjects would have been followed, such as a closing date; or leave it out, and pass "
            "censoring=Censoring(KaplanMeier())."
        )


def check_entry(entry: Array, end: Array, name: str = "time") -> None:
    """Check that every subject enters before its ``end``, the first of its times."""
    check_positive(entry, "entry", zero=True)
    earliest = end if end.ndim == 1 else namespace(end).min(end, axis=1)
    late = np.nonzero(to_numpy((entry >= earliest) & (entry > 0)))[0]
    if late.size:
        i = int(late[0])
        raise InvalidInputError(
            f"entry must be below {name}; it is not in {name_subjects(late)} (got entry "
            f"{float(entry[i]):g} and {name} {float(earliest[i]):g}). A subject is in the data only "
            "if its event comes after its entry: leave those out whose follow-up ends at or before it."
        )


def read_columns(frame: Any, parameters: str, *names: str | list[str] | None) -> list[Array]:
    """Columns of a pandas or polars frame: (n,) for a name, (n, k) for a list of names, None for None.

    The error for columns that are not in the frame names the ``parameters`` to pass.
    """
    listed = [[] if part is None else [part] if isinstance(part, str) else part for part in names]
    wanted = [name for part in listed for name in as_list(part, "Columns", "their names")]
    data = as_frame(frame, *wanted)
    missing = [name for name in wanted if name not in data.columns]
    if missing:
        raise InvalidInputError(
            f"Columns {missing} are not in the frame, whose columns are {list(data.columns)[:20]}. "
            f"Name them: from_frame(frame, {parameters})."
        )
    return [
        None if part is None else (data[part] if isinstance(part, str) else data.select(part)).to_numpy()
        for part in names
    ]


def two_fields(y: np.ndarray, kinds: str, time_kinds: str, described: str) -> tuple[np.ndarray, np.ndarray]:
    """Times, and the other of the two fields of a structured array, by the kinds of their dtypes."""
    fields = {} if y.dtype.fields is None else {name: kind[0] for name, kind in y.dtype.fields.items()}
    times = [name for name, dtype in fields.items() if dtype.kind in time_kinds]
    others = [name for name, dtype in fields.items() if dtype.kind in kinds]
    if len(fields) != 2 or len(times) != 1 or len(others) != 1:
        raise InvalidTypeError(
            f"A structured outcome {described}; got fields {fields}. Pass the arrays themselves to name them."
        )
    return y[times[0]], y[others[0]]


def cause_number(cause: int | str, names: Sequence[str]) -> int:
    """The number, from 1 to m, of a cause that is given by number or name."""
    if isinstance(cause, str):
        if cause not in names:
            raise InvalidInputError(f"There is no cause called {cause!r}; there are {some_of(names)}.")
        return list(names).index(cause) + 1
    try:
        return as_count(cause, "cause", most=len(names))
    except (InvalidInputError, InvalidTypeError) as error:
        raise InvalidInputError(
            f"A cause is a number from 1 to {len(names)} or one of the names {some_of(names)}; got {cause!r}."
        ) from error


def as_causes(cause: Array, time: Array) -> Array:
    """Whole numbers in the library of ``time``, one for each subject."""
    codes = _codes(cause, "cause")
    if codes.dtype.kind not in "biuf":
        raise InvalidTypeError(
            f"cause must hold whole numbers, 0 for censored and 1 to m; got an array of dtype {codes.dtype}. "
            "Translate labels: cause = [['censored', 'relapse', 'death'].index(label) for label in labels]."
        )
    if codes.shape != tuple(time.shape) or codes.ndim != 1:
        raise InvalidInputError(
            f"time and cause must both have shape (n,); got {tuple(time.shape)} and {codes.shape}."
        )
    return convert(as_cause_codes(codes, "cause", "censored"), time)


def as_cause_names(names: Sequence[str] | None, n_causes: int | None, largest: int) -> tuple[str, ...]:
    """Names of the causes 1 to m, which are at least as many as the data have; ``largest`` is their last."""
    if n_causes is not None:
        n_causes = as_count(n_causes, "n_causes", most=MOST_CAUSES)
    if names is not None:
        names = as_names(names, n_causes)
    if largest == 0 and n_causes is None and names is None:
        raise InvalidInputError(
            "cause is 0 for every subject: all are censored, and no cause was seen. Expected a cause from 1 "
            "to m where an event was seen; where there was none, pass n_causes=m."
        )
    m = n_causes if n_causes is not None else len(names) if names is not None else largest
    labels = tuple(names) if names is not None else tuple(f"cause {j + 1}" for j in range(m))
    if largest > m:
        raise InvalidInputError(
            f"The data have a cause {largest}; expected causes 1 to {m} ({some_of(labels)}) and 0 for none."
        )
    return labels
