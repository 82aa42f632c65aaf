"""What scores of several event times are given, where one event may prevent the others."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from censcore._arrays import Array
from censcore.distributions import Distribution
from censcore.distributions.before_terminal import before_terminal
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored, SemiCompetingRisks
from censcore.scores._alignment import check_is_distribution
from censcore.scores.inputs import ScoringInputs, check_horizon, scoring_inputs

__all__ = ["joint_scoring_inputs"]


def joint_scoring_inputs(
    y: Any,
    forecast: Distribution,
    censoring: Distribution | None,
    horizon: Array = None,
    *,
    needs_censoring: bool = True,
    one_cause: bool = False,
) -> ScoringInputs:
    """The inputs of a score that takes several event times per subject, also those of semi-competing risks.

    Of these the censoring distribution is checked against the terminal event, to which subjects are followed,
    and an event that the forecast puts after the terminal one is one that never happens.
    """
    if not isinstance(y, SemiCompetingRisks):
        return scoring_inputs(
            y, forecast, censoring, horizon, joint=True, needs_censoring=needs_censoring, one_cause=one_cause
        )
    check_is_distribution(forecast, "forecast")
    if forecast.k != y.k:
        raise InvalidInputError(f"forecast: got {forecast.k} event times, expected {y.k}, as in the outcome.")
    forecast = before_terminal(forecast, y.terminal)
    end = scoring_inputs(
        y.terminal_event(), forecast.marginal(y.terminal), censoring, horizon, needs_censoring=needs_censoring
    )
    seen = y if len(y) == end.n else y.take(np.zeros(end.n, dtype=np.int64))
    seen = seen.like(end.y.time)
    seen = seen if horizon is None else seen.censor_at(check_horizon(horizon, end.y))
    return ScoringInputs(cast(RightCensored, seen), forecast.like(end.y.time), end.C, end.reached)
