"""How far follow-up supports a comparison."""

from __future__ import annotations

import numpy as np

from censcore._arrays import to_numpy
from censcore._validation import as_number, shown
from censcore.distributions import Distribution, PointMass
from censcore.evaluation.resolved_censoring import ResolvedCensoring
from censcore.evaluation.subjects import Subjects
from censcore.exceptions import CenscoreError, InvalidInputError

__all__ = ["find_horizon", "follow_up_end", "given_horizon"]

FOLLOWED = 0.1  # smallest P(C >= horizon) of any subject: no inverse-probability weight exceeds 10
FEW, LONGER = 0.05, 1.25  # share of subjects that may be told to limit the horizon, and by which factor
AT_RISK = 10  # subjects still at risk at the horizon, or a fifth of them where they are few


def follow_up_end(C: Distribution, *times: np.ndarray) -> float:
    r"""The largest horizon h that follow-up supports.

    .. math:: h=\sup\{t:\min_i P(C_i\ge t)\ge 0.1,\ \sum_i 1\{Y_i\ge t\}\ge\min(10,\lceil n/5\rceil)\}

    The first condition bounds the inverse-probability weights by 10. The second requires enough subjects at
    risk in every one of the samples, the scored subjects and those that the censoring distribution was
    estimated from: beyond it a Kaplan-Meier curve rests on a handful of subjects and its normal approximation
    fails. Neither is needed where C is known for every subject (``PointMass``), since nothing is divided by
    an estimate; the horizon is then the last follow-up time.

    Parameters
    ----------
    C : Distribution
        Censoring distribution of every scored subject.
    *times : arrays
        Observed times of each sample.

    Returns
    -------
    float
    """
    last = min(float(time.max()) for time in times)
    if isinstance(C, PointMass):
        return last
    followed = float(to_numpy(C.marginal(0).isf(FOLLOWED)).min())
    return min(followed, *(_last_with(time, min(AT_RISK, -(-len(time) // 5))) for time in times))


def _last_with(time: np.ndarray, count: int) -> float:
    """The largest t with at least ``count`` observed times >= t."""
    return float(np.partition(time, len(time) - count)[len(time) - count])


def followed(subjects: Subjects, groups: np.ndarray | None) -> list[np.ndarray]:
    """Observed times of subjects that count, and of groups: how long any subject of each was followed.

    A subject with a weight is one subject, and so are its copies in one group.
    """
    counted = slice(None) if subjects.weight is None else subjects.weight > 0
    time = to_numpy(subjects.y.time)
    if groups is None:
        return [time[counted]]
    last = np.zeros(int(groups.max()) + 1)
    np.maximum.at(last, groups[counted], time[counted])
    return [time[counted], last[np.unique(groups[counted])]]


def given_horizon(horizon: float | str) -> float | None:
    """The horizon as a number, None for "auto"; anything else is an error."""
    if isinstance(horizon, str) and horizon == "auto":
        return None
    try:
        return as_number(horizon, "horizon", above=0)
    except CenscoreError as error:
        raise InvalidInputError(
            f"horizon must be 'auto' or a positive, finite time; got {shown(horizon)}."
        ) from error


def find_horizon(
    horizon: float | str,
    censoring: ResolvedCensoring,
    scored: Subjects,
    notes: list[str],
    groups: np.ndarray | None = None,
    train_groups: np.ndarray | None = None,
) -> float:
    """The end of the comparison as a number; ``notes`` gains how it was chosen, or why it is too far."""
    times = followed(scored, groups)
    if censoring.train is not None:
        times += followed(censoring.train, groups if censoring.in_sample else train_groups)
    supported = follow_up_end(censoring.distribution, *times)
    last = min(float(time.max()) for time in times)
    end = given_horizon(horizon)
    if end is None:
        if not supported > 0:
            raise InvalidInputError(
                f"horizon='auto' found no time that follow-up supports: got P(C >= t) < {FOLLOWED:g} for "
                "some subject at every t > 0. Pass horizon=, or another censoring distribution."
            )
        if not isinstance(censoring.distribution, PointMass):
            notes.append(
                _chosen(supported, last, times) + _limited_by(censoring.distribution, supported, times)
            )
        return supported
    if end > supported:
        notes.append(_too_far(end, supported, last, censoring, times))
    return end


def _chosen(end: float, last: float, times: list[np.ndarray]) -> str:
    at_risk = min(int((time >= end).sum()) for time in times)
    return (
        f"horizon {end:.6g}, chosen by follow-up (last time {last:.6g}): P(C >= horizon) is at least "
        f"{FOLLOWED:g} for every subject, and {at_risk} are at risk there."
    )


def _limited_by(C: Distribution, end: float, times: list[np.ndarray]) -> str:
    """Who limits the horizon, where a few subjects with little follow-up do."""
    ends = to_numpy(C.marginal(0).isf(FOLLOWED)).reshape(-1)
    at_risk = min(_last_with(time, min(AT_RISK, -(-len(time) // 5))) for time in times)
    without = min(float(np.quantile(ends, FEW, method="higher")), at_risk)
    few = int((ends < without).sum())
    if not few or without < LONGER * end:
        return ""
    return (
        f" It is short because of {few} of {len(ends)} subjects, whose estimated P(C >= t) falls below "
        f"{FOLLOWED:g} early; without them it would be {without:.6g}. Check their covariates (rare groups, "
        "outliers), or give the estimator of the censoring distribution a penalty."
    )


def _too_far(
    end: float, supported: float, last: float, censoring: ResolvedCensoring, times: list[np.ndarray]
) -> str:
    if end > last:
        return (
            f"horizon {end:.6g} lies beyond follow-up, whose last time is {last:.6g}: nothing after it is "
            "seen, and integrated scores average over it all the same. "
            f"horizon='auto' is {supported:.6g}."
        )
    smallest = float(to_numpy(censoring.distribution.marginal(0).sf_left(end)).min())
    at_risk = min(int((time >= end).sum()) for time in times)
    return (
        f"horizon {end:.6g} is long for this follow-up: the smallest P(C >= horizon) is {smallest:.2g} and "
        f"{at_risk} subjects are at risk there, so that standard errors may be too small. "
        f"horizon='auto' is {supported:.6g}."
    )
