"""What is decided before a table is scored, from its counts and its first rows."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore._validation import as_labels
from censcore.distributions import Distribution, PointMass
from censcore.estimators.covariates import column_of
from censcore.estimators.risk_sets import empty_follow_up
from censcore.evaluation.decisions.asked import Asked
from censcore.evaluation.decisions.decide import Decided, Settled, closing, follow_through, judged_at
from censcore.evaluation.decisions.forecast_columns import ColumnForecast, table_forecasts
from censcore.evaluation.decisions.forecasts import add_reference
from censcore.evaluation.decisions.horizon import (
    given_horizon,
    just_after,
    reach,
    settle_horizon,
    times_and_levels,
)
from censcore.evaluation.decisions.notes import (
    UNGROUPED_TRAINING,
    UNWEIGHTED_TRAINING,
    check_units,
    note_on_entry,
)
from censcore.evaluation.inference.mean_losses import Subset
from censcore.evaluation.inference.resolved_censoring import ResolvedCensoring
from censcore.evaluation.kinds import Kind, choose_scores, kind_of
from censcore.evaluation.measures.case import cells_of
from censcore.evaluation.outcome_table import IN_MEMORY, OutcomeTable
from censcore.evaluation.parts.batches.censoring import TableCensoring
from censcore.evaluation.parts.batches.counts import Counted, Counting, ends_of
from censcore.evaluation.parts.batches.phases import Events, Task, read_forecasts
from censcore.evaluation.parts.batches.reading import Columns, Rows, labels_of
from censcore.evaluation.parts.batches.runners import Runner
from censcore.evaluation.parts.batches.sums import Keyed
from censcore.evaluation.parts.fold_store import model_key
from censcore.evaluation.sample import Sample
from censcore.exceptions import InvalidInputError, MissingCensoringError, UnsupportedOutcomeError
from censcore.tables import Batches, batches_of, check_columns

HEAD = 1000  # rows from which the kind of outcome and the times of survival matrices are learned

OTHERS = (
    "Training subjects count as others than those scored: a table read in batches is not searched for "
    "subjects of both."
)
NOT_SEARCHED_FOR = (
    "The subjects that the censoring distribution was fitted to before count as others than those scored: a "
    "table read in batches is not searched for them. If they are the subjects of the table, pass the "
    "estimator without fitting it."
)


@dataclass(frozen=True, eq=False)
class Trained:
    """The subjects that C and the reference are fitted to, where they are not those scored."""

    sample: Sample  #: in memory, or the distinct outcomes of a table
    counted: Counted
    labels: np.ndarray | None  #: of the groups of training subjects in memory
    in_memory: bool

    def for_censoring(self, kind: Kind, stratify: str | None) -> Sample:
        """How long they were followed, with the covariates of C."""
        if self.in_memory:
            return replace(self.sample, y=kind.followed(self.sample.y))
        distinct = replace(self.counted, kind=replace(self.counted.kind, y=self.sample.y))
        return distinct.for_censoring(stratify)


@dataclass(frozen=True, eq=False)
class TableDecided:
    """All decisions on a table, and what sums over it are made by."""

    decided: Decided
    batches: Batches
    task: Task
    counted: Counted
    trained: Trained | None
    ends: tuple[float, float]  #: last times with P(C >= t) above zero, and of 0.1, for all subjects

    @property
    def in_sample(self) -> bool:
        """Whether C was fitted to the scored subjects."""
        return self.decided.censoring.in_sample

    @property
    def fitted_to(self) -> Counted | None:
        """The distinct outcomes that C was fitted to; None where it was fitted to subjects in memory."""
        if self.in_sample:
            return self.counted
        by_count = self.trained is not None and not self.trained.in_memory
        return self.trained.counted if by_count and self.trained else None


def decide_table(asked: Asked, runner: Runner) -> TableDecided:
    """Decide on everything before the first loss, in the rounds of a comparison in memory."""
    estimate, rows, notes = TableCensoring.of(asked.censoring, asked.train), asked.sample.y.rows, list[str]()
    table = _Table.of(asked, runner, estimate.stratify)
    columns, kind = table.columns, table.kind
    if estimate.one_for_each_time and kind.followed(kind.y).time.ndim > 1:
        raise InvalidInputError(f"censoring, one C per event time: {IN_MEMORY}")
    notes += kind.notes
    trained = None if asked.train is None else _trained(table, asked.train, rows, notes)
    if not estimate.pooled:
        estimate = _regression(table, estimate, trained)
    counting = Counting(columns, rows, replace(kind, y=None), estimate)
    counted = Counted.of(runner.total(counting, table.batches, "counting").keyed, kind, "data")
    notes += _notes_on_training(counted, trained, columns, estimate.before)

    whole = type(counted.kind) is type(kind)  # else the outcome is more than was counted
    models, forecasts, events = _forecasts(table, counted, trained, whole)
    named, sample = counted.kind.named(forecasts, None if trained is None else trained.sample)
    given = Settled(table.asked, named, counted.weight, None, False, notes)
    last = float(to_numpy(counted.followed.time).max())
    columns = replace(columns, through=closing(given.asked, forecasts, last).end)
    given, sample, latest = follow_through(given, forecasts, sample)
    kind, asked, counted = given.kind if whole else kind, given.asked, replace(counted, kind=given.kind)
    trained = None if trained is None or sample is None else replace(trained, sample=sample)
    scores = choose_scores(kind, asked.scores)

    estimate, C, ends = _resolve(table, estimate, counted, trained)
    notes += estimate.notes
    kind = kind if C is None else kind.under(C)
    scored = counted.sample if whole else None
    reference = add_reference(kind, forecasts, asked.reference, sample, scored, None, notes)
    samples = [counted] if trained is None or estimate.estimator is None else [counted, trained.counted]
    horizon = _horizon(asked.horizon, C, ends, samples, latest, notes)
    if counted.followed.has_delayed_entry:
        notes.append(note_on_entry(to_numpy(counted.followed.entry), counted.rows, horizon))
    if judged_at(horizon, asked, latest):
        horizon = just_after(horizon, counted.kind.y)

    head = kind.of_subjects(table.first.y).settled(forecasts, None, horizon, notes)
    fitted_to = counted.sample if sample is None else sample
    of_them = kind if trained is not None and trained.in_memory else counted.kind
    levels = of_them.levels(fitted_to, horizon) if asked.levels is None else asked.levels
    times, levels = times_and_levels(head, of_them.pooled(fitted_to), horizon, asked.times, levels)
    subsets, (edges, by_curve) = _subsets(counted, columns), _edges(counted, estimate, horizon)
    task = Task(
        columns, replace(kind, y=None), rows, forecasts | models, scores, horizon, times, levels,
        estimate, [(subset.by, subset.label) for subset in subsets], events, edges, by_curve, asked.seed,
    )  # fmt: skip
    kind = kind if whole else replace(kind, y=None)
    decided = Decided(
        replace(asked.bare, discrimination=False), kind, scores, reference,
        _resolved(table, estimate, C, trained), horizon, times, levels, subsets, None, None, notes,
    )  # fmt: skip
    least = (np.inf, np.inf) if ends is None else (float(ends.keys[2].min()), float(ends.keys[0].min()))
    return TableDecided(decided, table.batches, task, counted, trained, least)


@dataclass(frozen=True, eq=False)
class _Table:
    """A table with its first rows, and the kind of their outcome."""

    runner: Runner
    asked: Asked
    columns: Columns
    batches: Batches
    there: list[str]  #: names of the columns
    models: dict[str, Any]  #: forecasts as functions of rows, or one for all
    first: Rows
    kind: Kind

    @classmethod
    def of(cls, asked: Asked, runner: Runner, stratify: str | None) -> _Table:
        """Read the first rows; what is no table of outcomes is an error."""
        table: OutcomeTable = asked.sample.y
        columns, batches = Columns.of(asked, table, stratify), batches_of(table.data, table.rows)
        if (head := next(iter(batches), None)) is not None:
            there = head.names()
            check_columns(columns.all, there, "the table")
            models = table_forecasts(asked.forecasts, there, columns.all)
            columns = replace(columns, through=closing(asked, models, np.inf).end)
        first = next((rows for batch in batches for rows in columns.read(batch, None, HEAD)), None)
        if first is None:
            raise InvalidInputError("data: got a table without rows, expected at least one subject.")
        if not kind_of(first.y).has_batches:
            raise UnsupportedOutcomeError(f"{type(first.y).__name__}: {IN_MEMORY}")
        bare = replace(asked, sample=Sample(None, first.y), train=None)
        kind, settled = kind_of(first.y).settle(bare)
        return cls(runner, settled, columns, batches, there, models, first, kind)


# ---- training subjects -----------------------------------------------------------------------------------


def _trained(table: _Table, train: Any, rows: int, notes: list[str]) -> Trained:
    """Read training subjects of a table or in memory, and count their outcomes."""
    kind, stratify, through = table.kind, table.columns.stratify, table.columns.through
    counting = Counting(table.columns, rows, replace(kind, y=None), TableCensoring())
    if isinstance(train, OutcomeTable):
        columns = Columns(train.reader, stratify=stratify, through=through)
        batches = batches_of(train.data, train.rows)
        check_columns(columns.all, next(iter(batches)).names(), "train")
        counting = replace(counting, columns=columns, rows=train.rows)
        keyed = table.runner.total(counting, batches, "counting training subjects").keyed
        counted = Counted.of(keyed, kind, "train")
        return Trained(counted.sample, counted, None, in_memory=False)
    sample = Sample.of(train)
    if sample.mask is not None:
        raise InvalidInputError(f"train: mask of training subjects: {IN_MEMORY}")
    sample, groups = kind.read_training(sample, notes), table.columns.groups
    if through is not None:
        sample = replace(sample, y=kind.through(sample.y, through))
    labels = {} if stratify is None else {stratify: labels_of(column_of(sample.X, stratify), stratify, False)}
    of = None
    if groups is not None and sample.groups is not None:
        of = labels["groups"] = labels_of(as_labels(sample.groups, len(sample)), "groups", False)
    weight = np.ones(len(sample)) if sample.weight is None else sample.weight
    counting = replace(
        counting, columns=replace(table.columns, by=(), groups=None if of is None else "groups")
    )
    counted = Counted.of(counting.of(Rows(None, sample.y, weight, labels)).keyed, kind, "train")
    return Trained(sample, counted, of, in_memory=True)


def _notes_on_training(
    counted: Counted, trained: Trained | None, columns: Columns, before: bool
) -> list[str]:
    """Whether training subjects have other units, and what is not known of them."""
    empty, notes = empty_follow_up(counted.followed), list[str]()
    if n := int(counted.rows[empty].sum()):
        notes.append(
            f"{n} subjects with entry 0 and time 0, beside delayed entry: the follow-up (0, 0] is empty, and "
            "they are left out."
        )
    if trained is not None:
        notes += check_units(counted.typical(), Sample(None, trained.counted.typical()))
        notes.append(OTHERS)
        if columns.groups is not None and trained.labels is None:
            notes.append(UNGROUPED_TRAINING)
        if columns.weight is not None and not (trained.in_memory and trained.sample.weight is not None):
            notes.append(UNWEIGHTED_TRAINING)
    return [*notes, NOT_SEARCHED_FOR] if before else notes


# ---- the censoring distribution, and how far it reaches --------------------------------------------------


def _regression(table: _Table, estimate: TableCensoring, trained: Trained | None) -> TableCensoring:
    """A regression of C that is fitted to training subjects in memory, or was fitted before."""
    fit_to = None if trained is None else trained.for_censoring(table.kind, None)
    estimate = estimate.fitted(fit_to, trained is not None and trained.in_memory)
    check_columns(estimate.columns, table.there, "the table")
    return _identified(table, estimate)


def _resolve(
    table: _Table, estimate: TableCensoring, counted: Counted, trained: Trained | None
) -> tuple[TableCensoring, Distribution | None, Keyed | None]:
    """The estimate of C, the distributions of the distinct outcomes where it is pooled, and their ends."""
    unknown = estimate.estimator is None and estimate.known is None
    if unknown and table.kind.followed(table.kind.y).censoring_time is not None:
        return estimate, None, None
    if unknown and (n := counted.n - counted.n_events):
        raise MissingCensoringError(
            f"{n} of {counted.n} subjects are censored, and the censoring distribution is missing. Pass "
            "censoring=Censoring(KaplanMeier()), or a distribution."
        )
    if not estimate.pooled:
        return estimate, None, counted.by["ends"]
    stratify = table.columns.stratify
    distinct = counted.for_censoring(stratify)
    fit_to = distinct if trained is None else trained.for_censoring(table.kind, stratify)
    estimate = estimate.fitted(fit_to, True)
    C = estimate.distribution(distinct.X, distinct.y)
    return _identified(table, estimate, C), C, None if C is None else ends_of(C, counted.weight)


def _resolved(table: _Table, estimate: TableCensoring, C: Any, trained: Trained | None) -> ResolvedCensoring:
    """The censoring distribution of the distinct outcomes, and how means move with its estimate."""
    estimated, part = estimate.estimator is not None, estimate.part(table.first)
    in_sample = estimated and trained is None and not estimate.before
    about, parts = estimate.description(trained is not None), [] if part is None else [part]
    return ResolvedCensoring(C, about, estimated, in_sample, parts)


def _identified(table: _Table, estimate: TableCensoring, C: Any = None) -> TableCensoring:
    """Identify the estimate in a store by its predictions: its parameters do not show its data."""
    if table.runner.store is None:
        return estimate
    y = table.kind.followed(table.kind.y).last()
    C = estimate.distribution(estimate.covariates(table.first), y) if C is None else C
    return replace(estimate, identity=model_key("C", C, None))


def _horizon(
    asked: float | str,
    C: Distribution | None,
    ends: Keyed | None,
    samples: list[Counted],
    latest: float,
    notes: list[str],
) -> float:
    """The end of the comparison, which no forecast that is known at one time alone lies beyond."""
    known = ends is None or isinstance(C, PointMass)
    supported = None if known or ends is None else reach(np.column_stack(ends.keys[:2]), ends.values[:, 0])
    remarks, follow_up = list[str](), [each for counted in samples for each in counted.follow_up()]
    horizon = settle_horizon(asked, supported, follow_up, remarks)
    if given_horizon(asked) is None and horizon < latest:
        remarks.clear()
        horizon = settle_horizon(latest, supported, follow_up, remarks)
    notes += remarks
    return horizon


# ---- forecasts, subsets and cells ------------------------------------------------------------------------


def _forecasts(
    table: _Table, counted: Counted, trained: Trained | None, whole: bool
) -> tuple[dict[str, Any], dict[str, Any], Events]:
    """Forecasts as functions of rows, those of the first rows, and the event times that they are read by."""
    _check_reference(table, whole or trained is None or trained.in_memory)
    used = counted if trained is None else trained.counted
    time, code = used.kind.parts(used.kind.y)[0]
    distinct, number = np.unique(time[code == 1], return_inverse=True)
    count = np.bincount(number.reshape(-1), used.rows[code == 1], minlength=len(distinct))
    events = distinct, count, "scored events" if trained is None else "training events"
    models = {
        name: counted.kind.of_columns(F, table.first.frame) if isinstance(F, ColumnForecast) else F
        for name, F in table.models.items()
    }
    return models, read_forecasts(table.kind, models, table.first, events), events


def _check_reference(table: _Table, counted: bool) -> None:
    """An error where the reference is not one distribution for all, and not fitted to counts."""
    reference, models = table.asked.reference, table.models
    if isinstance(reference, Distribution) and len(reference) == 1:
        return
    if reference is None or (isinstance(reference, str) and (counted or reference in models)):
        return
    default = f"{table.kind.reference!r}, " * counted
    raise InvalidInputError(
        f"reference: got {reference!r}, which is not fitted to the counts of such a table, expected "
        f"{default}None, one distribution for all, or one of the forecasts: {', '.join(models)}."
    )


def _subsets(counted: Counted, columns: Columns) -> list[Subset]:
    """All subjects, and every subgroup with subjects of positive weight."""
    every = [("", "all", counted.weight.sum(), counted.positive.sum())]
    for by in columns.by:
        labels = zip(counted.by[f"by {by}"].keys[0], counted.by[f"by {by}"].values, strict=True)
        every += [(by, str(label), w, n) for label, (_, n, w) in labels if w > 0]
    weighted = columns.weight is not None
    return [Subset(by, label, np.array([w]), (int(n), weighted)) for by, label, w, n in every]


def _edges(
    counted: Counted, estimate: TableCensoring, end: float
) -> tuple[tuple[np.ndarray, ...], list[tuple[np.ndarray, ...]]]:
    """The cells of time of every part of the outcome: of all subjects, and of strata with a curve each."""
    parts = counted.kind.parts(counted.kind.y)

    def of(rows: Any) -> tuple[np.ndarray, ...]:
        return tuple(cells_of(time[rows], end) if len(time[rows]) else np.zeros(0) for time, _ in parts)

    strata = estimate.strata if estimate.pooled and estimate.columns else []
    return of(slice(None)), [of(counted.stratum == label) for label in strata]
