"""How many subjects had which outcome, which decides on curves, the horizon and default times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.evaluation.designs.batches.partial_sums import Keyed
from censcore.evaluation.plan.horizon import FollowUp
from censcore.evaluation.sample import Sample
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored

__all__ = ["Counts"]

DISTINCT = 5_000_000  # outcomes up to which memory stays bounded


@dataclass(frozen=True, eq=False)
class Counts:
    """Distinct outcomes, sorted by stratum, time and event, and how many subjects had each.

    Parameters
    ----------
    stratum, time, event : array, (J,)
        Label of the stratum, observed time, and whether it was an event.
    entry : array, (J,), optional
        When subjects entered, where some of them came late.
    rows, positive, weight : array, (J,)
        Numbers of subjects, of those with a positive weight, and the sum of their weights.
    """

    stratum: np.ndarray
    time: np.ndarray
    event: np.ndarray
    rows: np.ndarray
    positive: np.ndarray
    weight: np.ndarray
    entry: np.ndarray | None = None

    @classmethod
    def of(cls, counted: Keyed, what: str) -> Counts:
        """From the sums of all batches."""
        stratum, time, event, *entry = counted.keys
        if len(time) > DISTINCT:
            raise InvalidInputError(
                f"{what}: got {len(time)} distinct times{' and entries' if entry else ''}, expected at most "
                f"{DISTINCT}, which bounds the memory of a Kaplan-Meier curve. Round the times (days, "
                "hours), or estimate the censoring distribution from fewer subjects by train=."
            )
        found = cls(stratum, time, event.astype(bool), *counted.values.T, *entry)
        if not found.weight.any():
            raise InvalidInputError(f"{what}: got no subject with a positive weight.")
        return found

    @property
    def n(self) -> int:
        """Number of subjects."""
        return int(self.rows.sum())

    @property
    def late(self) -> bool:
        """Whether some of them entered late."""
        return self.entry is not None and bool((self.entry > 0).any())

    def subjects(self, stratify: str | None) -> Sample:
        """The distinct outcomes as subjects of many, for estimators that take weights."""
        import pandas as pd

        X = None if stratify is None else pd.DataFrame({stratify: self.stratum})
        return Sample(X, RightCensored(self.time, self.event, entry=self.entry), self.weight)

    def take(self, chosen: np.ndarray) -> Counts:
        """Some of them."""
        parts: dict[str, Any] = {
            name: None if value is None else value[chosen] for name, value in vars(self).items()
        }
        return Counts(**parts)

    def places(self, stratum: np.ndarray, y: RightCensored, number: np.ndarray) -> np.ndarray:
        """Where subjects with outcomes y in the strata ``number`` (n,) are among the distinct ones, (n,).

        ``stratum`` are the numbers of the strata of the distinct outcomes, (J,).
        """
        time, entry = np.unique(self.time), np.unique(_or_zero(self.entry, self.time))

        def code(stratum: np.ndarray, t: np.ndarray, d: np.ndarray, a: np.ndarray | None) -> np.ndarray:
            at = np.searchsorted(entry, _or_zero(a, t))
            return ((stratum * len(time) + np.searchsorted(time, t)) * 2 + d) * len(entry) + at

        known = code(stratum, self.time, self.event, self.entry)
        given = None if y.entry is None else to_numpy(y.entry)
        asked = code(number, to_numpy(y.time), to_numpy(y.event), given)
        order = np.argsort(known)
        return order[np.searchsorted(known[order], asked)]

    def events(self) -> tuple[np.ndarray, np.ndarray]:
        """Distinct event times, and how often each was seen."""
        time, number = np.unique(self.time[self.event], return_inverse=True)
        return time, np.bincount(number.reshape(-1), self.rows[self.event], minlength=len(time))

    def followed(self) -> FollowUp:
        """How long subjects were followed."""
        used = self.positive > 0
        entry = self.entry[used] if self.late and self.entry is not None else None
        return FollowUp.of(self.time[used], self.positive[used], entry)

    def typical(self) -> RightCensored:
        """A thousand outcomes with the quantiles of all times, and the last one, to judge units by."""
        sample = self.followed()
        share = np.cumsum(sample.count) / sample.count.sum()
        middle = sample.time[np.searchsorted(share, (np.arange(1001) + 0.5) / 1001)]
        return RightCensored(np.append(middle, sample.time[-1]), np.ones(1002, dtype=bool))


def _or_zero(entry: np.ndarray | None, like: np.ndarray) -> np.ndarray:
    return np.zeros(len(like)) if entry is None else entry
