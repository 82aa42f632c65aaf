"""What one pass over the data tells before training: moments, a sample, counts of times."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch

from censcore.learning.data.sources import Block, joined_blocks
from censcore.learning.training.exchange import rank_and_processes

__all__ = ["CountedTimes", "Moments", "Reservoir", "content_hash", "gathered", "time_sums"]


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
    def of(cls, X: np.ndarray) -> Moments:
        """Those of the columns of X."""
        values = X.astype(np.float64)
        mean = values.mean(axis=0)
        return cls(len(X), mean, ((values - mean) ** 2).sum(axis=0))

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
    time = time.astype(np.float64, copy=False)
    positive = time > 0
    t = np.where(positive, time, 1.0)
    parts = [np.ones_like(t), t, np.log(t), np.log(np.log1p(t))]
    return np.stack([np.where(positive, part, 0.0).sum(axis=0) for part in parts])


DISTINCT = 2**16  # times, at most, that are told apart


@dataclass
class CountedTimes:
    """How many subjects were seen up to each time, and how many of them were censored there.

    With too many distinct times all are rounded up to fewer binary digits, which keeps their order. Rounding
    up twice is rounding up once to the fewer digits, so that the order of the data plays no part.

    Examples
    --------
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


def _rounded_up(time: np.ndarray, digits: int) -> np.ndarray:
    """Times as the next number with so many binary digits after the first.

    >>> _rounded_up(np.array([1.0, 1.1, 3.0]), 1)
    array([1. , 1.5, 3. ])
    """
    rest = np.int64(2 ** (52 - digits) - 1)
    bits = np.ascontiguousarray(time, dtype=np.float64).view(np.int64)
    return ((bits + rest) & ~rest).view(np.float64)


class Reservoir:
    """The subjects with the smallest random numbers, a random sample whatever their order.

    Parameters
    ----------
    size : int
        How many subjects to keep; more where several have the number of the last one.

    Examples
    --------
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
    found = hashlib.sha256()
    for array in arrays:
        if array is not None:
            found.update(np.ascontiguousarray(array).tobytes())
    return found.hexdigest()


def gathered(value: Any) -> list[Any]:
    """The values of all processes, in their order.

    >>> gathered(7)
    [7]
    """
    processes = rank_and_processes()[1]
    if processes == 1:
        return [value]
    found: list[Any] = [None] * processes
    torch.distributed.all_gather_object(found, value)
    return found
