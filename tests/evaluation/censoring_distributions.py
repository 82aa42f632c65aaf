"""Censoring distributions of N subjects, and one that is moved at one time."""

from __future__ import annotations

import numpy as np

import censcore as cs
from censcore.distributions import Grouped, ProportionalHazards, Univariate

N = 80


def distributions(seed: int) -> dict[str, cs.Distribution]:
    rng = np.random.default_rng(seed)
    steps = [cs.Step([0.5, 1.0, 9.0], sf=[0.9, p, 0.1]) for p in (0.8, 0.5, 0.3)]
    return {
        "none": cs.PointMass(np.inf),
        "shared": cs.Exponential(0.4),
        "shared with atoms": steps[0],
        "groups with atoms": Grouped(steps, rng.integers(0, 3, N)),
        "per subject": cs.Exponential(rng.uniform(0.1, 0.8, N)),
        "per subject with atoms": cs.Step([0.5, 1.0], sf=rng.uniform(0.2, 0.8, (N, 1)) * [[1.0, 0.5]]),
        "proportional hazards": ProportionalHazards(
            [0.25, 0.5, 0.8, 1.0, 9.0], [0.1, 0.3, 0.5, 0.9, 2.0], rng.lognormal(0.0, 0.5, N)
        ),
    }


class Thinned(Univariate):
    """G with 1 - dLambda(u) multiplied by a factor for each subject."""

    array_names = ("_factor",)
    part_names = ("_inner",)

    def __init__(self, C, factor, u):
        self._inner, self._factor, self._u = [C], factor[:, None], u

    def sf_at(self, t):
        return self._inner[0].sf_at(t) * np.where(t >= self._u, self._factor, 1.0)

    def sf_left_at(self, t):
        return self._inner[0].sf_left_at(t) * np.where(t > self._u, self._factor, 1.0)
