"""How long subjects are followed: the censoring curve by either rule of ties, and a horizon."""

from __future__ import annotations

import numpy as np

from censcore.distributions import Distribution
from censcore.estimators import Censoring, KaplanMeier
from censcore.outcomes import RightCensored

__all__ = ["censoring_curve", "eighty_percent_gone"]


def censoring_curve(y_train: RightCensored, events_first: bool) -> Distribution:
    """G of the training subjects; without the events-first rule, Kaplan-Meier of the negated events."""
    if events_first:
        return Censoring(KaplanMeier()).fit(None, y_train).predict_distribution()
    negated = RightCensored(y_train.time, ~np.asarray(y_train.event, dtype=bool))
    return KaplanMeier().fit(None, negated).predict_distribution()


def eighty_percent_gone(time: np.ndarray) -> float:
    """The first of the times before which more than 80 % of the subjects left the risk set; else the last."""
    distinct = np.unique(time)
    gone = np.searchsorted(np.sort(time), distinct, side="left") / len(time)
    return float(distinct[np.argmax(gone > 0.8)] if (gone > 0.8).any() else distinct[-1])
