"""The same distributions in another unit of time."""

from __future__ import annotations

import copy

import numpy as np

from censcore.distributions import Distribution

#: Which arrays of a distribution are times (1) and rates (-1); the others have no unit.
POWERS = {
    "_scale": 1, "_rate": -1, "_rates": -1, "_low": 1, "_high": 1, "_location": 1, "_times": 1, "_tau": 1,
    "_entry": 1, "_samples": 1, "_edges_0": 1, "_edges_1": 1, "_edges_2": 1,
}  # fmt: skip
WITHOUT_UNIT = {"_shape", "_mu", "_sigma", "_levels", "_weights", "_theta", "_hazard", "_risk", "_log_p"}


def in_unit(distribution: Distribution, unit: float) -> Distribution:
    """The same distribution with times that are ``unit`` times as large."""
    other = copy.copy(distribution)
    other.__dict__.update(_remembered={})
    other.__dict__.pop("xp", None)
    for name in distribution.array_names:
        array = getattr(distribution, name)
        if type(distribution).__name__ == "LogNormal" and name == "_mu":
            array = array + np.log(unit)
        elif type(distribution).__name__ == "PiecewiseWeibull" and name == "_rates":
            array = array * unit**-distribution._shape
        elif type(distribution).__name__ == "Gompertz" or name in POWERS:
            array = array * unit ** (POWERS.get(name, -1))
        else:
            assert name in WITHOUT_UNIT, f"{type(distribution).__name__}{name}: a time, a rate or neither?"
        setattr(other, name, array)
    for name in distribution.part_names:
        held = getattr(distribution, name)
        parts = [in_unit(part, unit) for part in (held if isinstance(held, list) else [held])]
        setattr(other, name, parts if isinstance(held, list) else parts[0])
    return other
