"""From a request to a plan, from a plan to losses and means: the one pipeline of all kinds and designs."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from censcore.evaluation.inference.clusters import common_codes
from censcore.evaluation.inference.estimates import shares
from censcore.evaluation.inference.losses import Losses, Means, Subset, estimate_means, score_all
from censcore.evaluation.inference.resolved_censoring import ResolvedCensoring, resolve_censoring
from censcore.evaluation.kinds import Kind, kind_of
from censcore.evaluation.measures.case import Case
from censcore.evaluation.measures.case_scores import CaseScore
from censcore.evaluation.plan.checks import check_units, notes_on_censoring, notes_on_training
from censcore.evaluation.plan.delayed_entry import from_entry_on
from censcore.evaluation.plan.horizon import find_horizon
from censcore.evaluation.plan.reference import add_reference
from censcore.evaluation.plan.request import Request
from censcore.evaluation.plan.subsets import make_subsets
from censcore.evaluation.plan.times_and_levels import times_and_levels
from censcore.evaluation.sample import Sample, count_of, with_weights_of

__all__ = ["Plan", "decide", "score"]


@dataclass(frozen=True, eq=False)
class Plan:
    """All that was decided before anything is scored.

    Parameters
    ----------
    asked : Request
        With what follows from the kind of outcome.
    kind : Kind
        Of the outcome.
    cases : dict of Case
        Name of the forecast -> forecast, outcome and censoring distribution.
    scores : list of CaseScore
        What is scored.
    subsets : list of Subset
        All subjects first, then subgroups.
    censoring : ResolvedCensoring
        The censoring distribution, and how it was obtained.
    reference : str, optional
        Name of the forecast that skill is measured against.
    groups, train_groups : array of int, optional
        Numbers of the clusters of scored and training subjects.
    notes : list of str
        What a reader should know.
    """

    asked: Request
    kind: Kind
    cases: dict[str, Case]
    scores: list[CaseScore]
    subsets: list[Subset]
    censoring: ResolvedCensoring
    reference: str | None
    groups: np.ndarray | None
    train_groups: np.ndarray | None
    notes: list[str]


def decide(asked: Request) -> Plan:
    """Settle the outcome, the censoring distribution, the forecasts, the horizon, times and levels."""
    kind, asked = kind_of(asked.sample.y).settle(asked)
    if asked.censoring is None and asked.train is not None:  # as in a cross-validation
        asked = replace(asked, censoring=kind.default_censoring())
    X, notes = asked.sample.X, list(kind.notes)
    groups, weight = asked.subjects(len(kind))
    y = kind.followed(kind.y)
    train = None if asked.train is None else kind.read_training(asked.train, notes)
    followed = None if train is None else replace(train, y=kind.followed(train.y))
    if train is not None and followed is not None:
        followed = with_weights_of(followed, y, weight, notes)
        train = replace(train, weight=followed.weight)
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
    train_groups = common_codes(asked.sample.groups, labels, censoring.n_train or count_of(train))
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
    cases = from_entry_on(kind, cases, notes)
    subsets = make_subsets(asked.by, X, len(kind), shares(weight, len(kind)))
    return Plan(asked, kind, cases, scores, subsets, censoring, reference, groups, train_groups, notes)


def score(plan: Plan) -> tuple[Losses, Means]:
    """Losses of all forecasts by all scores, and their means with the influence of whatever was estimated."""
    losses = score_all(plan.cases, plan.scores)
    means = estimate_means(
        losses,
        plan.cases,
        plan.subsets,
        plan.censoring,
        plan.groups,
        plan.train_groups,
        seed=plan.asked.seed,
        progress=plan.asked.progress,
    )
    return losses, means


def about_censoring(plan: Plan) -> list[str]:
    """What is said of subjects that are scored, and that C was estimated from."""
    told = plan.censoring.notes
    return told if plan.train_groups is not None else [*told, *plan.censoring.notes_on_ties]
