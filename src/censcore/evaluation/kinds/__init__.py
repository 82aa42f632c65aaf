"""Kinds of outcome: one time, several times, causes, one cause, semi-competing risks, intervals."""

from censcore.evaluation.kinds.causes import Causes
from censcore.evaluation.kinds.chosen_scores import choose_scores, one_score
from censcore.evaluation.kinds.intervals_of_visits import Intervals
from censcore.evaluation.kinds.kind import Kind, default_censoring, kind_of, register_kind
from censcore.evaluation.kinds.one_time import OneCause, OneTime
from censcore.evaluation.kinds.several_times import SeveralTimes
from censcore.evaluation.kinds.terminal_event import SemiCompeting
from censcore.outcomes import EventOfCause, IntervalCensored, SemiCompetingRisks, as_outcome, is_competing

__all__ = ["Kind", "choose_scores", "default_censoring", "kind_of", "one_score", "register_kind"]

# the last one that recognises an outcome is taken
register_kind(OneTime, lambda y: True)
register_kind(SeveralTimes, lambda y: as_outcome(y).time.ndim > 1)
register_kind(OneCause, lambda y: isinstance(y, EventOfCause))
register_kind(SemiCompeting, lambda y: isinstance(y, SemiCompetingRisks))
register_kind(Causes, is_competing)
register_kind(Intervals, lambda y: isinstance(y, IntervalCensored))
