"""Checks of what a comparison receives: errors where it cannot be meant, notes where it may mislead."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Distribution, Ensemble
from censcore.estimators import Censoring, KaplanMeier
from censcore.estimators.pipelines import last_estimator
from censcore.estimators.subjects import SubjectKeys, shared_subjects
from censcore.evaluation.inference.estimates import effective_number
from censcore.evaluation.lines import MINIMUM_EVENTS
from censcore.evaluation.sample import Sample
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored

DIFFERENT, IMPOSSIBLE = 4.0, 20.0  # ratio of typical times of two samples: a note, an error
ENOUGH = 10  # subjects of both samples, at least, for the error
EXPECTED = 10.0  # ratio of expected and observed events beyond which a note asks for the unit of time
MEMBERS = 50  # of an ensemble, below which its scores are larger by more than 2 %
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
        notes += note_on_units(name, expected_events(F, y), observed)
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
