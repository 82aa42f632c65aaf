"""Sums over batches: numbers by name, and by name and key; added in an order that the batches alone fix."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from operator import add
from pathlib import Path
from typing import Any

import numpy as np

from censcore.evaluation.parts.fold_store import load_value, save_value

LARGEST = 2**63 - 1  # number of a key


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
        if not len(values):
            return cls(keys, values, largest)
        number = np.zeros(len(values), dtype=np.int64)
        for key in keys:
            distinct, code = np.unique(key, return_inverse=True)
            if number.max() >= LARGEST // len(distinct):  # millions of several times: number what there is
                number = np.unique(number, return_inverse=True)[1].reshape(-1)
            number = number * len(distinct) + code.reshape(-1)
        order = np.argsort(number)
        first = np.flatnonzero(np.diff(number[order], prepend=-1))
        combine = np.maximum if largest else np.add
        return cls(tuple(key[order[first]] for key in keys), combine.reduceat(values[order], first), largest)

    def __add__(self, other: Keyed) -> Keyed:
        keys = tuple(np.concatenate(pair) for pair in zip(self.keys, other.keys, strict=True))
        return Keyed.of(keys, np.concatenate([self.values, other.values]), self.largest)


@dataclass(frozen=True, eq=False)
class PartialSums:
    """What a batch contributes: sums by name, sums by name and key, and what is not available and why."""

    sums: dict[str, Any] = field(default_factory=dict)
    keyed: dict[str, Keyed] = field(default_factory=dict)
    unavailable: dict[str, str] = field(default_factory=dict)

    def __add__(self, other: PartialSums) -> PartialSums:
        return PartialSums(
            _added(self.sums, other.sums),
            _added(self.keyed, other.keyed),
            {**other.unavailable, **self.unavailable},
        )

    def write(self, path: Path) -> None:
        """Write the sums of a batch in one piece, as arrays that are read without pickle."""
        keyed = {name: (values.keys, values.values, values.largest) for name, values in self.keyed.items()}
        save_value(path, {"sums": self.sums, "keyed": keyed, "unavailable": self.unavailable})

    @classmethod
    def read(cls, path: Path) -> PartialSums | None:
        """Read the sums of a batch; None where they were not stored, or the file is damaged."""

        def decoded(value: Any) -> PartialSums:
            keyed = {name: Keyed(*parts) for name, parts in value["keyed"].items()}
            return cls(dict(value["sums"]), keyed, dict(value["unavailable"]))

        part: PartialSums | None = load_value(path, decoded)
        return part


@np.errstate(invalid="ignore")  # an infinite loss has no spread
def _added(a: dict[str, Any], b: dict[str, Any]) -> dict[str, Any]:
    return a | b | {name: a[name] + b[name] for name in a.keys() & b.keys()}


def merged(parts: Iterable[Any], plus: Callable[[Any, Any], Any] = add) -> Any:
    """Add up parts, pair by pair: rounding and work grow with the logarithm of their number.

    The order of additions follows from the order of the parts alone, whoever makes these.

    >>> merged(["a", "b", "c", "d", "e"], lambda x, y: f"({x}{y})")
    '(((ab)(cd))e)'
    """
    stack: list[tuple[int, Any]] = []
    for part in parts:
        total, level = part, 0
        while stack and stack[-1][0] == level:
            total, level = plus(stack.pop()[1], total), level + 1
        stack.append((level, total))
    total = stack.pop()[1] if stack else PartialSums()
    while stack:
        total = plus(stack.pop()[1], total)
    return total
