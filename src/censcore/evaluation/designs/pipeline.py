"""What is decided before anything is scored, in one order for subjects in memory and for those in a table."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.estimators.censoring_choice import is_automatic
from censcore.evaluation.inference.clusters import common_codes
from censcore.evaluation.inference.estimates import shares
from censcore.evaluation.inference.resolved_censoring import ResolvedCensoring, resolve_censoring
from censcore.evaluation.kinds import Kind, kind_of
from censcore.evaluation.measures.case import Case
from censcore.evaluation.measures.case_scores import CaseScore
from censcore.evaluation.plan.checks import check_units, note_on_entry, notes_on_censoring, notes_on_training
from censcore.evaluation.plan.forecasts import add_reference
from censcore.evaluation.plan.horizon import find_horizon, times_and_levels
from censcore.evaluation.plan.request import Request
from censcore.evaluation.sample import Sample
from censcore.scores.inputs import known_to_exceed

__all__ = ["InMemory", "Plan", "decide"]


@dataclass(frozen=True, eq=False)
class Plan:
    """All that was decided before anything is scored."""

    asked: Request  #: with what follows from the kind of outcome
    kind: Kind
    forecasts: dict[str, Any]  #: as they are scored; of a table, those of its first rows
    scores: list[CaseScore]
    censoring: ResolvedCensoring
    reference: str | None  #: name of the forecast that skill is measured against
    horizon: float
    times: np.ndarray
    levels: np.ndarray
    notes: list[str]  #: what a reader should know
    #: Forecast, outcome and censoring distribution, by the name of the forecast; none for a table.
    cases: dict[str, Case] = field(default_factory=dict)


def decide(subjects: InMemory) -> Plan:
    """Settle the outcome, the censoring distribution, the forecasts, the horizon, times and levels."""
    kind = subjects.settle()
    notes = list(kind.notes)
    kind, train = subjects.training(kind, notes)
    forecasts = subjects.read(kind, train, notes)
    kind, train = kind.named(forecasts, train)
    scores = kind.scores(subjects.asked.chosen_scores)
    censoring = subjects.resolve(kind, train, forecasts, notes)
    if censoring.distribution is not None:  # of a table it may be given covariates
        kind = kind.under(censoring.distribution)
    asked, scored = subjects.asked, subjects.scored(kind)
    reference = add_reference(kind, forecasts, asked.reference, train, scored, asked.sample.X, notes)
    horizon = subjects.horizon(kind, train, censoring, notes)
    forecasts = subjects.settled(kind, forecasts, train, horizon, notes)
    sample = scored if train is None else train  # else times would fix scored events
    pooled, levels = subjects.event_times(kind, sample, horizon)
    at = times_and_levels(forecasts, pooled, horizon, asked.times, levels)
    return subjects.planned(
        Plan(asked, kind, forecasts, scores, censoring, reference, horizon, *at, notes=notes)
    )


class InMemory:
    """The subjects of a request, and how each step of a plan is taken for them.

    Attributes
    ----------
    asked : Request
        With what follows from the steps that were taken.
    groups, train_groups : array of int or None
        Numbers of the clusters of scored and of training subjects.
    weight : array or None
        Sampling weights of the scored subjects.
    """

    def __init__(self, asked: Request) -> None:
        self.asked = asked
        self.groups: np.ndarray | None = None
        self.train_groups: np.ndarray | None = None
        self.weight: np.ndarray | None = None
        self.automatic = is_automatic(asked.censoring)

    def settle(self) -> Kind:
        """The kind of the outcome; the request with what follows from it."""
        asked = replace(self.asked, censoring=None) if self.automatic else self.asked
        kind, asked = kind_of(asked.sample.y).settle(asked)
        if asked.censoring is None and (asked.train is not None or self.automatic):  # as in cross-validation
            asked = replace(asked, censoring=kind.default_censoring())
        self.asked, (self.groups, self.weight) = asked, asked.subjects(len(kind))
        return kind

    def training(self, kind: Kind, notes: list[str]) -> tuple[Kind, Sample | None]:
        """The training subjects, with outcomes and weights like those of the scored subjects."""
        train = None if self.asked.train is None else kind.read_training(self.asked.train, notes)
        if train is None or train.weight is not None or self.weight is None:
            return kind, train
        if replace(train, y=kind.followed(train.y)).same_as(kind.followed(kind.y)):
            return kind, replace(train, weight=self.weight)
        notes.append(
            "The scored subjects have weights (sample_weight), the training subjects have none: pass "
            "train=Sample(X_train, y_train, weight=) if they were sampled alike."
        )
        return kind, train

    def read(self, kind: Kind, train: Sample | None, notes: list[str]) -> dict[str, Any]:
        """Forecasts as distributions."""
        return kind.read(self.asked.forecasts, self.asked.sample.X, train, notes)

    def resolve(
        self, kind: Kind, train: Sample | None, forecasts: dict[str, Any], notes: list[str]
    ) -> ResolvedCensoring:
        """The censoring distribution."""
        X, y = self.asked.sample.X, kind.followed(kind.y)
        followed = None if train is None else replace(train, y=kind.followed(train.y))
        if self.automatic:
            subjects = Sample(X, y, self.weight, self.groups) if followed is None else followed
            choice = kind.choose_censoring(self.asked.censoring, subjects, self.asked.seed)
            self.asked = replace(self.asked, censoring=choice.censoring)
            notes.append(choice.note)
        asked = self.asked
        notes += check_units(y, followed) + notes_on_training(X, y, followed)
        notes += notes_on_censoring(asked.censoring, X, followed)
        censoring = resolve_censoring(asked.censoring, y, X, followed, self.weight, self.groups)
        labels = asked.train_groups if asked.train is None else asked.train.groups
        n_train = censoring.n_train or (0 if train is None else len(train))
        self.train_groups = common_codes(asked.sample.groups, labels, n_train)
        notes += kind.notes_on_forecasts(forecasts)
        return censoring

    def scored(self, kind: Kind) -> Sample | None:
        """The scored subjects."""
        return replace(self.asked.sample, y=kind.y, weight=self.weight)

    def horizon(
        self, kind: Kind, train: Sample | None, censoring: ResolvedCensoring, notes: list[str]
    ) -> float:
        """The end of the comparison."""
        sample = Sample(self.asked.sample.X, kind.followed(kind.y), self.weight)
        groups = self.groups, self.train_groups
        end = find_horizon(self.asked.horizon, censoring, sample, notes, *groups, kind.ranked)
        notes += kind.notes_on_events(end, shares(self.weight, len(kind)), self.groups, train)
        return end

    def settled(
        self, kind: Kind, forecasts: dict[str, Any], train: Sample | None, horizon: float, notes: list[str]
    ) -> dict[str, Any]:
        """Forecasts as they are scored up to the horizon."""
        return kind.settled(forecasts, train, horizon, notes)

    def event_times(self, kind: Kind, sample: Sample | None, horizon: float) -> tuple[Sample, Any]:
        """Those that default times are chosen from, and levels; None for levels that these times reach."""
        assert sample is not None
        levels = self.asked.levels
        return kind.pooled(sample), kind.levels(sample, horizon) if levels is None else levels

    def planned(self, plan: Plan) -> Plan:
        """With a case for every forecast, given survival to the entry if there is one."""
        kind, end, where = plan.kind, plan.horizon, (plan.horizon, plan.times, plan.levels)
        C, seed = plan.censoring.distribution, plan.asked.seed
        cases = {name: kind.case(F, C, *where, seed=seed) for name, F in plan.forecasts.items()}
        y = next(iter(cases.values())).y
        if y.has_delayed_entry:
            entry = to_numpy(y.entry)
            plan.notes.append(note_on_entry(entry, np.ones(len(entry)), end))
            first = min(float(known_to_exceed(entry).min()), end)
            for name, case in cases.items():
                F, prognosis = kind.given_entry(name, case.F, end), case.F.given_survival(first)
                cases[name] = replace(case, F=F, prognosis=prognosis)
        return replace(plan, cases=cases)
