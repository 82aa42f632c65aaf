"""Outcomes: what was seen of the event times of each subject."""

from censcore.outcomes.as_outcome import OutcomeLike, as_followed, as_outcome
from censcore.outcomes.competing_risks import CompetingRisks, as_competing_risks, is_competing
from censcore.outcomes.event_of_cause import EventOfCause
from censcore.outcomes.interval_censored import IntervalCensored
from censcore.outcomes.right_censored import RightCensored
from censcore.outcomes.semi_competing import SemiCompetingRisks
from censcore.outcomes.start_stop import StartStop

__all__ = [
    "CompetingRisks",
    "EventOfCause",
    "IntervalCensored",
    "OutcomeLike",
    "RightCensored",
    "SemiCompetingRisks",
    "StartStop",
    "as_competing_risks",
    "as_followed",
    "as_outcome",
    "is_competing",
]
