"""Interval-censored outcomes in scores: the forecast is sent through the same visits as the event time.

An examination finds events that happened before it. The detection time D is the first visit at or after T,
so P(D <= t) = F(v) at the last visit v up to t: a step function that jumps at visits. What was seen of D is
right-censored data, which every score takes (:func:`through_visits`). The log score needs no visits
(:func:`interval_log_score`).
"""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from censcore._arrays import (
    Array,
    as_float,
    common_rows,
    namespace,
    one_namespace,
    searchsorted,
    take_along,
    to_numpy,
)
from censcore._numerics import expm1, safe_log
from censcore._validation import name_subjects
from censcore.distributions import Distribution, Ensemble, Step, Univariate
from censcore.distributions.derived.dropout import LastVisit, dropping_out, steps_at
from censcore.exceptions import InvalidInputError, NoDensityError
from censcore.outcomes import IntervalCensored, OutcomeLike, RightCensored
from censcore.outcomes.visits import last_visit
from censcore.scores.inputs.alignment import check_is_distribution, in_dtype_of
from censcore.scores.inputs.scoring_inputs import check_horizon, known_to_exceed

BETWEEN = 1e-6  # probability between two visits that counts as rounding
Parts = tuple[OutcomeLike, Distribution, Distribution | None]


def through_visits(
    y: OutcomeLike,
    forecast: Distribution,
    censoring: Distribution | None = None,
    horizon: Array = None,
    *,
    times: Array = None,
    members: bool = False,
) -> Parts:
    """Turn interval-censored data and a forecast of T into data and a forecast of the detection time.

    Another outcome is passed on with everything else. ``censoring`` is the distribution of the last visit
    that a subject attends, where subjects drop out (see :func:`on_own_visits`); without it all planned visits
    took place, up to the horizon, or else up to the last visit of the subject. For scores with evaluation
    ``times`` the last visit counts. ``members`` keeps those of an ensemble, each moved to the first visit at
    or after it.

    >>> import censcore as cs
    >>> y = cs.IntervalCensored([0.0, 2.0], [2.0, 4.0], visits=[2.0, 4.0, 6.0])
    >>> seen, D, _ = through_visits(y, cs.Exponential(0.5))
    >>> seen.time, D.sf([[2.0, 3.0, 4.0]]).round(3)
    (array([2., 4.]), array([[0.368, 0.368, 0.135]]))
    """
    if not isinstance(y, IntervalCensored):
        return y, forecast, censoring
    y, F = _aligned(y, forecast)
    if y.visits is None:  # exact and right-censored times only, or an error
        return y.detection(), forecast, censoring
    y.check_planned_visits("This score")
    end, D = _end(y, horizon, times), _coarsened(y, F, members)
    if censoring is None:
        return y.detection(until=end), D, None
    C = on_own_visits(y, censoring, end)
    return y.detection(until=end, dropout=True), D, C if horizon is not None else C.censor_at(end)


def detection_forecast(y: IntervalCensored, forecast: Distribution) -> Step:
    """The forecast of the detection time, given survival to the entry: steps at visits of each subject."""
    return cast(Step, _coarsened(*_aligned(y, forecast), members=False))


def on_own_visits(y: IntervalCensored, censoring: Distribution, end: Array = np.inf) -> Univariate:
    r"""The censoring distribution of the detection times, from that of the last visit that subjects attend.

    Drop-out censors a subject just before the first visit that it misses, :math:`P(C\ge v_k)=P(M\ge k)` with
    M the number of the last visit attended: until then the last result stands. ``censoring`` is that of M, as
    ``Censoring(...)`` estimates it from intervals; or of the time of that visit, which is one of the
    subject's own. Visits count up to the ``end`` of the score.

    >>> import censcore as cs
    >>> y = cs.IntervalCensored([0.0, 1.1], [0.9, 2.3], visits=[[0.9, 2.0], [1.1, 2.3]])
    >>> on_own_visits(y, cs.Step([[0.9, 2.0], [1.1, 2.3]], sf=[0.8, 0.0])).sf([[1.9, 2.2, 2.3]])
    array([[1. , 0.8, 0.8],
           [1. , 1. , 0.8]])
    """
    check_is_distribution(censoring, "censoring")
    one_namespace(outcome=y.lower, **({} if censoring.is_neutral else {"censoring": censoring.reference}))
    common_rows(outcome=len(y), censoring=len(censoring))
    C, visits = in_dtype_of(censoring, y.lower), y.visits_after_entry
    if isinstance(C, LastVisit):
        return C.on(visits)
    xp, G = namespace(visits), C.marginal(0)
    planned = xp.isfinite(visits)
    at = xp.where(planned, visits, last_visit(visits)[:, None])
    entry = y.entry if y.has_delayed_entry else xp.zeros_like(visits[:, 0])
    attended, since = G.sf_left(at), G.sf(known_to_exceed(entry))[:, None]
    left_before = xp.concat([G.sf(entry)[:, None], G.sf(at)[:, :-1]], axis=1) - attended
    limit = as_float(end, "end", like=visits)
    counted = planned & (visits <= (limit[:, None] if limit.ndim else limit))
    _check_visits(np.nonzero(to_numpy(xp.any(counted & (left_before > BETWEEN), axis=1)))[0], y)
    return dropping_out(visits, attended / xp.where(since > 0, since, 1.0))


def _check_visits(bad: np.ndarray, y: IntervalCensored) -> None:
    """Check that drop-out has no probability between the visits of a subject."""
    if bad.size:
        who = name_subjects(bad) if y.visits.shape[0] > 1 else f"{len(y)} subjects with one schedule"
        raise InvalidInputError(
            f"censoring: got a distribution with probability between the visits of {who}. The last visit "
            "that a subject attends is one of its own visits. One curve for subjects with different visits "
            "mixes their schedules, and scores under it are not proper. Estimate drop-out by the number of "
            "the visit, from the intervals themselves: "
            "Censoring(KaplanMeier()).fit(X, y).predict_distribution(X)."
        )


def _aligned(y: IntervalCensored, forecast: Distribution) -> tuple[IntervalCensored, Univariate]:
    """Both in one library and precision, the forecast given survival to the entry."""
    check_is_distribution(forecast, "forecast")
    if forecast.k > 1:
        raise InvalidInputError(
            f"An interval-censored outcome has one event time per subject and the forecast {forecast.k}; "
            "pass forecast.marginal(j)."
        )
    one_namespace(outcome=y.lower, **({} if forecast.is_neutral else {"forecast": forecast.reference}))
    model = y.lower if forecast.is_neutral else forecast.reference
    y = y if y.lower.dtype == model.dtype else y.like(model)
    F = in_dtype_of(forecast.marginal(0), model)
    common_rows(outcome=len(y), forecast=len(F))
    return y, cast(Univariate, F.given_survival(known_to_exceed(y.entry)) if y.has_delayed_entry else F)


def _end(y: IntervalCensored, horizon: Array, times: Array) -> Array:
    """Where the score ends if no visit was skipped: the horizon, after all times, or at the last visit."""
    xp, last = namespace(y.lower), y.last_visit
    if horizon is not None:
        return check_horizon(horizon, _followed(y))
    if times is not None:
        latest = as_float(times, "times", like=y.lower)
        return 2 * xp.maximum(last, xp.astype(xp.max(latest), last.dtype)) + 1
    if not bool((y.visits < last[:, None]).any()):
        raise InvalidInputError(
            "Every subject has one visit, at which the score would end: pass horizon=tau, a time after the "
            "visits up to which its result counts, or use brier_score at the visits."
        )
    return last


def _coarsened(y: IntervalCensored, F: Univariate, members: bool) -> Univariate:
    r"""The distribution of the first visit at or after T, :math:`P(D>t)=P(T>\max\{v\le t\})`."""
    xp, visits = namespace(y.lower), y.visits
    if members and isinstance(F, Ensemble):
        never = xp.full_like(visits[:, :1], np.inf)
        first = searchsorted(visits, F.samples, side="left")
        return F.with_samples(take_along(xp.concat([visits, never], axis=1), first))
    return steps_at(visits, visits, F.sf(visits))


# ---- the log score -------------------------------------------------------------------------------


def log_probability(F: Univariate, lower: Array, upper: Array) -> Array:
    r""":math:`\log P(l<T\le u)=\log S(l)+\log\{1-S(u)/S(l)\}`, of columns l and u, (n, q).

    From logarithms of survival functions, which keep their digits in both tails: far out S underflows, and
    early log S is about -F. An infinite u includes mass at infinity; l = 0 includes T = 0.

    >>> import censcore as cs
    >>> far = np.array([[1000.0]])
    >>> log_probability(cs.Exponential(np.array([2.0])), far, far + 0.1).round(6)
    array([[-2001.707772]])
    """
    xp = namespace(lower)
    start, endless = lower <= 0, xp.isinf(upper)
    inner = xp.ones_like(lower)
    low = F.logsf_at(xp.where(start, inner, lower))
    low = xp.where(start, xp.zeros_like(low), low)
    high = F.logsf_at(xp.where(endless, inner, upper))
    possible = xp.isfinite(low)
    ratio = xp.where(possible & ~endless, high - xp.where(possible, low, xp.zeros_like(low)), -inner)
    share = safe_log(-expm1(xp.minimum(ratio, xp.zeros_like(ratio))))  # rounding may give S(u) > S(l)
    value = low + xp.where(endless, 0.0, share)
    return xp.where(possible, value, -np.inf)


def interval_log_score(
    y: IntervalCensored, forecast: Distribution, censoring: Any = None, *, horizon: Array = None
) -> Array:
    r"""The log score of intervals, :math:`-\log\{F(u)-F(l)\}`, or :math:`-\log f(t)` of exact times, (n,).

    The censoring distribution drops out. Visits are needed only where a horizon cuts them.
    """
    if censoring is not None:
        check_is_distribution(censoring, "censoring")
    if horizon is not None:
        y = y.censor_at(check_horizon(horizon, _followed(y)))
    y, F = _aligned(y, forecast)
    n = common_rows(outcome=len(y), forecast=len(F))
    y = y if len(y) == n else y.take(np.zeros(n, dtype=np.int64))
    xp, exact = namespace(y.lower), y.exact[:, None]
    lower, upper = y.lower[:, None], y.upper[:, None]
    any_exact = bool(exact.any())
    if any_exact and not F.has_density:
        raise NoDensityError(
            f"{type(forecast).__name__} has no density, so it has no log score at times that are known "
            f"exactly (lower = upper in {int(exact.sum())} subjects). Score it by crps or brier_score."
        )
    inner = xp.ones_like(lower)
    inside = log_probability(F, xp.where(exact, 0 * inner, lower), xp.where(exact, inner, upper))
    if any_exact:
        inside = xp.where(exact, F.logpdf_at(xp.where(exact, upper, inner)), inside)
    return -inside[:, 0]


def _followed(y: IntervalCensored) -> RightCensored:
    """The last time at which each subject was known to be free of the event."""
    return RightCensored(y.lower, namespace(y.lower).zeros_like(y.exact))
