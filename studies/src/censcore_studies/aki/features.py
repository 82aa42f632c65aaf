"""What is known at each prediction time: summaries over trailing windows, and the remaining times.

A part's stays are numbered 0, 1, ...; a moment is one whole number for a stay and a second. Sorted moments of
all stays are then one array, a window is a slice of it found by bisection, and no slice crosses two stays. A
sum over a slice depends on that slice alone, so a row is the same whatever else is in its part.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

__all__ = [
    "ENDPOINTS",
    "FEATURES",
    "Series",
    "baseline",
    "moment",
    "second_of",
    "stay_of",
    "summaries",
    "time_to_event",
]

Floats = NDArray[np.float64]
Moments = NDArray[np.int64]

SPAN = 2**34  # seconds: centuries on either side of the admission
ENDPOINTS = ("creatinine", "urine")
SUMMARIES = ("count", "mean", "min", "max", "last", "slope")

FEATURES = (
    "male", "age", "weight", "chronic_renal_failure", "baseline_creatinine", "elapsed_hours",
    *(f"{channel}_{summary}" for channel in ENDPOINTS for summary in SUMMARIES),
    *(f"{channel}_missing" for channel in ENDPOINTS),
    *(f"{channel}_slope_available" for channel in ENDPOINTS),
)  # fmt: skip


def moment(stay: NDArray[Any] | int, second: NDArray[Any] | int) -> Moments:
    """Seconds since ICU admission of a numbered stay, negative ones included, as one whole number."""
    return np.asarray(stay, dtype=np.int64) * SPAN + SPAN // 2 + second


def stay_of(moments: Moments) -> Moments:
    """The stay of each moment."""
    return moments // SPAN


def second_of(moments: Moments) -> Moments:
    """The seconds since ICU admission of each moment."""
    return moments % SPAN - SPAN // 2


@dataclass(frozen=True)
class Series:
    """Values of one kind for all stays of a part, in the order of their moments.

    Parameters
    ----------
    moment : array of int
        When each value is known.
    value : array of float
        The values.
    """

    moment: Moments
    value: Floats

    def between(self, first: Moments, last: Moments) -> Slices:
        """The values of every closed window [first, last]."""
        start = np.searchsorted(self.moment, first, side="left")
        return Slices(start, np.maximum(np.searchsorted(self.moment, last, side="right"), start))

    def reduce(self, ufunc: np.ufunc, slices: Slices, values: Floats | None = None) -> Floats:
        """``ufunc`` over each slice; NaN where it is empty."""
        padded = np.append(self.value if values is None else values, 0.0)
        bounds = np.column_stack([slices.start, slices.stop]).ravel()
        return np.where(slices.count > 0, ufunc.reduceat(padded, bounds)[::2], np.nan)

    def last(self, slices: Slices) -> Floats:
        """The newest value of each slice; NaN where it is empty."""
        padded = np.append(self.value, np.nan)
        return np.where(slices.count > 0, padded[slices.stop - 1], np.nan)


@dataclass(frozen=True)
class Slices:
    """Half-open index ranges."""

    start: NDArray[np.intp]
    stop: NDArray[np.intp]

    @property
    def count(self) -> NDArray[np.intp]:
        """Values in each."""
        return self.stop - self.start


def summaries(series: Series, rows: Moments, window_s: int) -> dict[str, Floats]:
    """Count, mean, min, max, last and least-squares slope per hour over [row - window, row].

    Examples
    --------
    >>> series = Series(moment(0, np.array([0, 7200])), np.array([1.0, 3.0]))
    >>> found = summaries(series, moment(0, np.array([3600, 7200])), 86400)
    >>> {name: values.tolist() for name, values in found.items() if name in ("count", "mean", "slope")}
    {'count': [1.0, 2.0], 'mean': [1.0, 2.0], 'slope': [nan, 1.0]}
    """
    inside = series.between(rows - window_s, rows)
    n = inside.count.astype(np.float64)
    hours = second_of(series.moment) / 3600
    x, y, xx, xy = (
        series.reduce(np.add, inside, values)
        for values in (hours, series.value, hours * hours, hours * series.value)
    )
    with np.errstate(invalid="ignore", divide="ignore"):
        slope = (xy - x * y / n) / (xx - x * x / n)
        mean = y / n
    return {
        "count": n,
        "mean": mean,
        "min": series.reduce(np.minimum, inside),
        "max": series.reduce(np.maximum, inside),
        "last": series.last(inside),
        "slope": np.where(n >= 2, slope, np.nan),
    }


def baseline(creatinine: Series, rows: Moments, baseline_s: int, rolling: bool) -> Floats:
    """The baseline as known at each row: the trailing minimum, or that before admission, else the first."""
    if rolling:
        return creatinine.reduce(np.minimum, creatinine.between(rows - baseline_s, rows))
    admission = moment(stay_of(rows), 0)
    before = creatinine.between(admission - baseline_s, admission)
    first_in_stay = creatinine.between(admission, rows)
    padded = np.append(creatinine.value, np.nan)
    first = np.where(first_in_stay.count > 0, padded[first_in_stay.start], np.nan)
    return np.where(before.count > 0, creatinine.reduce(np.minimum, before), first)


def time_to_event(onset: Moments, end: Moments, rows: Moments) -> tuple[NDArray[np.bool_], Moments]:
    """Whether an episode is present at each row, and the seconds to the next onset (-1: none is recorded).

    Examples
    --------
    >>> present, wait = time_to_event(np.array([10]), np.array([20]), np.array([5, 10, 19, 20]))
    >>> present.tolist(), wait.tolist()
    ([False, True, True, False], [5, 0, 0, -1])
    """
    following = np.searchsorted(onset, rows, side="right")
    latest_end = np.append(end, np.iinfo(np.int64).min)[following - 1]  # none before: the appended one
    present = latest_end > rows
    next_onset = np.append(onset, np.iinfo(np.int64).max)[following]
    same_stay = stay_of(next_onset) == stay_of(rows)
    return present, np.where(present, 0, np.where(same_stay, next_onset - rows, -1))
