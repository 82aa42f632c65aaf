"""What is decided before a table is scored: the censoring distribution, the horizon, times and subsets."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import clone

from censcore._validation import as_labels
from censcore.distributions import Distribution, PointMass
from censcore.estimators import Censoring
from censcore.estimators.covariates import column_of
from censcore.evaluation.decisions.asked import Asked
from censcore.evaluation.decisions.decide import closing, judged_at
from censcore.evaluation.decisions.forecast_columns import ColumnForecast, table_forecasts
from censcore.evaluation.decisions.forecasts import add_reference
from censcore.evaluation.decisions.horizon import (
    FollowUp,
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
from censcore.evaluation.inference.censoring_influence import Part
from censcore.evaluation.inference.mean_losses import Subset
from censcore.evaluation.inference.resolved_censoring import ResolvedCensoring, describe
from censcore.evaluation.kinds import Kind, choose_scores, kind_of
from censcore.evaluation.measures.case import Case, cells_of
from censcore.evaluation.measures.case_scores import CaseScore
from censcore.evaluation.outcome_table import IN_MEMORY, OutcomeTable
from censcore.evaluation.parts.batches.counts import Counted, Counts
from censcore.evaluation.parts.batches.passes import Counting, ends_of
from censcore.evaluation.parts.batches.runners import Keyed, Runner
from censcore.evaluation.parts.batches.table_plan import (
    BatchPlan,
    Columns,
    Rows,
    TableCensoring,
    estimator_of,
    fitted_regression,
    is_kaplan_meier,
    labels_of,
    read_forecasts,
    rows_of,
)
from censcore.evaluation.parts.fold_store import model_key
from censcore.evaluation.sample import Sample
from censcore.exceptions import (
    InvalidInputError,
    InvalidTypeError,
    MissingCensoringError,
    UnsupportedOutcomeError,
)
from censcore.tables import Batch, batches_of, check_columns

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


class TablePlan:
    """The decisions of a table: its outcomes are counted, and its first rows show the types of forecasts."""

    kind: Kind
    train: Sample | None  #: training subjects, or the outcomes that were counted of them
    forecasts: dict[str, Any]  #: those of the first rows
    scores: list[CaseScore]
    censoring: ResolvedCensoring
    reference: str | None
    horizon: float
    times: np.ndarray
    levels: np.ndarray
    latest: float  #: the last time at which a forecast is known alone; zero where there is none
    cases: dict[str, Case]  #: of the first rows
    train_groups: np.ndarray | None  #: numbers of the groups of training subjects
    task: BatchPlan  #: what every task needs
    batches: list[Batch]
    counted: Counted  #: the outcomes of the scored subjects
    used: Counted  #: and those of the training subjects, if there are any
    trained: Counts | None  #: outcomes that C was fitted to, where each is of several subjects
    part: Part | None  #: how mean losses move with the estimate of C; None where it counts as known
    ends: tuple[float, float]  #: last times with P(C >= t) above zero, and of 0.1, for all subjects

    def __init__(self, runner: Runner, asked: Asked) -> None:
        self.asked, self.notes, self.train = asked, list[str](), None
        self.runner, self.table = runner, asked.sample.y
        self.training: Any = asked.train  # subjects in memory, or another table
        self.estimator, self.known = estimator_of(asked.censoring)
        self.before = asked.train is None and hasattr(self.estimator, "estimators_")

    def decide(self) -> Self:
        """Settle the outcome, the censoring distribution, the forecasts, the horizon, times and levels."""
        self.settle()
        self.notes += self.kind.notes
        self.read_training()
        self.read_forecasts()
        self.kind, self.train = self.kind.named(self.forecasts, self.train)
        self.closing(self.forecasts, np.inf)  # the rows were read as followed through the horizon
        self.scores = choose_scores(self.kind, self.asked.scores)
        self.resolve()
        if self.censoring.distribution is not None:  # it may be given covariates
            self.kind = self.kind.under(self.censoring.distribution)
        F, scored = self.forecasts, self.scored
        self.reference = add_reference(
            self.kind, F, self.asked.reference, self.train, scored, None, self.notes
        )
        self.find_horizon()
        if judged_at(self.horizon, self.asked, self.latest):
            self.horizon = just_after(self.horizon, self.kind.y)
        self.settle_forecasts()
        sample = scored if self.train is None else self.train
        self.times, self.levels = times_and_levels(
            self.forecasts, self.pooled(sample), self.horizon, self.asked.times, self.chosen_levels(sample)
        )
        self.make_cases()
        return self

    def closing(self, forecasts: dict[str, Any], last: float) -> float | None:
        """Decide through which time subjects are followed, where forecasts are judged at it."""
        found = closing(self.asked, forecasts, last)
        self.asked, self.latest = replace(self.asked, horizon=found.horizon), found.latest
        return found.end

    @property
    def counts(self) -> Counts:
        """How long the scored subjects were followed."""
        return self.counted.follow_up

    @property
    def in_sample(self) -> bool:
        """Whether C was fitted to the scored subjects."""
        return self.trained is not None and self.training is None

    @property
    def all_groups_count(self) -> bool:
        """Whether groups of the table have training subjects, so that all its groups contribute."""
        if self.in_sample or self.train_groups is None:
            return self.in_sample
        return bool((self.train_groups < len(self.counted.by["groups"].values)).any())

    @property
    def n_train(self) -> int:
        """How many subjects C was fitted to, apart from those scored."""
        fitted = self.estimate.fitted
        if fitted is None or self.in_sample:
            return 0
        return len(fitted.trained_on_) if self.trained is None else self.trained.n

    # ---- the steps -------------------------------------------------------------------------------------

    def settle(self) -> None:
        """The kind of the outcome of the first rows."""
        asked, table, estimator = self.asked, self.table, self.estimator
        self.columns, self.batches = _columns(asked, estimator), batches_of(table.data, table.rows)
        if self.batches:
            self.there = self.batches[0].names()
            check_columns(self.columns.all, self.there, "the table")
            self.models = table_forecasts(asked.forecasts, self.there, self.columns.all)
            self.columns = replace(self.columns, through=self.closing(self.models, np.inf))
        rows = (rows for batch in self.batches for rows in rows_of(batch, self.columns, None, HEAD))
        first = next(rows, None)
        if first is None:
            raise InvalidInputError("data: got a table without rows, expected at least one subject.")
        kind = kind_of(first.y)
        if not kind.has_batches:
            raise UnsupportedOutcomeError(f"{type(first.y).__name__}: {IN_MEMORY}")
        asked = replace(asked, sample=Sample(None, first.y), train=None)
        self.first, (self.kind, self.asked) = first, kind.settle(asked)
        apart = getattr(estimator, "shared", None) is False or len(getattr(estimator, "estimators_", ())) > 1
        if apart and self.kind.followed(self.kind.y).time.ndim > 1:
            raise InvalidInputError(f"censoring, one C per event time: {IN_MEMORY}")

    def read_training(self) -> None:
        """Count the outcomes of the scored and of the training subjects."""
        kind = self.kind
        train, self.followed = self.training, None
        if train is not None and not isinstance(train, OutcomeTable):
            self.training = train = _training(train, kind, self.notes)
            if (end := self.columns.through) is not None:
                self.training = train = replace(train, y=kind.through(train.y, end))
            self.followed = replace(train, y=kind.followed(train.y))
        self.estimate = TableCensoring(self.known)
        if self.estimator is not None and not is_kaplan_meier(self.estimator):
            self.estimate = fitted_regression(self.estimator, self.before, self.followed or train)
            check_columns(self.estimate.columns, self.there, "the table")
            self._identify(None)
        counting = Counting(self.columns, self.table.rows, replace(kind, y=None), self.estimate)
        self.counted = Counted.of(self.runner.total(counting, self.batches, "counting").keyed, "data")
        self.train_groups = _train_groups(train, self.counted.by.get("groups"))
        self.used = self.counted if train is None else _train_counts(self.runner, train, counting)
        sample = self.counted.sample(kind)
        self.sample = sample if kind_of(sample.y) is type(kind) else None
        if self.sample is not None:
            self.kind = replace(kind, y=sample.y)
        if train is not None:
            typical = Sample(None, self.used.follow_up.typical())
            self.notes += [*check_units(self.counts.typical(), typical), OTHERS]
            counted = isinstance(train, OutcomeTable)
            ungrouped, unweighted = counted or train.groups is None, counted or train.weight is None
            self.notes += [UNGROUPED_TRAINING] if self.columns.groups is not None and ungrouped else []
            self.notes += [UNWEIGHTED_TRAINING] if self.columns.weight is not None and unweighted else []
        self.notes += [NOT_SEARCHED_FOR] if self.before else []
        self.train = train
        if isinstance(train, OutcomeTable):
            self.train = None if self.sample is None else self.used.sample(self.kind)

    def read_forecasts(self) -> None:
        """Forecasts of the first rows, read by the event times of all."""
        uncounted = self.training is not None and self.train is None
        _check_reference(self.asked.reference, self.kind, self.models, uncounted)
        self.models = {
            name: self.kind.of_columns(F, self.first.frame) if isinstance(F, ColumnForecast) else F
            for name, F in self.models.items()
        }
        whose = "scored events" if self.training is None else "training events"
        self.events = *self.used.parts[0].events(), whose
        one = self.kind.of_subjects(self.first.y)
        self.forecasts = read_forecasts(one, self.models, self.first, self.events)

    def resolve(self) -> None:
        """The censoring distribution: a curve that is fitted to counts, a regression, or known."""
        counts, estimator = self.counts, self.estimator
        times_known = self.kind.followed(self.kind.read_outcome(self.first.y)).censoring_time is not None
        if self.asked.censoring is None and not times_known and not counts.event.all():
            raise MissingCensoringError(
                f"{counts.n - counts.n_events} of {counts.n} subjects are censored, and the censoring "
                "distribution is missing. Pass censoring=Censoring(KaplanMeier()), or a distribution."
            )
        if estimator is not None and self.estimate.pooled:
            by = self.columns.stratify
            fit_to = self.followed or self.used.follow_up.subjects(by)
            fitted = estimator if self.before else fit_to.fit(clone(estimator))
            self.estimate = TableCensoring(None, fitted, () if by is None else (by,))
        C: Any = None
        if self.estimate.pooled:
            distinct = counts.subjects(self.columns.stratify)
            C = self.estimate.of(distinct.X, distinct.y)
            ends = None if C is None else ends_of(C, counts.weight)
            self._identify(C)
        else:
            ends = self.counted.by["ends"]
        self.ends, self.supported = (np.inf, np.inf), None
        if ends is not None:
            self.ends = float(ends.keys[2].min()), float(ends.keys[0].min())
            known = isinstance(C, PointMass)
            self.supported = None if known else reach(np.column_stack(ends.keys[:2]), ends.values[:, 0])
        self.notes += self.estimate.notes
        by_count = estimator is not None and not (self.before or isinstance(self.training, Sample))
        self.trained = self.used.follow_up if by_count else None
        about = _description(estimator, self.known, self.training is not None, self.before)
        self.censoring = ResolvedCensoring(C, about, self.estimate.fitted is not None, self.in_sample)

    def _identify(self, C: Any) -> None:
        """Identify the estimate in a store by its predictions: its parameters do not show its data."""
        if self.table.store is not None:
            X = self.estimate.covariates(self.first.frame, self.first.labels)
            distribution = self.estimate.of(X, self.first.y) if C is None else C
            self.estimate = replace(self.estimate, identity=model_key("C", distribution, None))

    @property
    def scored(self) -> Sample | None:
        """The counted outcomes; None where these are more than was counted."""
        return None if self.sample is None else replace(self.sample, y=self.kind.y)

    def find_horizon(self) -> None:
        """The end of the comparison."""
        samples = [self.counts.followed()]
        if self.training is not None and self.estimate.fitted is not None:
            samples.append(self.used.follow_up.followed())
        if "last" in self.counted.by:
            samples.append(FollowUp.of(self.counted.by["last"].values[:, 0]))
        self.horizon = settle_horizon(self.asked.horizon, self.supported, samples, self.notes)
        if self.counts.late:
            self.notes.append(note_on_entry(self.counts.entry, self.counts.rows, self.horizon))

    def settle_forecasts(self) -> None:
        """Forecasts of the first rows; the reference serves all of them."""
        one = self.kind.of_subjects(self.first.y)
        added = {name: F for name, F in self.forecasts.items() if name not in self.models}
        self.models |= added
        head = self.forecasts | read_forecasts(one, added, self.first, self.events)
        self.forecasts = one.settled(head, None, self.horizon, self.notes)

    def pooled(self, sample: Any) -> Sample:
        """Event times that default times are chosen from."""
        if sample is not None:
            return self.kind.pooled(sample)
        counted = self.used.sample(self.kind)
        return kind_of(counted.y)(counted.y).pooled(counted)

    def chosen_levels(self, sample: Any) -> Any:
        """Levels as asked for or by default; an error where they do not follow from counts."""
        if self.asked.levels is not None:
            return self.asked.levels
        if sample is not None:
            return self.kind.levels(sample, self.horizon)
        if type(self.kind).levels is not Kind.levels:
            raise InvalidInputError(
                "levels: got none, and counts of such a table do not give defaults. Pass levels=."
            )
        return None

    def make_cases(self) -> None:
        """What every task needs; cases are made batch by batch."""
        parts, end, estimate = self.counted.parts, self.horizon, self.estimate
        subsets, by_curve = _subsets(self.counted, self.columns), _edges_by_curve(estimate, parts, end)
        bare = replace(self.kind, y=None)
        self.task = BatchPlan(
            self.columns, bare, self.table.rows, self.models, self.scores, end, self.times,
            self.levels, estimate, subsets, self.events, _edges(parts, end), by_curve, self.asked.seed,
            {} if self.runner.in_one_process(self.batches) else None,
        )  # fmt: skip
        first = self.task.named(self.first)
        self.cases, self.part = self.task.cases(first), self.task.part(first)
        if any(score.counted(next(iter(self.cases.values()))) is not None for score in self.scores):
            raise InvalidInputError(f"Scores of some of the subjects: {IN_MEMORY}")
        self.kind = bare if self.sample is None else self.kind


# ---- what is read ----------------------------------------------------------------------------------------


def _columns(asked: Asked, estimator: Censoring | None) -> Columns:
    """What is read of the table."""
    pooled = estimator is not None and is_kaplan_meier(estimator)
    stratify = getattr(estimator.estimator, "stratify", None) if estimator is not None and pooled else None
    by = () if asked.by is None else [asked.by] if isinstance(asked.by, str) else list(asked.by)
    return Columns(
        asked.sample.y.reader, _name(asked.sample.weight, "sample_weight"),
        _name(asked.sample.groups, "groups"), tuple(str(_name(name, "by")) for name in by),
        _name(stratify, "stratify"),
    )  # fmt: skip


def _training(train: Any, kind: Kind, notes: list[str]) -> Sample:
    """Training subjects in memory."""
    sample = Sample.of(train)
    if sample.mask is not None:
        raise InvalidInputError(f"train: mask of training subjects: {IN_MEMORY}")
    return kind.read_training(sample, notes)


def _train_groups(train: Any, groups: Keyed | None) -> np.ndarray | None:
    """Numbers of the groups of training subjects in memory: of the groups of the table, or beyond these."""
    if groups is None or not isinstance(train, Sample) or train.groups is None:
        return None
    there, labels = groups.keys[0], labels_of(as_labels(train.groups, len(train)), "groups", False)
    if there.dtype.kind != labels.dtype.kind:  # of text files
        there, labels = there.astype(str), labels.astype(str)
    others, code = np.unique(np.append(there, labels), return_inverse=True)
    number = np.full(len(others), -1)
    number[code[: len(there)]] = np.arange(len(there))
    number[number < 0] = len(there) + np.arange(len(others) - len(there))
    return number[code[len(there) :]]


def _name(value: Any, what: str) -> str | None:
    if value is None or isinstance(value, str):
        return value
    raise InvalidTypeError(
        f"{what}: got {type(value).__name__}, expected the name of a column, since the outcome is in a table."
    )


def _train_counts(runner: Runner, train: Sample | OutcomeTable, counting: Counting) -> Counted:
    """The outcomes of the training subjects, of a table or in memory."""
    stratify, through = counting.columns.stratify, counting.columns.through
    counting = replace(counting, censoring=TableCensoring())
    if isinstance(train, OutcomeTable):
        counting = replace(
            counting, columns=Columns(train.reader, stratify=stratify, through=through), rows=train.rows
        )
        batches = batches_of(train.data, train.rows)
        check_columns(counting.columns.all, batches[0].names(), "train")
        return Counted.of(runner.total(counting, batches, "counting training subjects").keyed, "train")
    labels = {} if stratify is None else {stratify: labels_of(column_of(train.X, stratify), stratify, False)}
    weight = np.ones(len(train)) if train.weight is None else train.weight
    counting = replace(counting, columns=replace(counting.columns, by=(), groups=None))
    return Counted.of(counting.of(Rows(None, train.y, weight, labels)).keyed, "train")


def _check_reference(reference: Any, kind: Kind, models: dict[str, Any], uncounted: bool) -> None:
    """An error where the reference is not one distribution for all, and not fitted to counts."""
    uncounted = isinstance(reference, str) and reference not in models and uncounted
    one = isinstance(reference, str | None) or (isinstance(reference, Distribution) and len(reference) == 1)
    if uncounted or not one:
        default = "" if uncounted else f"{kind.reference!r}, "
        raise InvalidInputError(
            f"reference: got {reference!r}, which is not fitted to the counts of such a table, expected "
            f"{default}None, one distribution for all, or one of the forecasts: {', '.join(models)}."
        )


def _subsets(counted: Counted, columns: Columns) -> list[Subset]:
    """All subjects, and every subgroup with subjects of positive weight."""
    counts, weighted = counted.follow_up, columns.weight is not None
    every = [("", "all", counts.weight.sum(), counts.positive.sum())]
    for by in columns.by:
        labels = zip(counted.by[f"by {by}"].keys[0], counted.by[f"by {by}"].values, strict=True)
        every += [(by, str(label), w, n) for label, (_, n, w) in labels if w > 0]
    return [Subset(by, label, np.array([w]), (int(n), weighted)) for by, label, w, n in every]


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


def _description(estimator: Censoring | None, known: Distribution | None, trained: bool, before: bool) -> str:
    if known is not None:
        return f"given: {type(known).__name__}, taken as known"
    if estimator is None:
        return "known: the censoring times are given"
    if before:
        return f"{describe(estimator)}, fitted before to {len(estimator.trained_on_)} subjects"
    whom = "training" if trained else "scored"
    return f"{describe(estimator)}, fitted to the {whom} subjects"
