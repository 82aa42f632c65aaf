"""Subjects with visits of their own who leave after some of them."""

from __future__ import annotations

import numpy as np

import censcore as cs

TRUTH, END = (1.5, 3.0), 8.0


def seen(T, visits, last, entry=None):
    """What is seen of T by subjects who attend their first ``last`` visits; all planned visits are known."""
    attended = np.arange(1, visits.shape[1] + 1) <= last[:, None]
    clear, found = (visits < T[:, None]) & attended, (visits >= T[:, None]) & attended
    lower = np.max(np.where(clear & np.isfinite(visits), visits, 0.0), axis=1)
    return cs.IntervalCensored(lower, np.min(np.where(found, visits, np.inf), axis=1), visits, entry=entry)


def drop_outs(n, seed=0, leave=0.2, often=1.0):
    """A visit every 1.5 ± 0.3, on own dates (for half of the subjects more often); some leave after each."""
    rng = np.random.default_rng(seed)
    T = TRUTH[1] * rng.weibull(TRUTH[0], n)
    gap = np.where(rng.random((n, 1)) < 0.5, often, 1.0)
    visits = np.cumsum(gap * rng.uniform(1.2, 1.8, (n, int(8 / min(often, 1)))), axis=1)
    visits = np.where(visits <= END, visits, np.inf)
    return seen(T, visits, rng.geometric(leave, n))
