"""Minibatches: every subject once per epoch, no group twice in a batch, the same for the same seed."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from censcore.exceptions import InvalidInputError
from censcore.learning.data.standardised import Fold

_ROWS_AT_ONCE = 65_536


class Batches:
    """The order in which subjects are visited.

    No two subjects of one group share a batch; those of a group are spread over the epoch. Batch sizes then
    vary a little; groups larger than the number of batches raise that number.

    ``epoch(seed, e)`` is a pure function, so that a resumed run visits what an uninterrupted one would.

    Examples
    --------
    >>> batches = Batches(6, batch_size=2, groups=[0, 0, 1, 1, 2, 2])
    >>> [(batch // 2).tolist() for batch in batches.epoch(seed=0, epoch=0)]  # groups of each batch
    [[1, 2, 0], [1, 0], [2]]
    """

    def __init__(self, n_rows: int, batch_size: int, groups: np.ndarray | None = None) -> None:
        if batch_size < 1:
            raise InvalidInputError(f"batch_size must be at least 1; got {batch_size}.")
        self.n_rows = n_rows
        self.count = max(1, round(n_rows / batch_size))
        self._groups: np.ndarray | None = None
        self._whole = np.int32 if n_rows < 2**31 else np.int64
        if groups is not None:
            if len(groups) != n_rows:
                raise InvalidInputError(
                    f"groups: got {len(groups)} values, expected {n_rows}, one per subject."
                )
            number, self._sizes = np.unique(groups, return_inverse=True, return_counts=True)[1:]
            self._groups = number.astype(self._whole)
            self.count = max(self.count, int(self._sizes.max()))

    def __len__(self) -> int:
        return self.count

    @property
    def grouped(self) -> bool:
        """Whether subjects have groups, so that batches differ in size."""
        return self._groups is not None

    def epoch(self, seed: int, epoch: int) -> Iterator[np.ndarray]:
        """The batches of one epoch, each an array of subject numbers."""
        rng = np.random.default_rng([seed, epoch])
        order = rng.permutation(np.arange(self.n_rows, dtype=self._whole))
        if self._groups is None:
            yield from (rows.astype(np.intp) for rows in np.array_split(order, self.count))
            return
        batch = self._spread(order, rng)
        by_batch = order[np.argsort(batch, kind="stable")]
        ends = np.cumsum(np.bincount(batch, minlength=self.count))
        yield from (rows.astype(np.intp) for rows in np.split(by_batch, ends[:-1]))

    def _spread(self, order: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """A batch for each subject of ``order``: those of a group go to distinct, evenly spaced batches."""
        assert self._groups is not None
        group = self._groups[order]
        start = rng.integers(self.count, size=len(self._sizes))
        first = np.cumsum(self._sizes) - self._sizes
        batch = np.empty(len(order), dtype=self._whole)
        by_group = np.argsort(group, kind="stable")
        for place in range(0, len(order), _ROWS_AT_ONCE):
            rows = by_group[place : place + _ROWS_AT_ONCE]
            g = group[rows]
            rank = np.arange(place, place + len(rows)) - first[g]
            batch[rows] = (start[g] + rank * self.count // self._sizes[g]) % self.count
        return batch


class FoldBatches:
    """The batches of networks that are trained side by side, each on the subjects of its own fold.

    All have as many batches in an epoch. A batch is a matrix of places in the data, with the subjects of one
    network in a row, and a matrix of shares: 1, or 0 where the row of another network is longer.
    """

    def __init__(self, folds: Sequence[Fold], batch_size: int, seeds: Sequence[int]) -> None:
        self.numbers, self.seeds = [fold.training.numbers for fold in folds], seeds
        self.orders = [
            Batches(len(rows), batch_size, fold.groups)
            for rows, fold in zip(self.numbers, folds, strict=True)
        ]
        self.count = max(map(len, self.orders))
        for order in self.orders:
            order.count = self.count

    def __len__(self) -> int:
        return self.count

    def epoch(self, number: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
        """Yield the batches of one epoch, each with its places and shares, (networks, room)."""
        orders = [order.epoch(seed, number) for order, seed in zip(self.orders, self.seeds, strict=True)]
        for parts in zip(*orders, strict=True):
            yield filled([rows[part] for rows, part in zip(self.numbers, parts, strict=True)])


def filled(parts: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Fill a matrix with rows of numbers of different length; 1 where an entry is one of them, else 0.

    >>> filled([np.array([3, 4]), np.array([5])])
    (array([[3, 4],
           [5, 0]]), array([[1., 1.],
           [1., 0.]], dtype=float32))
    """
    room = max(len(part) for part in parts)
    index = np.zeros((len(parts), room), dtype=np.intp)
    share = np.zeros((len(parts), room), dtype=np.float32)
    for i, part in enumerate(parts):
        index[i, : len(part)], share[i, : len(part)] = part, 1.0
    return index, share
