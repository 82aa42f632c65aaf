"""Make all decisions of a comparison, once and before the first loss is taken.

They are made in rounds, each of which needs the ones before: what the outcome says of itself; the training
subjects and the forecasts; the censoring distribution; the reference; the horizon; evaluation times and
quantile levels. :class:`Decided` holds them, frozen.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np

from censcore._arrays import common_rows, to_numpy
from censcore._validation import as_numbers
from censcore.distributions import Distribution
from censcore.estimators.censoring.censoring_choice import is_automatic
from censcore.estimators.covariates import check_rows, check_weights
from censcore.estimators.risk_sets import empty_follow_up, note_on_empty
from censcore.evaluation.decisions.asked import Asked
from censcore.evaluation.decisions.forecasts import (
    add_reference,
    as_distributions,
    as_named,
    check_reference,
)
from censcore.evaluation.decisions.horizon import find_horizon, given_horizon, just_after, times_and_levels
from censcore.evaluation.decisions.notes import (
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
from censcore.evaluation.decisions.subsets import labels_by, make_subsets
from censcore.evaluation.inference.estimates import group_codes, shares
from censcore.evaluation.inference.mean_losses import Scope, Subset
from censcore.evaluation.inference.resolved_censoring import (
    ResolvedCensoring,
    as_censoring,
    resolve_censoring,
)
from censcore.evaluation.inference.units import Codes, Units, common_codes
from censcore.evaluation.kinds import Kind, choose_scores, default_censoring, kind_of
from censcore.evaluation.measures.case import Case
from censcore.evaluation.measures.case_scores import CaseScore
from censcore.evaluation.sample import Sample
from censcore.scores.inputs.scoring_inputs import known_to_exceed

Cases = dict[str, Case]
Forecasts = dict[str, Any]


@dataclass(frozen=True, eq=False)
class Settled:
    """The scored subjects, and what follows from their outcome alone."""

    asked: Asked  #: with the censoring distribution and the horizon that follow from the outcome
    kind: Kind
    weight: np.ndarray | None  #: sampling weights
    groups: np.ndarray | None  #: numbers of the clusters
    automatic: bool  #: whether how C is estimated is still to be chosen
    notes: list[str]

    @property
    def followed(self) -> Sample:
        """The scored subjects with how long they were followed."""
        return replace(self.asked.sample, y=self.kind.followed(self.kind.y), weight=self.weight)


@dataclass(frozen=True, eq=False)
class Decided:
    """Everything that is the same for all forecasts, in all parts of the sample."""

    asked: Asked  #: but for forecasts, training subjects and C
    kind: Kind
    scores: list[CaseScore]
    reference: str | None  #: name of the forecast that skill is measured against
    censoring: ResolvedCensoring
    horizon: float
    times: np.ndarray
    levels: np.ndarray
    subsets: list[Subset]  #: all subjects first, then subgroups
    groups: np.ndarray | None
    units: Units | None  #: of scored and training subjects; None where they are not in memory
    notes: list[str]

    @property
    def scope(self) -> Scope:
        """What means are taken over, and what their errors account for."""
        assert self.units is not None  # all subjects are in memory
        weight = np.column_stack([subset.weight for subset in self.subsets])
        return Scope(weight, self.censoring, self.units, self.asked.seed, self.asked.progress)


def decide(asked: Asked) -> tuple[Decided, Cases]:
    """Decide on everything, and put each forecast beside what happened and C."""
    given = settle(asked)
    notes = [*given.notes, *given.kind.notes]
    train, X = read_training(given, notes), asked.sample.X
    forecasts: Forecasts = dict(as_distributions(given.kind, given.asked.forecasts, X, train))
    kind, train = given.kind.named(forecasts, train)
    given, train, latest = follow_through(replace(given, kind=kind), forecasts, train)
    scores = choose_scores(given.kind, asked.scores)
    given, censoring, train_groups = _resolve(given, forecasts, train, notes)
    asked, kind = given.asked, given.kind.under(censoring.distribution)
    scored = replace(asked.sample, y=kind.y, weight=given.weight)
    reference = add_reference(kind, forecasts, asked.reference, train, scored, X, notes)
    groups = given.groups, train_groups
    horizon = _horizon(replace(given, kind=kind), censoring, groups, latest, notes)
    weight = shares(given.weight, len(kind.y))
    notes += kind.notes_on_events(horizon, weight, given.groups, train)
    if judged_at(horizon, asked, latest):
        horizon = just_after(horizon, kind.y)
    forecasts = kind.settled(forecasts, train, horizon, notes)
    sample = scored if train is None else train  # else times would fix scored events
    levels = kind.levels(sample, horizon) if asked.levels is None else asked.levels
    times, levels = times_and_levels(forecasts, kind.pooled(sample), horizon, asked.times, levels)
    subsets = make_subsets(asked.by, X, len(kind.y), weight)
    units = Units.of(len(kind.y), censoring.n_train, *groups, censoring.shared.pairs)
    decided = Decided(
        asked.bare, kind, scores, reference, censoring, horizon, times, levels, subsets, given.groups,
        units, notes,
    )  # fmt: skip
    cases = make_cases(decided, forecasts)
    ties = [] if train_groups is not None else censoring.notes_on_ties
    notes += [*_notes_on_entry(cases, horizon), *censoring.notes, *ties]
    return decided, cases


# ---- what the outcome says -------------------------------------------------------------------------------


def settle(asked: Asked) -> Settled:
    """Decide on the kind of the outcome and what follows from it; check the rest of what was asked for."""
    automatic = is_automatic(asked.censoring)
    kind, asked = kind_of(asked.sample.y).settle(replace(asked, censoring=None) if automatic else asked)
    default, sample, n = default_censoring(kind), asked.sample, len(kind.y)
    if asked.censoring is None and (asked.train is not None or automatic):  # as in cross-validation
        asked = replace(asked, censoring=default)
    check_rows(sample.X, n)
    weight = None if sample.weight is None else check_weights(sample.weight, n)
    groups, y, notes = group_codes(sample.groups, n), kind.followed(kind.y), list[str]()
    check_intervals(y, groups, default, asked.censoring)
    every = np.ones(n) if weight is None else weight
    if (empty := empty_follow_up(y) & (every > 0)).any():
        weight = np.where(empty, 0.0, every)
        notes.append(note_on_empty(empty))
    labels_by(asked.by, sample.X, n)
    check_reference(kind, asked.reference, as_named(asked.forecasts))
    if isinstance(asked.censoring, Distribution):
        common_rows(outcome=n, censoring=len(asked.censoring))
    elif asked.censoring is not None and not isinstance(asked.censoring, ResolvedCensoring):
        as_censoring(asked.censoring)
    return Settled(asked, kind, weight, groups, automatic, notes)


def read_training(given: Settled, notes: list[str]) -> Sample | None:
    """Read the training subjects; where they are the scored subjects, these keep their weights."""
    kind, train = given.kind, given.asked.train
    train = None if train is None else kind.read_training(train, notes)
    if train is None or train.weight is not None or given.weight is None:
        return train
    if replace(train, y=kind.followed(train.y)).same_as(kind.followed(kind.y)):
        return replace(train, weight=given.weight)
    notes.append(UNWEIGHTED_TRAINING)
    return train


# ---- forecasts that are judged at the horizon itself -----------------------------------------------------


class Closing(NamedTuple):
    """How a comparison ends, where forecasts may be known at its end alone."""

    horizon: float | str  #: as asked for, or the one time of the forecasts
    latest: float  #: the last time at which a forecast is known alone; zero where there is none
    end: float | None  #: through which subjects are followed, since forecasts are judged there


def closing(asked: Asked, forecasts: Mapping[str, Any], last: float) -> Closing:
    """Decide whether subjects are followed through the horizon, or else through the ``last`` time.

    "auto" is the time of forecasts that are all known at one time alone, or at the end of follow-up.
    """
    known = [getattr(F, "only_time", None) for F in forecasts.values()]
    latest, horizon = max((t for t in known if t is not None), default=0.0), asked.horizon
    end = given_horizon(horizon)
    if end is None and latest > 0 and (None not in known or latest >= last):
        horizon = end = latest
    end = last if end is None else end
    return Closing(horizon, latest, end if judged_at(end, asked, latest) else None)


def judged_at(end: float, asked: Asked, latest: float) -> bool:
    """Tell whether a time, which may be the horizon, is one of those that forecasts are judged at."""
    return end in ([latest] if asked.times is None else as_numbers(asked.times, "times"))


def follow_through(
    given: Settled, forecasts: Mapping[str, Any], train: Sample | None = None
) -> tuple[Settled, Sample | None, float]:
    """Follow subjects through the horizon where forecasts are judged at that very time."""
    kind = given.kind
    found = closing(given.asked, forecasts, float(to_numpy(kind.followed(kind.y).time).max()))
    if found.end is not None:
        kind = replace(kind, y=kind.through(kind.y, found.end))
        train = None if train is None else replace(train, y=kind.through(train.y, found.end))
    asked = replace(given.asked, horizon=found.horizon)
    return replace(given, kind=kind, asked=asked), train, found.latest


# ---- the censoring distribution, and how far it reaches --------------------------------------------------


def _resolve(
    given: Settled, forecasts: Forecasts, train: Sample | None, notes: list[str]
) -> tuple[Settled, ResolvedCensoring, Codes]:
    """Decide on the censoring distribution; also give numbers of the groups of training subjects."""
    kind, scored = given.kind, given.followed
    y, X = scored.y, scored.X
    followed = None if train is None else replace(train, y=kind.followed(train.y))
    if given.automatic:
        subjects = replace(scored, groups=given.groups) if followed is None else followed
        choice = kind.choose_censoring(given.asked.censoring, subjects, given.asked.seed)
        given = replace(given, asked=replace(given.asked, censoring=choice.censoring))
        notes.append(choice.note)
    asked = given.asked
    notes += check_units(y, followed) + notes_on_training(X, y, followed) + notes_on_leaks(X, y)
    notes += notes_on_censoring(asked.censoring, X, followed)
    censoring = resolve_censoring(asked.censoring, y, X, followed, given.weight, scored.groups)
    trained = censoring.train if asked.train is None else asked.train
    labels = None if trained is None else trained.groups
    n_train = censoring.n_train or (0 if train is None else len(train))
    apart = followed is not None and labels is None and censoring.n_train and not followed.same_as(y)
    if given.groups is not None and apart:
        notes.append(UNGROUPED_TRAINING)
    timed = {name: kind.timed(F) for name, F in forecasts.items()}
    notes += notes_on_forecasts(timed, kind.events_of(kind.y)) + notes_on_repairs(forecasts)
    notes += notes_on_copies(scored, timed.values())
    return given, censoring, common_codes(scored.groups, labels, n_train)


def _horizon(
    given: Settled, censoring: ResolvedCensoring, groups: tuple[Codes, Codes], latest: float, notes: list[str]
) -> float:
    """Decide on the end of the comparison, which no forecast that is known at one time alone lies beyond."""
    sample, remarks, asked = replace(given.followed, X=None), list[str](), given.asked.horizon
    horizon = find_horizon(asked, censoring, sample, remarks, *groups, given.kind.ranked)
    if given_horizon(asked) is None and horizon < latest:
        remarks.clear()
        horizon = find_horizon(latest, censoring, sample, remarks, *groups, given.kind.ranked)
    notes += remarks
    return horizon


# ---- cases -----------------------------------------------------------------------------------------------


def make_cases(decided: Decided, forecasts: Forecasts) -> Cases:
    """Put each forecast beside what happened and C, given survival to the entry if there is one."""
    kind, end, C = decided.kind, decided.horizon, decided.censoring.distribution
    where, seed = (end, decided.times, decided.levels), decided.asked.seed
    cases = {name: kind.case(F, C, *where, seed=seed) for name, F in forecasts.items()}
    y = next(iter(cases.values())).y
    if not y.has_delayed_entry:
        return cases
    first = min(float(known_to_exceed(to_numpy(y.entry)).min()), end)
    return {
        name: replace(case, F=kind.given_entry(name, case.F, end), prognosis=case.F.given_survival(first))
        for name, case in cases.items()
    }


def _notes_on_entry(cases: Cases, horizon: float) -> list[str]:
    """Say what delayed entry changes, where there is any."""
    y = next(iter(cases.values())).y
    if not y.has_delayed_entry:
        return []
    entry = to_numpy(y.entry)
    return [note_on_entry(entry, np.ones(len(entry)), horizon)]
