"""Standardised covariates for a network, read when needed from memory or from a mapped file."""

from __future__ import annotations

import hashlib
import math
from collections.abc import Iterator, Mapping
from typing import Protocol, Self

import numpy as np
import torch
from torch import Tensor

__all__ = [
    "Data",
    "OnDemand",
    "Standardised",
    "blocks",
    "copied_to",
    "digest",
    "gather",
    "moments",
    "rows_of",
]

_VALUES_AT_ONCE = 2**18


class OnDemand(Protocol):
    """An array with the subjects as first axis that is computed for those that are asked for."""

    @property
    def device(self) -> torch.device:
        """Where it is computed."""

    @property
    def shape(self) -> tuple[int, ...]:
        """As a network sees it."""

    @property
    def nbytes(self) -> int:
        """Bytes of all of it."""

    def __len__(self) -> int: ...

    def __getitem__(self, index: np.ndarray | Tensor | slice) -> Tensor: ...

    def take(self, rows: np.ndarray | slice) -> Self:
        """Some subjects, not computed yet."""

    def to(self, device: torch.device) -> Tensor:
        """All subjects on a device."""


#: Training data: arrays with the subjects as first axis.
Data = Mapping[str, "Tensor | OnDemand"]


class Standardised:
    r"""Covariates :math:`(x-\mathrm{center})/\mathrm{spread}`, computed for the subjects that are asked for.

    Nothing of the size of X is copied, so a memory-mapped X stays on disk while a network is trained on it.

    Parameters
    ----------
    X : array of float32, (n, d)
        Covariates; without columns a single zero replaces them.
    center, spread : arrays of float32, (d,)
        Means and standard deviations.
    rows : array of int or slice
        Only these subjects, in this order.

    Examples
    --------
    >>> import numpy as np
    >>> X = np.array([[1.0], [2.0], [4.0]], dtype=np.float32)
    >>> x = Standardised(X, np.float32([2.0]), np.float32([2.0]), rows=np.array([2, 0]))
    >>> len(x), x[np.array([0])]
    (2, tensor([[1.]]))
    """

    def __init__(
        self,
        X: np.ndarray,
        center: np.ndarray,
        spread: np.ndarray,
        rows: np.ndarray | slice = slice(None),
    ) -> None:
        self._X, self._rows = _narrowed(X, rows)
        self._center, self._spread = center, spread

    @property
    def device(self) -> torch.device:
        """Where it is computed."""
        return torch.device("cpu")

    def __len__(self) -> int:
        return len(self._X if self._rows is None else self._rows)

    @property
    def shape(self) -> tuple[int, int]:
        """Number of subjects, and of columns as a network sees them."""
        return len(self), max(1, self._X.shape[1])

    @property
    def nbytes(self) -> int:
        """Bytes of the data as a network sees them."""
        return 4 * self.shape[0] * self.shape[1]

    def __getitem__(self, index: np.ndarray | Tensor | slice) -> Tensor:
        if isinstance(index, Tensor):
            index = index.numpy()
        taken = self._X[index if self._rows is None else self._rows[index]]
        if taken.shape[1] == 0:
            return torch.zeros(len(taken), 1)
        return torch.from_numpy(((taken - self._center) / self._spread).astype(np.float32, copy=False))

    def take(self, rows: np.ndarray | slice) -> Standardised:
        """The covariates of some subjects."""
        chosen = rows if self._rows is None else self._rows[rows]
        return Standardised(self._X, self._center, self._spread, chosen)

    def to(self, device: torch.device) -> Tensor:
        """All subjects on a device, copied a block at a time."""
        return copied_to(self, device)


def copied_to(value: OnDemand, device: torch.device) -> Tensor:
    """All subjects on a device, computed and copied a block at a time."""
    whole = torch.empty(value.shape, device=device)
    for rows in blocks(len(value), math.prod(value.shape[1:])):
        whole[rows] = value[rows].to(device)
    return whole


def moments(X: np.ndarray, rows: np.ndarray | slice = slice(None)) -> tuple[np.ndarray, np.ndarray]:
    """Compute means and standard deviations of the columns over all subjects or some, (d,) each.

    >>> [m.tolist() for m in moments(np.array([[1.0], [3.0], [9.0]]), np.array([0, 1]))]
    [[2.0], [1.0]]
    """
    X, chosen = _narrowed(X, rows)
    n = len(X if chosen is None else chosen)

    def parts() -> Iterator[np.ndarray]:
        for block in blocks(n, X.shape[1]):
            yield X[block if chosen is None else chosen[block]].astype(np.float64)

    mean = sum((part.sum(axis=0) for part in parts()), np.zeros(X.shape[1])) / n
    squares = sum((((part - mean) ** 2).sum(axis=0) for part in parts()), np.zeros(X.shape[1]))
    return mean, np.sqrt(squares / n)


def _narrowed(X: np.ndarray, rows: np.ndarray | slice) -> tuple[np.ndarray, np.ndarray | None]:
    """A slice is taken at once, since that copies nothing; other subjects are taken when needed."""
    return (X[rows], None) if isinstance(rows, slice) else (X, rows)


def rows_of(data: Data, rows: np.ndarray | slice) -> Data:
    """Some subjects of every entry.

    >>> rows_of({"y": torch.tensor([1.0, 2.0, 3.0])}, np.array([2, 0]))
    {'y': tensor([3., 1.])}
    """
    return {
        name: value[rows] if isinstance(value, Tensor) else value.take(rows) for name, value in data.items()
    }


def gather(data: Data, index: np.ndarray, device: torch.device) -> dict[str, Tensor]:
    """Some subjects of every entry, computed and copied to a device.

    >>> gather({"y": torch.tensor([1.0, 2.0, 3.0])}, np.array([2, 0]), torch.device("cpu"))
    {'y': tensor([3., 1.])}
    """
    position = torch.from_numpy(index)
    return {
        name: value[position.to(value.device)].to(device, non_blocking=True) for name, value in data.items()
    }


def blocks(n: int, width: int = 1) -> Iterator[slice]:
    """Consecutive subjects of ``width`` values each, in blocks that fit into memory.

    >>> list(blocks(5, 2**17))
    [slice(0, 2, None), slice(2, 4, None), slice(4, 5, None)]
    """
    step = max(1, _VALUES_AT_ONCE // max(1, width))
    for start in range(0, n, step):
        yield slice(start, min(n, start + step))


def digest(value: Tensor | OnDemand) -> str:
    """A hash of the contents, shape and type of an array, read in blocks.

    >>> digest(torch.tensor([1.0, 2.0])) == digest(torch.tensor([2.0, 1.0]))
    False
    """
    found = hashlib.sha256(f"{tuple(value.shape)}".encode())
    for rows in blocks(len(value), math.prod(value.shape[1:])):
        part = value[rows].cpu()
        found.update(str(part.dtype).encode() + part.numpy().tobytes())
    return found.hexdigest()
