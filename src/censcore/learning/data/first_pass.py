"""One pass over training data that are read in batches: moments, counts of times, a sample, who validates."""

from __future__ import annotations

import functools
import hashlib
import itertools
import operator
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np
from torch import Tensor

from censcore._arrays import to_numpy
from censcore.estimators.counted_follow_up import CountedFollowUp
from censcore.estimators.covariates import column_of
from censcore.exceptions import InvalidInputError
from censcore.learning.data.sources import Block, Source, joined_blocks
from censcore.learning.data.standardised import blocks
from censcore.learning.data.streamed import StreamedRows
from censcore.learning.training.exchange import gathered
from censcore.outcomes import RightCensored

HELD_OUT, SAMPLE = 50_000, 20_000  # subjects, at most, for validation, and in the sample of the others


@dataclass(frozen=True)
class Moments:
    """Number, means and sums of squared deviations of columns; those of two samples add up [1]_.

    References
    ----------
    .. [1] T. F. Chan, G. H. Golub and R. J. LeVeque (1983). Algorithms for computing the sample variance:
       analysis and recommendations. The American Statistician 37, 242-247.

    Examples
    --------
    >>> both = Moments.of(np.array([[1.0], [3.0]])) + Moments.of(np.array([[5.0]]))
    >>> both.n, both.mean, both.spread.round(3)
    (3, array([3.]), array([1.633]))
    """

    n: int
    mean: np.ndarray
    squares: np.ndarray

    @classmethod
    def of(cls, X: np.ndarray, rows: np.ndarray | slice = slice(None)) -> Moments:
        """Those of the columns of X over all subjects or some, which are read in blocks."""
        X, chosen = (X[rows], None) if isinstance(rows, slice) else (X, rows)  # a slice copies nothing
        n, d = len(X if chosen is None else chosen), X.shape[1]

        def total(term: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
            parts = (X[block if chosen is None else chosen[block]] for block in blocks(n, d))
            return sum((term(part.astype(np.float64)).sum(axis=0) for part in parts), np.zeros(d))

        mean = total(lambda part: part) / n
        return cls(n, mean, total(lambda part: (part - mean) ** 2))

    def __add__(self, other: Moments) -> Moments:
        n = self.n + other.n
        step = other.mean - self.mean
        squares = self.squares + other.squares + step**2 * (self.n * other.n / n)
        return Moments(n, self.mean + step * (other.n / n), squares)

    @property
    def spread(self) -> np.ndarray:
        """Standard deviations."""
        return np.sqrt(self.squares / self.n)


def time_sums(time: np.ndarray) -> np.ndarray:
    """Number of positive times, their sum, and the sums of log t and log log(1 + t), for each column, (4, k).

    >>> time_sums(np.array([[1.0], [0.0], [3.0]])).round(3).ravel()
    array([ 2.   ,  4.   ,  1.099, -0.04 ])
    """
    total = np.zeros((4, time.shape[1]))
    for rows in blocks(*time.shape):
        t = time[rows].astype(np.float64, copy=False)
        positive = t > 0
        t = np.where(positive, t, 1.0)
        parts = [np.ones_like(t), t, np.log(t), np.log(np.log1p(t))]
        total += np.stack([np.where(positive, part, 0.0).sum(axis=0) for part in parts])
    return total


def mean_time(sums: np.ndarray) -> float:
    """The mean of all positive times, from :func:`time_sums`."""
    count, total = sums[:2].sum(axis=1)
    if not count:
        raise InvalidInputError("Times: got zeros only, expected positive times.")
    return float(total / count)


class Reservoir:
    """The ``size`` subjects with the smallest random numbers, a random sample whatever their order.

    Those that have the number of the last one are kept too.

    >>> import censcore as cs
    >>> kept = Reservoir(2)
    >>> y = cs.RightCensored([1.0, 2.0, 3.0], [1, 1, 1])
    >>> kept.add(np.array([7, 1, 5], dtype=np.uint64), Block(None, y, None, None, 0, np.arange(3)))
    >>> key, some = kept.content()
    >>> key, some.y.time
    (array([1, 5], dtype=uint64), array([2., 3.]))
    """

    def __init__(self, size: int) -> None:
        self.size = size
        self._limit = np.uint64(2**64 - 1)
        self._held: list[tuple[np.ndarray, Block]] = []

    def add(self, key: np.ndarray, block: Block) -> None:
        """Look at more subjects."""
        rows = np.flatnonzero(key <= self._limit)
        if rows.size:
            self._held.append((key[rows], block.take(rows)))
        if sum(len(key) for key, _ in self._held) > 2 * self.size:
            self._held = [self.content()]

    def content(self) -> tuple[np.ndarray, Block]:
        """Random numbers, ascending, and subjects."""
        key, block = np.concatenate([k for k, _ in self._held]), joined_blocks([b for _, b in self._held])
        order = np.argsort(key, kind="stable")
        if len(order) > self.size:
            self._limit = key[order[self.size - 1]]
            order = order[key[order] <= self._limit]
        return key[order], block.take(order)


def content_hash(arrays: Iterable[np.ndarray | None]) -> str:
    """A hash of the contents of arrays.

    >>> content_hash([np.ones(2)]) == content_hash([np.ones(2), None])
    True
    """
    digest = hashlib.sha256()
    for array in arrays:
        if array is not None:
            digest.update(np.ascontiguousarray(array).tobytes())
    return digest.hexdigest()


class FirstPass:
    """What is found in the data of a source, the same in every process but for what concerns its share.

    ``matrix``, ``outcome`` and ``followed`` give the covariates of a block as numbers, its outcome in NumPy,
    and what that tells about C. A ``share`` of the subjects is held out. Subjects are counted by the values
    of the column ``stratify``; ``hashed`` asks for a hash of the data.

    ``times`` are sums over the positive times, see :func:`time_sums`. ``drawn`` is a random sample, with the
    random numbers ``key`` of its subjects in ascending order; the first of them are ``held_out``. ``extreme``
    are subjects with the latest times, and with an event of every kind. This process has ``n_here`` subjects,
    and ``key_here`` of those that may be held out. The hash ``digest`` is empty where none was asked for.
    """

    def __init__(
        self,
        source: Source,
        matrix: Callable[[Block], np.ndarray],
        outcome: Callable[[Any], Any],
        followed: Callable[[Any], RightCensored],
        *,
        share: float,
        seed: int,
        stratify: Any = None,
        hashed: bool = False,
    ) -> None:
        self.source, self.seed = source, seed
        sums, extreme, here = None, None, Reservoir(HELD_OUT + SAMPLE)
        digests: list[tuple[int, int, str]] = []
        for block in (block for read in source.parts for block in read()):
            X, y = matrix(block), outcome(block.y)
            time = to_numpy(y.time).reshape(len(y), -1)
            strata = None if stratify is None else column_of(block.X, stratify)
            more = (Moments.of(X), time_sums(time), CountedFollowUp.of(followed(y), strata))
            sums = more if sums is None else _added(sums, more)
            here.add(block.keys(seed), block)
            extreme = _extreme(block if extreme is None else joined_blocks([extreme, block]), outcome)
            if hashed:
                parts = [X, time, to_numpy(y.event), block.weight, block.groups, y.censoring_time, block.mask]
                digests.append((block.part, int(block.place[0]), content_hash(parts)))
        if sums is None or extreme is None:
            raise InvalidInputError("batches: got no subject (in this process), expected at least one.")
        own = here.content()
        self.n_here, self.key_here = sums[0].n, own[0]
        everywhere = gathered((sums, own, extreme, digests))
        for (moments, times, _), *_ in everywhere[1:]:
            if moments.mean.shape != sums[0].mean.shape or times.shape != sums[1].shape:
                raise InvalidInputError(
                    "batches: the processes got different numbers of covariates or times."
                )
        all_sums, contents, extremes, hashes = zip(*everywhere, strict=True)
        whole = Reservoir(here.size)
        for key, block in contents:
            whole.add(key, block)
        self.key, self.drawn = whole.content()
        self.moments, self.times, self.follow_up = functools.reduce(_added, all_sums)
        self.held_out = _held_out(self.key, self.moments.n, share)
        self.extreme = _extreme(joined_blocks(extremes), outcome)
        listed = str(sorted(itertools.chain(*hashes))).encode()
        self.digest = content_hash([np.frombuffer(listed, dtype=np.uint8)]) if hashed else ""

    @property
    def sample(self) -> Block:
        """A random sample of the training subjects."""
        return self.drawn.take(np.arange(self.held_out, min(len(self.key), self.held_out + SAMPLE)))

    def training(self, convert: Callable[[Block], dict[str, Tensor]], buffer: int) -> StreamedRows:
        """The training subjects, read again in every epoch."""
        last = int(self.key[self.held_out - 1]) if self.held_out else -1
        here = int((self.key_here <= np.uint64(last)).sum()) if self.held_out else 0
        n = self.moments.n - self.held_out
        sample = convert(self.sample)
        return StreamedRows(
            self.source, convert, n, self.n_here - here, self.seed, last, sample, buffer, self.digest
        )

    def validation(self, convert: Callable[[Block], dict[str, Tensor]]) -> dict[str, Tensor] | None:
        """The subjects that are held out."""
        return convert(self.drawn.take(np.arange(self.held_out))) if self.held_out else None


def _added(one: tuple[Any, ...], other: tuple[Any, ...]) -> tuple[Any, ...]:
    return tuple(map(operator.add, one, other))


def _held_out(key: np.ndarray, n: int, share: float) -> int:
    """How many subjects of the sample are held out: the first ones, and whole groups."""
    if share == 0 or n < 10:
        return 0
    size = min(HELD_OUT, max(1, round(share * n)), len(key) - 1)
    count = int(np.searchsorted(key, key[size - 1], side="right"))
    if count >= len(key):
        raise InvalidInputError(
            "All subjects have one group, so that none can be held out for validation. Pass eval_set=, "
            "or validation_fraction=0."
        )
    return count


def _extreme(block: Block, outcome: Callable[[Any], Any]) -> Block:
    """The subjects with the latest time of each kind, and the first with each event."""
    y = outcome(block.y)
    n = len(block)
    events = to_numpy(y.event).reshape(n, -1)
    columns = [to_numpy(y.time).reshape(n, -1), events if block.mask is None else events & block.mask]
    if y.censoring_time is not None:
        columns.append(to_numpy(y.censoring_time).reshape(n, -1))
    return block.take(np.unique(np.concatenate([column.argmax(axis=0) for column in columns])))
