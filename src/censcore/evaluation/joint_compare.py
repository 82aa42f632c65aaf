"""Compare joint forecasts of several event times per subject: the part of ``compare`` for them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any, cast

import numpy as np

from censcore._arrays import is_torch, to_numpy
from censcore.distributions import Distribution, Independent, Univariate
from censcore.distributions.before_terminal import before_terminal
from censcore.estimators import Censoring, KaplanMeier
from censcore.estimators.event_histories import event_histories
from censcore.evaluation.checks import check_units, notes_on_censoring, notes_on_events, notes_on_training
from censcore.evaluation.delayed_entry import from_entry_on
from censcore.evaluation.forecast_distributions import as_distributions
from censcore.evaluation.horizon import find_horizon
from censcore.evaluation.inference import shares
from censcore.evaluation.joint_comparison import JointComparison, of_censoring_time
from censcore.evaluation.joint_scores import JointNames, joint_scores
from censcore.evaluation.reference import (
    AALEN_JOHANSEN,
    KAPLAN_MEIER,
    add_reference,
    check_reference_name,
    fitted_reference,
)
from censcore.evaluation.request import Request
from censcore.evaluation.resolved_censoring import ResolvedCensoring, resolve_censoring
from censcore.evaluation.subjects import Subjects, common_codes, count_of, in_numpy, training_subjects
from censcore.evaluation.subsets import make_subsets
from censcore.evaluation.times_and_levels import default_levels, make_cases
from censcore.exceptions import InvalidInputError, UnsupportedOutcomeError
from censcore.outcomes import RightCensored, SemiCompetingRisks, as_followed
from censcore.outcomes.ended_follow_up import check_no_event_ends_follow_up
from censcore.scores.energy import leave_out

__all__ = ["compare_joint", "find_joint_horizon"]


def compare_joint(asked: Request, y: RightCensored | SemiCompetingRisks) -> JointComparison:
    """The comparison of forecasts of k event times, (n, k)."""
    terminal = y.terminal if isinstance(y, SemiCompetingRisks) else None
    named = JointNames.of(y.names if asked.names is None else asked.names, asked.events, y.k, terminal)
    chosen = joint_scores(asked.chosen_scores, named)
    X, n, notes = asked.X, len(y), list[str]()
    code, weight = asked.subjects(n)
    outcome, trained, counted = _outcomes(asked, y, weight, named, notes)
    seen, followed = as_followed(outcome), trained and replace(trained, y=as_followed(trained.y))
    notes += check_units(seen, followed) + notes_on_training(X, seen, followed)
    notes += notes_on_censoring(asked.censoring, X, followed)
    resolved = resolve_censoring(asked.censoring, seen, X, followed, weight, code)
    default = KAPLAN_MEIER if terminal is None else AALEN_JOHANSEN
    by_default = isinstance(asked.reference, str) and asked.reference == KAPLAN_MEIER
    asked_reference = default if by_default else asked.reference
    distributions = as_distributions(asked.forecasts, X, seen, followed)
    notes += check_reference_name(distributions, asked_reference, default, trained)
    learned = None if trained is None else partial(_reference, train=trained, X=X, n=n)
    reference = add_reference(distributions, asked_reference, default, notes, lambda F: F, learned)
    distributions = _read(distributions, outcome, named, notes)
    train_code = common_codes(asked.groups, asked.train_groups, resolved.n_train or count_of(trained))
    of_follow_up, scored = Subjects(X, seen, weight), Subjects(X, outcome, weight)
    end = find_joint_horizon(asked.horizon, resolved, of_follow_up, named, notes, code, train_code)
    notes += notes_on_events(outcome, end, shares(weight, n), code, trained)
    sample = scored if trained is None else trained
    levels = asked.levels if asked.levels is not None or terminal is None else _reached_levels(sample, end)
    cases = make_cases(
        distributions, scored, resolved.distribution, end, asked.times, levels, _pooled(sample)
    )
    cases = {model: replace(case, mask=counted, seed=asked.seed) for model, case in cases.items()}
    cases = from_entry_on(cases, notes)
    subsets = make_subsets(asked.by, X, seen, shares(weight, n))
    kept = asked.kept(groups=code, train_groups=train_code, reference=reference)
    return JointComparison.of_cases(cases, chosen, subsets, resolved, notes, names=named, **kept)


# ---- outcomes ------------------------------------------------------------------------------------------


def _outcomes(
    asked: Request, y: Any, weight: np.ndarray | None, named: JointNames, notes: list[str]
) -> tuple[Any, Subjects | None, np.ndarray | None]:
    """What happened to the scored and to the training subjects, in NumPy, and who is followed for what."""
    if isinstance(y, SemiCompetingRisks):
        return _semi_competing(asked, y, weight, notes)
    y = in_numpy(y)
    trained = training_subjects(asked.train, asked.train_weight, y, weight, notes)
    trained = _followed_training(trained, y, asked.mask, asked.train_mask, notes)
    y, counted = _followed(y, asked.mask, "mask")
    for name, part in (("y", y), ("train", None if trained is None else trained.y)):
        if part is not None:
            check_no_event_ends_follow_up(part, names=named.times, of=name)
    return y, trained, counted


def _semi_competing(
    asked: Request, y: SemiCompetingRisks, weight: np.ndarray | None, notes: list[str]
) -> tuple[SemiCompetingRisks, Subjects | None, None]:
    """Event times of which one is terminal, to which all subjects are followed."""
    if asked.mask is not None or asked.train_mask is not None:
        raise UnsupportedOutcomeError(
            "mask, train_mask: got one with SemiCompetingRisks, whose subjects are followed for all events "
            "up to the terminal one. Leave it out, and subjects who are not followed for an event too."
        )
    y = y.like(np.zeros(1)) if is_torch(y.time) else y
    if asked.train is None:
        training_subjects(None, asked.train_weight, y.terminal_event(), weight, notes)
        return y, None, None
    pair = asked.train if isinstance(asked.train, tuple | list) and len(asked.train) == 2 else (None, None)
    outcome = pair[1]
    if not isinstance(outcome, SemiCompetingRisks) or (outcome.k, outcome.terminal) != (y.k, y.terminal):
        got = repr(outcome) if isinstance(outcome, SemiCompetingRisks) else type(outcome).__name__
        raise InvalidInputError(
            f"train: got {got} for the outcome of the training subjects, expected a pair (X_train, y_train) "
            f"with SemiCompetingRisks of {y.k} event times, of which number {y.terminal} is terminal."
        )
    outcome = outcome.like(np.zeros(1)) if is_torch(outcome.time) else outcome
    end = (pair[0], outcome.terminal_event())
    trained = training_subjects(end, asked.train_weight, y.terminal_event(), weight, notes)
    return y, trained and replace(trained, y=cast(RightCensored, outcome)), None


def _followed(y: RightCensored, mask: Any, name: str) -> tuple[RightCensored, np.ndarray | None]:
    """The outcome, with an event at time zero where a subject is not followed, and the mask."""
    if mask is None:
        return y, None
    try:
        y, _, kept = leave_out(y, "not needed", mask)
    except InvalidInputError as error:
        raise InvalidInputError(f"{name}: {error}") from error
    counted = np.asarray(to_numpy(kept))
    if counted.all():
        return y, None
    if y.has_delayed_entry:
        raise UnsupportedOutcomeError(
            f"{name}: got event times that are not followed, of subjects with entries. What is known of "
            "those times at the entry is not known to a comparison: leave such subjects out, or compare "
            "y.marginal(j) with forecast.given_survival(y.entry).marginal(j)."
        )
    return y, counted


def _followed_training(
    train: Subjects | None, y: RightCensored, mask: Any, train_mask: Any, notes: list[str]
) -> Subjects | None:
    if train is None:
        if train_mask is not None:
            raise InvalidInputError("train_mask: got a mask without train=(X_train, y_train).")
        return None
    if train.y.k != y.k:
        raise InvalidInputError(f"train: got outcomes of {train.y.k} event times, expected {y.k}.")
    if train_mask is None and mask is not None:
        if train.same_as(y):
            train_mask = mask
        else:
            notes.append(
                "The scored subjects have a mask, the training subjects have none: pass train_mask= if some "
                "of their event times were not followed either."
            )
    return replace(train, y=_followed(in_numpy(train.y), train_mask, "train_mask")[0])


# ---- forecasts -----------------------------------------------------------------------------------------


def _read(
    distributions: dict[str, Distribution], y: Any, named: JointNames, notes: list[str]
) -> dict[str, Distribution]:
    """Forecasts of as many times as the outcome has; an event after the terminal one never happens."""
    for name, F in distributions.items():
        if F.k != y.k:
            raise InvalidInputError(
                f"Forecast {name!r}: got a distribution of {F.k} event times, expected {y.k}, as the outcome "
                "has. Forecasts of single times are joined by Independent([F_1, ..., F_k])."
            )
    if not isinstance(y, SemiCompetingRisks):
        return distributions
    found = {name: before_terminal(F, y.terminal) for name, F in distributions.items()}
    changed = [name for name, F in found.items() if F is not distributions[name]]
    if changed:
        notes.append(
            f"{', '.join(map(repr, changed))}: events that a forecast puts after {named.times[y.terminal]!r} "
            "are read as events that never happen."
        )
    return found


def _reference(estimator: Any, train: Subjects, X: Any, n: int) -> Distribution:
    """The forecast of an estimator fitted to the training subjects.

    By default independent Kaplan-Meier curves, or, of semi-competing risks, the Aalen-Johansen estimate.
    """
    outcome: Any = train.y
    if estimator is None and isinstance(outcome, SemiCompetingRisks):
        return event_histories(None, outcome, sample_weight=train.weight)
    return _independent_curves(train) if estimator is None else fitted_reference(estimator, train, X, n)


def _independent_curves(train: Subjects) -> Independent:
    """A Kaplan-Meier curve of every event time, from the subjects who are followed for it."""
    curves: list[Univariate] = []
    for j in range(train.y.k):
        part = train.y.marginal(j)
        rows = np.nonzero(~(to_numpy(part.event) & (to_numpy(part.time) == 0)))[0]
        some = train.take(rows) if len(rows) else train
        curves.append(KaplanMeier().fit(None, some.y.marginal(j), some.weight).predict_distribution())
    return Independent(curves)


def _pooled(subjects: Subjects) -> Subjects:
    """All event times as if of different subjects, for default times and levels that suit all of them.

    An event at time zero, such as one that a subject is not followed for, is left out.
    """
    time, event = (to_numpy(part).reshape(-1) for part in (subjects.y.time, subjects.y.event))
    weight = None if subjects.weight is None else np.repeat(subjects.weight, subjects.y.k)
    kept = np.nonzero(~event | (time > 0))[0]
    return Subjects(None, RightCensored(time, event), weight).take(kept)


def _reached_levels(subjects: Subjects, horizon: float) -> np.ndarray:
    r"""Default levels below P(T_j < horizon) of every event j, :math:`\sum_i1\{T_{ij}<h\}/G(T_{ij}-)/n`."""
    y, w = subjects.y, shares(subjects.weight, len(subjects.y))
    C = Censoring(KaplanMeier()).fit(None, y, subjects.weight).predict_distribution().marginal(0)
    time, event = to_numpy(y.time), to_numpy(y.event)
    reached = to_numpy(C.sf_left(time.T.reshape(1, -1))).reshape(y.k, -1).T
    seen = event & (time < horizon)
    return default_levels(float((w @ (seen / np.where(seen, reached, 1.0))).min()))


def find_joint_horizon(
    horizon: float | str,
    resolved: ResolvedCensoring,
    scored: Subjects,
    names: JointNames | None,
    notes: list[str],
    groups: np.ndarray | None,
    train_groups: np.ndarray | None,
) -> float:
    """The smallest of the horizons that follow-up supports, one for every censoring time."""
    found: list[tuple[float, list[str]]] = []
    for j in range(resolved.distribution.k):
        said: list[str] = []
        of_one, subjects = of_censoring_time(resolved, j), replace(scored, y=_seen_of(scored.y, resolved, j))
        if of_one.train is not None:
            of_one = replace(of_one, train=replace(of_one.train, y=_seen_of(of_one.train.y, resolved, j)))
        found.append((find_horizon(horizon, of_one, subjects, said, groups, train_groups), said))
        if resolved.distribution.k > 1:
            name = f"event {j + 1}" if names is None else names.times[j]
            said[:] = [f"{name}: {note}" for note in said]
    end = min(value for value, _ in found)
    notes += [note for value, said in found if value == end for note in said]
    return end


def _seen_of(y: RightCensored, resolved: ResolvedCensoring, j: int) -> RightCensored:
    """What was seen of censoring time j as an outcome (n,): of one that all share, the last time."""
    if y.time.ndim == 1 or resolved.distribution.k > 1:
        return y.marginal(j)
    return RightCensored(to_numpy(y.time).max(axis=1), to_numpy(y.event).all(axis=1))
