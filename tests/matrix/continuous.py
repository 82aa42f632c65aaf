"""Simulated populations with continuous times: for densities, Cox regression of C, D-calibration, coverage.

Times depend on the linear predictor z = x + site - 1/2 of a covariate and a site. C is exponential: the same
for all subjects, or by site, or with proportional hazards in x.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from scipy.special import expit

import censcore as cs
from tests.matrix.worlds import World, see_causes, see_illness, see_one, see_pairs

RATE = 0.12  # of C
LEAVES = 0.12  # chance to leave after a visit
EFFECT = 0.5  # of z on the logarithm of time
#: Factors of shape, effect and scale that make wrong forecasts.
WRONG = {"truth": (1.0, 1.0, 1.0), "bold": (1.3, 1.4, 1.0), "shy": (0.6, 0.3, 1.0), "late": (1.0, 1.0, 1.4)}
GRID = np.concatenate([np.linspace(0.1, 6.0, 60), [8.0, 12.0, 20.0, 60.0]])
How = tuple[float, float, float]


@dataclass(frozen=True)
class Kind:
    """How event times are drawn and forecast given z, and seen under C; as in :mod:`tests.matrix.worlds`."""

    draw: Callable[[np.ndarray, np.random.Generator], np.ndarray]
    see: Callable[..., Any]
    forecast: Callable[[np.ndarray, How], Any]
    first: Callable[[np.ndarray], np.ndarray]


def world(
    name: str,
    n: int,
    seed: int,
    *,
    by: str = "",
    entry: bool = False,
    end: float = np.inf,
    cluster: int = 1,
    shares: tuple[float, float] = (0.5, 0.5),
) -> World:
    """A sample of n subjects.

    Parameters
    ----------
    by : {"", "site", "x"}
        What C depends on.
    end : float
        When follow-up of all subjects ends.
    cluster : int
        So many subjects in a row share x and the site.
    shares : pair
        Of the sites in the sample; weights make up for it.
    """
    kind, rng = KINDS[name], np.random.default_rng([seed, n])
    drawn = 3 * n if entry else n
    site, x = (
        np.repeat(values, cluster)[:drawn]
        for values in (rng.choice(2, size=drawn, p=shares), rng.normal(size=drawn))
    )
    z = x + site - 0.5
    since = rng.uniform(0.0, 0.8, drawn) * rng.integers(2, size=drawn) if entry else np.zeros(drawn)
    atoms = kind.draw(z, rng)
    factor = {"": np.ones(drawn), "site": np.array([0.6, 1.6])[site], "x": np.exp(0.5 * x)}[by]
    if name == "intervals":
        c, C = rng.geometric(1 - (1 - LEAVES) ** factor).astype(float), None
    else:
        c = np.minimum(rng.exponential(1 / (RATE * factor)), end)
        C = cs.Exponential(RATE * (factor if by else np.ones(1)))
        C = C if np.isinf(end) else C.censor_at(end)
    here = np.nonzero((kind.first(atoms) > since) & (c > since))[0][:n]
    atoms, c, z, entries = atoms[here], c[here], z[here], since[here] if entry else None
    return World(
        name, kind.see(atoms, c, entries, False), kind.see(atoms, c, entries, True),
        kind.see(atoms, None, entries, False), {wrong: kind.forecast(z, how) for wrong, how in WRONG.items()},
        C if C is None or not by else C.take(here), c, (0.5 / np.array(shares))[site[here]],
        pd.DataFrame({"site": site[here], "x": x[here]}),
    )  # fmt: skip


def weibull(z: np.ndarray, shape: float, scale: float, effect: float, how: How) -> cs.Weibull:
    a, b, c = how
    return cs.Weibull(np.full(len(z), a * shape), c * scale * np.exp(b * effect * z))


def one(z: np.ndarray, how: How = WRONG["truth"]) -> cs.Weibull:
    return weibull(z, 1.5, 3.0, EFFECT, how)


def causes(z: np.ndarray, how: How = WRONG["truth"]) -> cs.CumulativeIncidence:
    """P(T <= t, cause j) = p_j F(t), linear between points of a grid, so that it is scored fast."""
    p = expit(2 * EFFECT * how[1] * z)[:, None]
    cdf = 0.98 * one(z, how).cdf(GRID[None, :]) + 0.02 * GRID / GRID[-1]  # so that nothing is impossible
    cdf[:, -1] = 1.0
    return cs.CumulativeIncidence(GRID, np.stack([p * cdf, (1 - p) * cdf], axis=1), interpolation="linear")


def two(z: np.ndarray, how: How = WRONG["truth"]) -> cs.Independent:
    return cs.Independent([weibull(z, 1.5, 3.0, EFFECT, how), weibull(z, 1.2, 5.0, EFFECT, how)])


def illness(z: np.ndarray, how: How = WRONG["truth"]) -> cs.Copula:
    return cs.Copula("clayton", [two(z, how).marginal(j) for j in (0, 1)], theta=2.0)


def draw_cause(z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    cause = 1 + (rng.random(len(z)) > expit(2 * EFFECT * z))
    return np.column_stack([causes(z).any_cause().sample(1, rng), cause])


def draw_examined(z: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Onset, and the dates of five visits."""
    return np.column_stack([one(z).sample(1, rng), np.cumsum(rng.uniform(0.6, 1.2, (len(z), 5)), axis=1)])


def see_examined(
    atoms: np.ndarray, c: np.ndarray | None, entry: np.ndarray | None, told: bool
) -> cs.IntervalCensored | None:
    """The c-th visit is the last that is attended; censoring times cannot be told."""
    if told:
        return None
    T, visits = atoms[:, :1], atoms[:, 1:]
    attended = np.arange(1, 6) <= (6 if c is None else c[:, None])
    lower = np.max(np.where(attended & (visits < T), visits, 0.0), axis=1)
    upper = np.min(np.where(attended & (visits >= T), visits, np.inf), axis=1)
    return cs.IntervalCensored(lower, upper, visits, entry=entry)


def _onset(atoms: np.ndarray) -> np.ndarray:
    return atoms[:, 0]


def _earliest(atoms: np.ndarray) -> np.ndarray:
    return atoms.min(axis=1)


KINDS = {
    "one time": Kind(lambda z, rng: one(z).sample(1, rng)[:, 0], see_one, one, lambda T: T),
    "causes": Kind(draw_cause, see_causes, causes, _onset),
    "several times": Kind(lambda z, rng: two(z).sample(1, rng)[:, 0], see_pairs, two, _earliest),
    "semi-competing": Kind(lambda z, rng: illness(z).sample(1, rng)[:, 0], see_illness, illness, _earliest),
    "intervals": Kind(draw_examined, see_examined, one, _onset),
}
