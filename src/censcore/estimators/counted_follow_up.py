"""How long subjects were followed, counted in batches, and Kaplan-Meier estimates of C from the counts."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Distribution, Independent
from censcore.estimators.censoring import Censoring
from censcore.estimators.kaplan_meier import KaplanMeier
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored

DISTINCT = 2**16  # times, at most, that are told apart


@dataclass
class CountedTimes:
    """How many subjects were seen up to each time, and how many of them were censored there.

    With too many distinct times all are rounded up to fewer binary digits, which keeps their order. Rounding
    up twice is rounding up once to the fewer digits, so that the order of the data plays no part.

    >>> counted = CountedTimes().add(np.array([1.0, 2.0, 2.0]), np.array([False, True, True]))
    >>> counted.time, counted.censored, counted.other
    (array([1., 2.]), array([0, 2]), array([1, 0]))
    """

    time: np.ndarray = field(default_factory=lambda: np.empty(0))
    censored: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    other: np.ndarray = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    digits: int = 52

    def add(self, time: np.ndarray, censored: np.ndarray) -> CountedTimes:
        """With more subjects."""
        return self + CountedTimes(time, censored.astype(np.int64), (~censored).astype(np.int64))

    def __add__(self, more: CountedTimes) -> CountedTimes:
        digits = min(self.digits, more.digits)
        time = np.concatenate([self.time, more.time])
        counts = [np.concatenate(pair) for pair in ((self.censored, more.censored), (self.other, more.other))]
        while True:
            distinct, place = np.unique(_rounded_up(time, digits), return_inverse=True)
            if len(distinct) <= DISTINCT:
                break
            digits -= 1
        censored, other = (
            np.bincount(place.reshape(-1), c, minlength=len(distinct)).astype(np.int64) for c in counts
        )
        return CountedTimes(distinct, censored, other, digits)

    def outcomes(self) -> tuple[RightCensored, np.ndarray]:
        """Distinct outcomes, and how many subjects had each."""
        weight = np.concatenate([self.other, self.censored])
        y = RightCensored(np.tile(self.time, 2), np.repeat([True, False], len(self.time)))
        return y.take(np.flatnonzero(weight)), weight[weight > 0].astype(np.float64)


def _rounded_up(time: np.ndarray, digits: int) -> np.ndarray:
    """Times as the next number with so many binary digits after the first.

    >>> _rounded_up(np.array([1.0, 1.1, 3.0]), 1)
    array([1. , 1.5, 3. ])
    """
    rest = np.int64(2 ** (52 - digits) - 1)
    bits = np.ascontiguousarray(time, dtype=np.float64).view(np.int64)
    return ((bits + rest) & ~rest).view(np.float64)


@dataclass
class CountedFollowUp:
    """What the data tell about C: how many subjects were followed for how long.

    Whether all data can come from one C per subject (``shared``), whether any time is censored, and whether
    all censoring times are known. ``counts`` are by stratum and by what is counted: -1 the last contact of a
    subject, j event time j.
    """

    shared: bool = True
    censored: bool = False
    known: bool = True
    counts: dict[tuple[Any, int], CountedTimes] = field(default_factory=dict)

    @classmethod
    def of(cls, y: RightCensored, strata: np.ndarray | None = None) -> CountedFollowUp:
        """That of some subjects."""
        time, open_ = (to_numpy(part).reshape(len(y), -1) for part in (y.time, y.censored))
        columns: dict[int, tuple[Any, Any]] = {-1: (time.max(axis=1), open_.any(axis=1))}
        if y.k > 1:
            columns |= {j: (time[:, j], open_[:, j]) for j in range(y.k)}
        counts = {}
        for label in [None] if strata is None else np.unique(strata).tolist():
            rows: Any = slice(None) if strata is None else np.flatnonzero(strata == label)
            for j, (t, c) in columns.items():
                counts[label, j] = CountedTimes().add(t[rows], c[rows])
        return cls(y.shares_censoring, bool(open_.any()), y.censoring_time is not None, counts)

    def __add__(self, other: CountedFollowUp) -> CountedFollowUp:
        both = {key: self.counts[key] + other.counts[key] for key in self.counts.keys() & other.counts.keys()}
        shared, censored = self.shared and other.shared, self.censored or other.censored
        counts = self.counts | other.counts | both
        return CountedFollowUp(shared, censored, self.known and other.known, counts)

    def pooled(self, estimator: Censoring) -> Distribution:
        """Kaplan-Meier estimates of C: one, or one for each event time."""
        shared = self.shared if estimator.shared is None else estimator.shared
        columns = [-1] if shared else sorted({j for _, j in self.counts if j >= 0} or {-1})
        curves: list[Any] = []
        for j in columns:
            y, weight = self.counts[None, j].outcomes()
            curves.append(Censoring(KaplanMeier()).fit(None, y, weight).predict_distribution())
            curves[-1].estimated_from = None
        return curves[0] if len(curves) == 1 else Independent(curves)

    def by_stratum(self, estimator: Censoring, stratify: Any, X: Any) -> Censoring:
        """A Kaplan-Meier estimate of C for each stratum, by a column of tables such as X."""
        import pandas as pd

        if not (self.shared if estimator.shared is None else estimator.shared):
            raise InvalidInputError(
                "KaplanMeier(stratify=...) with one C per event time is not available for subjects read in "
                "batches; leave out stratify, or fit in memory."
            )
        labels = sorted({label for label, _ in self.counts})
        parts = [self.counts[label, -1].outcomes() for label in labels]
        column = np.repeat(np.array(labels), [len(y) for y, _ in parts])
        table: Any = pd.DataFrame({stratify: column})
        if not hasattr(X, "columns"):  # an array, whose columns have numbers
            table = np.zeros((len(column), np.shape(X)[1]))
            table[:, stratify] = column
        y, weight = RightCensored.concat([y for y, _ in parts]), np.concatenate([w for _, w in parts])
        return Censoring(KaplanMeier(stratify=stratify)).fit(table, y, weight)
