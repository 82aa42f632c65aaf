"""Checks of what a comparison receives: errors where it cannot be meant, notes where it may mislead."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import CumulativeIncidence, Distribution, Ensemble
from censcore.distributions.random_draws import keys_of
from censcore.distributions.univariate.survival_matrix import reading_of
from censcore.estimators import Censoring, KaplanMeier
from censcore.estimators.covariate_columns import numeric_columns
from censcore.estimators.libraries.pipelines import last_estimator
from censcore.estimators.subjects import SubjectKeys, copied_subjects, shared_subjects
from censcore.evaluation.inference.estimates import effective_number
from censcore.evaluation.lines import MINIMUM_EVENTS
from censcore.evaluation.sample import Sample
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored

DIFFERENT, IMPOSSIBLE = 4.0, 20.0  # ratio of typical times of two samples: a note, an error
ENOUGH = 10  # subjects of both samples, at least, for the error
EXPECTED = 10.0  # ratio of expected and observed events beyond which a note asks for the unit of time
MEMBERS = 50  # of an ensemble, below which its scores are larger by more than 2 %
LEAST_JOINED = 3  # rows that join, below which they may do so by chance
LEAST_TOLD = 20  # subjects, and distinct times, from which on a covariate is no outcome by chance
LARGEST_HAZARD = 20.0  # of one subject, so that one impossible event is not an infinite expectation


# ---- units -------------------------------------------------------------------------------------------


def check_units(y: RightCensored, train: Sample | None) -> list[str]:
    """Whether scored and training subjects seem to have their times in one unit; an error or a note if not.

    Samples of one population differ little in their median and in their largest time. A factor of 7, 12, 30
    or 365 between them is a unit of time.
    """
    if train is None:
        return []
    ours, theirs = to_numpy(y.time), to_numpy(train.y.time)
    ratios = [_ratio(of(theirs), of(ours)) for of in (np.median, np.max)]
    ratio = min(ratios) if ratios[0] > 1 else max(ratios)
    if max(ratio, 1 / ratio) < DIFFERENT or (ratios[0] > 1) != (ratios[1] > 1):
        return []
    difference = (
        f"train: got times with median {np.median(theirs):.3g} and maximum {theirs.max():.3g}, where the "
        f"scored subjects have {np.median(ours):.3g} and {ours.max():.3g}"
    )
    if max(ratio, 1 / ratio) >= IMPOSSIBLE and min(len(ours), len(theirs)) >= ENOUGH:
        raise InvalidInputError(
            f"{difference}; expected one unit of time. Convert one of them, such as days to years."
        )
    return [f"{difference}. Check that both have the same unit of time and a similar follow-up."]


def _ratio(a: float, b: float) -> float:
    return float(a) / float(b) if a > 0 and b > 0 else 1.0


def notes_on_forecasts(forecasts: Mapping[str, Distribution], y: RightCensored) -> list[str]:
    """What may be wrong with a forecast: its unit of time, or few members of an ensemble."""
    notes, observed = [], int(to_numpy(y.event).sum())
    for name, F in forecasts.items() if y.time.ndim == 1 else ():
        notes += note_on_units(name, expected_events(F, y), observed) if F.only_time is None else []
    small = {
        name: F.m for name, F in forecasts.items() if isinstance(F, Ensemble) and F.k == 1 and F.m < MEMBERS
    }
    return notes + [
        f"Forecast {name!r} is an ensemble of {m} members. It is scored as it is: drawn from the true "
        f"distribution it would have a CRPS that is about {100 / m:.2g} % larger than that of the "
        "distribution. The score without this part is scores={'fair CRPS': functools.partial(crps, "
        "fair=True)}."
        for name, m in small.items()
    ]


def notes_on_repairs(forecasts: Mapping[str, Any]) -> list[str]:
    """Say which cumulative incidences were made possible, and by how much they were changed."""
    return [
        f"{name!r}: cumulative incidences that decrease or sum to more than 1 were replaced by possible "
        f"ones in {len(F.repaired.subjects)} subjects; the largest change is {F.repaired.largest:.2g}."
        for name, F in forecasts.items()
        if isinstance(F, CumulativeIncidence) and F.repaired is not None
    ]


def count_repairs(F: Distribution) -> int:
    """Count the subjects whose forecast was repaired when it was read."""
    repair = F.repaired if isinstance(F, CumulativeIncidence) else getattr(reading_of(F), "repair", None)
    return 0 if repair is None else len(repair.subjects)


def expected_events(F: Distribution, y: RightCensored) -> float:
    r"""How many events a forecast expects in the time of follow-up, :math:`-\sum_i\log S_i(Y_i)`.

    For a calibrated forecast this is on average the number observed. A factor of ten is rarely due to a bad
    model, and often to another unit of time.
    """
    with np.errstate(divide="ignore"):
        hazard = -np.log(np.broadcast_to(to_numpy(F.marginal(0).sf(y.time)), len(y)))
    return float(np.minimum(hazard, LARGEST_HAZARD).sum())


def note_on_units(name: str, expected: float, observed: int) -> list[str]:
    """That a forecast may be in another unit of time; nothing where it is not far off."""
    larger, smaller = max(expected, observed), max(min(expected, observed), 1.0)
    if larger < EXPECTED * smaller:
        return []
    return [
        f"Forecast {name!r} expects {expected:.3g} events in the time that subjects were followed, and "
        f"{observed} were seen. Check that it is in the unit of time of the outcome."
    ]


# ---- start-stop rows, and covariates that hold the outcome -------------------------------------------


def check_intervals(y: RightCensored, groups: np.ndarray | None, default: Any, censoring: Any) -> None:
    """Check that C is no Kaplan-Meier curve of the ends of intervals (start, stop] of the same subjects."""
    estimator = default if censoring is None else getattr(censoring, "estimator", censoring)
    estimator = getattr(estimator, "estimator", estimator)
    fitted = hasattr(censoring, "estimators_")  # to other subjects, or other ends of follow-up
    if fitted or not isinstance(estimator, KaplanMeier) or not (joined := _joined(y, groups)):
        return
    raise InvalidInputError(
        f"got {joined} rows that begin where another row of the same subject ends, expected one row per "
        "subject, or known censoring times: the end of an interval (start, stop] is not censoring, so that "
        "its Kaplan-Meier curve is wrong. Judge the subjects at a landmark, at_landmark(table, s); or say "
        "until when each interval would have lasted without the event, y, groups = "
        "RightCensored.from_start_stop(table, censoring_time=column)."
    )


def _joined(y: RightCensored, groups: np.ndarray | None) -> int:
    """How many rows begin where the one before of the same subject ends; zero where rows overlap.

    Without groups the rows of a subject are those that join in the order of the table.
    """
    if not y.has_delayed_entry or y.time.ndim > 1:
        return 0
    entry, time, event = to_numpy(y.entry), to_numpy(y.time), to_numpy(y.event)
    order = np.arange(len(y)) if groups is None else np.lexsort([time, entry, groups])
    entry, time, event = entry[order], time[order], event[order]
    joins = (entry[1:] == time[:-1]) & (entry[1:] > 0) & ~event[:-1]
    same = entry[1:] > 0 if groups is None else np.diff(groups[order]) == 0
    apart = (joins | ~same).all() if groups is None else (entry[1:] >= time[:-1])[same].all()
    count = int((joins & same).sum())
    return count if apart and count >= LEAST_JOINED and 2 * count >= same.sum() else 0


def notes_on_leaks(X: Any, y: RightCensored) -> list[str]:
    """Covariates that hold the outcome: the observed time, in any unit or on any scale, or the event."""
    if X is None or y.time.ndim > 1 or len(y) < LEAST_TOLD:
        return []
    time, event = to_numpy(y.time), to_numpy(y.event)
    told = [(name, what) for name, values in numeric_columns(X) if (what := _same(values, time, event))]
    return [
        f"Column {name} of X {what}: a model that uses it knows what it is to forecast. Leave it out, unless "
        "no model does."
        for name, what in told
    ]


def _same(values: np.ndarray, time: np.ndarray, event: np.ndarray) -> str:
    """What of the outcome a covariate is, in words; empty where it is none of it."""
    if len(values) != len(time):
        return ""
    if _one_to_one(values[:LEAST_TOLD], time[:LEAST_TOLD]) and _one_to_one(values, time):
        told = "is the observed time" if (values == time).all() else "is a function of the observed time"
        return told if len(np.unique(time)) >= LEAST_TOLD else ""
    indicator, few = values == values.max(), min(event.sum(), (~event).sum()) < LEAST_TOLD // 2
    told = (indicator == event).all() or (indicator != event).all()
    return "says who had the event" if told and not few and len(np.unique(values)) == 2 else ""


def _one_to_one(values: np.ndarray, time: np.ndarray) -> bool:
    """Whether values rise, or fall, exactly where the times rise."""
    order = np.argsort(time, kind="stable")
    steps, rises = np.diff(values[order]), np.diff(time[order]) > 0
    return bool(((steps > 0) == rises).all() and (steps >= 0).all()) or bool(
        ((steps < 0) == rises).all() and (steps <= 0).all()
    )


UNWEIGHTED_TRAINING = (
    "The scored subjects have weights (sample_weight), the training subjects have none: pass "
    "train=Sample(X_train, y_train, weight=) if they were sampled alike."
)
UNGROUPED_TRAINING = (
    "The scored subjects have groups, the training subjects have none: these count as independent of each "
    "other and, but for subjects of both samples, of the scored ones. Errors are too small where they are in "
    "the same groups: pass train=Sample(X_train, y_train, groups=), with the same labels."
)


# ---- events, training subjects, names --------------------------------------------------------------------


def notes_on_events(
    y: RightCensored, horizon: float, weight: np.ndarray, groups: np.ndarray | None, train: Sample | None
) -> list[str]:
    """Too few events to tell forecasts apart, or none to fit the reference to."""
    event = to_numpy(y.event) & (to_numpy(y.time) <= horizon)
    counted = event.reshape(len(event), -1).any(axis=1) & (weight > 0)
    effective = effective_number(np.where(counted, weight, 0.0), groups)
    notes = note_on_few(int(counted.sum()), effective, len(event), horizon)
    if train is not None and not to_numpy(train.y.event).any():
        notes.append(
            "The training subjects have no events: a reference fitted to them forecasts none, and default "
            "times are not event times."
        )
    return notes


def note_on_few(count: int, effective: float, n: int, horizon: float) -> list[str]:
    """That there are too few events; nothing where there are enough."""
    if effective >= MINIMUM_EVENTS:
        return []
    worth = "" if np.isclose(effective, count) else f" (worth {effective:.2g} independent ones)"
    return [
        f"{count or 'No'} event{'s' if count != 1 else ''}{worth} among {n} scored subjects up to "
        f"the horizon {horizon:.6g}: no forecast can be called better, since at least {MINIMUM_EVENTS} "
        "are needed."
    ]


def note_on_entry(entry: np.ndarray, count: np.ndarray, horizon: float) -> str:
    """What delayed entry changes in a comparison, where ``count`` subjects have each of the entries."""
    late = int(count[entry >= horizon].sum())
    return (
        f"Delayed entry in {int(count[entry > 0].sum())} of {int(count.sum())} subjects: forecasts are "
        "judged given survival to the entry."
        + (f" The losses of the {late} who enter at or after the horizon are zero." if late else "")
    )


def notes_on_copies(subjects: Sample, forecasts: Iterable[Distribution]) -> list[str]:
    """Rows that are copies of others; without covariates, equal forecasts tell them."""
    y, X, times = subjects.y, subjects.X, np.quantile(to_numpy(subjects.y.time), [0.25, 0.5, 0.75])
    if subjects.groups is not None:
        return []
    if X is None:
        values = [
            to_numpy(F.marginal(0).sf(times[None, :] if (t := F.only_time) is None else [[t]])).round(9)
            for F in forecasts
        ]
        X = np.concatenate([np.broadcast_to(v, (len(y), v.shape[1])) for v in values], axis=1)
    keys = SubjectKeys.of(X, y)
    if subjects.weight is not None:
        keys = replace(keys, outcome=keys_of([keys.outcome, subjects.weight]))
    count = copied_subjects(keys, np.any(to_numpy(y.event).reshape(len(y), -1), axis=1))
    if count is None:
        return []
    n = int(count.sum())
    return [
        f"{n - len(count)} of {n} subjects are exact copies of others, more than chance explains. If they "
        f"are the same, standard errors are {np.sqrt(n / (count @ count)):.2g} of what they should be, and "
        "copies of test subjects may have trained the models. Pass groups= with one label per subject, or "
        "every subject once with sample_weight=."
    ]


def notes_on_training(X: Any, y: RightCensored, train: Sample | None) -> list[str]:
    """Scored subjects that are training subjects, to which a model may have been fitted."""
    if train is None:
        return []
    count = len(y)
    if not train.same_as(y):
        count = len(shared_subjects(SubjectKeys.of(X, y), SubjectKeys.of(train.X, train.y)).pairs)
    if not count:
        return []
    who = f"{count} of {len(y)} scored subjects are training subjects"
    who = "The scored subjects are the training subjects" if count == len(y) else who
    return [
        f"{who}: models that were fitted to them look better than they are. Score other subjects, or "
        "forecasts that were made out of fold."
    ]


def notes_on_censoring(censoring: Any, X: Any, train: Sample | None) -> list[str]:
    """A regression of C without covariates, which is one curve for all subjects."""
    if not hasattr(censoring, "fit") or isinstance(censoring, Distribution):
        return []
    estimator = censoring.estimator if isinstance(censoring, Censoring) else censoring
    model = last_estimator(getattr(last_estimator(estimator), "model", estimator))
    if isinstance(model, KaplanMeier) or type(model).__name__ == "KaplanMeierFitter":
        return []
    if (X if train is None else train.X) is not None:
        return []
    argument = "X=" if train is None else "train=(X_train, y_train)"
    return [
        f"The censoring distribution was fitted by {type(model).__name__} without covariates: it is the same "
        f"for all subjects. Pass covariates by {argument}, or use Censoring(KaplanMeier())."
    ]
