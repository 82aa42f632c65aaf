"""What every task of a comparison needs, and how it reads the subjects of a batch and their C."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np
from sklearn.base import clone

from censcore._arrays import as_float
from censcore.distributions import Distribution
from censcore.distributions.survival_matrix import settled
from censcore.estimators import Adapted, Censoring, KaplanMeier
from censcore.estimators.censoring_choice import is_automatic
from censcore.evaluation.decisions.subsets import as_subgroups
from censcore.evaluation.inference.censoring_influence import Part, Piece, has_influence, parts_of
from censcore.evaluation.inference.mean_losses import Scored, Subset, score_case
from censcore.evaluation.inference.resolved_censoring import as_censoring, describe
from censcore.evaluation.kinds import Kind
from censcore.evaluation.measures.case import Case
from censcore.evaluation.measures.case_scores import CaseScore
from censcore.evaluation.sample import Sample, in_numpy
from censcore.exceptions import CenscoreError, InvalidInputError
from censcore.outcomes import RightCensored
from censcore.scores.inputs import known_censoring
from censcore.tables import Batch, FrameBatch

KEPT = 2**28  # bytes of losses that are not computed again in the next pass


@dataclass(frozen=True)
class Columns:
    """What is read of a table: the outcome, by a function of its rows, and columns by their names."""

    outcome: Callable[[Any], Any]
    weight: str | None = None
    groups: str | None = None
    by: tuple[str, ...] = ()
    stratify: str | None = None
    through: float | None = None  #: the horizon, if forecasts are judged at that very time

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
    kind: Any = None  #: of the outcomes, with the names that all batches share, once these are known


ScoredRows = tuple[Rows, dict[str, Scored]]


def rows_of(batch: Any, columns: Columns, needed: Sequence[str] | None, size: int) -> Iterator[Rows]:
    """The subjects of a batch, at most ``size`` at a time; ``needed`` are further columns, None for all."""
    if not hasattr(batch, "frames"):
        batch = FrameBatch(batch, batch.columns)  # a partition that Dask has computed
    chosen = needed is not None and getattr(columns.outcome, "columns", None) is not None
    wanted = _distinct(*columns.all, *(needed or ())) if chosen else None
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
    if columns.through is not None and hasattr(y, "followed_through"):
        y = y.followed_through(columns.through)
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


@dataclass(frozen=True, eq=False)
class BatchPlan:
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
    subsets: list[Subset]  #: all subjects first; the weight of each is the sum over its subjects
    events: tuple[np.ndarray, np.ndarray, str]  #: distinct event times, their numbers, and whose they are
    edges: tuple[np.ndarray, ...]  #: cells of all subjects, for every part of the outcome
    by_curve: list[tuple[np.ndarray, ...]] = field(default_factory=list)  #: those of strata with a curve each
    seed: int = 0
    #: Scored subjects of batches, for the next pass; None where passes do not run in one process.
    kept: dict[int, list[ScoredRows]] | None = None

    @cached_property
    def needed(self) -> tuple[str, ...] | None:
        """Columns of the forecasts; None where functions do not name them."""
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
        return map(self.named, rows_of(batch, self.columns, self.needed, self.rows))

    def scored(self, batch: Batch | Any) -> Iterator[ScoredRows]:
        """The subjects of a batch with their losses, which are kept from the pass before or made again."""
        if self.kept is not None and id(batch) in self.kept:
            yield from self.kept.pop(id(batch))
            return
        for rows in self.read(batch):
            yield rows, {m: score_case(case, self.scores) for m, case in self.cases(rows).items()}

    def keep(self, batch: Batch | Any, scored: list[ScoredRows]) -> None:
        """Keep the losses of a batch for the next pass, as far as there is room."""
        if self.kept is not None:
            every = [
                of for pieces in (*self.kept.values(), scored) for _, each in pieces for of in each.values()
            ]
            if sum(values.nbytes for of in every for values in of.losses.values()) <= KEPT:
                self.kept[id(batch)] = [(replace(rows, frame=None), each) for rows, each in scored]

    def named(self, rows: Rows) -> Rows:
        """Subjects with the kind of their outcomes."""
        return replace(rows, kind=self.kind.of_subjects(rows.y))

    def shares(self, rows: Rows) -> np.ndarray:
        """Weights (n, m) of the subjects in each subset, that sum to one over all batches."""
        inside = [not s.by or rows.labels[s.by].astype(str) == s.label for s in self.subsets]
        shares = [np.where(mine, rows.weight, 0.0) for mine in inside]
        return np.column_stack(shares) / np.concatenate([s.weight for s in self.subsets])

    def forecast(self, rows: Rows) -> dict[str, Any]:
        """The forecast of every model for the subjects, before it is conditioned on the entry."""
        forecasts = read_forecasts(rows.kind, self.forecasts, rows, self.events)
        settled: dict[str, Any] = rows.kind.settled(forecasts, None, self.horizon, [])
        return settled

    def cases(self, rows: Rows, forecasts: dict[str, Any] | None = None) -> dict[str, Case]:
        """One case per forecast."""
        kind, cases, where = rows.kind, {}, (self.horizon, self.times, self.levels)
        C = self.censoring.of(self.censoring.covariates(rows.frame, rows.labels), self.follow_up(rows))
        late = kind.events_of(kind.y).has_delayed_entry
        for name, F in (self.forecast(rows) if forecasts is None else forecasts).items():
            since = kind.given_entry(name, F, self.horizon) if late else F
            cases[name] = kind.case(since, C, *where, seed=self.seed, edges=self.edges)
        return cases

    def follow_up(self, rows: Rows) -> RightCensored:
        """How long the subjects were followed, (n,)."""
        followed: RightCensored = rows.kind.followed(rows.kind.y).last()
        return followed

    def part(self, rows: Rows) -> Part | None:
        """How mean losses of the subjects move with the estimate of C; None where it counts as known."""
        fitted, n = self.censoring.fitted, len(rows.y)
        if fitted is None or not has_influence(fitted):
            return None
        X = self.censoring.covariates(rows.frame, rows.labels)
        return parts_of(fitted, X, np.arange(n), np.arange(len(fitted.trained_on_)))[0]

    def pieces(self, part: Part, case: Case, w: np.ndarray) -> dict[int, Piece]:
        """Its pieces, with the cells of all subjects under each curve."""
        pieces = part.pieces(case, w)
        if not self.by_curve:
            return pieces
        return {i: replace(p, case=replace(p.case, edges=self.by_curve[i])) for i, p in pieces.items()}


def read_forecasts(
    kind: Kind, forecasts: dict[str, Any], rows: Rows, events: tuple[np.ndarray, np.ndarray, str]
) -> dict[str, Any]:
    """Distributions of the subjects in some rows; survival matrices are read by the ``events`` of all."""
    read: dict[str, Any] = {}
    times, count, whose = events
    for name, forecast in forecasts.items():
        try:
            called = forecast if isinstance(forecast, Distribution) else forecast(rows.frame)
            F = kind.as_forecast(called, None, len(rows.y))
        except CenscoreError as error:
            raise type(error)(f"Forecast {name!r}: {error}") from error
        read[name] = settled(in_numpy(F), times, whose, count)
    return read


@dataclass(frozen=True, eq=False)
class TableCensoring:
    """A distribution for all subjects, a fitted estimator, or neither where the censoring times are known.

    A Kaplan-Meier estimate is fitted to counts of outcomes, a regression of C to training subjects in memory;
    either is sent to all tasks. Mean losses move with the estimate by sums over the scored subjects, the A(u)
    of :mod:`censcore.evaluation.inference.censoring_influence`, which add up over batches like any other.
    Estimators without an influence function are taken as known, with a note.
    """

    known: Distribution | None = None
    fitted: Censoring | None = None
    columns: tuple[str, ...] = ()  #: of the table, that hold the covariates of the estimate
    identity: str = ""  #: of what it predicts: an estimator is described by its parameters alone

    @property
    def pooled(self) -> bool:
        """Whether few curves serve all subjects, so that counts of outcomes determine them."""
        return self.fitted is None or is_kaplan_meier(self.fitted)

    def covariates(self, frame: Any, labels: dict[str, np.ndarray]) -> Any:
        """Those of the subjects in some rows of the table; strata are their labels."""
        import pandas as pd

        if not self.columns:
            return None
        if self.pooled:
            return pd.DataFrame({name: labels[name] for name in self.columns})
        return frame[list(self.columns)]

    def of(self, X: Any, y: RightCensored) -> Distribution | None:
        """The censoring distribution of subjects; None where nothing is known of it."""
        if self.fitted is None:
            return known_censoring(y) if self.known is None else self.known
        C = self.fitted.predict_distribution(X)
        C.estimated_from = None  # it would hold on to the rows
        return C

    @property
    def notes(self) -> list[str]:
        """That standard errors do not include its estimation, where they do not."""
        if self.fitted is None or has_influence(self.fitted):
            return []
        return [
            f"Standard errors take the censoring distribution ({describe(self.fitted)}) as known: the "
            "influence of its estimation is a sum over batches for Kaplan-Meier and Cox regression alone. It "
            f"is small where its {len(self.fitted.trained_on_)} training subjects are many; compare a sample "
            "in memory."
        ]


def is_kaplan_meier(estimator: Censoring) -> bool:
    """Whether an estimator is Kaplan-Meier, or was fitted as such."""
    if hasattr(estimator, "estimators_"):
        return isinstance(estimator.estimators_[0], KaplanMeier) and estimator.ends_[0] is None
    return isinstance(estimator.estimator, KaplanMeier)


def fitted_regression(estimator: Censoring, before: bool, train: Any) -> TableCensoring:
    """An estimator given covariates that was fitted before, or is fitted to training subjects in memory."""
    if before:
        fitted = estimator.estimators_[0]
        fitted = fitted.model_ if isinstance(fitted, Adapted) else fitted
        alike = isinstance(fitted, KaplanMeier) and fitted.stratify is None
        if alike or getattr(fitted, "n_features_in_", None) == 0:
            return TableCensoring(fitted=estimator)
        return TableCensoring(fitted=estimator, columns=_names(getattr(fitted, "feature_names_in_", None)))
    if not isinstance(train, Sample):
        raise InvalidInputError(
            f"censoring: got {describe(estimator)}, which is fitted to subjects in memory, and "
            f"{'no train=' if train is None else 'train= in a table'}; expected train=(X, y), a sample "
            "with the columns of its covariates in a data frame, an estimator that was fitted before, or "
            "Censoring(KaplanMeier()), whose fit is a sum over all subjects."
        )
    columns = _names(getattr(train.X, "columns", None))
    return TableCensoring(fitted=train.fit(clone(estimator)), columns=columns)


def _names(names: Sequence[Any] | None) -> tuple[str, ...]:
    if names is None:
        raise InvalidInputError(
            "censoring: got an estimator with covariates that have no names, expected one that is fitted to "
            "a data frame: its columns are those that are read from the table."
        )
    return tuple(map(str, names))


def estimator_of(censoring: Any) -> tuple[Censoring | None, Distribution | None]:
    """The estimator of the censoring distribution, or the distribution itself; neither where it is known."""
    if censoring is None:
        return None, None
    if isinstance(censoring, Distribution):
        if len(censoring) > 1 or censoring.k > 1 or censoring.estimated_from is not None:
            raise InvalidInputError(
                "censoring: got a distribution for given subjects, or an estimate; for a table read in "
                "batches expected an estimator, Censoring(KaplanMeier()), with train= where it is fitted to "
                "others, or one known distribution for all subjects."
            )
        return None, censoring
    if is_automatic(censoring):
        raise InvalidInputError(
            "censoring: got 'auto'; whether covariates predict censoring is tested with all subjects in "
            "memory. For a table read in batches pass Censoring(KaplanMeier()) or Censoring(CoxRegression())."
        )
    estimator = as_censoring(censoring)
    if estimator.cv is not None:
        raise InvalidInputError(
            f"censoring: got {describe(estimator)}, out of fold; for a table read in batches expected one "
            "fit for all subjects, without cv=. With a hundred thousand subjects or more no subject moves "
            "the fit; fit it to other subjects by train= where none may."
        )
    return estimator, None
