"""Sums over a batch, of which the sums over two batches together are the sum."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from censcore.evaluation.designs.fold_store import load_value, save_value

__all__ = ["Keyed", "PartialSums", "merged", "read_partial", "write_partial"]


@dataclass(frozen=True, eq=False)
class Keyed:
    """Sums (or largest values) for each distinct key.

    >>> sums = Keyed.of((np.array(["b", "a", "b"]),), np.array([[1.0], [2.0], [3.0]]))
    >>> sums.keys[0].tolist(), sums.values.ravel()
    (['a', 'b'], array([2., 4.]))
    """

    keys: tuple[np.ndarray, ...]  #: columns (K,) that together make up a key
    values: np.ndarray  #: what belongs to it, (K, c)
    largest: bool = False  #: whether values of equal keys are combined by their maximum, not their sum

    @classmethod
    def of(cls, keys: tuple[np.ndarray, ...], values: np.ndarray, largest: bool = False) -> Keyed:
        """From keys that repeat."""
        codes = [np.unique(key, return_inverse=True)[1].reshape(-1) for key in keys]
        order = np.lexsort(codes[::-1])
        if not len(order):
            return cls(keys, values, largest)
        change = np.zeros(len(order), dtype=bool)
        change[0] = True
        for code in codes:
            change[1:] |= np.diff(code[order]) != 0
        first = np.flatnonzero(change)
        combine = np.maximum if largest else np.add
        return cls(tuple(key[order][first] for key in keys), combine.reduceat(values[order], first), largest)

    def __add__(self, other: Keyed) -> Keyed:
        keys = tuple(np.concatenate(pair) for pair in zip(self.keys, other.keys, strict=True))
        return Keyed.of(keys, np.concatenate([self.values, other.values]), self.largest)


@dataclass(frozen=True, eq=False)
class PartialSums:
    """What a batch contributes: sums by name, sums by name and key, and what is not available and why."""

    sums: dict[str, np.ndarray] = field(default_factory=dict)
    keyed: dict[str, Keyed] = field(default_factory=dict)
    unavailable: dict[str, str] = field(default_factory=dict)

    def __add__(self, other: PartialSums) -> PartialSums:
        with np.errstate(invalid="ignore"):  # an infinite loss has no spread
            sums = {**self.sums, **other.sums} | {
                name: self.sums[name] + other.sums[name] for name in self.sums.keys() & other.sums.keys()
            }
        keyed = {**self.keyed, **other.keyed} | {
            name: self.keyed[name] + other.keyed[name] for name in self.keyed.keys() & other.keyed.keys()
        }
        return PartialSums(sums, keyed, {**other.unavailable, **self.unavailable})


def merged(parts: Iterable[PartialSums]) -> PartialSums:
    """The sum of all parts, pair by pair: rounding and work grow with the logarithm of their number.

    The order of additions follows from the order of the parts alone.

    >>> parts = [PartialSums({"n": np.array(float(i))}) for i in range(10)]
    >>> float(merged(parts).sums["n"])
    45.0
    """
    stack: list[tuple[int, PartialSums]] = []
    for part in parts:
        level = 0
        while stack and stack[-1][0] == level:
            part, level = stack.pop()[1] + part, level + 1
        stack.append((level, part))
    total = PartialSums()
    for _, part in reversed(stack):
        total = part + total
    return total


# ---- on disk ---------------------------------------------------------------------------------------------


def write_partial(path: Path, part: PartialSums) -> None:
    """Write the sums of a batch in one piece, as arrays that are read without pickle."""
    keyed = {name: (values.keys, values.values, values.largest) for name, values in part.keyed.items()}
    save_value(path, {"sums": part.sums, "keyed": keyed, "unavailable": part.unavailable})


def read_partial(path: Path) -> PartialSums | None:
    """The sums of a batch; None where they were not stored, or the file is damaged."""

    def read(value: Any) -> PartialSums:
        keyed = {name: Keyed(*parts) for name, parts in value["keyed"].items()}
        return PartialSums(dict(value["sums"]), keyed, dict(value["unavailable"]))

    part: PartialSums | None = load_value(path, read)
    return part
