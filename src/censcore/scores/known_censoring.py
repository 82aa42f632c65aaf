"""What is known of C without an estimate."""

from __future__ import annotations

import numpy as np

from censcore._arrays import Array, namespace, to_numpy
from censcore.distributions import Distribution, PointMass
from censcore.distributions.independent import Independent
from censcore.exceptions import MissingCensoringError
from censcore.outcomes import RightCensored

__all__ = ["known_censoring", "known_or_raise", "known_to_exceed"]


def known_to_exceed(entry: Array) -> Array:
    """What T, and C, are known to exceed: the entry, and nothing (-1) for subjects seen from the start."""
    xp = namespace(entry)
    return xp.where(entry > 0, entry, xp.full_like(entry, -1.0))


def known_censoring(y: RightCensored) -> Distribution | None:
    """The censoring distribution that needs no estimate: known times, or none where nothing is censored."""
    c = y.censoring_time
    if c is not None:
        return PointMass(c) if c.ndim == 1 else Independent([PointMass(c[:, j]) for j in range(y.k)])
    return None if bool(y.censored.any()) else PointMass(np.inf)


def known_or_raise(y: RightCensored) -> Distribution:
    """The same, or an error that says how to give a censoring distribution."""
    distribution = known_censoring(y)
    if distribution is None:
        censored = to_numpy(y.censored)
        raise MissingCensoringError(
            f"{int(censored.sum())} of {censored.size} times are censored and no censoring distribution was "
            "given. Pass censoring=... : PointMass(c) if the censoring times are known (or give them to "
            "RightCensored as censoring_time), a known distribution such as Uniform(0, 5), or an estimate: "
            "Censoring(KaplanMeier()).fit(X_train, y_train).predict_distribution(X_test)."
        )
    return distribution
