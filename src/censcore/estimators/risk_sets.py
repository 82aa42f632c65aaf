"""Who is at risk together: subjects after their entry, entry < t <= time, and within their stratum."""

from __future__ import annotations

import warnings
from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore._validation import name_subjects
from censcore.estimators.covariates import column_of
from censcore.exceptions import InvalidInputError, RiskSetWarning
from censcore.outcomes import IntervalCensored, RightCensored


def entries_of(y: RightCensored) -> np.ndarray | None:
    """Entries (n,), minus infinity for subjects seen from the start; None where all of them are."""
    if not y.has_delayed_entry:
        return None
    entry = to_numpy(y.entry).astype(np.float64)
    return np.where(entry > 0, entry, -np.inf)


def empty_follow_up(y: RightCensored | IntervalCensored) -> np.ndarray:
    """Who has the empty follow-up (0, 0] beside subjects with delayed entry, (n,); nobody without these.

    Such a subject is never at risk, as in R, where ``Surv(0, 0, 1)`` is missing.
    """
    empty = to_numpy(y.upper if isinstance(y, IntervalCensored) else y.time) == 0
    return empty if y.has_delayed_entry and empty.ndim == 1 else np.zeros(len(y), dtype=bool)


def at_risk_weights(y: RightCensored | IntervalCensored, weight: np.ndarray) -> np.ndarray:
    """Weights, zero for subjects who are never at risk, of whom a warning is given."""
    empty = empty_follow_up(y) & (weight > 0)
    if not empty.any():
        return weight
    warnings.warn(note_on_empty(empty), RiskSetWarning, stacklevel=4)
    return np.where(empty, 0.0, weight)


def note_on_empty(empty: np.ndarray) -> str:
    """That subjects with an empty follow-up are left out."""
    return (
        f"{name_subjects(np.nonzero(empty)[0])} with entry 0 and time 0, beside delayed entry: the follow-up "
        "(0, 0] is empty, and they are left out."
    )


def sums_from(entry: np.ndarray, values: np.ndarray, times: np.ndarray) -> np.ndarray:
    """Sums of values, (n,) or (n, p), over subjects with entry >= t, for each of ``times``.

    A sum over time >= t less this one is over those at risk at t. In long doubles, since the difference may
    be small.
    """
    order = np.argsort(entry, kind="stable")
    none = np.zeros((1, *values.shape[1:]), dtype=np.longdouble)
    later = np.concatenate([np.cumsum(values[order][::-1], axis=0, dtype=np.longdouble)[::-1], none])
    return later[np.searchsorted(entry[order], times, side="left")].astype(np.float64)


class RiskSets:
    """Subjects sorted by time, and sums over those at risk at each jump (each distinct event time).

    Events come before censored times at ties, so ``first`` is the first subject at risk at a jump and
    ``after`` the first that survives it. With delayed entry a subject is at risk at t if entry < t <= time.
    """

    def __init__(
        self, time: np.ndarray, event: np.ndarray, weight: np.ndarray, entry: np.ndarray | None = None
    ) -> None:
        self.order = _in_time(time, event)
        self.entry = None if entry is None else entry[self.order]
        self.time, event = time[self.order], event[self.order]
        self.weight = weight[self.order]
        self.failed = np.nonzero(event)[0]
        new = np.diff(self.time[self.failed], prepend=-np.inf) > 0
        self.first, self.jump = self.failed[new], np.cumsum(new) - 1
        self.times = self.time[self.first]
        self.count = np.bincount(self.jump, minlength=len(self.times))
        self.after = self.first + self.count
        # jumps up to each subject's time
        self.passed = np.cumsum(np.bincount(self.first, minlength=len(time)))
        self.last_time = self.time[-1:]
        self.waited = None  # jumps up to each subject's entry
        self.not_yet = np.zeros(len(self.times))  # subjects who enter at or after each jump
        if self.entry is not None:
            self.waited = np.searchsorted(self.times, self.entry, side="right")
            self.not_yet = sums_from(self.entry, np.ones(len(self.entry)), self.times)
        self.d = self.over_failures(self.weight[self.failed])

    @property
    def survived(self) -> np.ndarray:
        """Whether anybody at risk survives each jump; otherwise it carries no information on coefficients."""
        return self.after + self.not_yet < len(self.weight)

    def at_risk(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Sums over those at risk at each jump, and over those of them who survive it."""
        none = np.zeros((1, *values.shape[1:]))
        if self.entry is None:
            later = np.concatenate([np.cumsum(values[::-1], axis=0)[::-1], none])
            return later[self.first], later[self.after]
        later = np.concatenate([np.cumsum(values[::-1], axis=0, dtype=np.longdouble)[::-1], none])
        entering = sums_from(self.entry, values, self.times)
        staying = (later[self.after] - entering).astype(np.float64)
        staying[~self.survived] = 0.0
        return (later[self.first] - entering).astype(np.float64), staying

    def over_failures(self, values: np.ndarray) -> np.ndarray:
        """Sums over the failures at each jump, (J,) or (J, p), of values per failure."""
        if values.ndim == 1:
            return np.bincount(self.jump, values, minlength=len(self.times))
        columns = [np.bincount(self.jump, column, minlength=len(self.times)) for column in values.T]
        return np.stack(columns, axis=1) if columns else np.zeros((len(self.times), 0))

    def while_at_risk(self, values: np.ndarray) -> np.ndarray:
        """Sums over the jumps up to each subject's time, of values per jump."""
        none = np.zeros((1, *values.shape[1:]))
        sums = np.concatenate([none, np.cumsum(values, axis=0)])
        return sums[self.passed] if self.waited is None else sums[self.passed] - sums[self.waited]

    def warn_where_over(self, over: np.ndarray) -> None:
        """Warn that a curve is zero after a jump that later entrants outlive."""
        if self.entry is None or not over.any():
            return
        first = int(np.argmax(over))
        later = len(self.weight) - self.after[first]
        if later:
            warnings.warn(
                f"The survival function is zero from {self.times[first]:g} on, where everybody at risk "
                f"(weight {self.d[first]:g}) has the event, though {later} subjects are followed beyond. "
                "With delayed entry early risk sets are small. Estimate the distribution given T > s, "
                "fit(X, y.after(s)), for a time s at which enough subjects are at risk instead.",
                RiskSetWarning,
                stacklevel=3,
            )


def _in_time(time: np.ndarray, event: np.ndarray) -> np.ndarray:
    """The order of the times, events first at ties, otherwise stable; faster than ``numpy.lexsort``."""
    order, n = np.argsort(time), len(time)
    tied = time[order[1:]] == time[order[:-1]]
    if not tied.any():
        return order
    number = np.cumsum(np.append(False, ~tied))  # of the distinct time
    return np.sort((2 * number + ~event[order]) * n + order) % n


def fitted_strata(X: Any, stratify: str | int | None, n: int) -> tuple[np.ndarray, np.ndarray]:
    """The strata of the subjects of a fit, and which of them each subject is in."""
    if stratify is None:
        return np.array(["all"]), np.zeros(n, dtype=np.intp)
    return _distinct_values(column_of(X, stratify), stratify)


def strata_of(X: Any, stratify: str | int, strata: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The strata that occur in X, as numbers of fitted ones, and which of them each subject is in."""
    values, row_value = _distinct_values(column_of(X, stratify), stratify)
    number = {stratum: i for i, stratum in enumerate(strata.tolist())}
    unknown = [value for value in values.tolist() if value not in number]
    if unknown:
        raise InvalidInputError(
            f"Column {stratify!r}: got values that were not seen in fitting, {unknown[:5]}; "
            f"expected one of {strata[:10].tolist()}."
        )
    return np.array([number[value] for value in values.tolist()]), row_value


def _distinct_values(column: np.ndarray, name: str | int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values of a column, and which of them each subject has."""
    missing = np.array([value is None or value != value for value in column.tolist()])
    if missing.any():
        raise InvalidInputError(
            f"The stratifying column {name!r} is missing in {name_subjects(np.nonzero(missing)[0])}. Leave "
            "these subjects out, or give them a separate value."
        )
    values, number = np.unique(column, return_inverse=True)
    return values, number.reshape(-1)


@dataclass(frozen=True, eq=False)
class StratifiedTimes:
    """Times by their rank among ``values``, each stratum on a stretch of one clock entered at its start.

    So the risk sets of delayed entry are those of the strata, exactly.
    """

    values: np.ndarray

    @classmethod
    def of(cls, time: np.ndarray, entry: np.ndarray | None) -> StratifiedTimes:
        """The clock of some subjects."""
        return cls(np.unique(time if entry is None else np.concatenate([time, entry])))

    @property
    def stretch(self) -> int:
        """The length of a stretch."""
        return len(self.values) + 1

    def codes(self, time: np.ndarray | None, stratum: np.ndarray) -> np.ndarray:
        """Times of subjects on the clock; without any, the beginning of their stretches."""
        rank = 0 if time is None else 1 + np.searchsorted(self.values, time)
        return (rank + self.stretch * stratum).astype(np.float64)

    def back(self, codes: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The strata and times that codes stand for."""
        whole = codes.astype(np.intp)
        return whole // self.stretch, self.values[whole % self.stretch - 1]


def without_column(X: Any, column: str | int | None) -> Any:
    """X without one of its columns, if one is named; None where that was the only one."""
    if column is None:
        return X
    column_of(X, column)  # an error where there is none
    if hasattr(X, "columns"):
        name = list(X.columns)[column] if isinstance(column, int) else column
        rest = X[[other for other in X.columns if other != name]]
        return rest if len(rest.columns) else None
    matrix = np.delete(np.asarray(X), int(column), axis=1)
    return matrix if matrix.shape[1] else None
