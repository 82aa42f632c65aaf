"""Examination times: one schedule or one per subject, and what they must have in common with intervals."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore._arrays import Array, as_float, convert, namespace, to_numpy
from censcore._validation import as_generator, as_number, check_positive, name_subjects, shown
from censcore.exceptions import InvalidInputError, MissingVisitsError, UnsupportedOutcomeError

MOST_VISITS = 10_000  # drawn for one subject at most

REMEDY = (
    "Pass IntervalCensored(..., visits=schedule) with all planned visits, (K,) for one schedule or (n, K), "
    "or y.continue_visits(gaps, until) to draw those after the detection from a distribution of the gaps "
    "between visits. The log score needs no visits. Visits or event times are never filled in by the "
    "forecast being scored, under which the score would not be proper."
)


def as_visits(visits: Any, lower: Array) -> Array:
    """Visits as (1 or n, K), ascending, padded by infinity, in the library of ``lower``."""
    ragged = isinstance(visits, list | tuple) and any(hasattr(row, "__len__") for row in visits)
    if ragged:
        alone = [row for row in visits if not hasattr(row, "__len__")]
        if alone:
            raise InvalidInputError(
                f"visits: got {shown(alone[0])} beside lists, expected one list of times per subject."
            )
        longest = max(len(row) for row in visits)
        array = np.full((len(visits), longest), np.inf)
        for i, row in enumerate(visits):
            array[i, : len(row)] = to_numpy(as_float(row, "visits"))
    else:
        array = to_numpy(as_float(visits, "visits", like=lower))
    table = array.reshape(1, -1) if array.ndim < 2 else array
    if table.ndim != 2 or table.shape[0] not in (1, lower.shape[0]) or not table.shape[1]:
        raise InvalidInputError(
            f"visits must be one schedule, (K,), or one per subject, ({lower.shape[0]}, K); got shape "
            f"{tuple(array.shape)}. One examination per subject is visits[:, None], or "
            "IntervalCensored.current_status(time, found)."
        )
    table = np.sort(np.where(np.isnan(table), np.inf, table), axis=1)
    check_positive(table, "visits", zero=True, infinite=True)
    used = int(np.isfinite(table).any(axis=0).sum())
    if not used:
        raise InvalidInputError("visits: got no finite time, expected at least one examination.")
    return convert(np.ascontiguousarray(table[:, :used]), lower)


def check_visits(visits: Array, lower: Array, upper: Array) -> None:
    """Check that finite ends of intervals are visits, and that none lies inside an interval."""
    visits, (low, high) = to_numpy(visits), (to_numpy(x)[:, None] for x in (lower, upper))
    exact = (low == high)[:, 0]
    for name, end in (("lower", low), ("upper", high)):
        required = np.isfinite(end[:, 0]) & (end[:, 0] > 0) & ~exact
        lost = np.nonzero(required & ~(visits == end).any(axis=1))[0]
        if lost.size:
            raise InvalidInputError(
                f"Finite ends of intervals must be visits; {name} is not in {name_subjects(lost)} (got "
                f"{end[lost[0], 0]:g}). Pass the visits that took place and those planned after them."
            )
    inside = (visits > low) & (visits < high) & np.isfinite(high) & ~exact[:, None]
    missed = np.nonzero(inside.any(axis=1))[0]
    if missed.size:
        i = int(missed[0])
        first = np.broadcast_to(visits, inside.shape)[i][inside[i]][0]
        raise InvalidInputError(
            f"A visit inside an interval was missed, or the interval would be shorter; got one at "
            f"{first:g} in ({low[i, 0]:g}, {high[i, 0]:g}], in {name_subjects(missed)}. Leave missed "
            "visits out, one set of visits per subject; those after the detection by the same chance "
            "(see continue_visits)."
        )


def last_visit(visits: Array, until: Array = np.inf) -> Array:
    """The last visit of each schedule, planned ones included, up to and including ``until``; zero without."""
    xp = namespace(visits)
    counted = xp.isfinite(visits) & (visits <= until)
    return xp.max(xp.where(counted, visits, xp.zeros_like(visits)), axis=1)


def visits_after(visits: Array, entry: Array) -> Array:
    """The visits after the entry, ascending and padded by infinity, (n, K)."""
    xp = namespace(visits)
    later = visits > entry[:, None]
    return xp.sort(xp.where(later, visits, xp.full_like(visits, np.inf)), axis=1)


def first_missed(visits: Array, since: Array) -> Array:
    """The first planned visit after a time per subject, (n,); infinity where there is none."""
    return visits_after(visits, since)[:, 0]


def missing_visits(name: str) -> MissingVisitsError:
    """The error where ``name`` needs visits and none are given."""
    return MissingVisitsError(f"{name} needs the examination times, and visits=None. {REMEDY}")


def check_detection_times(visits: Array, lower: Array, upper: Array) -> None:
    """Check that the detection time, the first visit at or after T, follows from the data."""
    exact = to_numpy(lower == upper)
    if visits is None:
        if (exact | ~np.isfinite(to_numpy(upper))).all():
            return
        raise missing_visits("The detection time")
    at_visit = (to_numpy(visits) == to_numpy(upper)[:, None]).any(axis=1)
    between = np.nonzero(exact & ~at_visit)[0]
    if between.size:
        raise UnsupportedOutcomeError(
            "Some event times are known exactly and lie between visits, so that there is no common "
            f"rule by which events were found; they do in {name_subjects(between)}. The log score takes "
            "such data."
        )


def visits_after_detection(
    visits: Array, last: Array, ended: np.ndarray, gaps: Any, until: float, seed: int
) -> np.ndarray:
    """The visits of every subject, continued by draws of the gaps where they ended early, (n, K)."""
    end, n = as_number(until, "until", least=0), len(last)
    drawn = [np.broadcast_to(to_numpy(visits), (n, visits.shape[1]))]
    at, rng = np.where(ended, to_numpy(last), np.inf), as_generator(seed)
    while (at <= end).any():
        if len(drawn) > MOST_VISITS:
            raise InvalidInputError(
                f"until: got {end:g}, which takes more than {MOST_VISITS} visits of a subject. Pass a "
                "smaller time, or larger gaps."
            )
        gap = to_numpy(gaps.sample(n if len(gaps) == 1 else 1, rng)).reshape(n)
        check_positive(gap, "gaps", infinite=True)
        at = at + gap
        drawn.append(np.where(at <= end, at, np.inf)[:, None])
    return np.concatenate(drawn, axis=1)
