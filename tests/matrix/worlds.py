"""Small discrete populations, written out in full: every subject is an atom with its probability as weight.

Weighted by these probabilities, means over the subjects are expectations, Kaplan-Meier curves are the true
distributions of C, and a censored estimate must equal what uncensored data give to the last digits.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

import censcore as cs
from censcore.distributions import Grouped

HORIZON = 3.5
TIMES = np.array([1.0, 2.5])
GRID = np.array([1.0, 2.0, 3.0, 5.0])  # event times; C has some of them too, so that there are ties
FOLLOWED = {  # P(C = c) at 1, 2, 3, 4 by site; the first row serves both where C does not depend on the site
    0: np.array([0.2, 0.2, 0.2, 0.4]),
    1: np.array([0.1, 0.3, 0.2, 0.4]),
}
END = np.array([1.0, 2.0, 3.0, 4.0])
SITES = (0, 1)
#: How the probabilities of atoms are changed to make wrong forecasts.
WRONG: dict[str, Callable[[np.ndarray, np.ndarray], np.ndarray]] = {
    "truth": lambda p, late: p,
    "bold": lambda p, late: p**2,
    "shy": lambda p, late: p**0.4,
    "late": lambda p, late: p * np.exp(0.4 * late),
}


@dataclass(frozen=True, eq=False)
class World:
    """A population: what was seen, what would be seen without censoring, and what was forecast.

    Attributes
    ----------
    seen, known, full : outcome
        As observed, the same with the censoring times, and without any censoring.
    forecasts : dict
        The truth and three wrong forecasts, of every subject.
    C : Distribution
        The true distribution of C of every subject.
    c, weight : array, (n,)
        Censoring times and probabilities of the subjects.
    X : frame
        The site.
    """

    kind: str
    seen: Any
    known: Any
    full: Any
    forecasts: dict[str, Any]
    C: Any
    c: np.ndarray
    weight: np.ndarray
    X: pd.DataFrame

    def take(self, rows: np.ndarray) -> World:
        """Some of its subjects."""
        return World(
            self.kind,
            self.seen.take(rows),
            None if self.known is None else self.known.take(rows),
            self.full.take(rows),
            {name: F.take(rows) for name, F in self.forecasts.items()},
            self.C if self.C is None or len(self.C) == 1 else self.C.take(rows),
            self.c[rows],
            self.weight[rows],
            self.X.iloc[rows].reset_index(drop=True),
        )


@dataclass(frozen=True, eq=False)
class Kind:
    """A kind of outcome by its atoms.

    Attributes
    ----------
    atoms : array, (m, ...)
        What can happen; its last axis is given to ``see``.
    lateness : array, (m,)
        By which a forecast that is too late prefers atoms.
    see : function
        Outcome of atoms (n, ...) under censoring times c (None for no censoring), entries, and whether the
        censoring times are told.
    forecast : function
        Distribution with probabilities (n, m) of the atoms.
    """

    atoms: np.ndarray
    lateness: np.ndarray
    see: Callable[..., Any]
    forecast: Callable[[np.ndarray], Any]
    first: Callable[[np.ndarray], np.ndarray]


def probabilities(m: int, site: int) -> np.ndarray:
    """Of m atoms at a site; all positive, and different between sites."""
    p = 1.0 + ((np.arange(m) * (3 if site else 5) + 2 * site) % 7)
    if m == len(EXAMINED):  # the schedule is independent of the onset
        p = np.repeat(p[::2], 2)
    return p / p.sum()


@cache
def world(name: str, *, by_site: bool = False, entry: bool = False, copies: int = 1) -> World:
    """The population of a kind; ``by_site``: C depends on the site; ``copies``: written out several times."""
    kind = KINDS[name]
    rows = []
    for site, a, i, j in product(SITES, (0.0, 1.0) if entry else (0.0,), range(len(kind.atoms)), range(4)):
        c = END[j]
        if a > 0 and not (kind.first(kind.atoms)[i] > a and c > a):
            continue
        share = FOLLOWED[site if by_site else 0][j]
        rows.append((site, a, i, c, share * probabilities(len(kind.atoms), site)[i] * (0.6 if a else 1.0)))
    table = [row for row in rows for _ in range(copies)]
    site, since, atom, c, weight = (np.array(column) for column in zip(*table, strict=True))
    site, atom = site.astype(int), atom.astype(int)
    values, entries = kind.atoms[atom], since if entry else None
    forecasts = {}
    for wrong, change in WRONG.items():
        p = np.stack([change(probabilities(len(kind.atoms), s), kind.lateness) for s in SITES])
        forecasts[wrong] = kind.forecast((p / p.sum(axis=1, keepdims=True))[site])
    curves = [cs.Step(END, sf=np.maximum(1 - np.cumsum(FOLLOWED[s]), 0.0)) for s in SITES]
    C = Grouped(curves, site) if by_site else curves[0]
    return World(
        name, kind.see(values, c, entries, False), kind.see(values, c, entries, True),
        kind.see(values, None, entries, False), forecasts, C, c, weight / weight.sum(),
        pd.DataFrame({"site": site}),
    )  # fmt: skip


# ---- one time -------------------------------------------------------------------------------------------


def see_one(T: np.ndarray, c: np.ndarray | None, entry: np.ndarray | None, told: bool) -> cs.RightCensored:
    if c is None:
        return cs.RightCensored(T, np.ones(len(T)), entry=entry)
    return cs.RightCensored(np.minimum(T, c), c >= T, c if told else None, entry=entry)


def forecast_one(p: np.ndarray) -> cs.Step:
    return cs.Step(GRID, sf=np.maximum(1 - np.cumsum(p, axis=1), 0.0))


# ---- causes ---------------------------------------------------------------------------------------------

CAUSES = np.array(list(product(GRID, (1, 2))))


def see_causes(
    atoms: np.ndarray, c: np.ndarray | None, entry: np.ndarray | None, told: bool
) -> cs.CompetingRisks:
    T, cause = atoms[:, 0], atoms[:, 1].astype(int)
    if c is None:
        return cs.CompetingRisks(T, cause, entry=entry)
    known = c if told else None
    return cs.CompetingRisks(np.minimum(T, c), np.where(c >= T, cause, 0), known, entry=entry)


def forecast_causes(p: np.ndarray) -> cs.CumulativeIncidence:
    cif = np.stack([np.cumsum(p[:, CAUSES[:, 1] == j], axis=1) for j in (1, 2)], axis=1)
    return cs.CumulativeIncidence(GRID, cif)


# ---- several times, and semi-competing risks --------------------------------------------------------------

PAIRS = np.array(list(product(GRID[:3], GRID)))
ILLNESS = np.array([(t, d) for t, d in product(GRID, GRID) if t <= d] + [(np.inf, d) for d in GRID])


def see_pairs(T: np.ndarray, c: np.ndarray | None, entry: np.ndarray | None, told: bool) -> cs.RightCensored:
    if c is None:
        return cs.RightCensored(T, np.ones(T.shape), entry=entry)
    seen = np.minimum(T, c[:, None])
    return cs.RightCensored(seen, c[:, None] >= T, c if told else None, entry=entry)


def see_illness(
    T: np.ndarray, c: np.ndarray | None, entry: np.ndarray | None, told: bool
) -> cs.SemiCompetingRisks:
    assert entry is None
    end = T[:, 1] if c is None else np.minimum(T[:, 1], c)
    time = np.column_stack([np.minimum(T[:, 0], end), end])
    event = np.column_stack([T[:, 0] <= end, T[:, 1] <= end])
    return cs.SemiCompetingRisks(time, event, censoring_time=c if told else None)


def forecast_joint(atoms: np.ndarray) -> Callable[[np.ndarray], cs.Ensemble]:
    return lambda p: cs.Ensemble(np.broadcast_to(atoms, (len(p), *atoms.shape)), weights=p)


# ---- intervals between visits ----------------------------------------------------------------------------

VISITS = np.array([[1.0, 2.0, 3.0, 4.0], [1.5, 2.5, 3.25, 4.5]])  # two schedules; END counts visits here
ONSET = np.array([0.5, 1.2, 1.7, 2.2, 2.8, 5.0])
EXAMINED = np.array(list(product(ONSET, (0, 1))))


def see_intervals(
    atoms: np.ndarray, c: np.ndarray | None, entry: np.ndarray | None, told: bool
) -> cs.IntervalCensored | None:
    """The c-th visit is the last that is attended; censoring times cannot be told."""
    if told:
        return None
    visits = VISITS[atoms[:, 1].astype(int)]
    attended = visits if c is None else np.where(np.arange(1, 5) <= c[:, None], visits, np.nan)
    T = atoms[:, :1]
    lower = np.nanmax(np.where(attended < T, attended, 0.0), axis=1)
    upper = np.nanmin(np.where(attended >= T, attended, np.inf), axis=1)
    return cs.IntervalCensored(lower, upper, visits, entry=entry)


def forecast_intervals(p: np.ndarray) -> cs.Step:
    of_onset = p.reshape(len(p), len(ONSET), 2).sum(axis=2)
    return cs.Step(ONSET, sf=np.maximum(1 - np.cumsum(of_onset, axis=1), 0.0))


KINDS = {
    "one time": Kind(GRID, GRID, see_one, forecast_one, lambda T: T),
    "causes": Kind(CAUSES, CAUSES[:, 0], see_causes, forecast_causes, lambda atoms: atoms[:, 0]),
    "several times": Kind(
        PAIRS, PAIRS.sum(axis=1), see_pairs, forecast_joint(PAIRS), lambda T: T.min(axis=1)
    ),
    "semi-competing": Kind(
        ILLNESS, ILLNESS[:, 1], see_illness, forecast_joint(ILLNESS), lambda T: T.min(axis=1)
    ),
    "intervals": Kind(EXAMINED, EXAMINED[:, 0], see_intervals, forecast_intervals, lambda atoms: atoms[:, 0]),
}
