"""From a request to a plan, from a plan to losses and means: the one pipeline of all kinds and designs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from censcore._arrays import to_numpy
from censcore.estimators.censoring_choice import is_automatic
from censcore.evaluation.inference.clusters import common_codes
from censcore.evaluation.inference.estimates import shares
from censcore.evaluation.inference.losses import Losses, Means, Scope, Subset, estimate_means, score_all
from censcore.evaluation.inference.resolved_censoring import ResolvedCensoring, resolve_censoring
from censcore.evaluation.kinds import Kind, kind_of
from censcore.evaluation.measures.case import Case
from censcore.evaluation.measures.case_scores import CaseScore
from censcore.evaluation.plan.checks import check_units, note_on_entry, notes_on_censoring, notes_on_training
from censcore.evaluation.plan.forecasts import add_reference
from censcore.evaluation.plan.horizon import find_horizon, times_and_levels
from censcore.evaluation.plan.request import Request, make_subsets
from censcore.evaluation.sample import Sample
from censcore.scores.inputs import known_to_exceed

__all__ = ["Plan", "decide", "score"]


@dataclass(frozen=True, eq=False)
class Plan:
    """All that was decided before anything is scored."""

    asked: Request  #: with what follows from the kind of outcome
    kind: Kind
    cases: dict[str, Case]  #: forecast, outcome and censoring distribution, by the name of the forecast
    scores: list[CaseScore]
    subsets: list[Subset]  #: all subjects first, then subgroups
    censoring: ResolvedCensoring
    reference: str | None  #: name of the forecast that skill is measured against
    groups: np.ndarray | None  #: numbers of the clusters of scored subjects
    train_groups: np.ndarray | None  #: and of training subjects
    notes: list[str]  #: what a reader should know


def decide(asked: Request) -> Plan:
    """Settle the outcome, the censoring distribution, the forecasts, the horizon, times and levels."""
    automatic = is_automatic(asked.censoring)
    kind, asked = kind_of(asked.sample.y).settle(replace(asked, censoring=None) if automatic else asked)
    if asked.censoring is None and (asked.train is not None or automatic):  # as in a cross-validation
        asked = replace(asked, censoring=kind.default_censoring())
    X, notes = asked.sample.X, list(kind.notes)
    groups, weight = asked.subjects(len(kind))
    y = kind.followed(kind.y)
    train = None if asked.train is None else kind.read_training(asked.train, notes)
    followed = None if train is None else replace(train, y=kind.followed(train.y))
    if train is not None and followed is not None and train.weight is None and weight is not None:
        if followed.same_as(y):
            followed, train = replace(followed, weight=weight), replace(train, weight=weight)
        else:
            notes.append(
                "The scored subjects have weights (sample_weight), the training subjects have none: pass "
                "train=Sample(X_train, y_train, weight=) if they were sampled alike."
            )
    if automatic:
        subjects = Sample(X, y, weight, groups) if followed is None else followed
        choice = kind.choose_censoring(asked.censoring, subjects, asked.seed)
        asked, notes = replace(asked, censoring=choice.censoring), [*notes, choice.note]
    forecasts = kind.read(asked.forecasts, X, train, notes)
    kind, train = kind.named(forecasts, train)
    scores = kind.scores(asked.chosen_scores)
    notes += check_units(y, followed) + notes_on_training(X, y, followed)
    notes += notes_on_censoring(asked.censoring, X, followed)
    censoring = resolve_censoring(asked.censoring, y, X, followed, weight, groups)
    kind = kind.under(censoring.distribution)
    notes += kind.notes_on_forecasts(forecasts)
    scored = replace(asked.sample, y=kind.y, weight=weight)
    reference = add_reference(kind, forecasts, asked.reference, train, scored, X, notes)
    labels = asked.train_groups if asked.train is None else asked.train.groups
    n_train = censoring.n_train or (0 if train is None else len(train))
    train_groups = common_codes(asked.sample.groups, labels, n_train)
    horizon = find_horizon(
        asked.horizon, censoring, Sample(X, y, weight), notes, groups, train_groups, kind.ranked
    )
    notes += kind.notes_on_events(horizon, shares(weight, len(kind)), groups, train)
    forecasts = kind.settled(forecasts, train, horizon, notes)
    sample = scored if train is None else train  # else times would fix scored events
    levels = kind.levels(sample, horizon) if asked.levels is None else asked.levels
    at = times_and_levels(forecasts, kind.pooled(sample), horizon, asked.times, levels)
    C = censoring.distribution
    cases = {name: kind.case(F, C, horizon, *at, seed=asked.seed) for name, F in forecasts.items()}
    cases = _from_entry_on(kind, cases, horizon, notes)
    subsets = make_subsets(asked.by, X, len(kind), shares(weight, len(kind)))
    return Plan(asked, kind, cases, scores, subsets, censoring, reference, groups, train_groups, notes)


def _from_entry_on(kind: Kind, cases: dict[str, Case], horizon: float, notes: list[str]) -> dict[str, Case]:
    """Cases with the forecasts given survival to the entry, if there is one."""
    y = next(iter(cases.values())).y
    if not y.has_delayed_entry:
        return cases
    entry = to_numpy(y.entry)
    notes.append(note_on_entry(entry, np.ones(len(entry)), horizon))
    first = min(float(known_to_exceed(entry).min()), horizon)
    return {
        name: replace(case, F=kind.given_entry(name, case.F, horizon), prognosis=case.F.given_survival(first))
        for name, case in cases.items()
    }


def score(plan: Plan) -> tuple[Losses, Means]:
    """Losses of all forecasts by all scores, and their means with the influence of whatever was estimated."""
    losses, asked = score_all(plan.cases, plan.scores), plan.asked
    scope = Scope(plan.subsets, plan.censoring, plan.groups, plan.train_groups, asked.seed, asked.progress)
    return losses, estimate_means(losses, plan.cases, scope)
