"""What every task of a comparison knows, and how it reads the subjects of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from censcore._arrays import as_float
from censcore.distributions import Distribution
from censcore.distributions.survival_matrix import settled
from censcore.evaluation.designs.batches.table_censoring import TableCensoring
from censcore.evaluation.inference.censoring_influence import Part, Piece
from censcore.evaluation.kinds import Kind
from censcore.evaluation.measures.case import Case
from censcore.evaluation.measures.case_scores import CaseScore
from censcore.evaluation.plan.request import as_subgroups
from censcore.evaluation.sample import in_numpy
from censcore.exceptions import CenscoreError, InvalidInputError
from censcore.outcomes import RightCensored
from censcore.tables import Batch, FrameBatch

__all__ = ["Columns", "Plan", "Rows", "Subgroup", "labels_of", "read_forecasts", "rows_of"]


@dataclass(frozen=True)
class Columns:
    """What is read of a table: the outcome, by a function of its rows, and columns by their names."""

    outcome: Callable[[Any], Any]
    weight: str | None = None
    groups: str | None = None
    by: tuple[str, ...] = ()
    stratify: str | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """Those that hold labels."""
        return _distinct(self.groups, self.stratify, *self.by)

    @property
    def all(self) -> tuple[str, ...]:
        """Every one of them that is known."""
        return _distinct(*(getattr(self.outcome, "columns", None) or ()), self.weight, *self.labels)


def _distinct(*names: str | None) -> tuple[str, ...]:
    return tuple(dict.fromkeys(name for name in names if name is not None))


@dataclass(frozen=True, eq=False)
class Rows:
    """Subjects of a batch: their outcomes, weights and labels, and the rows of the table."""

    frame: Any
    y: Any
    weight: np.ndarray
    labels: dict[str, np.ndarray]


def rows_of(batch: Any, columns: Columns, needed: Sequence[str] | None, size: int) -> Iterator[Rows]:
    """The subjects of a batch, at most ``size`` at a time; ``needed`` are further columns, None for all."""
    batch = batch if hasattr(batch, "frames") else FrameBatch(batch)  # a partition that Dask has computed
    told = needed is not None and getattr(columns.outcome, "columns", None) is not None
    wanted = _distinct(*columns.all, *(needed or ())) if told else None
    first = 0
    for frame in batch.frames(wanted, size, columns.labels):
        if len(frame):
            try:
                yield _rows(frame, columns)
            except CenscoreError as error:
                raise InvalidInputError(f"{batch}, {len(frame)} rows from {first} on: {error}") from error
        first += len(frame)


def _rows(frame: Any, columns: Columns) -> Rows:
    y, weight = columns.outcome(frame), np.ones(len(frame))
    if len(y) != len(frame):
        raise InvalidInputError(
            f"outcome: got {len(y)} subjects, expected one for each of {len(frame)} rows."
        )
    if columns.weight is not None:
        weight = as_float(frame[columns.weight].to_numpy(), f"column {columns.weight}")
    if not (np.isfinite(weight) & (weight >= 0)).all():
        raise InvalidInputError(f"column {columns.weight}: got negative or missing weights.")
    grouping = (columns.groups, columns.stratify)
    labels = {name: labels_of(frame[name].to_numpy(), name, name not in grouping) for name in columns.labels}
    return Rows(frame, y, weight, labels)


def labels_of(values: np.ndarray, name: str, gaps: bool) -> np.ndarray:
    """Labels as numbers or as text; missing ones are a subgroup, and an error where there may be no gaps."""
    import pandas as pd

    missing = pd.isna(values)
    if missing.any() and not gaps:
        raise InvalidInputError(f"column {name}: got {int(missing.sum())} missing labels, expected none.")
    return as_subgroups(values)


class Subgroup(NamedTuple):
    """Subjects that are averaged over, by their label in a column."""

    by: str
    label: str
    weight: float  #: of all of them
    count: int  #: how many have a positive weight


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that a task needs apart from its batch."""

    columns: Columns
    kind: Kind  #: with the names that all batches share
    rows: int  #: to read at a time
    forecasts: dict[str, Distribution | Callable[[Any], Any]]  #: functions of rows, or one for all subjects
    scores: list[CaseScore]
    horizon: float
    times: np.ndarray
    levels: np.ndarray
    censoring: TableCensoring
    subsets: list[Subgroup]  #: all subjects first
    events: tuple[np.ndarray, np.ndarray]  #: distinct event times and their numbers, to read matrices by
    whose: str  #: whose events these are
    edges: tuple[np.ndarray, ...]  #: cells of all subjects, for every part of the outcome
    by_curve: list[tuple[np.ndarray, ...]] = field(default_factory=list)  #: those of strata with a curve each
    seed: int = 0

    @cached_property
    def needed(self) -> tuple[str, ...] | None:
        """Columns of the forecasts; None where functions do not say which."""
        names = [] if self.censoring.pooled else list(self.censoring.columns)
        for forecast in self.forecasts.values():
            if isinstance(forecast, Distribution):
                continue
            columns = getattr(forecast, "columns", None)
            if columns is None:
                return None
            names += columns
        return tuple(names)

    def read(self, batch: Batch | Any) -> Iterator[Rows]:
        """The subjects of a batch, piece by piece."""
        return rows_of(batch, self.columns, self.needed, self.rows)

    def shares(self, rows: Rows) -> np.ndarray:
        """Weights (n, m) of the subjects in each subset, that sum to one over all batches."""
        inside = [not s.by or rows.labels[s.by].astype(str) == s.label for s in self.subsets]
        shares = [np.where(mine, rows.weight, 0.0) for mine in inside]
        return np.column_stack(shares) / [s.weight for s in self.subsets]

    def forecast(self, rows: Rows) -> dict[str, Any]:
        """What every model says of the subjects, read as they are scored, up to the entries."""
        kind = self.kind.of_subjects(rows.y)
        forecasts = read_forecasts(kind, self.forecasts, rows, self.events, self.whose)
        return kind.settled(forecasts, None, self.horizon, [])

    def cases(self, rows: Rows, forecasts: dict[str, Any] | None = None) -> dict[str, Case]:
        """One case per forecast."""
        kind, cases = self.kind.of_subjects(rows.y), {}
        C = self.censoring.of(self.censoring.covariates(rows.frame, rows.labels), self.follow_up(rows))
        assert C is not None  # checked by the counts
        for name, F in (self.forecast(rows) if forecasts is None else forecasts).items():
            late = kind.scored.has_delayed_entry
            since = kind.given_entry(name, F, self.horizon) if late else F
            case = kind.case(since, C, self.horizon, self.times, self.levels, seed=self.seed)
            cases[name] = replace(case, edges=self.edges)
        return cases

    def follow_up(self, rows: Rows) -> RightCensored:
        """How long the subjects were followed, (n,)."""
        return self.kind.followed(self.kind.read_outcome(rows.y)).last()

    def part(self, rows: Rows) -> Part | None:
        """How mean losses of the subjects move with the estimate of C; None where it counts as known."""
        return self.censoring.part(self.censoring.covariates(rows.frame, rows.labels), len(rows.y))

    def pieces(self, part: Part, case: Case, w: np.ndarray) -> dict[int, Piece]:
        """Its pieces, with the cells of all subjects under each curve."""
        pieces = part.pieces(case, w)
        if not self.by_curve:
            return pieces
        return {i: replace(p, case=replace(p.case, edges=self.by_curve[i])) for i, p in pieces.items()}


def read_forecasts(
    kind: Kind, forecasts: dict[str, Any], rows: Rows, events: tuple[np.ndarray, np.ndarray], whose: str
) -> dict[str, Any]:
    """Distributions of the subjects in some rows; survival matrices are read by the ``events`` of all."""
    read: dict[str, Any] = {}
    for name, forecast in forecasts.items():
        try:
            called = forecast if isinstance(forecast, Distribution) else forecast(rows.frame)
            F = kind.as_forecast(called, None, len(rows.y))
        except CenscoreError as error:
            raise type(error)(f"Forecast {name!r}: {error}") from error
        read[name] = settled(in_numpy(F), events[0], whose, events[1])
    return read
