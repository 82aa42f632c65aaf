"""Simulated subjects of every kind of outcome, with forecasts of them and their censoring distribution."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import cache
from typing import Any

import numpy as np
import pandas as pd

import censcore as cs

SITES = np.array(["east", "north", "west"])
CLUSTER = 4  # subjects in a row who share z
CAUSES = ["relapse", "death"]
MEMBERS = 60  # of ensembles
GRID = np.array([0.25, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0])  # of survival matrices


@dataclass(frozen=True, eq=False)
class Subjects:
    """n subjects: what was seen of them, alone, with censoring times, or without any censoring."""

    X: pd.DataFrame
    seen: Any
    known: Any
    full: Any
    forecasts: dict[str, Any]
    C: Any
    weight: np.ndarray
    groups: np.ndarray

    def __len__(self) -> int:
        return len(self.X)

    def take(self, rows: np.ndarray) -> Subjects:
        """Some of them."""

        def some(part: Any) -> Any:
            return None if part is None else part.take(rows)

        return Subjects(
            self.X.iloc[rows].reset_index(drop=True), some(self.seen), some(self.known), some(self.full),
            {name: F.take(rows) for name, F in self.forecasts.items()}, some(self.C), self.weight[rows],
            self.groups[rows],
        )  # fmt: skip


@dataclass(frozen=True, eq=False)
class _Drawn:
    """What all kinds have: covariates, censoring times and random numbers."""

    X: pd.DataFrame
    x: np.ndarray
    z: np.ndarray
    c: np.ndarray
    rng: np.random.Generator

    def weibull(self, shape: float, scale: float, by_x: float, by_z: float) -> cs.Weibull:
        """A regression on x and z."""
        return cs.Weibull(np.full(len(self.x), shape), scale * np.exp(by_x * self.x + by_z * self.z))

    def sample(self, F: cs.Weibull) -> np.ndarray:
        """One time of each subject."""
        return F.icdf(self.rng.uniform(size=len(self.x)))


Seen = tuple[Any, Any, Any, dict[str, Any]]


def _one(d: _Drawn) -> Seen:
    truth = d.weibull(1.4, 2.0, 0.5, 0.4)
    T = d.sample(truth)
    time, event = np.minimum(T, d.c), d.c >= T
    forecasts = {
        "both": truth,
        "x alone": d.weibull(1.3, 2.1, 0.5, 0.0),
        "bold": d.weibull(2.0, 2.0, 0.9, 0.2),
    }
    return (
        cs.RightCensored(time, event), cs.RightCensored(time, event, d.c),
        cs.RightCensored(T, np.ones(len(T))), forecasts,
    )  # fmt: skip


def _rounded(d: _Drawn) -> Seen:
    """Times in twentieths, of which many are tied."""
    _, _, full, forecasts = _one(d)
    T, c = np.ceil(20 * full.time) / 20, np.ceil(20 * d.c) / 20
    return cs.RightCensored(np.minimum(T, c), c >= T), None, full, forecasts


def _causes(d: _Drawn) -> Seen:
    hazards = [d.weibull(1.2, 3.0, 0.5, 0.3), d.weibull(1.0, 4.0, -0.3, 0.3)]
    each = np.column_stack([d.sample(F) for F in hazards])
    T, cause = each.min(axis=1), 1 + each.argmin(axis=1)
    time, of = np.minimum(T, d.c), np.where(d.c >= T, cause, 0)
    forecasts = {
        "both": cs.CauseSpecificHazards(hazards, names=CAUSES),
        "x alone": cs.CauseSpecificHazards(
            [d.weibull(1.2, 3.0, 0.5, 0.0), d.weibull(1.0, 4.0, 0.0, 0.0)], names=CAUSES
        ),
    }
    return (
        cs.CompetingRisks(time, of, names=CAUSES), cs.CompetingRisks(time, of, d.c, names=CAUSES),
        cs.CompetingRisks(T, cause, names=CAUSES), forecasts,
    )  # fmt: skip


def _one_cause(d: _Drawn) -> Seen:
    *outcomes, forecasts = _causes(d)
    seen, known, full = (y.cause(1) for y in outcomes)
    return seen, known, full, {name: F.cause(1) for name, F in forecasts.items()}


def _pairs(d: _Drawn) -> tuple[np.ndarray, dict[str, Any]]:
    parts = [d.weibull(1.4, 2.0, 0.5, 0.4), d.weibull(1.2, 3.0, 0.3, 0.4)]
    T = np.column_stack([d.sample(F) for F in parts])
    plain = [d.weibull(1.3, 2.2, 0.0, 0.0), d.weibull(1.2, 3.2, 0.2, 0.0)]
    noise = d.rng.uniform(size=(len(T), MEMBERS, 2))
    drawn = np.stack([plain[j].icdf(noise[:, :, j]) for j in (0, 1)], axis=2)
    return T, {"apart": cs.Independent(parts), "drawn": cs.Ensemble(drawn)}


def _several(d: _Drawn) -> Seen:
    T, forecasts = _pairs(d)
    c = d.c[:, None]
    time, event = np.minimum(T, c), c >= T
    return (
        cs.RightCensored(time, event), cs.RightCensored(time, event, d.c),
        cs.RightCensored(T, np.ones(T.shape)), forecasts,
    )  # fmt: skip


def _several_apart(d: _Drawn) -> Seen:
    """Every event time has a censoring time of its own."""
    T, forecasts = _pairs(d)
    c = np.column_stack([d.c, d.rng.permutation(d.c)])
    time, event = np.minimum(T, c), c >= T
    return cs.RightCensored(time, event), cs.RightCensored(time, event, c), None, forecasts


def _illness(d: _Drawn) -> Seen:
    T, forecasts = _pairs(d)
    end = np.minimum(T[:, 1], d.c)
    time = np.column_stack([np.minimum(T[:, 0], end), end])
    event = np.column_stack([T[:, 0] <= end, T[:, 1] <= end])
    return (
        cs.SemiCompetingRisks(time, event), cs.SemiCompetingRisks(time, event, censoring_time=d.c), None,
        forecasts,
    )  # fmt: skip


def _examined(d: _Drawn, leave: float) -> Seen:
    """Five visits; after each a subject leaves with a probability."""
    truth, n = d.weibull(1.4, 2.0, 0.5, 0.4), len(d.x)
    T, visits = d.sample(truth)[:, None], np.cumsum(d.rng.uniform(0.5, 1.1, (n, 5)), axis=1)
    attended = np.ones((n, 5), dtype=bool)
    if leave:
        attended = np.arange(1, 6) <= d.rng.geometric(leave, n)[:, None]
    lower = np.max(np.where(attended & (visits < T), visits, 0.0), axis=1)
    upper = np.min(np.where(attended & (visits >= T), visits, np.inf), axis=1)
    forecasts = {"both": truth, "x alone": d.weibull(1.3, 2.1, 0.5, 0.0)}
    y = cs.IntervalCensored(lower, upper, visits)
    return y, cs.IntervalCensored(lower, upper), None, forecasts


KINDS: dict[str, Callable[[_Drawn], Seen]] = {
    "one time": _one,
    "rounded": _rounded,
    "causes": _causes,
    "one cause": _one_cause,
    "several times": _several,
    "several times apart": _several_apart,
    "semi-competing": _illness,
    "intervals": lambda d: _examined(d, 0.0),
    "drop-out": lambda d: _examined(d, 0.15),
}


@cache
def subjects(kind: str, n: int = 240, seed: int = 0, entry: bool = False) -> Subjects:
    """A sample of n subjects of a kind, seeded; with ``entry`` those who have entered before they leave."""
    rng, drawn = np.random.default_rng([seed, n]), 2 * n if entry else n
    groups = np.arange(drawn) // CLUSTER
    x, z = rng.normal(size=drawn), rng.normal(size=drawn)[groups]
    X = pd.DataFrame({"x": x, "z": z, "site": SITES[rng.integers(3, size=drawn)]})
    rate = 0.22 * np.exp(0.3 * x)
    c = np.minimum(rng.exponential(1 / rate), 6.0)
    weight = rng.uniform(0.5, 2.0, drawn)
    seen, known, full, forecasts = KINDS[kind](_Drawn(X, x, z, c, rng))
    C = cs.Exponential(rate).censor_at(6.0)
    sample = Subjects(X, seen, known, full, forecasts, C, weight, groups)
    if not entry:
        return sample
    since = rng.uniform(0.0, 1.0, drawn) * rng.integers(2, size=drawn)
    here = np.nonzero(np.asarray(seen.time) > since)[0][:n]
    late = sample.take(here)
    return replace(late, seen=_entering(late.seen, since[here]), known=None, full=None)


def _entering(y: Any, since: np.ndarray) -> Any:
    if isinstance(y, cs.CompetingRisks):
        return cs.CompetingRisks(y.time, y.causes, entry=since, names=y.names)
    return cs.RightCensored(y.time, y.event, entry=since)


def matrix(F: Any) -> Any:
    """Survival at a few times, which is interpolated."""
    return cs.as_forecast(np.asarray(F.sf(GRID[None, :])), times=GRID)


def matrices(w: Subjects) -> dict[str, Any]:
    """The forecasts of subjects as survival matrices at a few times, which are interpolated."""
    return {name: matrix(F) for name, F in w.forecasts.items()}


def models(*names: str) -> dict[str, Any]:
    """Models that are not fitted yet."""
    every: dict[str, Any] = {
        "cox": cs.CoxRegression(),
        "weibull": cs.WeibullRegression(),
        "by site": cs.KaplanMeier(stratify="site"),
        "hazards": cs.CauseSpecific(cs.CoxRegression()),
        "weibull hazards": cs.CauseSpecific(cs.WeibullRegression()),
        "margins": cs.JointFromMargins(cs.WeibullRegression()),
    }
    return {name: every[name] for name in names}
