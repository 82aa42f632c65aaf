"""Concordance and time-dependent AUC: how well a forecast ranks the rows.

Descriptive, not proper: they ignore calibration, and a forecast may gain by deviating from the truth.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Distribution
from censcore.exceptions import InvalidInputError, PositivityError
from censcore.outcomes import as_outcome

__all__ = ["concordance", "dynamic_auc"]


def concordance(
    y: Any, risk: Any, censoring: Distribution | None = None, *, horizon: float | None = None
) -> float:
    r"""Share of comparable pairs that the risk orders rightly, ties counting one half.

    A pair is comparable if the earlier time is an event (a row censored at the same time counts as later).
    Without a law of C this is Harrell's index, which depends on how the data were censored; with one it is
    Uno's, which weighs each pair by :math:`G(y-)^{-2}` of its earlier event.

    Parameters
    ----------
    y : outcome
        n rows.
    risk : array, (n,)
        Higher means an earlier event.
    censoring : Distribution, optional
        Law of C, for Uno's index.
    horizon : float, optional
        Only events before it count.

    Returns
    -------
    float
        NaN without any comparable pair.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.evaluation import concordance
    >>> y = cs.RightCensored(time=[1.0, 2.0, 3.0, 4.0], event=[1, 1, 0, 1])
    >>> concordance(y, risk=[0.9, 0.3, 0.5, 0.1])
    0.8
    """
    y = as_outcome(y)
    time, event, r = to_numpy(y.time), to_numpy(y.event), _risk(risk, len(y))
    counted = event if horizon is None else event & (time < horizon)
    weight = counted.astype(np.float64)
    if censoring is not None:
        reach = np.broadcast_to(to_numpy(censoring.marginal(0).sf_left(y.time)), time.shape)
        weight = counted / _divisor(counted, reach) ** 2
    # a tied event is not comparable: it is placed where it can be counted neither as lower nor as higher
    lower = _later_and_lower(time, event, r)
    higher = _later_and_lower(time, event, -r)
    n_later = _comparable(time, event)
    pairs = weight @ n_later
    if not pairs:
        return float("nan")
    return float(weight @ (lower + 0.5 * (n_later - lower - higher)) / pairs)


def _risk(risk: Any, n: int) -> np.ndarray:
    values = to_numpy(risk).astype(np.float64)
    if values.shape != (n,) or np.isnan(values).any():
        raise InvalidInputError(f"risk must have one number per row, ({n},); shape {values.shape} came.")
    return values


def _divisor(counted: np.ndarray, reach: np.ndarray) -> np.ndarray:
    bad = np.nonzero(counted & (reach <= 0))[0]
    if bad.size:
        raise PositivityError(
            f"The law of C gives no chance to the events of {bad.size} rows, whose weight is infinite. "
            "Pass a smaller horizon.",
            rows=bad.tolist(),
        )
    return np.where(counted, reach, 1.0)


def _comparable(time: np.ndarray, event: np.ndarray) -> np.ndarray:
    """How many rows are known to have their event after each row's time."""
    all_times, censored_times = np.sort(time), np.sort(time[~event])
    later = len(time) - np.searchsorted(all_times, time, side="right")
    censored_then = np.searchsorted(censored_times, time, "right") - np.searchsorted(
        censored_times, time, "left"
    )
    return (later + censored_then).astype(np.float64)


def _later_and_lower(time: np.ndarray, event: np.ndarray, risk: np.ndarray) -> np.ndarray:
    """For each row, how many rows later in (time, events first, rising risk) have a lower risk."""
    order = np.lexsort((risk, ~event, time))
    rank = np.unique(risk, return_inverse=True)[1].reshape(-1)[order]
    found = np.empty(len(time))
    found[order] = _smaller_to_the_right(rank)
    return found


def _smaller_to_the_right(rank: np.ndarray) -> np.ndarray:
    """How many later entries are smaller, by merging: each block's left half is compared with its right."""
    n = len(rank)
    count = np.zeros(n, dtype=np.int64)
    by_rank = np.argsort(rank, kind="stable")
    half = 1
    while half < n:
        block = by_rank // (2 * half)
        order = by_rank[np.argsort(block, kind="stable")]  # by block, within it by rank
        in_right = (order // half) % 2 == 1
        rights = np.cumsum(in_right)
        block_sorted = order // (2 * half)
        starts = np.searchsorted(block_sorted, block_sorted)
        before_block = np.where(starts > 0, rights[starts - 1], 0)
        # entries of equal rank: the left one comes first in a stable order, so only smaller ones are counted
        passed = rights - before_block
        left = ~in_right
        count[order[left]] += passed[left]
        half *= 2
    return count


def dynamic_auc(
    y: Any, risk: Any, censoring: Distribution, times: Any, *, horizon: float | None = None
) -> np.ndarray:
    r"""Cumulative/dynamic AUC: P(risk of a case > risk of a control) at each time t.

    Cases have had the event by t and weigh :math:`1/G(y-)`; controls are still followed after t.

    Parameters
    ----------
    y : outcome
        n rows.
    risk : array, (n,) or (n, q)
        Higher means an earlier event; one column per time, for instance F(t), or one for all.
    censoring : Distribution
        Law of C.
    times : array, (q,)
        Times.
    horizon : float, optional
        Refuses times beyond it.

    Returns
    -------
    array, (q,)
        NaN where there are no cases or no controls.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.evaluation import dynamic_auc
    >>> y = cs.RightCensored(time=[1.0, 2.0, 3.0, 4.0], event=[1, 1, 0, 1])
    >>> dynamic_auc(y, [0.9, 0.3, 0.5, 0.1], cs.Uniform(0.0, 8.0), times=[1.5, 2.5]).round(3)
    array([1.   , 0.731])
    """
    y = as_outcome(y)
    times = np.atleast_1d(to_numpy(times).astype(np.float64))
    if horizon is not None and (times >= horizon).any():
        raise InvalidInputError(f"times must lie below the horizon, {horizon:g}; {times.max():g} came.")
    r = to_numpy(risk).astype(np.float64)
    r = np.broadcast_to(r[:, None] if r.ndim == 1 else r, (len(y), len(times)))
    time, event = to_numpy(y.time), to_numpy(y.event)
    reach = np.broadcast_to(to_numpy(censoring.marginal(0).sf_left(y.time)), time.shape)
    return np.array([_auc(time, event, reach, r[:, j], t) for j, t in enumerate(times)])


def _auc(time: np.ndarray, event: np.ndarray, reach: np.ndarray, risk: np.ndarray, t: float) -> float:
    case, control = event & (time <= t), np.sort(risk[time > t])
    if not case.any() or not len(control):
        return float("nan")
    weight = 1 / _divisor(case, reach)[case]
    won = np.searchsorted(control, risk[case], "left") + np.searchsorted(control, risk[case], "right")
    return float(weight @ won / (2 * weight.sum() * len(control)))
