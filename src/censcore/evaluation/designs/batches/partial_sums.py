"""Sums over a batch, of which the sums over two batches together are the sum."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np

from censcore.files import write_atomically

__all__ = ["Keyed", "PartialSums", "merged", "read_partial", "write_partial"]


@dataclass(frozen=True, eq=False)
class Keyed:
    """Sums (or largest values) for each distinct key.

    Parameters
    ----------
    keys : tuple of arrays, (K,)
        Columns that together make up a key.
    values : array, (K, c)
        What belongs to it.
    largest : bool
        Whether values of equal keys are combined by their maximum in place of their sum.

    Examples
    --------
    >>> found = Keyed.of((np.array(["b", "a", "b"]),), np.array([[1.0], [2.0], [3.0]]))
    >>> found.keys[0].tolist(), found.values.ravel()
    (['a', 'b'], array([2., 4.]))
    """

    keys: tuple[np.ndarray, ...]
    values: np.ndarray
    largest: bool = False

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
    arrays = dict(_flat(part))
    about = {"largest": [n for n, k in part.keyed.items() if k.largest], "unavailable": part.unavailable}
    arrays["about"] = np.frombuffer(json.dumps(about).encode(), dtype=np.uint8)
    content = io.BytesIO()
    np.savez(content, **arrays)  # type: ignore[arg-type]  # its stub takes them for allow_pickle
    write_atomically(path, content.getvalue())


def _flat(part: PartialSums) -> Iterator[tuple[str, np.ndarray]]:
    for name, value in part.sums.items():
        yield f"sum|{name}", value
    for name, keyed in part.keyed.items():
        yield f"values|{name}", keyed.values
        for i, key in enumerate(keyed.keys):
            yield f"key|{i}|{name}", key


def read_partial(path: Path) -> PartialSums | None:
    """The sums of a batch; None where they were not stored, or the file is damaged."""
    try:
        with np.load(io.BytesIO(path.read_bytes()), allow_pickle=False) as file:
            arrays = {name: file[name] for name in file.files}
        about = json.loads(arrays.pop("about").tobytes())
        unavailable, largest = dict(about["unavailable"]), list(about["largest"])
    except Exception:  # whatever a file from elsewhere holds
        return None
    found = PartialSums(unavailable=unavailable)
    for name, value in arrays.items():
        kind, _, rest = name.partition("|")
        if kind == "sum":
            found.sums[rest] = value
        elif kind == "values":
            keys: list[np.ndarray] = []
            while f"key|{len(keys)}|{rest}" in arrays:
                keys.append(arrays[f"key|{len(keys)}|{rest}"])
            found.keyed[rest] = Keyed(tuple(keys), value, rest in largest)
    return found
