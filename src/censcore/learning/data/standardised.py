"""Standardised covariates for a network, read when needed from memory or from a mapped file."""

from __future__ import annotations

import copy
import hashlib
import math
from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Self

import numpy as np
import torch
from torch import Tensor

_VALUES_AT_ONCE = 2**18


class OnDemand(ABC):
    """An array of float32 with the subjects as first axis, computed for those that are asked for.

    Nothing of its size is kept, so covariates in a mapped file stay on disk while a network is trained.
    """

    device = torch.device("cpu")
    _rows: np.ndarray | None = None  # which subjects, in which order; None for all

    @property
    @abstractmethod
    def _whole(self) -> tuple[int, ...]:
        """The shape of the array of all subjects."""

    @abstractmethod
    def _computed(self, rows: np.ndarray | slice) -> Tensor:
        """The values of some of all subjects."""

    @property
    def shape(self) -> tuple[int, ...]:
        """As a network sees it."""
        return self._whole if self._rows is None else (len(self._rows), *self._whole[1:])

    @property
    def nbytes(self) -> int:
        """Bytes of all of it."""
        return 4 * math.prod(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, index: np.ndarray | Tensor | slice) -> Tensor:
        index = index.numpy() if isinstance(index, Tensor) else index
        return self._computed(index if self._rows is None else self._rows[index])

    def take(self, rows: np.ndarray | slice) -> Self:
        """Some subjects, not computed yet."""
        part = copy.copy(self)
        if not (isinstance(rows, slice) and rows == slice(None)):
            part._rows = (np.arange(len(self)) if self._rows is None else self._rows)[rows]
        return part

    def to(self, device: torch.device) -> Tensor:
        """All subjects on a device, computed and copied a block at a time."""
        whole = torch.empty(self.shape, device=device)
        for rows in blocks(len(self), math.prod(self.shape[1:])):
            whole[rows] = self[rows].to(device)
        return whole


#: Training data: arrays with the subjects as first axis.
Data = Mapping[str, Tensor | OnDemand]


class Standardised(OnDemand):
    r"""Covariates :math:`(x-\mathrm{center})/\mathrm{spread}`; without columns a single zero replaces them.

    >>> X = np.array([[1.0], [2.0], [4.0]], dtype=np.float32)
    >>> x = Standardised(X, np.float32([2.0]), np.float32([2.0])).take(np.array([2, 0]))
    >>> len(x), x[np.array([0])]
    (2, tensor([[1.]]))
    """

    def __init__(self, X: np.ndarray, center: np.ndarray, spread: np.ndarray) -> None:
        self._X, self._center, self._spread = X, center, spread

    @property
    def _whole(self) -> tuple[int, int]:
        return len(self._X), max(1, self._X.shape[1])

    def _computed(self, rows: np.ndarray | slice) -> Tensor:
        taken = self._X[rows]
        if taken.shape[1] == 0:
            return torch.zeros(len(taken), 1)
        return torch.from_numpy(((taken - self._center) / self._spread).astype(np.float32, copy=False))


def subjects_in(data: Data) -> int:
    """Count the subjects of training data.

    >>> subjects_in({"x": torch.zeros(3, 1)})
    3
    """
    return len(next(iter(data.values())))


def rows_of(data: Data, rows: np.ndarray | slice) -> Data:
    """Some subjects of every entry.

    >>> rows_of({"y": torch.tensor([1.0, 2.0, 3.0])}, np.array([2, 0]))
    {'y': tensor([3., 1.])}
    """
    return {
        name: value[rows] if isinstance(value, Tensor) else value.take(rows) for name, value in data.items()
    }


@dataclass(frozen=True)
class Subjects:
    """Some subjects of the data, or all."""

    data: Data
    rows: np.ndarray | slice = field(default_factory=lambda: slice(None))

    @property
    def taken(self) -> Data:
        """Their data alone."""
        return rows_of(self.data, self.rows)

    @property
    def n(self) -> int:
        """Number of subjects."""
        return len(self.numbers)

    @property
    def numbers(self) -> np.ndarray:
        """Their places in the data."""
        return np.arange(subjects_in(self.data))[self.rows]


@dataclass(frozen=True)
class Fold:
    """Subjects that train a network, with their groups, and those held out for its validation, if any."""

    training: Subjects
    validation: Subjects | None = None
    groups: np.ndarray | None = None

    @classmethod
    def of(
        cls,
        data: Data,
        rows: np.ndarray | slice = slice(None),
        held_out: np.ndarray | Subjects | None = None,
        groups: np.ndarray | None = None,
    ) -> Fold:
        """Some subjects of the data, those of it that are held out or others, and the groups of all."""
        apart = Subjects(data, held_out) if isinstance(held_out, np.ndarray) else held_out
        return cls(Subjects(data, rows), apart, None if groups is None else groups[rows])


def gather(data: Data, index: np.ndarray, device: torch.device) -> dict[str, Tensor]:
    """Some subjects of every entry, computed and copied to a device.

    >>> gather({"y": torch.tensor([1.0, 2.0, 3.0])}, np.array([2, 0]), torch.device("cpu"))
    {'y': tensor([3., 1.])}
    """
    position = torch.from_numpy(index)
    return {
        name: value[position.to(value.device)].to(device, non_blocking=True) for name, value in data.items()
    }


def as_arrays(tensors: Mapping[str, Tensor]) -> dict[str, np.ndarray]:
    """Tensors of any device as arrays of NumPy."""
    return {name: tensor.detach().cpu().numpy() for name, tensor in tensors.items()}


def as_tensors(arrays: Mapping[str, np.ndarray]) -> dict[str, Tensor]:
    """Arrays as tensors."""
    return {name: torch.from_numpy(array) for name, array in arrays.items()}


def blocks(n: int, width: int = 1, at_once: int = _VALUES_AT_ONCE) -> Iterator[slice]:
    """Consecutive subjects of ``width`` values each, in blocks that fit into memory.

    >>> list(blocks(5, 2**17))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, at_once // max(1, width))
    for start in range(0, n, step):
        yield slice(start, min(n, start + step))


def digest(value: Tensor | OnDemand) -> str:
    """A hash of the contents, shape and type of an array, read in blocks.

    >>> digest(torch.tensor([1.0, 2.0])) == digest(torch.tensor([2.0, 1.0]))
    False
    """
    sha = hashlib.sha256(f"{tuple(value.shape)}".encode())
    for rows in blocks(len(value), math.prod(value.shape[1:])):
        part = value[rows].cpu()
        sha.update(str(part.dtype).encode() + part.numpy().tobytes())
    return sha.hexdigest()
