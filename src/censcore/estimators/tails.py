"""Event times beyond the end of follow-up: flagged as later, extrapolated, or given a named tail."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore._validation import check_option
from censcore.distributions import Distribution

#: What predictions say of draws beyond follow-up.
BEYOND = ("later", "exponential", "extrapolate")


def end_of_follow_up(y: Any, C: Distribution) -> np.ndarray:
    """The time up to which the data inform about each event, (k,).

    The largest time at which a subject can be and was under observation; infinite where nothing limits
    follow-up, because no time can be censored.
    """
    time = to_numpy(y.time).reshape(len(y), -1)
    latest_seen = time.max(axis=0) if C.k > 1 else np.full(y.k, time.max())
    if y.censoring_time is not None:
        known = to_numpy(y.censoring_time).reshape(len(y), -1)
        latest_seen = np.broadcast_to(known.max(axis=0), (y.k,))
    ends = [C.marginal(j) for j in range(C.k)]
    if all(np.isinf(to_numpy(G.known_time())).all() for G in ends):
        return np.full(y.k, np.inf)
    latest = np.array([float(to_numpy(G.isf(0.0)).max()) for G in ends])
    return np.minimum(np.broadcast_to(latest, (y.k,)), latest_seen)


def with_tail(z: np.ndarray, end: np.ndarray, beyond: str) -> np.ndarray:
    r"""Draws (n, m, k) with what is said of those beyond the end of follow-up :math:`\tau` (k,).

    ``"later"`` makes them infinite. ``"exponential"`` continues with the constant hazard
    :math:`\lambda=\log\{S(\tau/2)/S(\tau)\}/(\tau/2)`, the subject's mean hazard over the second half of
    follow-up. ``"extrapolate"`` keeps what the generator drew.
    """
    check_option(beyond, "beyond", BEYOND)
    late = z > end
    if beyond == "extrapolate" or not late.any():
        return z
    if beyond == "later":
        return np.where(late, np.inf, z)
    late &= np.isfinite(z)  # an event that never happens stays so
    after, before = (z > end).mean(axis=1), (z > end / 2).mean(axis=1)
    with np.errstate(divide="ignore", invalid="ignore"):
        hazard = np.log(before / after) / (end / 2)
        rank = z.argsort(axis=1).argsort(axis=1) - (~(z > end)).sum(axis=1, keepdims=True)
        level = (rank + 0.5) / late.sum(axis=1, keepdims=True)
        tail = end - np.log1p(-np.where(late, level, 0.0)) / hazard[:, None]
    return np.where(late, tail, z)
