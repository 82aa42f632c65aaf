"""Whether a censoring distribution supports what was observed, and what a score asks of it.

An error says which subjects it is about, and names the largest horizon that works.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from censcore._arrays import Array, namespace, possibly, to_numpy
from censcore._numerics import invert_decreasing
from censcore._validation import name_subjects
from censcore.distributions import Univariate
from censcore.exceptions import BeyondFollowUpError, ContradictionError, PositivityError
from censcore.outcomes import RightCensored

if TYPE_CHECKING:
    from censcore.scores.inputs.scoring_inputs import ScoringInputs

#: What the errors of scores with both scales end with.
LOCALIZED = "scale='localized' needs no such division."


def chance_to_be_seen(y: RightCensored, C: Univariate) -> Array:
    """P(C >= y), (n,), by which events are divided; a distribution that excludes y is an error."""
    t, c, censored = y.time[:, None], y.censoring_time, y.censored
    reached = C.sf_left_at(t)[:, 0]
    latest = y.time if c is None else c  # C is known to be at least this
    beyond = (latest > C.support_end()[:, 0]) | (~censored & (reached <= 0))
    known = censored if c is None else namespace(t).ones_like(y.event)
    found = (beyond | known).any()
    if found if type(found) is np.bool_ else possibly(found):
        if beyond.any():
            _check_beyond(to_numpy(beyond).nonzero()[0], y, C)
        if not C.is_estimate:  # which excludes later times alone
            excluded = known & C.excludes_at(latest[:, None])[:, 0]
            if excluded.any():
                _check_excluded(to_numpy(excluded).nonzero()[0], to_numpy(latest), C)
    return reached


def _check_beyond(bad: np.ndarray, y: RightCensored, C: Univariate) -> None:
    C_of_bad = C if len(C) == 1 else C.take(bad)
    times = to_numpy(y.time)[bad]
    end = _largest_horizon(C_of_bad, times[~to_numpy(y.censored)[bad]])
    raise BeyondFollowUpError(
        f"The censoring distribution gives no chance to follow-up as long as that of {name_subjects(bad)} "
        f"(the earliest time is {float(times.min()):g}), so their scores are undefined. Pass horizon={end!r} "
        "or less to score the forecasts up to a time that it supports, or a censoring distribution with a "
        "longer support.",
        rows=bad.tolist(),
        horizon=end,
    )


def _check_excluded(bad: np.ndarray, c: np.ndarray, C: Univariate) -> None:
    one = np.broadcast_to(to_numpy(C.known_time()), c.shape)[bad[0]]
    expected = "" if np.isnan(one) else ", expected never" if np.isinf(one) else f", expected {one:g}"
    raise ContradictionError(
        f"The censoring distribution excludes the censoring times of {name_subjects(bad)} (got {c[bad[0]]:g}"
        f"{expected}): a point mass at c says that C = c exactly, one at infinity that nothing is censored. "
        "A score under it would be improper. Pass the distribution that censored them, for instance "
        "Censoring(KaplanMeier()).fit(X_train, y_train).predict_distribution(X_test)."
    )


def _largest_horizon(C: Univariate, event_times: np.ndarray) -> float:
    """The end of C; the last time with P(C >= t) > 0 if an event at or before that end has no chance."""
    end = float(to_numpy(C.isf(0.0)).min())
    return _last_reached(C.sf_left_at, C) if (event_times <= end).any() else end


def _last_reached(G: Callable[[Array], Array], C: Univariate) -> float:
    """The largest float at which G, P(C > t) or P(C >= t), is positive for every subject."""
    distribution = C.detach()
    zero = distribution.xp.zeros_like(distribution.sf_at(distribution.support_end()))
    first = float(to_numpy(invert_decreasing(G, zero)).min())
    return float(np.nextafter(np.asarray(first, dtype=to_numpy(zero).dtype), 0))


def check_unreached(n: int, C: Univariate, t: Array, *, before: bool = False, remedy: str = "") -> None:
    """Weights on the ipcw scale divide by P(C > t) at times t, (n or 1, q); just before t by P(C >= t)."""
    G = C.sf_left_at if before else C.sf_at
    _check_zero(n, C, G, t, f"The largest time that works is {{last!r}}.{remedy and ' '}{remedy}")


def check_unreached_before(inputs: ScoringInputs, end: Array) -> None:
    """Its integral divides by P(C > t) at all times before its end, (n,) or (1,).

    A finite end needs P(C >= end) > 0, so that the weights are bounded. An infinite one needs a C without an
    end, and subjects followed to where its probability is positive to machine precision.
    """
    xp, C = inputs.xp, inputs.C
    endless = xp.isinf(end)
    latest = xp.where(endless, inputs.y.time, end)
    remedy = f"The largest horizon that works is {{last!r}}. {LOCALIZED}"
    _check_zero(inputs.n, C, C.sf_left_at, latest[:, None], remedy)
    ends = to_numpy(C.support_end())[:, 0]
    short = to_numpy(endless) & np.isfinite(ends)
    if short.any():
        remedy = f"Pass horizon={{last!r}} or less. {LOCALIZED}"
        _raise_unreached(inputs.n, C, C.sf_left_at, ends.min(), short, remedy)


def _check_zero(n: int, C: Univariate, G: Callable[[Array], Array], t: Array, remedy: str) -> None:
    bad = to_numpy(G(t)) <= 0
    if bad.any():
        times, bad = np.broadcast_arrays(to_numpy(t), bad)
        _raise_unreached(n, C, G, times[bad].min(), np.any(bad, axis=1), remedy)


def _raise_unreached(
    n: int, C: Univariate, G: Callable[[Array], Array], first: float, bad: Any, remedy: str
) -> None:
    rows = np.nonzero(np.broadcast_to(bad, (n,)))[0]
    last = _last_reached(G, C)
    who = "scale='ipcw' divides" if LOCALIZED in remedy else "Inverse-probability weights divide"
    raise PositivityError(
        f"{who} by P(C > t), which is zero from t = {first:g} on in {name_subjects(rows)}. "
        f"{remedy.format(last=last)}",
        rows=rows.tolist(),
        horizon=last if last > 0 else None,
    )


def check_infinite(loss: Array, inputs: ScoringInputs) -> Array:
    """``loss``, or an error that names the subjects where it is infinite because follow-up never ends."""
    finite = np.isfinite(loss if type(loss) is np.ndarray else to_numpy(loss))
    if not finite.all():
        bad = np.unique(np.nonzero(~finite)[0])
        latest = float(to_numpy(inputs.y.time).max())
        raise PositivityError(
            f"The score is infinite in {name_subjects(bad)}: the forecast has too heavy a tail, or mass at "
            "infinity, and the censoring distribution never ends follow-up. Score up to a finite time "
            "instead: pass horizon=tau, for instance the end of the study or the largest observed time, "
            f"{latest:g}.",
            rows=bad.tolist(),
            horizon=latest if latest > 0 else None,
        )
    return loss
