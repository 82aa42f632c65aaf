"""The risk of an event by a time: what each forecast said, and what is known of each subject."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from censcore._arrays import to_numpy
from censcore.exceptions import PositivityError
from censcore.scores.inputs import scoring_inputs
from censcore.scores.known_at import seen_beyond

if TYPE_CHECKING:
    from censcore.evaluation.measures.case import Case

__all__ = ["RiskAt", "risk_at"]


@dataclass(frozen=True, eq=False)
class RiskAt:
    """Forecast risks and inverse-probability weights at a time t, (n,) each.

    Means with these weights are those of uncensored data, over the subjects that enter before t. Where C is
    known for every subject, they are means over those that are also followed beyond t, whose weight is one.
    """

    p: np.ndarray  #: forecast risk of the event by t, given survival to the entry
    event: np.ndarray  #: weights of "event by t", zero where it is not known
    free: np.ndarray  #: weights of "no event by t", zero where it is not known
    counted: np.ndarray | None  #: the subjects that means are over; None for all


def risk_at(case: Case, t: float) -> RiskAt:
    """What a case says at a time before its horizon; an error where P(C > t) = 0 of an unknown C."""
    inputs = scoring_inputs(case.y, case.F, case.C, case.horizon, one_cause=True)
    n, at = inputs.n, inputs.xp.full_like(inputs.time[:1], t)
    beyond = seen_beyond(inputs.C, t)
    counted = np.ones(n, dtype=bool) if beyond is None else np.broadcast_to(beyond, (n,))
    if inputs.y.entry is not None:
        counted = counted & (to_numpy(inputs.y.entry) < t)
    if not counted.any():
        raise PositivityError(
            f"No subject says anything of the risk by t = {t:g}: got none that enters before it and is "
            "followed beyond it. Choose another time."
        )
    known = inputs.known_at(at, "ipcw" if beyond is None else "localized", remedy="Choose an earlier time.")
    p, event, free = (
        np.broadcast_to(to_numpy(part)[:, 0], (n,)).astype(np.float64)
        for part in (inputs.F._cdf(at), *known.weights())
    )
    return RiskAt(p, event, free, None if counted.all() else counted)
