"""Curves of probabilities that must be monotone: what counts as rounding, and what can be repaired."""

from __future__ import annotations

import sys
from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore._arrays import Array, detach, is_torch, namespace, to_numpy
from censcore._validation import check_not_nan, check_probabilities, name_subjects
from censcore.exceptions import InvalidInputError

#: Changes up to here are rounding: that of sums of probabilities in single precision, in which forecasts are
#: often computed before they are stored in double.
ROUNDING = 1e-6


@dataclass(frozen=True)
class Repair:
    """What was changed to make curves monotone.

    Attributes
    ----------
    subjects : tuple of int
        Whose curves were changed by more than rounding.
    largest : float
        The largest change of a probability.
    mean : float
        The mean of the largest changes of these subjects.
    """

    subjects: tuple[int, ...]
    largest: float
    mean: float

    def __str__(self) -> str:
        return (
            f"curves of {name_subjects(self.subjects)} were made monotone: probabilities changed by up to "
            f"{self.largest:.3g} (mean of the largest change of each: {self.mean:.3g})"
        )


def monotone(
    levels: Array,
    *,
    falls: bool,
    name: str = "sf",
    times: Array = None,
    repair: bool = False,
    remedy: str = "",
) -> tuple[Array, Repair | None]:
    r"""Probabilities (..., q) as curves in [0, 1] that are monotone along the last axis; and the changes.

    Monotone curves are returned unchanged. Others become the monotone curve that is nearest in
    the largest change of a probability, which is the mean of two envelopes,

    .. math:: \tilde S(t_j)=\tfrac12\Bigl\{\min_{i\le j}S(t_i)+\max_{i\ge j}S(t_i)\Bigr\}

    for a falling curve. Changes up to 1e-6 are rounding and are made silently. Anything larger is an
    error, or with ``repair`` a change that is reported. Errors call the levels ``name``, say the ``times`` of
    the columns, and end with the sentence ``remedy``. Gradients are kept.

    >>> levels, repair = monotone(np.array([[0.9, 0.5, 0.6, 0.2]]), falls=True, repair=True)
    >>> levels.round(3), repair.largest.__round__(3)
    (array([[0.9 , 0.55, 0.55, 0.2 ]]), 0.05)
    """
    if _is_valid(detach(levels), falls):
        return levels, None
    xp = namespace(levels)
    check_not_nan(detach(levels), name)
    inside = xp.clip(levels, min=0.0, max=1.0)
    from_the_end = xp.flip(_running(xp.flip(inside, axis=-1), least=not falls), axis=-1)
    mended = (_running(inside, least=falls) + from_the_end) / 2
    values = to_numpy(levels).astype(np.float64)
    change = np.abs(to_numpy(mended) - values)
    largest = change.reshape(len(values), -1).max(axis=1) if values.ndim > 1 else change.max(keepdims=True)
    wrong = np.nonzero(largest > ROUNDING)[0]
    if not wrong.size:
        return mended, None
    if not repair:
        _raise(values, wrong, falls, name, None if times is None else to_numpy(times), remedy)
    return mended, Repair(tuple(map(int, wrong)), float(largest.max()), float(largest[wrong].mean()))


def _is_valid(levels: Array, falls: bool) -> bool:
    """Whether curves are valid, in one pass: monotone levels hold no NaN and are extreme at their ends."""
    xp, q = namespace(levels), int(levels.shape[-1])
    flat = xp.reshape(levels, (-1,))  # one long comparison is faster than one per curve
    ordered = flat[1:] <= flat[:-1] if falls else flat[1:] >= flat[:-1]
    ordered[q - 1 :: q] = True  # between the last level of a curve and the first of the next
    first, last = (levels[..., 0], levels[..., -1]) if falls else (levels[..., -1], levels[..., 0])
    return bool(xp.all(ordered)) and bool(xp.all(first <= 1)) and bool(xp.all(last >= 0))


def _running(levels: Array, *, least: bool) -> Array:
    """Running minimum or maximum along the last axis."""
    if is_torch(levels):
        torch: Any = sys.modules["torch"]
        return (torch.cummin if least else torch.cummax)(levels, dim=-1).values
    return (np.minimum if least else np.maximum).accumulate(levels, axis=-1)


def _raise(
    levels: np.ndarray, wrong: np.ndarray, falls: bool, name: str, times: np.ndarray | None, remedy: str
) -> None:
    """Say where curves leave [0, 1], or where they turn back most."""
    outside = np.maximum(levels - 1, -levels) > ROUNDING
    if outside.any():
        check_probabilities(np.where(outside, levels, 0.5), name)
    signed = levels if falls else -levels
    best = np.minimum.accumulate(signed, axis=-1)
    where = np.unravel_index(int((signed - best).argmax()), signed.shape)
    curve, end = where[:-1], int(where[-1])
    start = int(np.nonzero(signed[curve] == best[where])[0][0])
    subject = int(curve[0]) if curve else 0
    turned = signed.ndim == 2 and len(signed) > 1 and (np.diff(signed, axis=0) <= 0).all()
    hint = " Down the rows it does not: is the matrix transposed?" if turned else ""
    raise InvalidInputError(
        f"{name} must not {'increase' if falls else 'decrease'} with time; it goes from "
        f"{levels[(*curve, start)]:.6g} at {_place(times, subject, start)} to {levels[where]:.6g} at "
        f"{_place(times, subject, end)} in subject {subject}, and turns back in {name_subjects(wrong)}."
        f"{hint}{remedy and ' ' + remedy}"
    )


def _place(times: np.ndarray | None, subject: int, j: int) -> str:
    if times is None:
        return f"column {j}"
    return f"time {times[j] if times.ndim == 1 else times[min(subject, len(times) - 1), j]:.6g}"
