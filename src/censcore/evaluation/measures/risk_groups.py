"""Groups of subjects by their forecast risk: how many had the event over time, and how many were at risk."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from censcore._arrays import to_numpy
from censcore.estimators.risk_sets import RiskSets, entries_of
from censcore.evaluation.measures.classification import quantiles_of
from censcore.evaluation.measures.risk_of_model import RiskOfModel

GROUPS = 4


@dataclass(frozen=True, eq=False)
class RiskGroup:
    """Subjects with risks between two values, and their Kaplan-Meier or Aalen-Johansen estimate."""

    lowest: float
    highest: float
    predicted: float  #: their mean forecast risk
    times: np.ndarray  #: at which events of the group were seen, from 0 on, up to the time
    incidence: np.ndarray  #: share with the event by each
    followed: np.ndarray  #: observed times, and
    entry: np.ndarray | None

    @property
    def name(self) -> str:
        """The risks of the group."""
        return f"risk {self.lowest:.2f} to {self.highest:.2f}"

    def at_risk(self, t: float) -> int:
        """How many subjects are followed up to t or longer, and entered before."""
        there = self.followed >= t
        return int((there if self.entry is None else there & (self.entry < t)).sum())


def risk_groups(of: RiskOfModel, count: int = GROUPS) -> list[RiskGroup]:
    """Divide the subjects at quantiles of the risk; fewer groups where risks are tied."""
    p, w, y = of.known.p, of.weight, of.case.y
    cuts = np.unique(quantiles_of(p, w, np.arange(1, count) / count))
    number = np.searchsorted(cuts, p, side="left")
    time, event, entry = to_numpy(y.time), to_numpy(y.event), entries_of(y)
    groups = []
    for g in np.unique(number[w > 0]):
        rows = np.nonzero((number == g) & (w > 0))[0]
        ended = (event | of.case.never)[rows] & (time[rows] <= of.time)
        since = None if entry is None else entry[rows]
        sets = RiskSets(time[rows], ended, w[rows], since)
        own = sets.over_failures((sets.weight * event[rows][sets.order])[sets.failed])
        at_risk, _ = sets.at_risk(sets.weight)
        before = np.append(1.0, np.cumprod(1 - sets.d / at_risk)[:-1]) if len(own) else np.zeros(0)
        share, inside = np.append(0.0, np.cumsum(before * own / at_risk)), p[rows]
        groups.append(
            RiskGroup(
                float(inside.min()), float(inside.max()), float(np.average(inside, weights=w[rows])),
                np.append(0.0, sets.times), share, time[rows], since,
            )
        )  # fmt: skip
    return groups
