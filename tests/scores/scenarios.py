"""Outcomes under known distributions of T and C, and censoring distributions of every kind."""

from __future__ import annotations

import numpy as np

import censcore as cs
from censcore.distributions import Univariate

LEVELS = [0.1, 0.4, 0.8]  # plain numbers, which fit any array library


def outcome_under(
    distribution: Univariate, n: int, rng: np.random.Generator, scale: float = 1.0
) -> cs.RightCensored:
    """N rows of min(T, C), T Weibull and C drawn from ``distribution``, a distribution shared by all rows."""
    T, C = scale * rng.weibull(1.3, n), distribution.sample(n, seed=rng)[0]
    return cs.RightCensored(np.minimum(T, C), T <= C)


def step_distribution(jumps: int, rng: np.random.Generator, left: float = 0.0, scale: float = 2.0) -> cs.Step:
    """A step distribution with many jumps, such as a Kaplan-Meier curve, and mass ``left`` at infinity."""
    return cs.Step(np.sort(rng.exponential(scale, jumps)), sf=np.linspace(1, left, jumps + 1)[1:])


def censoring_distributions(rng: np.random.Generator) -> dict[str, Univariate]:
    """Censoring distributions shared by all rows, of every kind that takes a road of its own."""
    return {
        "uniform": cs.Uniform(0.0, 3.0),
        "smooth": cs.Weibull(0.8, 1.5),
        "heavy": cs.LogLogistic(0.7, 1.0),
        "mass at infinity": cs.Mixture([cs.Exponential(1.0), cs.PointMass(np.inf)], [0.7, 0.3]),
        "ends": cs.Gamma(2.0, 1.0).censor_at(2.5),
        "few jumps": step_distribution(5, rng),
        "many jumps": step_distribution(60, rng),
        "many jumps, mass at infinity": step_distribution(60, rng, left=0.2),
        "piecewise linear": cs.PiecewiseLinear([0.5, 1.0, 4.0], sf=[0.9, 0.4, 0.0]),
        "ensemble": cs.Ensemble(rng.exponential(1.5, (1, 40))),
    }


#: Every score as one loss per row, (n,), so that one test serves all of them.
SCORES = {
    "log": lambda y, F, C, **more: cs.log_score(y, F, C, **more),
    "crps": lambda y, F, C, **more: cs.crps(y, F, C, **more),
    "brier": lambda y, F, C, **more: cs.brier_score(y, F, C, [0.3, 0.8], **more).mean(axis=1),
    "brier ipcw": lambda y, F, C, **more: cs.brier_score(y, F, C, [0.3, 0.8], scale="ipcw", **more).mean(
        axis=1
    ),
    "integrated brier": lambda y, F, C, **more: cs.integrated_brier_score(y, F, C, **more),
    "binomial log": lambda y, F, C, **more: cs.binomial_log_score(y, F, C, [0.3, 0.8], **more).mean(axis=1),
    "pinball": lambda y, F, C, **more: cs.pinball_score(y, F, C, LEVELS, **more).mean(axis=1),
}
