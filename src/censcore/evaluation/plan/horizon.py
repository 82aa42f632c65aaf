"""Where forecasts are scored: how far follow-up supports it, evaluation times and quantile levels."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore._validation import as_number, as_numbers, check_levels, is_auto, shown
from censcore.distributions import Distribution, PointMass
from censcore.estimators import KaplanMeier
from censcore.estimators.covariates import check_weights
from censcore.evaluation.inference.resolved_censoring import ResolvedCensoring
from censcore.evaluation.plan.readings import on_grid
from censcore.evaluation.sample import Sample
from censcore.exceptions import CenscoreError, HorizonError, InvalidInputError
from censcore.outcomes import RightCensored
from censcore.plain_text import some_values

FOLLOWED = 0.1  # smallest P(C >= horizon): no inverse-probability weight exceeds 10
FEW, LEAST = 0.02, 0.001  # share of subjects that may have less, and the least of any subject
AT_RISK = 10  # subjects still at risk at the horizon, or a fifth of them where they are few


@dataclass(frozen=True, eq=False)
class FollowUp:
    """How long subjects, or groups of them, were followed."""

    time: np.ndarray  #: distinct ones, ascending
    count: np.ndarray  #: how many have each
    entry: np.ndarray  #: distinct times from which on they were followed; empty without any
    entered: np.ndarray  #: how many have each

    @classmethod
    def of(
        cls, time: np.ndarray, count: np.ndarray | None = None, entry: np.ndarray | None = None
    ) -> FollowUp:
        """From times that repeat, each of ``count`` subjects."""
        count = np.ones(len(time)) if count is None else count
        since = (np.zeros(0), np.zeros(0)) if entry is None else _counted(entry, count)
        return cls(*_counted(time, count), *since)

    @property
    def n(self) -> int:
        """How many there are."""
        return int(self.count.sum())

    @property
    def least(self) -> int:
        """How many must be at risk at the horizon: ten, or a fifth of them where they are few."""
        return min(AT_RISK, -(-self.n // 5))

    def at_risk(self, t: np.ndarray | float) -> np.ndarray:
        """How many entered before t and were followed up to t or longer."""
        return _beyond(self.time, self.count, t) - _beyond(self.entry, self.entered, t)

    def end(self) -> float:
        """The largest time with enough at risk."""
        return float(self.time[np.flatnonzero(self.at_risk(self.time) >= self.least)[-1:]].sum())


def _counted(values: np.ndarray, count: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    distinct, number = np.unique(values, return_inverse=True)
    return distinct, np.bincount(number.reshape(-1), count, minlength=len(distinct))


def _beyond(values: np.ndarray, count: np.ndarray, t: np.ndarray | float) -> np.ndarray:
    """How many have a value of t or more."""
    tails = np.append(np.cumsum(count[::-1])[::-1], 0)
    return tails[np.searchsorted(values, t, side="left")]


def follow_up_end(C: Distribution, *samples: FollowUp | np.ndarray) -> float:
    r"""The largest horizon h that follow-up supports.

    .. math:: h=\sup\{t:P(C_i\ge t)\ge 0.1,\ \sum_i 1\{a_i<t\le Y_i\}\ge\min(10,\lceil n/5\rceil)\}

    The first condition bounds the inverse-probability weights by 10. It holds for all subjects but 2 %, for
    whom 0.001 is enough, so that one subject with odd covariates does not end the comparison: at worst, the
    losses of these few are not seen. The second requires enough subjects at risk in every one of the
    samples, the scored subjects and those that the censoring distribution was estimated from: beyond it a
    Kaplan-Meier curve is based on a handful of subjects and its normal approximation fails. Neither is needed
    where C is known for every subject (``PointMass``), since nothing is divided by an estimate; the horizon
    is then the last follow-up time.

    An array among the samples holds the observed times of subjects without entries.
    """
    each = [sample if isinstance(sample, FollowUp) else FollowUp.of(sample) for sample in samples]
    return _supported(reach_of(C), each)


def reach_of(C: Distribution, weight: np.ndarray | None = None) -> float | None:
    """The last time that a censoring distribution supports; None where censoring times are known."""
    if isinstance(C, PointMass):
        return None
    return reach(to_numpy(C.marginal(0).isf(np.array([[FOLLOWED, LEAST]]))), weight)


def reach(ends: np.ndarray, count: np.ndarray | None = None) -> float:
    """The last time with P(C >= t) of 0.1 for 98 % of the subjects and 0.001 for all.

    ``ends`` (m, 2) are the last times of both kinds, each of ``count`` subjects.
    """
    count = np.ones(len(ends)) if count is None else count
    ends, count = ends[count > 0], count[count > 0]
    order = np.argsort(ends[:, 0])
    below = np.cumsum(count[order])
    return float(min(ends[order[np.argmax(below > FEW * below[-1])], 0], ends[:, 1].min()))


def _supported(reach: float | None, samples: list[FollowUp]) -> float:
    if reach is None:
        return min(float(sample.time[-1]) for sample in samples)
    return min(reach, *(sample.end() for sample in samples))


def follow_up(subjects: Sample, groups: np.ndarray | None = None) -> list[FollowUp]:
    """Follow-up of subjects that count, and of groups: how long any subject of each was followed.

    A subject with a weight is one subject, and so are its copies in one group.
    """
    counted = slice(None) if subjects.weight is None else subjects.weight > 0
    time = to_numpy(subjects.y.time)[counted]
    entry = to_numpy(subjects.y.entry)[counted] if subjects.y.has_delayed_entry else None
    if groups is None:
        return [FollowUp.of(time, entry=entry)]
    names, code = np.unique(groups[counted], return_inverse=True)
    last, first = np.zeros(len(names)), np.full(len(names), np.inf)
    np.maximum.at(last, code, time)
    if entry is not None:
        np.minimum.at(first, code, entry)
    return [FollowUp.of(time, entry=entry), FollowUp.of(last, entry=None if entry is None else first)]


def given_horizon(horizon: float | str) -> float | None:
    """The horizon as a number, None for "auto"; anything else is an error."""
    if is_auto(horizon):
        return None
    try:
        return as_number(horizon, "horizon", above=0)
    except CenscoreError as error:
        raise InvalidInputError(
            f"horizon must be 'auto' or a positive, finite time; got {shown(horizon)}."
        ) from error


def just_after(t: float, y: Any) -> float:
    """The next number after a time, in the precision of the times of an outcome."""
    return float(np.nextafter(to_numpy(y.time).dtype.type(t), np.inf))


def find_horizon(
    horizon: float | str,
    censoring: ResolvedCensoring,
    scored: Sample,
    notes: list[str],
    groups: np.ndarray | None = None,
    train_groups: np.ndarray | None = None,
    names: Sequence[str] = (),
) -> float:
    """The end of the comparison as a number; ``notes`` gains how it was chosen, or why it is too far.

    Where every event time (called ``names``) has a censoring time, it is the smallest of the horizons that
    follow-up supports.
    """
    C, ends = censoring.distribution, list[tuple[float, list[str]]]()
    for j in range(C.k):
        remarks: list[str] = []
        one, sample = censoring.of_time(j), of_censoring_time(scored, C, j)
        samples = follow_up(sample, groups)
        if one.train is not None:
            train = of_censoring_time(one.train, C, j)
            samples += follow_up(train, groups if one.in_sample else train_groups)
        reach = reach_of(one.distribution, None if len(one.distribution) == 1 else scored.weight)
        ends.append((settle_horizon(horizon, reach, samples, remarks, one.distribution), remarks))
        if C.k > 1:
            remarks[:] = [f"{names[j] if names else f'event {j + 1}'}: {note}" for note in remarks]
    end = min(value for value, _ in ends)
    notes += [note for value, remarks in ends if value == end for note in remarks]
    return end


def of_censoring_time(sample: Sample, C: Distribution, j: int) -> Sample:
    """Subjects as followed for censoring time j, (n,): for one that all event times share, the last time."""
    if sample.y.time.ndim == 1 or C.k > 1:
        return replace(sample, y=sample.y.marginal(j))
    last = RightCensored(to_numpy(sample.y.time).max(axis=1), np.ones(len(sample), dtype=bool))
    return replace(sample, y=last.with_entry(sample.y.entry))


def settle_horizon(
    horizon: float | str,
    reach: float | None,
    samples: list[FollowUp],
    notes: list[str],
    C: Distribution | None = None,
) -> float:
    """The horizon as asked for, or from what the distributions of C (:func:`reach_of`) and samples support.

    ``notes`` gain how it was chosen, or why it is too far; where C of all subjects is passed, in numbers.
    """
    supported, last = _supported(reach, samples), min(float(sample.time[-1]) for sample in samples)
    end = given_horizon(horizon)
    if end is not None:
        if end > supported:
            notes.append(_too_far(end, supported, last, samples, C))
        return end
    if not supported > 0:
        raise HorizonError(
            f"horizon='auto' found no time that follow-up supports: got P(C >= t) < {FOLLOWED:g} for more "
            f"than {FEW:.0%} of the subjects, or too few at risk, at every t > 0. Pass horizon=, or another "
            "censoring distribution."
        )
    if reach is not None:
        notes.append(_chosen(supported, last, samples, C))
    return supported


def _chosen(end: float, last: float, samples: list[FollowUp], C: Distribution | None) -> str:
    fewest = min(samples, key=lambda sample: int(sample.at_risk(end)))
    few = f", a fifth of {fewest.n}" if fewest.least < AT_RISK else ""
    least = f" ({fewest.least} at least{few})" if few else ""
    least_followed = FOLLOWED if C is None else _smallest(C, end)
    whom = "every subject"
    if least_followed < FOLLOWED * (1 - 1e-9):
        whom = f"{1 - FEW:.0%} of the subjects (the smallest is {least_followed:.2g})"
    short = "" if end >= last / 2 else " It is less than half of the follow-up, since censoring was early."
    return (
        f"horizon {end:.6g}, chosen by follow-up (last time {last:.6g}): P(C >= horizon) is at least "
        f"{FOLLOWED:g} for {whom}, and {int(fewest.at_risk(end))} are at risk there{least}.{short}"
    )


def _smallest(C: Distribution, t: float) -> float:
    """The smallest P(C >= t) of all subjects."""
    return float(to_numpy(C.marginal(0).sf_left(t)).min())


def _too_far(
    end: float, supported: float, last: float, samples: list[FollowUp], C: Distribution | None
) -> str:
    if end > last:
        return (
            f"horizon {end:.6g} lies beyond follow-up, whose last time is {last:.6g}: nothing after it is "
            "seen, and integrated scores average over it all the same. "
            f"horizon='auto' is {supported:.6g}."
        )
    chance = ""
    if C is not None:
        chance = f"the smallest P(C >= horizon) is {_smallest(C, end):.2g} and "
    at_risk = min(int(sample.at_risk(end)) for sample in samples)
    return (
        f"horizon {end:.6g} is long for this follow-up: {chance}{at_risk} subjects are at risk there, so "
        f"that standard errors may be too small. horizon='auto' is {supported:.6g}."
    )


LEVELS = np.array([0.05, 0.1, 0.25, 0.5, 0.75, 0.9])

TIME_LEVELS = np.array([0.25, 0.5, 0.75])


def times_and_levels(
    distributions: Mapping[str, Distribution], sample: Sample, horizon: float, times: Any, levels: Any
) -> tuple[np.ndarray, np.ndarray]:
    """Times and levels as they were asked for, or such that suit the event times of a sample."""
    only = np.array([t for F in distributions.values() if (t := F.only_time) is not None and t < horizon])
    at = given_times(times, horizon)
    if at is None and len(only):
        at = np.unique(only)
    elif at is None:
        at = on_grid(default_times(sample.y, horizon, sample.weight), distributions, horizon)
    alpha = given_levels(levels)
    if alpha is None:
        curve = KaplanMeier().fit(None, sample.y, sample.weight).predict_distribution()
        alpha = default_levels(1 - float(curve.sf_left(horizon)[0]))
    return at, alpha


def given_times(times: Any, horizon: float) -> np.ndarray | None:
    """Evaluation times as numbers, None for none; they lie between 0 and the horizon."""
    if times is None:
        return None
    at = as_numbers(times, "times")
    if not ((at >= 0) & (at < horizon)).all():
        end = f"the horizon, {horizon:g}" if np.isfinite(horizon) else "the horizon"
        raise HorizonError(
            f"times must lie between 0 and {end}; got {some_values(at)}. "
            "Pass smaller times, or a horizon= that the censoring distribution supports."
        )
    return at


def given_levels(levels: Any) -> np.ndarray | None:
    """Quantile levels as numbers, None for none."""
    if levels is None:
        return None
    alpha = as_numbers(levels, "levels")
    check_levels(alpha)
    return alpha


def default_levels(reached: float) -> np.ndarray:
    """Those of the usual levels that are below the probability of the event by the horizon; one at least."""
    below = LEVELS[reached > LEVELS]
    return below if len(below) else np.array([max(reached / 2, 1e-3)])


def default_times(y: RightCensored, horizon: float, weight: np.ndarray | None = None) -> np.ndarray:
    """Quartiles of the event times before the horizon, each an event time; half the horizon without any."""
    w = check_weights(weight, len(y))
    time = to_numpy(y.time)
    events = np.nonzero(to_numpy(y.event) & (time < horizon) & (w > 0))[0]
    if not len(events):
        return np.array([horizon / 2])
    order = events[np.argsort(time[events], kind="stable")]
    reached = np.cumsum(w[order])
    return np.unique(time[order][np.searchsorted(reached, TIME_LEVELS * reached[-1] * (1 - 1e-12))])
