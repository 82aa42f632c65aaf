"""Training data that are read again in every epoch, shuffled on the way, in memory of bounded size."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import torch
from torch import Tensor

from censcore.exceptions import InvalidInputError
from censcore.learning.data.sources import Block, Reader, Source, joined_blocks
from censcore.learning.data.standardised import Data

_OPEN = 4  # parts that are read side by side
_PIECE = 8192  # subjects that become tensors at a time

_T = TypeVar("_T")


@dataclass(frozen=True, eq=False)
class StreamedRows:
    """Training subjects of a source, as tensors.

    Every epoch visits the parts in another random order, reads four of them side by side, and passes their
    subjects through a buffer: when it is full, a random half of it becomes batches. The order follows from
    seed and epoch alone, so that a resumed run visits what an uninterrupted one would.

    ``convert`` makes tensors of a block. Of the n training subjects this process has ``n_here``. Those whose
    number, by the seed, is at most ``held_out`` are not trained on; -1 for none. ``sample`` is random and
    of the others, ``digest`` a hash of the data, by which a checkpoint knows them.
    """

    source: Source
    convert: Callable[[Block], dict[str, Tensor]]
    n: int
    n_here: int
    seed: int
    held_out: int
    sample: Data
    buffer: int
    digest: str = ""

    @property
    def taken(self) -> StreamedRows:
        """What is trained on, as of :class:`Subjects`."""
        return self

    def epoch(self, seed: int, epoch: int, count: int) -> Iterator[dict[str, Tensor]]:
        """The batches of one epoch, ``count`` of about equal size."""
        rng = np.random.default_rng([seed, epoch])
        ends = np.arange(1, count + 1) * self.n_here // count
        sizes = np.diff(ends, prepend=0)
        yield from _cut(_ahead(self._shuffled(rng)), sizes.tolist())

    def _shuffled(self, rng: np.random.Generator) -> Iterator[dict[str, Tensor]]:
        """Random halves of the buffer, and at the end the rest of it, in pieces."""
        held: list[Block] = []
        size = 0
        for block in self._training_blocks(rng):
            held.append(block)
            size += len(block)
            while size >= self.buffer:
                whole, order, taken = joined_blocks(held), rng.permutation(size), max(1, size // 2)
                yield from self._pieces(whole, order[:taken])
                held, size = [whole.take(order[taken:])] if taken < size else [], size - taken
                del whole
        if size:
            yield from self._pieces(joined_blocks(held), rng.permutation(size))

    def _pieces(self, block: Block, order: np.ndarray) -> Iterator[dict[str, Tensor]]:
        for start in range(0, len(order), _PIECE):
            yield self.convert(block.take(order[start : start + _PIECE]))

    def _training_blocks(self, rng: np.random.Generator) -> Iterator[Block]:
        parts = self.source.parts
        for block in _side_by_side([parts[i] for i in rng.permutation(len(parts))]):
            if self.held_out < 0:
                yield block
                continue
            rows = np.flatnonzero(block.keys(self.seed) > np.uint64(self.held_out))
            if rows.size:
                yield block.take(rows)


def _side_by_side(parts: Sequence[Reader]) -> Iterator[Block]:
    """Blocks of some parts in turn; when one ends the next takes its place."""
    waiting = deque(parts)
    reading = deque(waiting.popleft()() for _ in range(min(_OPEN, len(parts))))
    while reading:
        blocks = reading.popleft()
        block = next(blocks, None)
        if block is not None:
            reading.append(blocks)
            yield block
        elif waiting:
            reading.append(waiting.popleft()())


def _joined(parts: Sequence[Mapping[str, Tensor]]) -> dict[str, Tensor]:
    return {name: torch.cat([part[name] for part in parts]) for name in parts[0]}


def _cut(parts: Iterator[dict[str, Tensor]], sizes: Sequence[int]) -> Iterator[dict[str, Tensor]]:
    """The same subjects in batches of these sizes."""
    held: dict[str, Tensor] | None = None
    for size in sizes:
        while held is None or len(held["x"]) < size:
            more = next(parts, None)
            if more is None:
                raise _changed()
            held = more if held is None else _joined([held, more])
        yield {name: value[:size] for name, value in held.items()}
        held = {name: value[size:] for name, value in held.items()}
    if (held is not None and len(held["x"])) or next(parts, None) is not None:
        raise _changed()


def _changed() -> InvalidInputError:
    return InvalidInputError(
        "The data changed during training: an epoch read another number of subjects than the first pass. "
        "Batches must be the same every time that they are read."
    )


def _ahead(items: Iterator[_T]) -> Iterator[_T]:
    """The same items, the next of which is made while the present one is used."""
    end = object()
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(next, items, end)
        while (item := following.result()) is not end:
            following = pool.submit(next, items, end)
            yield item  # type: ignore[misc]


def subjects_in(rows: Data | StreamedRows) -> int:
    """Number of training subjects.

    >>> subjects_in({"x": torch.zeros(3, 1)})
    3
    """
    return rows.n if isinstance(rows, StreamedRows) else len(next(iter(rows.values())))
