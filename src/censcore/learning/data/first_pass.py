"""One pass over training data that are read in batches: all that must be known before an epoch."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.estimators.covariates import column_of
from censcore.exceptions import InvalidInputError
from censcore.learning.data.sources import Block, Source, joined_blocks
from censcore.learning.data.summaries import (
    CountedTimes,
    Moments,
    Reservoir,
    content_hash,
    gathered,
    time_sums,
)
from censcore.outcomes import RightCensored

__all__ = ["FirstPass", "FollowUp", "first_pass"]


@dataclass
class FollowUp:
    """What the data tell about C: how many subjects were followed for how long.

    Attributes
    ----------
    shared : bool
        Whether all data can come from one C per subject.
    censored, known : bool
        Whether any time is censored, and whether all censoring times are given.
    counts : dict
        Counted times by stratum and by what they are: -1 the last contact of a subject, j event time j.
    """

    shared: bool = True
    censored: bool = False
    known: bool = True
    counts: dict[tuple[Any, int], CountedTimes] = field(default_factory=dict)

    def add(self, y: RightCensored, strata: np.ndarray | None) -> None:
        """With more subjects, of a block."""
        self.shared &= y.shares_censoring
        self.censored |= bool(to_numpy(y.censored).any())
        self.known &= y.censoring_time is not None
        time, open_ = (to_numpy(part).reshape(len(y), -1) for part in (y.time, y.censored))
        columns: dict[int, tuple[Any, Any]] = {-1: (time.max(axis=1), open_.any(axis=1))}
        if y.k > 1:
            columns |= {j: (time[:, j], open_[:, j]) for j in range(y.k)}
        labels = [None] if strata is None else np.unique(strata).tolist()
        for label in labels:
            rows: Any = slice(None) if strata is None else np.flatnonzero(strata == label)
            for j, (t, c) in columns.items():
                counted = self.counts.get((label, j), CountedTimes())
                self.counts[label, j] = counted.add(t[rows], c[rows])

    def __add__(self, other: FollowUp) -> FollowUp:
        counts = dict(self.counts)
        for key, counted in other.counts.items():
            counts[key] = counts[key] + counted if key in counts else counted
        return FollowUp(
            self.shared and other.shared,
            self.censored or other.censored,
            self.known and other.known,
            counts,
        )


@dataclass(frozen=True, eq=False)
class FirstPass:
    """What was found.

    Attributes
    ----------
    moments : Moments
        Of the covariates.
    times : array, (4, k)
        Sums over the positive times, see :func:`time_sums`.
    follow_up : FollowUp
        How long subjects were followed.
    key, sample : array of int, Block
        A random sample, with the random numbers of its subjects in ascending order.
    extreme : Block
        Subjects with the latest times, and with an event of every kind.
    n_here : int
        Subjects that this process has.
    key_here : array of int
        The random numbers of those that may be held out among them.
    digest : str
        A hash of the data; empty where none was asked for.
    """

    moments: Moments
    times: np.ndarray
    follow_up: FollowUp
    key: np.ndarray
    sample: Block
    extreme: Block
    n_here: int
    key_here: np.ndarray
    digest: str

    @property
    def n(self) -> int:
        """Number of subjects."""
        return self.moments.n


def first_pass(
    source: Source,
    matrix: Callable[[Block], np.ndarray],
    outcome: Callable[[Any], Any],
    followed: Callable[[Any], RightCensored],
    *,
    size: int,
    seed: int,
    stratify: Any = None,
    hashed: bool = False,
) -> FirstPass:
    """Read the data once.

    Parameters
    ----------
    source : Source
        What this process reads.
    matrix, outcome, followed : callables
        Covariates of a block as numbers; its outcome in NumPy; and what that tells about C.
    size : int
        Subjects in the sample.
    seed : int
        Of the sample.
    stratify : str or int, optional
        A column of the covariates: subjects are counted by its values.
    hashed : bool
        Whether a hash of the data is wanted.

    Returns
    -------
    FirstPass
        The same in every process, but for what concerns its share.
    """
    moments: Moments | None = None
    times, extreme, follow_up, kept = None, None, FollowUp(), Reservoir(size)
    digests: list[tuple[int, int, str]] = []
    for read in source.parts:
        for block in read():
            X, y = matrix(block), outcome(block.y)
            here = Moments.of(X)
            moments = here if moments is None else moments + here
            time = to_numpy(y.time).reshape(len(y), -1)
            times = time_sums(time) if times is None else times + time_sums(time)
            follow_up.add(followed(y), None if stratify is None else column_of(block.X, stratify))
            kept.add(block.keys(seed), block)
            extreme = _extreme(block if extreme is None else joined_blocks([extreme, block]), outcome)
            if hashed:
                event = to_numpy(y.event)
                content = content_hash(
                    [X, time, event, block.weight, block.groups, y.censoring_time, block.mask]
                )
                digests.append((block.part, int(block.place[0]), content))
    if moments is None or times is None or extreme is None:
        raise InvalidInputError("batches: got no subject (in this process), expected at least one.")
    own = kept.content()
    found = gathered((moments, times, follow_up, own, extreme, digests))
    for other in found[1:]:
        if other[0].mean.shape != found[0][0].mean.shape or other[1].shape != found[0][1].shape:
            raise InvalidInputError("batches: the processes got different numbers of covariates or times.")
    whole = Reservoir(size)
    for _, _, _, (key, block), _, _ in found:
        whole.add(key, block)
    key, sample = whole.content()
    listed = sorted(entry for *_, entries in found for entry in entries)
    return FirstPass(
        _sum([entry[0] for entry in found]),
        _sum([entry[1] for entry in found]),
        _sum([entry[2] for entry in found]),
        key,
        sample,
        _extreme(joined_blocks([entry[4] for entry in found]), outcome),
        moments.n,
        own[0],
        content_hash([np.frombuffer(str(listed).encode(), dtype=np.uint8)]) if hashed else "",
    )


def _sum(values: list[Any]) -> Any:
    total = values[0]
    for value in values[1:]:
        total = total + value
    return total


def _extreme(block: Block, outcome: Callable[[Any], Any]) -> Block:
    """The subjects with the latest time of each kind, and the first with each event."""
    y = outcome(block.y)
    n = len(block)
    events = to_numpy(y.event).reshape(n, -1)
    columns = [to_numpy(y.time).reshape(n, -1), events if block.mask is None else events & block.mask]
    if y.censoring_time is not None:
        columns.append(to_numpy(y.censoring_time).reshape(n, -1))
    return block.take(np.unique(np.concatenate([column.argmax(axis=0) for column in columns])))
