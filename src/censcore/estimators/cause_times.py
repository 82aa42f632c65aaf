"""Competing risks as event times of which one is finite, and draws of such times as a forecast."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore._arrays import Array, to_numpy
from censcore.distributions import CauseEnsemble, Ensemble
from censcore.estimators.aalen_johansen import check_every_cause
from censcore.outcomes import CompetingRisks, SemiCompetingRisks


class CauseTimes(SemiCompetingRisks):
    r"""The times :math:`T_1,\dots,T_m` of the causes: T for the cause of the event, never for the others.

    The first event of any cause takes the place of the terminal event: it decides what is known of C.
    """

    def __init__(self, risks: CompetingRisks) -> None:
        m, time, cause = risks.n_causes, to_numpy(risks.time), to_numpy(risks.causes)
        times, event = np.repeat(time[:, None], m, axis=1), cause[:, None] == np.arange(1, m + 1)
        self.set_fields({"time": times, "event": event, "terminal": 0, "ending": risks.any_cause()})

    @property
    def never(self) -> Array:
        """Whether a cause is known never to happen, because another one was first; (n, m)."""
        return ~self.event & self.ending.event[:, None]


def cause_times(y: CompetingRisks, name: str, training: bool = False) -> CauseTimes:
    """The times of the causes in NumPy; every cause must occur where they train the estimator ``name``."""
    y.any_cause().require_no_entry(name)
    if training:
        check_every_cause(y, name)
    return CauseTimes(y.like(np.zeros(1)))


def of_draws(z: np.ndarray, names: Any) -> Ensemble | CauseEnsemble:
    """Draws of event times as a forecast; of those of named causes, (n, samples, m), of time and cause."""
    if names is None:
        return Ensemble(z)
    time, first = z.min(axis=2), z.argmin(axis=2)
    return CauseEnsemble(time, np.where(np.isfinite(time), first + 1, 0), names=names)
