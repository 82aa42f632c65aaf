"""Causes of events: their numbers and their names."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from censcore._arrays import Array, as_float, convert, is_torch, to_numpy
from censcore._validation import as_count, as_names, name_subjects
from censcore.exceptions import InvalidInputError, InvalidTypeError

__all__ = ["as_cause_names", "as_causes", "cause_number"]


def cause_number(cause: int | str, names: Sequence[str]) -> int:
    """The number, from 1 to m, of a cause that is given by number or name."""
    if isinstance(cause, str):
        if cause not in names:
            raise InvalidInputError(f"There is no cause called {cause!r}; there are {', '.join(names)}.")
        return list(names).index(cause) + 1
    if isinstance(cause, bool) or not isinstance(cause, int | np.integer) or not 1 <= cause <= len(names):
        raise InvalidInputError(
            f"A cause is a number from 1 to {len(names)} or one of the names {', '.join(names)}; got "
            f"{cause!r}."
        )
    return int(cause)


def as_causes(cause: Array, time: Array) -> Array:
    """Whole numbers in the library of ``time``."""
    given = to_numpy(cause)
    if given.dtype.kind == "O":
        given = as_float(given, "cause")
    if given.dtype.kind not in "biuf":
        raise InvalidTypeError(
            f"cause must hold whole numbers, 0 for censored and 1 to m; got an array of dtype {given.dtype}. "
            "Translate labels: cause = [['censored', 'relapse', 'death'].index(label) for label in labels]."
        )
    whole = np.isfinite(given) & (given == np.round(given)) & (given >= 0)
    if not whole.all():
        bad = np.unique(np.nonzero(~whole)[0])
        raise InvalidInputError(
            "cause must hold whole numbers, 0 for censored and 1 to m for the causes; got "
            f"{given[~whole].ravel()[0]}, in {name_subjects(bad)}. Were time and cause swapped?"
        )
    codes = given.astype(np.int64)
    return convert(codes, as_float(time, "time")) if is_torch(time) else codes


#: Kinds of event: many more than anybody distinguishes, few enough to be named.
MOST_CAUSES = 10**4


def as_cause_names(names: Sequence[str] | None, n_causes: int | None, largest: int) -> tuple[str, ...]:
    """Names of the causes 1 to m, which are at least as many as the data have; ``largest`` is their last."""
    if n_causes is not None:
        n_causes = as_count(n_causes, "n_causes", most=MOST_CAUSES)
    if names is not None:
        names = as_names(names, n_causes)
    if largest == 0 and n_causes is None and names is None:
        raise InvalidInputError(
            "cause is 0 for every subject: all are censored, and no cause was seen. Expected a cause from 1 "
            "to m where an event was seen; where there was none, say n_causes=m."
        )
    m = n_causes if n_causes is not None else len(names) if names is not None else largest
    found = tuple(names) if names is not None else tuple(f"cause {j + 1}" for j in range(m))
    if largest > m:
        raise InvalidInputError(
            f"The data have a cause {largest}; expected causes 1 to {m} ({', '.join(found)}) and 0 for "
            "censored."
        )
    return found
