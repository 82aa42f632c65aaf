"""How the subjects of a batch are read: their outcomes, weights and labels, and the rows of the table."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore._arrays import as_float
from censcore.evaluation.decisions.asked import Asked
from censcore.evaluation.decisions.subsets import as_subgroups
from censcore.evaluation.outcome_table import OutcomeTable
from censcore.exceptions import CenscoreError, InvalidInputError, InvalidTypeError
from censcore.tables import FrameBatch


@dataclass(frozen=True)
class Columns:
    """What is read of a table: the outcome, by a function of its rows, and columns by their names."""

    outcome: Callable[[Any], Any]
    weight: str | None = None
    groups: str | None = None
    by: tuple[str, ...] = ()
    stratify: str | None = None
    through: float | None = None  #: the horizon, if forecasts are judged at that very time

    @classmethod
    def of(cls, asked: Asked, table: OutcomeTable, stratify: str | None) -> Columns:
        """From the names that a comparison is asked for."""
        by = () if asked.by is None else [asked.by] if isinstance(asked.by, str) else list(asked.by)
        return cls(
            table.reader, _name(asked.sample.weight, "sample_weight"), _name(asked.sample.groups, "groups"),
            tuple(str(_name(name, "by")) for name in by), _name(stratify, "stratify"),
        )  # fmt: skip

    @property
    def labels(self) -> tuple[str, ...]:
        """Those that hold labels."""
        return _distinct(self.groups, self.stratify, *self.by)

    @property
    def all(self) -> tuple[str, ...]:
        """Every one of them that is known."""
        return _distinct(*(getattr(self.outcome, "columns", None) or ()), self.weight, *self.labels)

    def read(self, batch: Any, needed: Sequence[str] | None, size: int) -> Iterator[Rows]:
        """Read subjects, at most ``size`` at a time; ``needed`` are further columns, None for all."""
        if not hasattr(batch, "frames"):
            batch = FrameBatch(batch, batch.columns)  # a partition that Dask has computed
        chosen = needed is not None and getattr(self.outcome, "columns", None) is not None
        wanted = _distinct(*self.all, *(needed or ())) if chosen else None
        first = getattr(batch, "first", 0)
        for frame in batch.frames(wanted, size, self.labels):
            if len(frame):
                try:
                    yield self._rows(frame)
                except CenscoreError as error:
                    where = f"{batch}, {len(frame)} rows from {first} on"
                    raise InvalidInputError(f"{where}: {error}") from error
            first += len(frame)

    def _rows(self, frame: Any) -> Rows:
        y, weight = self.outcome(frame), np.ones(len(frame))
        if self.through is not None and hasattr(y, "followed_through"):
            y = y.followed_through(self.through)
        if len(y) != len(frame):
            raise InvalidInputError(
                f"outcome: got {len(y)} subjects, expected one for each of {len(frame)} rows."
            )
        if self.weight is not None:
            weight = as_float(frame[self.weight].to_numpy(), f"column {self.weight}")
        if not (np.isfinite(weight) & (weight >= 0)).all():
            raise InvalidInputError(f"column {self.weight}: got negative or missing weights.")
        gaps = {name: name not in (self.groups, self.stratify) for name in self.labels}
        labels = {name: labels_of(frame[name].to_numpy(), name, may) for name, may in gaps.items()}
        return Rows(frame, y, weight, labels)


def _name(value: Any, what: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise InvalidTypeError(
        f"{what}: got {type(value).__name__}, expected the name of a column, since the outcome is in a table."
    )


def _distinct(*names: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name is not None))


@dataclass(frozen=True, eq=False)
class Rows:
    """Subjects of a batch: their outcomes, weights and labels, and the rows of the table."""

    frame: Any
    y: Any
    weight: np.ndarray
    labels: dict[str, np.ndarray]

    def stratum(self, by: str | None) -> np.ndarray:
        """The labels of the strata that C is estimated in; zero where there are none."""
        return np.zeros(len(self.weight)) if by is None else self.labels[by]


def labels_of(values: np.ndarray, name: str, gaps: bool) -> np.ndarray:
    """Labels as numbers or as text; missing ones are a subgroup, and an error where there may be no gaps."""
    import pandas as pd

    missing = pd.isna(values)
    if missing.any() and not gaps:
        raise InvalidInputError(f"column {name}: got {int(missing.sum())} missing labels, expected none.")
    return as_subgroups(values)
