"""The distinct outcomes of a table, and how many subjects had each: all that most decisions need."""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.estimators.risk_sets import empty_follow_up
from censcore.evaluation.decisions.horizon import FOLLOWED, LEAST, FollowUp
from censcore.evaluation.kinds import Kind, kind_of
from censcore.evaluation.outcome_table import IN_MEMORY
from censcore.evaluation.parts.batches.censoring import TableCensoring
from censcore.evaluation.parts.batches.reading import Columns, Rows
from censcore.evaluation.parts.batches.sums import Keyed, PartialSums, merged
from censcore.evaluation.sample import Sample
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored

DISTINCT = 5_000_000  # outcomes up to which memory stays bounded


@dataclass(frozen=True, eq=False)
class Counting:
    """The first phase: numbers of subjects by stratum and outcome, and by label."""

    columns: Columns
    rows: int
    kind: Kind
    censoring: TableCensoring  #: how far it reaches is counted too, where it is given covariates

    def __call__(self, batch: Any) -> PartialSums:
        """The counts of one batch."""
        needed = () if self.censoring.pooled else self.censoring.columns
        return merged(map(self.of, self.columns.read(batch, needed, self.rows)))

    def of(self, rows: Rows) -> PartialSums:
        """Those of some subjects."""
        y, columns = self.kind.read_outcome(rows.y), self.columns
        followed = self.kind.followed(y)
        if not followed.shares_censoring:
            raise InvalidInputError(f"event times with a censoring time each: {IN_MEMORY}")
        w = np.where(empty_follow_up(followed), 0.0, rows.weight)
        followed = followed.last()
        time, entry = to_numpy(followed.time), _entries(followed)
        counts = np.column_stack([np.ones(len(time)), w > 0, w])
        each = [column for t, code in self.kind.parts(y) for column in (t, code.astype(np.intp))]
        keyed = {"outcomes": Keyed.of((rows.stratum(columns.stratify), *each, entry), counts)}
        if not self.censoring.pooled:
            C = self.censoring.distribution(self.censoring.covariates(rows), followed)
            keyed["ends"] = ends_of(C, w)
        for by in columns.by:
            keyed[f"by {by}"] = Keyed.of((rows.labels[by],), counts)
        if columns.groups is not None:
            group, used = rows.labels[columns.groups], w > 0
            # the largest of -entry is the first entry; a group without weight has neither
            ends = np.where(used[:, None], np.column_stack([time, -entry]), -np.inf)
            keyed["groups"] = Keyed.of((group,), ends, largest=True)
        return PartialSums(keyed=keyed)


def _entries(y: RightCensored) -> np.ndarray:
    return np.zeros(len(y)) if y.entry is None else to_numpy(y.entry)


def ends_of(C: Any, weight: np.ndarray) -> Keyed:
    """Last times with P(C >= t) of 0.1, of 0.001 and above zero, and the weight of subjects with each."""
    ends = to_numpy(C.marginal(0).isf(np.array([[FOLLOWED, LEAST, 0.0]])))
    return Keyed.of(tuple(np.broadcast_to(ends, (len(weight), 3)).T), weight[:, None])


@dataclass(frozen=True, eq=False)
class Counted:
    """The distinct outcomes of a table as subjects of many, and numbers by label."""

    kind: Kind  #: of the distinct outcomes, which may be less than what a kind of users is made of
    stratum: np.ndarray  #: labels of the strata that C is estimated in, (J,)
    rows: np.ndarray  #: how many subjects had each outcome
    positive: np.ndarray  #: how many of them have a positive weight
    weight: np.ndarray  #: sums of their weights
    by: dict[str, Keyed]

    @classmethod
    def of(cls, keyed: dict[str, Keyed], kind: Kind, what: str) -> Counted:
        """From the sums of all batches."""
        if "outcomes" not in keyed:
            raise InvalidInputError(f"{what}: got a table without rows, expected at least one subject.")
        outcomes = keyed["outcomes"]
        stratum, *each, entry = outcomes.keys
        if len(stratum) > DISTINCT:
            entries = " and entries" if entry.any() else ""
            raise InvalidInputError(
                f"{what}: got {len(stratum)} distinct times{entries}, expected at most {DISTINCT}, which "
                "bounds the memory of a Kaplan-Meier curve. Round the times (days, hours), or estimate the "
                "censoring distribution from fewer subjects by train=."
            )
        if not outcomes.values[:, 2].any():
            raise InvalidInputError(f"{what}: got no subject with a positive weight.")
        parts = list(zip(each[::2], each[1::2], strict=True))
        y = kind.of_parts(parts, entry if entry.any() else None)
        of_counts = replace(kind, y=y) if kind_of(y) is type(kind) else kind_of(y)(y)
        rows, positive, weight = outcomes.values.T
        return cls(of_counts, stratum, rows, positive, weight, keyed)

    @cached_property
    def followed(self) -> RightCensored:
        """How long subjects were followed."""
        followed: RightCensored = self.kind.followed(self.kind.y).last()
        return followed

    @property
    def n(self) -> int:
        """Number of subjects."""
        return int(self.rows.sum())

    @property
    def n_events(self) -> int:
        """Number of subjects with an event."""
        return int(self.rows[to_numpy(self.followed.event)].sum())

    @property
    def sample(self) -> Sample:
        """The distinct outcomes with their weights."""
        return Sample(None, self.kind.y, self.weight)

    def for_censoring(self, stratify: str | None) -> Sample:
        """How long subjects were followed, with their stratum as a covariate."""
        import pandas as pd

        X = None if stratify is None else pd.DataFrame({stratify: self.stratum})
        return Sample(X, self.followed, self.weight)

    @property
    def groups(self) -> np.ndarray:
        """Numbers of the groups with weight."""
        return np.nonzero(self.by["groups"].values[:, 0] > -np.inf)[0]

    def follow_up(self) -> list[FollowUp]:
        """How long subjects, and groups of them, were followed."""
        used, late = self.positive > 0, self.followed.has_delayed_entry
        entry = _entries(self.followed)[used] if late else None
        every = [FollowUp.of(to_numpy(self.followed.time)[used], self.positive[used], entry)]
        if "groups" in self.by:
            last, first = self.by["groups"].values[self.groups].T
            every.append(FollowUp.of(last, None, -first if late else None))
        return every

    def typical(self) -> RightCensored:
        """A thousand outcomes with the quantiles of all times, and the last one, to judge units by."""
        sample = self.follow_up()[0]
        share = np.cumsum(sample.count) / sample.count.sum()
        middle = sample.time[np.searchsorted(share, (np.arange(1001) + 0.5) / 1001)]
        return RightCensored(np.append(middle, sample.time[-1]), np.ones(1002, dtype=bool))


@dataclass(frozen=True, eq=False)
class Places:
    """Where subjects are among the distinct outcomes, by their stratum and follow-up."""

    columns: list[np.ndarray]  #: distinct strata, times, events and entries
    known: np.ndarray  #: numbers of the combinations that there are, ascending
    place: np.ndarray  #: a distinct outcome of each

    @classmethod
    def of(cls, counted: Counted) -> Places:
        """From the distinct outcomes with a weight: of others nothing is asked."""
        used = np.nonzero(counted.weight > 0)[0]
        identified = _identified(counted.stratum, counted.followed)
        columns = [np.unique(column) for column in identified]
        known, first = np.unique(_numbers(columns, identified)[used], return_index=True)
        return cls(columns, known, used[first])

    def __call__(self, stratum: np.ndarray, y: RightCensored) -> np.ndarray:
        """The number of an outcome with the stratum and follow-up of each subject, (n,)."""
        numbers = _numbers(self.columns, _identified(stratum, y))
        return self.place[np.minimum(np.searchsorted(self.known, numbers), len(self.known) - 1)]


def _identified(stratum: np.ndarray, y: RightCensored) -> tuple[np.ndarray, ...]:
    return stratum, to_numpy(y.time), to_numpy(y.event), _entries(y)


def _numbers(columns: list[np.ndarray], identified: tuple[np.ndarray, ...]) -> np.ndarray:
    number = np.zeros(len(identified[0]), dtype=np.int64)
    for distinct, column in zip(columns, identified, strict=True):
        number = number * len(distinct) + np.searchsorted(distinct, column)
    return number
