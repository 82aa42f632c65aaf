"""Censoring distributions of N subjects, and one that is moved at one time."""

from __future__ import annotations

import numpy as np

import censcore as cs
from censcore.distributions import Distribution, Grouped

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
    }


@Distribution.register
class Thinned:
    """G with 1 - dLambda(u) multiplied by a factor for each subject."""

    def __init__(self, C, factor, u):
        self.C, self.factor, self.u = C, factor, u

    def marginal(self, j):
        return self

    def __len__(self):
        return len(self.factor)

    def take(self, subjects):
        C = self.C if len(self.C) == 1 else self.C.take(subjects)
        return Thinned(C, self.factor[subjects], self.u)

    def _times(self, t, passed, values):
        factor = self.factor if np.ndim(t) < 2 else self.factor[:, None]
        return values * np.where(passed, factor, 1.0)

    def sf(self, t):
        return self._times(t, np.asarray(t) >= self.u, self.C.sf(t))

    def sf_left(self, t):
        return self._times(t, np.asarray(t) > self.u, self.C.sf_left(t))
