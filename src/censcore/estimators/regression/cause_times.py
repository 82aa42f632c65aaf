"""Competing risks as event times of which one is finite, and draws of such times as a forecast."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore.distributions import CauseEnsemble, Ensemble
from censcore.estimators.nonparametric.aalen_johansen import check_every_cause
from censcore.outcomes import CompetingRisks
from censcore.outcomes.semi_competing import CauseTimes


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
