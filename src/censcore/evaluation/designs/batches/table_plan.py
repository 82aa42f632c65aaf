"""What every task of a comparison knows, and how it reads the subjects of a batch."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple

import numpy as np

from censcore._arrays import as_float
from censcore.distributions import Distribution, Grouped, Univariate
from censcore.distributions.survival_matrix import settled, up_to
from censcore.estimators import as_forecast
from censcore.evaluation.designs.batches.fitted_censoring import FittedCensoring
from censcore.evaluation.measures.case import Case
from censcore.evaluation.measures.case_scores import CaseScore
from censcore.evaluation.plan.delayed_entry import given_entry
from censcore.evaluation.plan.subsets import as_subgroups
from censcore.exceptions import CenscoreError, InvalidInputError
from censcore.outcomes import RightCensored
from censcore.scores.inputs import known_censoring
from censcore.tables import Batch, FrameBatch

__all__ = [
    "Columns", "Curve", "Piece", "Plan", "Rows",
    "labels_of", "rows_of",
]  # fmt: skip


@dataclass(frozen=True)
class Columns:
    """Names of the columns of a table."""

    time: str
    event: str
    censoring_time: str | None = None
    weight: str | None = None
    groups: str | None = None
    by: tuple[str, ...] = ()
    stratify: str | None = None
    entry: str | None = None

    @property
    def labels(self) -> tuple[str, ...]:
        """Those that hold labels."""
        given = (self.groups, self.stratify, *self.by)
        return tuple(dict.fromkeys(name for name in given if name is not None))

    @property
    def all(self) -> tuple[str, ...]:
        """Every one of them."""
        given = (self.time, self.event, self.censoring_time, self.entry, self.weight, *self.labels)
        return tuple(dict.fromkeys(name for name in given if name is not None))


@dataclass(frozen=True, eq=False)
class Rows:
    """Subjects of a batch: their outcomes, weights and labels, and the rows of the table."""

    frame: Any
    y: RightCensored
    weight: np.ndarray
    labels: dict[str, np.ndarray]


def rows_of(batch: Any, columns: Columns, needed: Sequence[str] | None, size: int) -> Iterator[Rows]:
    """The subjects of a batch, at most ``size`` at a time; ``needed`` are further columns, None for all."""
    batch = batch if hasattr(batch, "frames") else FrameBatch(batch)  # a partition that Dask has computed
    wanted = None if needed is None else list(dict.fromkeys([*columns.all, *needed]))
    first = 0
    for frame in batch.frames(wanted, size, columns.labels):
        if len(frame):
            try:
                yield _rows(frame, columns)
            except CenscoreError as error:
                raise InvalidInputError(f"{batch}, {len(frame)} rows from {first} on: {error}") from error
        first += len(frame)


def _rows(frame: Any, columns: Columns) -> Rows:
    def numbers(name: str) -> np.ndarray:
        return as_float(frame[name].to_numpy(), f"column {name}")

    known = None if columns.censoring_time is None else numbers(columns.censoring_time)
    entry = None if columns.entry is None else numbers(columns.entry)
    y = RightCensored(numbers(columns.time), frame[columns.event].to_numpy(), known, entry=entry)
    weight = np.ones(len(frame)) if columns.weight is None else numbers(columns.weight)
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


@dataclass(frozen=True, eq=False)
class Curve:
    """The estimated censoring distribution of one stratum.

    ``jumps`` are the times at which derivatives are taken, ``edges`` the cells of the scored subjects in it.
    """

    distribution: Univariate
    jumps: np.ndarray
    edges: np.ndarray


class Piece(NamedTuple):
    """Subjects whose censoring distributions move together: A(u) of their losses is one sum."""

    number: int
    subjects: np.ndarray
    case: Case
    weight: np.ndarray
    jumps: np.ndarray


@dataclass(frozen=True, eq=False)
class Plan:
    """Everything that a task needs apart from its batch.

    Parameters
    ----------
    columns : Columns
        Of the table.
    rows : int
        How many to read at a time.
    forecasts : dict
        Name -> function of a frame, or one distribution for all subjects.
    scores : list of CaseScore
        Which losses are taken.
    horizon, times, levels
        Where.
    strata : array
        Labels of the strata of the censoring distribution, sorted; one entry where there are none.
    curves : list of Curve
        The estimate in each; empty where the censoring distribution is known.
    given : Distribution or None
        A distribution that is given; None where the censoring times are known.
    subsets : list of (column, label, weight)
        Subgroups with the total weight of their subjects; all subjects first.
    events : pair of arrays
        Distinct event times and how often each was seen, which decide how survival matrices are read.
    whose : str
        Whose events these are.
    edges : array
        Cells of all subjects.
    fitted : FittedCensoring or None
        The censoring distribution given covariates.
    """

    columns: Columns
    rows: int
    forecasts: dict[str, Distribution | Callable[[Any], Any]]
    scores: list[CaseScore]
    horizon: float
    times: np.ndarray
    levels: np.ndarray
    strata: np.ndarray
    curves: list[Curve]
    given: Distribution | None
    subsets: list[tuple[str, str, float]]
    events: tuple[np.ndarray, np.ndarray]
    whose: str
    edges: np.ndarray
    fitted: FittedCensoring | None = None

    @cached_property
    def needed(self) -> tuple[str, ...] | None:
        """Columns of the forecasts; None where functions do not say which."""
        names = [] if self.fitted is None else list(self.fitted.columns)
        for forecast in self.forecasts.values():
            if isinstance(forecast, Distribution):
                continue
            if not hasattr(forecast, "columns"):
                return None
            names += list(getattr(forecast, "columns", ()))
        return tuple(names)

    def read(self, batch: Batch | Any) -> Iterator[Rows]:
        """The subjects of a batch, piece by piece."""
        return rows_of(batch, self.columns, self.needed, self.rows)

    def stratum(self, rows: Rows) -> np.ndarray:
        """The number of the stratum of each subject, (n,)."""
        if self.columns.stratify is None:
            return np.zeros(len(rows.y), dtype=np.intp)
        label = rows.labels[self.columns.stratify]
        number = np.minimum(np.searchsorted(self.strata, label), len(self.strata) - 1)
        unknown = np.unique(label[self.strata[number] != label])
        if len(unknown):
            raise InvalidInputError(
                f"Column {self.columns.stratify!r}: got values that were not seen in fitting, "
                f"{unknown[:5].tolist()}; expected one of {self.strata[:10].tolist()}."
            )
        return number

    def shares(self, rows: Rows) -> np.ndarray:
        """Weights (n, m) of the subjects in each subset, that sum to one over all batches."""
        found = []
        for by, label, total in self.subsets:
            inside = True if not by else rows.labels[by].astype(str) == label
            found.append(np.where(inside, rows.weight, 0.0) / total)
        return np.column_stack(found)

    def cases(self, rows: Rows) -> dict[str, Case]:
        """One case per forecast."""
        C = self._censoring(rows)
        made = {}
        for name, forecast in self.forecasts.items():
            F = forecast if isinstance(forecast, Distribution) else self._called(name, forecast, rows)
            F = up_to(settled(F, self.events[0], self.whose, self.events[1]), self.horizon)
            if rows.y.has_delayed_entry:
                F = given_entry(name, F, rows.y, self.horizon)
            made[name] = Case(rows.y, F, C, self.horizon, self.times, self.levels, edges=self.edges)
        return made

    def _called(self, name: str, forecast: Callable[[Any], Any], rows: Rows) -> Distribution:
        try:
            F = as_forecast(forecast(rows.frame), n=len(rows.y))
        except CenscoreError as error:
            raise type(error)(f"Forecast {name!r}: {error}") from error
        return F

    def _censoring(self, rows: Rows) -> Distribution:
        if self.given is not None:
            return self.given
        if self.fitted is not None:
            return self.fitted.distribution(rows.frame)
        if not self.curves:
            known = known_censoring(rows.y)
            assert known is not None  # checked by the counts
            return known
        if len(self.curves) == 1:
            return self.curves[0].distribution
        found, number = np.unique(self.stratum(rows), return_inverse=True)
        return Grouped([self.curves[i].distribution for i in found], number.reshape(-1))

    def pieces(self, rows: Rows, case: Case, w: np.ndarray) -> Iterator[Piece]:
        """What derivatives by the estimated censoring distribution are taken of; nothing where it is known.

        The subjects of each stratum under its curve, or all of them under a regression.
        """
        if self.fitted is not None and self.fitted.has_influence:
            part = self.fitted.part(rows.frame)
            yield Piece(0, np.arange(len(rows.y)), part.cases(case)[0], part.moves(w), part.jumps)
        stratum = self.stratum(rows)
        for i, curve in enumerate(self.curves):
            subjects = np.flatnonzero(stratum == i)
            if len(subjects) and len(curve.jumps):
                some = case if len(subjects) == len(stratum) else case.take(subjects)
                under = replace(some, C=curve.distribution, edges=curve.edges)
                yield Piece(i, subjects, under, w[subjects], curve.jumps)
