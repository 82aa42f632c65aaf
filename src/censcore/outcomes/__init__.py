"""Outcomes: what was seen of the event times of each subject."""

from censcore.outcomes.right_censored import OutcomeLike, RightCensored, as_outcome
from censcore.outcomes.semi_competing import SemiCompetingRisks

__all__ = ["OutcomeLike", "RightCensored", "SemiCompetingRisks", "as_outcome"]
