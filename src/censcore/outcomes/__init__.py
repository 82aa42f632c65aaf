"""Outcomes: what was seen of the event times of each subject."""

from censcore.outcomes.interval_censored import IntervalCensored
from censcore.outcomes.right_censored import OutcomeLike, RightCensored, as_outcome

__all__ = ["IntervalCensored", "OutcomeLike", "RightCensored", "as_outcome"]
