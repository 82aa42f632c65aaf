"""What is decided before anything is scored, in one order for subjects in memory and for those in a table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from censcore._arrays import to_numpy
from censcore.estimators.censoring_choice import is_automatic
from censcore.evaluation.inference.clusters import common_codes
from censcore.evaluation.inference.estimates import shares
from censcore.evaluation.inference.resolved_censoring import ResolvedCensoring, resolve_censoring
from censcore.evaluation.kinds import Kind, kind_of
from censcore.evaluation.measures.case import Case
from censcore.evaluation.measures.case_scores import CaseScore
from censcore.evaluation.plan.forecasts import add_reference
from censcore.evaluation.plan.horizon import find_horizon, times_and_levels
from censcore.evaluation.plan.notes import (
    UNGROUPED_TRAINING,
    UNWEIGHTED_TRAINING,
    check_units,
    note_on_entry,
    notes_on_censoring,
    notes_on_training,
)
from censcore.evaluation.plan.request import Request
from censcore.evaluation.sample import Sample
from censcore.scores.inputs import known_to_exceed


class Plan:
    """All decisions before scoring, for subjects in memory; the plan of a table overrides what differs."""

    kind: Kind
    train: Sample | None  #: training subjects, with an outcome of this kind
    forecasts: dict[str, Any]  #: as they are scored; of a table, those of its first rows
    scores: list[CaseScore]
    censoring: ResolvedCensoring
    reference: str | None  #: name of the forecast that skill is measured against
    horizon: float
    times: np.ndarray
    levels: np.ndarray
    cases: dict[str, Case]  #: forecast, outcome and censoring distribution, by the name of the forecast
    weight: np.ndarray | None  #: sampling weights of the scored subjects
    groups: np.ndarray | None  #: numbers of the clusters of scored subjects
    train_groups: np.ndarray | None  #: and of training subjects

    def __init__(self, asked: Request) -> None:
        self.asked, self.notes = asked, list[str]()
        self.automatic = is_automatic(asked.censoring)

    def decide(self) -> Self:
        """Settle the outcome, the censoring distribution, the forecasts, the horizon, times and levels."""
        self.settle()
        self.notes += self.kind.notes
        self.read_training()
        self.read_forecasts()
        self.kind, self.train = self.kind.named(self.forecasts, self.train)
        self.scores = self.kind.scores(self.asked.chosen_scores)
        self.resolve()
        if self.censoring.distribution is not None:  # of a table it may be given covariates
            self.kind = self.kind.under(self.censoring.distribution)
        asked, F, scored = self.asked, self.forecasts, self.scored
        self.reference = add_reference(
            self.kind, F, asked.reference, self.train, scored, asked.sample.X, self.notes
        )
        self.find_horizon()
        self.settle_forecasts()
        sample = scored if self.train is None else self.train  # else times would fix scored events
        self.times, self.levels = times_and_levels(
            self.forecasts, self.pooled(sample), self.horizon, asked.times, self.chosen_levels(sample)
        )
        self.make_cases()
        return self

    # ---- the steps -------------------------------------------------------------------------------------

    def settle(self) -> None:
        """The kind of the outcome, and the request with what follows from it."""
        asked = replace(self.asked, censoring=None) if self.automatic else self.asked
        self.kind, asked = kind_of(asked.sample.y).settle(asked)
        if asked.censoring is None and (asked.train is not None or self.automatic):  # as in cross-validation
            asked = replace(asked, censoring=self.kind.default_censoring())
        self.asked, (self.groups, self.weight) = asked, asked.subjects(len(self.kind))

    def read_training(self) -> None:
        """The training subjects; the scored subjects themselves keep their weights."""
        kind, train = self.kind, self.asked.train
        self.train = train if train is None else kind.read_training(train, self.notes)
        if self.train is None or self.train.weight is not None or self.weight is None:
            return
        if replace(self.train, y=kind.followed(self.train.y)).same_as(kind.followed(kind.y)):
            self.train = replace(self.train, weight=self.weight)
            return
        self.notes.append(UNWEIGHTED_TRAINING)

    def read_forecasts(self) -> None:
        """Forecasts as distributions."""
        asked = self.asked
        self.forecasts = self.kind.read(asked.forecasts, asked.sample.X, self.train, self.notes)

    def resolve(self) -> None:
        """The censoring distribution."""
        kind, train, X = self.kind, self.train, self.asked.sample.X
        y = kind.followed(kind.y)
        followed = None if train is None else replace(train, y=kind.followed(train.y))
        if self.automatic:
            subjects = Sample(X, y, self.weight, self.groups) if followed is None else followed
            choice = kind.choose_censoring(self.asked.censoring, subjects, self.asked.seed)
            self.asked = replace(self.asked, censoring=choice.censoring)
            self.notes.append(choice.note)
        asked = self.asked
        self.notes += check_units(y, followed) + notes_on_training(X, y, followed)
        self.notes += notes_on_censoring(asked.censoring, X, followed)
        self.censoring = resolve_censoring(asked.censoring, y, X, followed, self.weight, self.groups)
        labels = asked.train_groups if asked.train is None else asked.train.groups
        n_train = self.censoring.n_train or (0 if train is None else len(train))
        apart = followed is not None and labels is None and self.censoring.n_train and not followed.same_as(y)
        if self.groups is not None and apart:
            self.notes.append(UNGROUPED_TRAINING)
        self.train_groups = common_codes(asked.sample.groups, labels, n_train)
        self.notes += kind.notes_on_forecasts(self.forecasts)

    @property
    def scored(self) -> Sample | None:
        """The scored subjects."""
        return replace(self.asked.sample, y=self.kind.y, weight=self.weight)

    def find_horizon(self) -> None:
        """The end of the comparison, and whether there are events before it."""
        kind, weight = self.kind, self.weight
        sample, groups = Sample(None, kind.followed(kind.y), weight), (self.groups, self.train_groups)
        self.horizon = find_horizon(
            self.asked.horizon, self.censoring, sample, self.notes, *groups, kind.ranked
        )
        self.notes += kind.notes_on_events(self.horizon, shares(weight, len(kind)), self.groups, self.train)

    def settle_forecasts(self) -> None:
        """Forecasts as they are scored up to the horizon."""
        self.forecasts = self.kind.settled(self.forecasts, self.train, self.horizon, self.notes)

    def pooled(self, sample: Any) -> Sample:
        """Event times that default times are chosen from."""
        return self.kind.pooled(sample)

    def chosen_levels(self, sample: Any) -> Any:
        """Levels as asked for or by default; None for those that the pooled event times reach."""
        return self.kind.levels(sample, self.horizon) if self.asked.levels is None else self.asked.levels

    def make_cases(self) -> None:
        """A case for every forecast, given survival to the entry if there is one."""
        kind, end, where = self.kind, self.horizon, (self.horizon, self.times, self.levels)
        C, seed = self.censoring.distribution, self.asked.seed
        self.cases = {name: kind.case(F, C, *where, seed=seed) for name, F in self.forecasts.items()}
        y = next(iter(self.cases.values())).y
        if not y.has_delayed_entry:
            return
        entry = to_numpy(y.entry)
        self.notes.append(note_on_entry(entry, np.ones(len(entry)), end))
        first = min(float(known_to_exceed(entry).min()), end)
        for name, case in self.cases.items():
            F, prognosis = kind.given_entry(name, case.F, end), case.F.given_survival(first)
            self.cases[name] = replace(case, F=F, prognosis=prognosis)
