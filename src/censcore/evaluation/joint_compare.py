"""Compare joint forecasts of several event times per subject: the part of ``compare`` for them."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Distribution, Independent, Univariate
from censcore.estimators import KaplanMeier
from censcore.evaluation.checks import check_units, notes_on_censoring, notes_on_events, notes_on_training
from censcore.evaluation.delayed_entry import from_entry_on
from censcore.evaluation.forecast_distributions import as_distributions
from censcore.evaluation.horizon import find_horizon
from censcore.evaluation.inference import shares
from censcore.evaluation.joint_comparison import JointComparison, of_censoring_time
from censcore.evaluation.joint_scores import JointNames, joint_scores
from censcore.evaluation.reference import KAPLAN_MEIER, add_reference, check_reference_name, fitted_reference
from censcore.evaluation.request import Request
from censcore.evaluation.resolved_censoring import ResolvedCensoring, resolve_censoring
from censcore.evaluation.subjects import Subjects, common_codes, count_of, in_numpy, training_subjects
from censcore.evaluation.subsets import make_subsets
from censcore.evaluation.times_and_levels import make_cases
from censcore.exceptions import InvalidInputError, UnsupportedOutcomeError
from censcore.outcomes import RightCensored
from censcore.scores.energy import leave_out

__all__ = ["compare_joint", "find_joint_horizon"]


def compare_joint(asked: Request, y: RightCensored) -> JointComparison:
    """The comparison of forecasts of k event times, (n, k)."""
    named = JointNames.of(y.names if asked.names is None else asked.names, asked.events, y.k)
    chosen = joint_scores(asked.chosen_scores, named)
    y, X, n = in_numpy(y), asked.X, len(y)
    code, weight = asked.subjects(n)
    notes: list[str] = []
    trained = training_subjects(asked.train, asked.train_weight, y, weight, notes)
    trained = _followed_training(trained, y, asked.mask, asked.train_mask, notes)
    y, counted = _followed(y, asked.mask, "mask")
    notes += check_units(y, trained) + notes_on_training(X, y, trained)
    notes += notes_on_censoring(asked.censoring, X, trained)
    resolved = resolve_censoring(asked.censoring, y, X, trained, weight, code)
    distributions = as_distributions(asked.forecasts, X, y, trained)
    _check_times(distributions, y)
    notes += check_reference_name(distributions, asked.reference, KAPLAN_MEIER, trained)
    learned = None if trained is None else partial(_reference, train=trained, X=X, n=n)

    def given(F: Distribution) -> Distribution:
        _check_times({"reference": F}, y)
        return F

    reference = add_reference(distributions, asked.reference, KAPLAN_MEIER, notes, given, learned)
    train_code = common_codes(asked.groups, asked.train_groups, resolved.n_train or count_of(trained))
    scored = Subjects(X, y, weight)
    end = find_joint_horizon(asked.horizon, resolved, scored, named, notes, code, train_code)
    notes += notes_on_events(y, end, shares(weight, n), code, trained)
    sample = _pooled(scored if trained is None else trained)
    cases = make_cases(distributions, scored, resolved.distribution, end, asked.times, asked.levels, sample)
    cases = {model: replace(case, mask=counted, seed=asked.seed) for model, case in cases.items()}
    cases = from_entry_on(cases, notes)
    subsets = make_subsets(asked.by, X, y, shares(weight, n))
    kept = asked.kept(groups=code, train_groups=train_code, reference=reference)
    return JointComparison.of_cases(cases, chosen, subsets, resolved, notes, names=named, **kept)


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


def _check_times(distributions: dict[str, Distribution], y: RightCensored) -> None:
    for name, F in distributions.items():
        if F.k != y.k:
            raise InvalidInputError(
                f"Forecast {name!r}: got a distribution of {F.k} event times, expected {y.k}, as the outcome "
                "has. Forecasts of single times are joined by Independent([F_1, ..., F_k])."
            )


def _reference(estimator: Any, train: Subjects, X: Any, n: int) -> Distribution:
    """The forecast of an estimator, by default independent Kaplan-Meier curves, fitted to the training."""
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


def find_joint_horizon(
    horizon: float | str,
    resolved: ResolvedCensoring,
    scored: Subjects,
    names: JointNames,
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
            said[:] = [f"{names.times[j]}: {note}" for note in said]
    end = min(value for value, _ in found)
    notes += [note for value, said in found if value == end for note in said]
    return end


def _seen_of(y: RightCensored, resolved: ResolvedCensoring, j: int) -> RightCensored:
    """What was seen of censoring time j as an outcome (n,): of one that all share, the last time."""
    if resolved.distribution.k > 1:
        return y.marginal(j)
    return RightCensored(to_numpy(y.time).max(axis=1), to_numpy(y.event).all(axis=1))
