"""What is decided before anything is scored, in one order for subjects in memory and for those in a table."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np

from censcore._arrays import common_rows, to_numpy
from censcore._validation import as_numbers
from censcore.distributions import Distribution
from censcore.estimators.censoring_choice import is_automatic
from censcore.estimators.risk_sets import empty_follow_up, note_on_empty
from censcore.evaluation.inference.estimates import shares
from censcore.evaluation.inference.resolved_censoring import (
    ResolvedCensoring,
    as_censoring,
    resolve_censoring,
)
from censcore.evaluation.inference.units import common_codes
from censcore.evaluation.kinds import Kind, choose_scores, default_censoring, kind_of
from censcore.evaluation.measures.case import Case
from censcore.evaluation.measures.case_scores import CaseScore
from censcore.evaluation.plan.forecasts import add_reference, as_distributions, as_named, check_reference
from censcore.evaluation.plan.horizon import find_horizon, given_horizon, just_after, times_and_levels
from censcore.evaluation.plan.notes import (
    UNGROUPED_TRAINING,
    UNWEIGHTED_TRAINING,
    check_intervals,
    check_units,
    note_on_entry,
    notes_on_censoring,
    notes_on_copies,
    notes_on_forecasts,
    notes_on_leaks,
    notes_on_repairs,
    notes_on_training,
)
from censcore.evaluation.plan.request import Request, labels_by
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
    latest: float  #: the last time at which a forecast is known alone; zero where there is none
    cases: dict[str, Case]  #: forecast, outcome and censoring distribution, by the name of the forecast
    weight: np.ndarray | None  #: sampling weights of the scored subjects
    groups: np.ndarray | None  #: numbers of the clusters of scored subjects
    train_groups: np.ndarray | None  #: and of training subjects

    def __init__(self, asked: Request) -> None:
        self.asked, self.notes, self.train = asked, list[str](), None
        self.automatic = is_automatic(asked.censoring)

    def decide(self) -> Self:
        """Settle the outcome, the censoring distribution, the forecasts, the horizon, times and levels."""
        self.settle()
        self.notes += self.kind.notes
        self.read_training()
        self.read_forecasts()
        self.kind, self.train = self.kind.named(self.forecasts, self.train)
        self.close()
        self.scores = choose_scores(self.kind, self.asked.chosen_scores)
        self.resolve()
        if self.censoring.distribution is not None:  # of a table it may be given covariates
            self.kind = self.kind.under(self.censoring.distribution)
        asked, F, scored = self.asked, self.forecasts, self.scored
        self.reference = add_reference(
            self.kind, F, asked.reference, self.train, scored, asked.sample.X, self.notes
        )
        self.find_horizon()
        if self.judged_at(self.horizon):
            self.horizon = just_after(self.horizon, self.kind.y)
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
            asked = replace(asked, censoring=default_censoring(self.kind))
        self.asked, (self.groups, self.weight) = asked, asked.subjects(len(self.kind.y))
        y = self.kind.followed(self.kind.y)
        check_intervals(y, self.groups, default_censoring(self.kind), asked.censoring)
        weight = np.ones(len(y)) if self.weight is None else self.weight
        if (empty := empty_follow_up(y) & (weight > 0)).any():
            self.weight = np.where(empty, 0.0, weight)
            self.notes.append(note_on_empty(empty))
        labels_by(asked.by, asked.sample.X, len(self.kind.y))
        check_reference(self.kind, asked.reference, as_named(asked.forecasts))
        if isinstance(asked.censoring, Distribution):
            common_rows(outcome=len(self.kind.y), censoring=len(asked.censoring))
        elif asked.censoring is not None and not isinstance(asked.censoring, ResolvedCensoring):
            as_censoring(asked.censoring)

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
        self.forecasts = as_distributions(self.kind, asked.forecasts, asked.sample.X, self.train)

    def close(self) -> None:
        """Follow subjects through the horizon where forecasts are judged at that very time."""
        kind, train = self.kind, self.train
        end = self.closing(self.forecasts, float(to_numpy(kind.followed(kind.y).time).max()))
        if end is not None:
            self.kind = replace(kind, y=kind.through(kind.y, end))
            self.train = train if train is None else replace(train, y=kind.through(train.y, end))

    def closing(self, forecasts: dict[str, Any], last: float) -> float | None:
        """The horizon, or else the ``last`` time, where forecasts are judged at it.

        "auto" is the time of forecasts that are all known at one time alone, or at the end of follow-up.
        """
        known = [getattr(F, "only_time", None) for F in forecasts.values()]
        self.latest = max((t for t in known if t is not None), default=0.0)
        end = given_horizon(self.asked.horizon)
        if end is None and self.latest > 0 and (None not in known or self.latest >= last):
            end = self.latest
            self.asked = replace(self.asked, horizon=end)
        end = last if end is None else end
        return end if self.judged_at(end) else None

    def judged_at(self, end: float) -> bool:
        """Whether a time, which may be the horizon, is one of those that forecasts are judged at."""
        times = self.asked.times
        return end in ([self.latest] if times is None else as_numbers(times, "times"))

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
        self.notes += check_units(y, followed) + notes_on_training(X, y, followed) + notes_on_leaks(X, y)
        self.notes += notes_on_censoring(asked.censoring, X, followed)
        groups = asked.sample.groups
        self.censoring = resolve_censoring(asked.censoring, y, X, followed, self.weight, groups)
        trained = self.censoring.train if asked.train is None else asked.train
        labels = None if trained is None else trained.groups
        n_train = self.censoring.n_train or (0 if train is None else len(train))
        apart = followed is not None and labels is None and self.censoring.n_train and not followed.same_as(y)
        if self.groups is not None and apart:
            self.notes.append(UNGROUPED_TRAINING)
        self.train_groups = common_codes(asked.sample.groups, labels, n_train)
        timed = {name: kind.timed(F) for name, F in self.forecasts.items()}
        self.notes += notes_on_forecasts(timed, kind.events_of(kind.y)) + notes_on_repairs(self.forecasts)
        subjects = replace(asked.sample, y=y, weight=self.weight)
        self.notes += notes_on_copies(subjects, timed.values())

    @property
    def scored(self) -> Sample | None:
        """The scored subjects."""
        return replace(self.asked.sample, y=self.kind.y, weight=self.weight)

    def find_horizon(self) -> None:
        """The end of the comparison, and whether there are events before it."""
        kind, weight = self.kind, self.weight
        sample, groups = Sample(None, kind.followed(kind.y), weight), (self.groups, self.train_groups)
        remarks, asked = list[str](), self.asked.horizon
        self.horizon = find_horizon(asked, self.censoring, sample, remarks, *groups, kind.ranked)
        if given_horizon(asked) is None and self.horizon < self.latest:
            remarks.clear()
            self.horizon = find_horizon(self.latest, self.censoring, sample, remarks, *groups, kind.ranked)
        self.notes += remarks
        self.notes += kind.notes_on_events(self.horizon, shares(weight, len(kind.y)), self.groups, self.train)

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
