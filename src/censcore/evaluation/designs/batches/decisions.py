"""What is decided before a table is scored: the censoring distribution, the horizon, times and subsets."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from censcore.distributions import Distribution, PointMass
from censcore.estimators import Censoring
from censcore.estimators.covariates import column_of
from censcore.evaluation.designs.batches.counts import Counted, Counts
from censcore.evaluation.designs.batches.outcome_table import IN_MEMORY, OutcomeTable
from censcore.evaluation.designs.batches.passes import Counting, Support, ends_of
from censcore.evaluation.designs.batches.runners import Keyed, Runner
from censcore.evaluation.designs.batches.table_plan import (
    Columns,
    Plan,
    Rows,
    Subgroup,
    TableCensoring,
    estimator_of,
    fitted_regression,
    is_kaplan_meier,
    labels_of,
    read_forecasts,
    rows_of,
)
from censcore.evaluation.inference.censoring_influence import Part
from censcore.evaluation.inference.resolved_censoring import describe
from censcore.evaluation.kinds import Kind, kind_of
from censcore.evaluation.measures.case import cells_of
from censcore.evaluation.plan.checks import check_units, note_on_entry
from censcore.evaluation.plan.forecast_columns import ColumnForecast, table_forecasts
from censcore.evaluation.plan.forecasts import add_reference
from censcore.evaluation.plan.horizon import FollowUp, reach, settle_horizon, times_and_levels
from censcore.evaluation.plan.request import Request
from censcore.evaluation.sample import Sample
from censcore.exceptions import (
    InvalidInputError,
    InvalidTypeError,
    MissingCensoringError,
    UnsupportedOutcomeError,
)
from censcore.tables import Batch, batches_of, check_columns

__all__ = ["Prepared", "prepare"]

HEAD = 1000  # rows from which the kind of outcome and the times of survival matrices are learned

EMPTY = "data: got a table without rows, expected at least one subject."
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
class Prepared:
    """A table that is ready to be scored."""

    plan: Plan
    kind: Kind  #: of the outcomes in ``counted``, or without one where these are more than was counted
    batches: list[Batch]
    counted: Counted
    trained: Counts | None  #: outcomes that C was fitted to, where each is of several subjects
    in_sample: bool  #: whether these are the scored subjects
    description: str
    reference: str | None
    notes: list[str]
    part: Part | None  #: how mean losses move with the estimate of C; None where it counts as known
    ends: tuple[float, float]  #: last times with P(C >= t) above zero, and of 0.1, for all subjects
    of_counts: Distribution | None  #: C of the counted outcomes; None where it is given covariates, or known

    @property
    def counts(self) -> Counts:
        """How long the scored subjects were followed."""
        return self.counted.follow_up

    @property
    def n_train(self) -> int:
        """How many subjects C was fitted to, apart from those scored."""
        fitted = self.plan.censoring.fitted
        if fitted is None or self.in_sample:
            return 0
        return len(fitted.trained_on_) if self.trained is None else self.trained.n


def prepare(runner: Runner, asked: Request) -> Prepared:
    """Count the outcomes, fit the censoring distribution, and decide on the horizon, times and levels."""
    table, train, notes = asked.sample.y, asked.train, list[str]()
    estimator, known = estimator_of(asked.censoring)
    before = train is None and hasattr(estimator, "estimators_")
    columns, batches = _columns(asked, estimator)
    there = batches[0].names()
    models = table_forecasts(asked.forecasts, there, columns.all)
    first = _first_rows(batches, columns)
    kind, asked = _kind_of(first, asked, estimator)
    notes += kind.notes
    train = train if train is None or isinstance(train, OutcomeTable) else _training(train, kind, notes)
    followed = replace(train, y=kind.followed(train.y)) if isinstance(train, Sample) else train
    censoring = TableCensoring(known)
    if estimator is not None and not is_kaplan_meier(estimator):
        censoring = fitted_regression(estimator, before, followed)
        check_columns(censoring.columns, there, "the table")
    # ---- counts
    counting = Counting(columns, table.rows, replace(kind, y=None))
    counted = Counted.of(runner.total(counting, batches, "counting").keyed, "data")
    trained = None if train is None else _train_counts(runner, train, counting)
    used = counted if trained is None else trained
    scored = counted.sample(kind)
    kind = kind if scored is None else replace(kind, y=scored.y)
    subjects = train if isinstance(train, Sample) else scored if trained is None else trained.sample(kind)
    events, whose = used.parts[0].events(), "scored events" if trained is None else "training events"
    if trained is not None:
        typical = Sample(None, trained.follow_up.typical())
        notes += [*check_units(counted.follow_up.typical(), typical), OTHERS]
    notes += [NOT_SEARCHED_FOR] if before else []
    # ---- the censoring distribution
    counts = counted.follow_up
    times_known = kind.followed(kind.read_outcome(first.y)).censoring_time is not None
    if asked.censoring is None and not times_known and not counts.event.all():
        raise MissingCensoringError(
            f"{counts.n - counts.n_events} of {counts.n} subjects are censored, and the censoring "
            "distribution is missing. Pass censoring=Censoring(KaplanMeier()), or a distribution."
        )
    if estimator is not None and censoring.pooled:
        fit_to = followed if isinstance(followed, Sample) else used.follow_up.subjects(columns.stratify)
        fitted = estimator if before else clone(estimator).fit(fit_to.X, fit_to.y, fit_to.weight)
        censoring = TableCensoring(None, fitted, () if columns.stratify is None else (columns.stratify,))
    of_counts: Distribution | None = None
    if censoring.pooled:
        distinct = counts.subjects(columns.stratify)
        of_counts = censoring.of(distinct.X, distinct.y)
        ends = None if of_counts is None else ends_of(of_counts, counts.weight)
    else:
        ends = runner.total(Support(columns, table.rows, censoring), batches, "follow-up").keyed["ends"]
    supported = None
    if ends is not None and not isinstance(of_counts, PointMass):
        supported = reach(np.column_stack(ends.keys[:2]), ends.values[:, 0])
    if table.store is not None and of_counts is None:
        covariates = censoring.covariates(first.frame, first.labels)
        censoring = censoring.identified(censoring.of(covariates, first.y))
    elif table.store is not None:
        censoring = censoring.identified(of_counts)
    notes += censoring.notes
    # ---- forecasts, and where they are scored
    models = {
        name: kind.of_columns(forecast, first.frame) if isinstance(forecast, ColumnForecast) else forecast
        for name, forecast in models.items()
    }
    head = read_forecasts(kind.of_subjects(first.y), models, first, events, whose)
    kind, subjects = kind.named(head, subjects)
    _check_reference(asked.reference, kind, models, train, subjects)
    of_train = None if train is None else subjects
    reference = add_reference(kind, models, asked.reference, of_train, subjects, None, notes)
    fitted_to = None if censoring.fitted is None else trained
    samples = [counts.followed(), *([] if fitted_to is None else [fitted_to.follow_up.followed()])]
    if "last" in counted.by:
        samples.append(FollowUp.of(counted.by["last"].values[:, 0]))
    end = settle_horizon(asked.horizon, supported, samples, notes)
    notes += [note_on_entry(counts.entry, counts.rows, end)] if counts.late else []
    bare = kind.bare()
    one = bare.of_subjects(first.y)
    head = one.settled(read_forecasts(one, models, first, events, whose), None, end, notes)
    pooled = used.pooled() if subjects is None else kind.pooled(subjects)
    at, alpha = times_and_levels(head, pooled, end, asked.times, _levels(asked, kind, subjects, end))
    plan = Plan(
        columns, bare, table.rows, models, kind.scores(asked.chosen_scores), end, at, alpha, censoring,
        _subsets(counted, columns), events, whose, _edges(counted.parts, end),
        _edges_by_curve(censoring, counted.parts, end), asked.seed,
    )  # fmt: skip
    case = next(iter(plan.cases(first).values()))
    if any(score.counted(case) is not None for score in plan.scores):
        raise InvalidInputError(f"Scores of some of the subjects: {IN_MEMORY}")
    by_count = used.follow_up if estimator is not None and not (before or isinstance(train, Sample)) else None
    return Prepared(
        plan, bare if scored is None else kind, batches, counted, by_count,
        by_count is not None and trained is None, _description(estimator, known, trained, before), reference,
        notes, plan.part(first), _last_times(ends), of_counts,
    )  # fmt: skip


# ---- what is read ----------------------------------------------------------------------------------------


def _columns(asked: Request, estimator: Censoring | None) -> tuple[Columns, list[Batch]]:
    """What is read of the table, and its batches."""
    table, sample = asked.sample.y, asked.sample
    pooled = estimator is not None and is_kaplan_meier(estimator)
    stratify = getattr(estimator.estimator, "stratify", None) if estimator is not None and pooled else None
    by = () if asked.by is None else [asked.by] if isinstance(asked.by, str) else list(asked.by)
    columns = Columns(
        table.reader, _name(sample.weight, "sample_weight"), _name(sample.groups, "groups"),
        tuple(str(_name(name, "by")) for name in by), _name(stratify, "stratify"),
    )  # fmt: skip
    batches = batches_of(table.data, table.rows)
    if not batches:
        raise InvalidInputError(EMPTY)
    check_columns(columns.all, batches[0].names(), "the table")
    return columns, batches


def _first_rows(batches: list[Batch], columns: Columns) -> Rows:
    """The first subjects, which tell the kind of outcome and the times of survival matrices."""
    first = next((rows for batch in batches for rows in rows_of(batch, columns, None, HEAD)), None)
    if first is None:
        raise InvalidInputError(EMPTY)
    return first


def _kind_of(first: Rows, asked: Request, estimator: Censoring | None) -> tuple[Kind, Request]:
    """The kind of the outcome, settled by the first subjects."""
    kind = kind_of(first.y)
    if not kind.has_batches:
        raise UnsupportedOutcomeError(f"{type(first.y).__name__}: {IN_MEMORY}")
    settled, asked = kind.settle(replace(asked, sample=Sample(None, first.y), train=None))
    apart = getattr(estimator, "shared", None) is False or len(getattr(estimator, "estimators_", ())) > 1
    if apart and settled.followed(settled.y).time.ndim > 1:
        raise InvalidInputError(f"censoring, one C per event time: {IN_MEMORY}")
    return settled, asked


def _training(train: Any, kind: Kind, notes: list[str]) -> Sample:
    """Training subjects in memory."""
    sample = Sample.of(train)
    other = [name for name in ("groups", "mask") if getattr(sample, name) is not None]
    if other:
        raise InvalidInputError(f"train: {', '.join(other)} of training subjects: {IN_MEMORY}")
    return kind.read_training(sample, notes)


def _name(value: Any, what: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise InvalidTypeError(
        f"{what}: got {type(value).__name__}, expected the name of a column, since the outcome is in a table."
    )


def _train_counts(runner: Runner, train: Sample | OutcomeTable, counting: Counting) -> Counted:
    """The outcomes of the training subjects, of a table or in memory."""
    stratify = counting.columns.stratify
    if isinstance(train, OutcomeTable):
        counting = replace(counting, columns=Columns(train.reader, stratify=stratify), rows=train.rows)
        batches = batches_of(train.data, train.rows)
        check_columns(counting.columns.all, batches[0].names(), "train")
        return Counted.of(runner.total(counting, batches, "counting training subjects").keyed, "train")
    labels = {} if stratify is None else {stratify: labels_of(column_of(train.X, stratify), stratify, False)}
    weight = np.ones(len(train)) if train.weight is None else train.weight
    counting = replace(counting, columns=replace(counting.columns, by=(), groups=None))
    return Counted.of(counting.of(Rows(None, train.y, weight, labels)).keyed, "train")


def _last_times(ends: Keyed | None) -> tuple[float, float]:
    """The last times with P(C >= t) above zero, and of 0.1, for all subjects."""
    return (np.inf, np.inf) if ends is None else (float(ends.keys[2].min()), float(ends.keys[0].min()))


def _check_reference(
    reference: Any, kind: Kind, models: dict[str, Any], train: Any, subjects: Sample | None
) -> None:
    """An error where the reference is not one distribution for all, and not fitted to counts."""
    uncounted = isinstance(reference, str) and reference not in models and train and subjects is None
    one = isinstance(reference, str | None) or (isinstance(reference, Distribution) and len(reference) == 1)
    if uncounted or not one:
        default = "" if uncounted else f"{kind.reference!r}, "
        raise InvalidInputError(
            f"reference: got {reference!r}, which is not fitted to the counts of such a table, expected "
            f"{default}None, one distribution for all, or one of the forecasts: {', '.join(models)}."
        )


def _levels(asked: Request, kind: Kind, subjects: Sample | None, end: float) -> Any:
    """Levels as asked for, or those of the kind; None for those that the pooled event times reach."""
    if asked.levels is not None:
        return asked.levels
    if subjects is not None:
        return kind.levels(subjects, end)
    if type(kind).levels is not Kind.levels:
        raise InvalidInputError("levels: got none, which counts of such a table do not tell. Pass levels=.")
    return None


def _subsets(counted: Counted, columns: Columns) -> list[Subgroup]:
    """All subjects, and every subgroup with subjects of positive weight."""
    counts = counted.follow_up
    subsets = [Subgroup("", "all", float(counts.weight.sum()), int(counts.positive.sum()))]
    for by in columns.by:
        labels = zip(counted.by[f"by {by}"].keys[0], counted.by[f"by {by}"].values, strict=True)
        subsets += [Subgroup(by, str(label), float(w), int(n)) for label, (_, n, w) in labels if w > 0]
    return subsets


def _edges(parts: list[Counts], end: float) -> tuple[np.ndarray, ...]:
    """The cells of time of all subjects, for every part of the outcome."""
    return tuple(cells_of(part.time, end) if len(part.time) else np.zeros(0) for part in parts)


def _edges_by_curve(
    censoring: TableCensoring, parts: list[Counts], end: float
) -> list[tuple[np.ndarray, ...]]:
    """The cells of the subjects of every stratum, where strata have a curve each."""
    if censoring.fitted is None or not censoring.pooled or not censoring.columns:
        return []
    strata = censoring.fitted.estimators_[0].strata_
    return [_edges([part.take(part.stratum == label) for part in parts], end) for label in strata]


def _description(
    estimator: Censoring | None, known: Distribution | None, trained: Counted | None, before: bool
) -> str:
    if known is not None:
        return f"given: {type(known).__name__}, taken as known"
    if estimator is None:
        return "known: the censoring times are given"
    if before:
        return f"{describe(estimator)}, fitted before to {len(estimator.trained_on_)} subjects"
    whom = "scored" if trained is None else "training"
    return f"{describe(estimator)}, fitted to the {whom} subjects"
