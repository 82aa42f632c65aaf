"""The parts of an outcome as checked arrays: events, censoring times, entries."""

from __future__ import annotations

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
from censcore._validation import name_subjects
from censcore.exceptions import InvalidInputError, InvalidTypeError, UnsupportedOutcomeError

__all__ = ["as_censoring_time", "as_event", "one_each"]

MOST_CODES = 20  # of competing risks; more different whole numbers are times


def as_event(event: Array, time: Array) -> Array:
    """Delta as booleans, from 0/1 or booleans; other codes are an error that says what they may be."""
    if is_torch(time):
        return _check_codes(convert(event, time), time) != 0
    array = to_numpy(event, "event")
    check_integers(array, "event")
    if array.dtype.kind == "O" and not any(isinstance(value, str) for value in array.ravel()):
        array = as_float(array, "event")
    if array.dtype.kind not in "biuf":
        values = list(dict.fromkeys(array.ravel().tolist()))[:6]
        raise InvalidTypeError(
            f"event must be 0/1 or boolean; got values such as {values}. Pass a comparison, for instance "
            f"event == {values[0]!r}."
        )
    return array if array.dtype.kind == "b" else _check_codes(array, time) != 0


def _check_codes(event: Array, time: Array) -> Array:
    codes = np.unique(to_numpy(event, "event"))
    if np.isnan(codes).any():
        gone = np.nonzero(np.isnan(to_numpy(event)).reshape(len(event), -1).any(axis=1))[0]
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
    seen = f"{len(codes)} values, such as {codes[:6].tolist()}" if len(codes) > 6 else str(codes.tolist())
    hint = ", while all times are 0 or 1" if swapped else ""
    raise InvalidInputError(
        f"event must be 0/1 or boolean; got {seen}{hint}. Were time and event swapped? Expected "
        "RightCensored(time, event)."
    )


def as_censoring_time(censoring_time: Array, time: Array) -> Array:
    """C with one value per subject, or one per subject and coordinate."""
    if censoring_time is None:
        return None
    c = as_float(censoring_time, "censoring_time", like=time)
    xp = namespace(time)
    if c.ndim == 0:
        c = xp.broadcast_to(c, (time.shape[0],))
    if tuple(c.shape) not in ((time.shape[0],), tuple(time.shape)):
        raise InvalidInputError(
            f"censoring_time must be a number, ({time.shape[0]},) or {tuple(time.shape)}; "
            f"got {tuple(c.shape)}."
        )
    return xp.astype(c, time.dtype, copy=False)


def one_each(values: Array, time: Array, name: str) -> Array:
    """A number for all subjects, or one for each, with one value per subject."""
    xp = one_namespace(**{name: values, "outcome": time})
    a = as_float(values, name, like=time)
    if a.ndim == 0:
        a = xp.broadcast_to(a, (time.shape[0],))
    if tuple(a.shape) != (time.shape[0],):
        raise InvalidInputError(
            f"{name} must be a number or one per subject, ({time.shape[0]},); got {tuple(a.shape)}."
        )
    return xp.astype(a, time.dtype, copy=False)
