"""How many subjects had which outcome, which decides on curves, the horizon and default times."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from censcore._arrays import to_numpy
from censcore.evaluation.decisions.horizon import FollowUp
from censcore.evaluation.kinds import Kind
from censcore.evaluation.parts.batches.runners import Keyed
from censcore.evaluation.sample import Sample
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored

DISTINCT = 5_000_000  # outcomes up to which memory stays bounded


@dataclass(frozen=True, eq=False)
class Counts:
    """Distinct outcomes, sorted by stratum, time and event, and how many subjects had each, (J,) arrays."""

    stratum: np.ndarray  #: labels
    time: np.ndarray
    code: np.ndarray  #: whether it was an event, or of which cause
    entry: np.ndarray  #: zero from the start
    rows: np.ndarray  #: numbers of subjects
    positive: np.ndarray  #: of those with a positive weight
    weight: np.ndarray  #: sums of their weights

    @classmethod
    def of(cls, counted: Keyed, what: str) -> Counts:
        """From the sums of all batches."""
        if len(counted.values) > DISTINCT:
            entries = " and entries" if counted.keys[3].any() else ""
            raise InvalidInputError(
                f"{what}: got {len(counted.values)} distinct times{entries}, expected at most "
                f"{DISTINCT}, which bounds the memory of a Kaplan-Meier curve. Round the times (days, "
                "hours), or estimate the censoring distribution from fewer subjects by train=."
            )
        counts = cls(*counted.keys, *counted.values.T)
        if not counts.weight.any():
            raise InvalidInputError(f"{what}: got no subject with a positive weight.")
        return counts

    @property
    def event(self) -> np.ndarray:
        """Whether it was an event; where there are causes, one of the first."""
        return self.code == 1

    @property
    def n(self) -> int:
        """Number of subjects."""
        return int(self.rows.sum())

    @property
    def n_events(self) -> int:
        """Number of events."""
        return int(self.rows[self.event].sum())

    @property
    def late(self) -> bool:
        """Whether some of them entered late."""
        return bool((self.entry > 0).any())

    def subjects(self, stratify: str | None) -> Sample:
        """The distinct outcomes as subjects of many, for estimators that take weights."""
        import pandas as pd

        X = None if stratify is None else pd.DataFrame({stratify: self.stratum})
        return Sample(X, RightCensored(self.time, self.event, entry=self.entry), self.weight)

    def take(self, chosen: np.ndarray) -> Counts:
        """Some of them."""
        return Counts(*(value[chosen] for value in vars(self).values()))

    def places(self, stratum: np.ndarray, y: RightCensored) -> np.ndarray:
        """Where subjects of the strata (n,) with outcomes y are among the distinct ones, (n,)."""
        entry = np.zeros(len(y)) if y.entry is None else y.entry
        columns = (self.stratum, stratum), (self.time, y.time), (self.event, y.event), (self.entry, entry)
        known, asked = np.zeros(len(self.time), dtype=np.intp), np.zeros(len(y), dtype=np.intp)
        for ours, theirs in columns:
            distinct, code = np.unique(ours, return_inverse=True)
            known = known * len(distinct) + code
            asked = asked * len(distinct) + np.searchsorted(distinct, to_numpy(theirs))
        return np.searchsorted(known, asked)

    def events(self) -> tuple[np.ndarray, np.ndarray]:
        """Distinct event times, and how often each was seen."""
        time, number = np.unique(self.time[self.event], return_inverse=True)
        return time, np.bincount(number.reshape(-1), self.rows[self.event], minlength=len(time))

    def followed(self) -> FollowUp:
        """How long subjects were followed."""
        used = self.positive > 0
        entry = self.entry[used] if self.late else None
        return FollowUp.of(self.time[used], self.positive[used], entry)

    def typical(self) -> RightCensored:
        """A thousand outcomes with the quantiles of all times, and the last one, to judge units by."""
        sample = self.followed()
        share = np.cumsum(sample.count) / sample.count.sum()
        middle = sample.time[np.searchsorted(share, (np.arange(1001) + 0.5) / 1001)]
        return RightCensored(np.append(middle, sample.time[-1]), np.ones(1002, dtype=bool))


@dataclass(frozen=True, eq=False)
class Counted:
    """Everything that was counted of a table, or of training subjects."""

    follow_up: Counts  #: how long subjects were followed
    parts: list[Counts]  #: of every event time, as the kind counts them
    by: dict[str, Keyed]  #: numbers by label, and the last times of groups

    @classmethod
    def of(cls, keyed: dict[str, Keyed], what: str) -> Counted:
        """From the sums of all batches."""
        if "outcomes" not in keyed:
            raise InvalidInputError(f"{what}: got a table without rows, expected at least one subject.")
        follow_up = Counts.of(keyed["outcomes"], what)
        parts = [Counts.of(keyed[f"part {j}"], what) for j in range(len(keyed)) if f"part {j}" in keyed]
        return cls(follow_up, parts or [follow_up], keyed)

    @property
    def rows(self) -> np.ndarray:
        """How many subjects each of the outcomes of :meth:`sample` stands for."""
        return np.concatenate([part.rows for part in self.parts])

    def sample(self, kind: Kind) -> Sample:
        """Subjects of many, with outcomes of the kind; of another one where that is more than was counted."""
        y, mask = kind.of_parts([(part.time, part.code, part.entry) for part in self.parts])
        return Sample(None, y, np.concatenate([part.weight for part in self.parts]), mask=mask)
