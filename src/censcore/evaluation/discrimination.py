"""Concordance and AUC of compared forecasts, with errors that cover the censoring distribution.

Descriptive, not proper: they ignore calibration, and a forecast may gain by departing from the truth.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from censcore._arrays import to_numpy
from censcore.evaluation.auc import cases_and_controls
from censcore.evaluation.catalogue import Case
from censcore.evaluation.concordance import comparable_pairs
from censcore.evaluation.inference import Estimate
from censcore.evaluation.losses import Design, refitted, with_refits
from censcore.evaluation.pairs import Pairs, PairStatistic, pair_statistic, share_of_pairs
from censcore.exceptions import PositivityError

__all__ = ["Discrimination", "Measure", "discriminate"]

Key = tuple[int, str, int]
"""Number of the subset, model, number of the measure."""


@dataclass(frozen=True)
class Measure:
    """A share of pairs by name: of all pairs, or of cases and controls at a time."""

    name: str
    at: float = np.nan

    def pairs(self, case: Case, subjects: np.ndarray) -> Pairs:
        """The pairs of some subjects, ranked by the forecast."""
        F, n = case.F.marginal(0), len(case.y)
        if self.name == "auc":
            risk = np.broadcast_to(to_numpy(F.cdf(self.at)), (n,))
            return cases_and_controls(case.y, risk, case.C, self.at, subjects=subjects)
        risk = -np.broadcast_to(to_numpy(F.integrated_sf(0.0, case.horizon)), (n,))
        C = case.C if self.name == "concordance:uno" else None
        return comparable_pairs(case.y, risk, C, horizon=case.horizon, subjects=subjects)


@dataclass(frozen=True)
class Discrimination:
    """Estimates by subset, model and measure, and why others are not available."""

    measures: list[Measure]
    values: dict[Key, Estimate] = field(default_factory=dict)
    unavailable: dict[Key, str] = field(default_factory=dict)


def discriminate(cases: dict[str, Case], design: Design, refits: int = 60, seed: int = 0) -> Discrimination:
    """Concordance of the expected time up to the horizon, and AUC of F(t), in all subsets."""
    times = next(iter(cases.values())).times
    names = ("concordance:harrell", "concordance:uno")
    measures = [*map(Measure, names), *(Measure("auc", float(t)) for t in times)]
    found = Discrimination(measures)
    for model, case in cases.items():
        for s, subset in enumerate(design.subsets):
            for k, measure in enumerate(measures):
                try:
                    found.values[s, model, k] = _estimate(measure, case, subset.weight, design)
                except PositivityError as error:
                    found.unavailable[s, model, k] = str(error)
    if design.law.refit is None:
        return found
    values = _with_refits(found, cases, design, refits, seed)
    return Discrimination(measures, values, found.unavailable)


def _estimate(measure: Measure, case: Case, weight: np.ndarray, design: Design) -> Estimate:
    """A measure and its influence, with what the estimation of the censoring distribution adds."""
    subjects = np.nonzero(weight > 0)[0]
    statistic = pair_statistic(measure.pairs(case, subjects), weight[subjects] / weight[subjects].sum())
    deviations = np.zeros((len(weight), 1))
    deviations[subjects, 0] = statistic.deviations
    derivatives: list[np.ndarray] = []
    if design.law.parts:
        weighted = measure.name != "concordance:harrell"
        derivatives = _derivatives(statistic, subjects, design) if weighted else _no_derivatives(design)
    influence = design.estimate(deviations, weight, derivatives).influence
    return Estimate(np.array([statistic.value]), influence)


def _derivatives(statistic: PairStatistic, subjects: np.ndarray, design: Design) -> list[np.ndarray]:
    """A at the jumps of each Kaplan-Meier curve: the hazards of all who share a curve move together."""
    parts = design.law.parts
    loads = np.zeros((len(subjects), len(parts)))
    for p, part in enumerate(parts):
        loads[np.isin(subjects, part.rows), p] = 1.0
    found = statistic.derivatives(loads, [part.jumps for part in parts])
    return [A[:, None] for A in found]


def _no_derivatives(design: Design) -> list[np.ndarray]:
    return [np.zeros((len(part.jumps), 1)) for part in design.law.parts]


def _with_refits(
    found: Discrimination, cases: dict[str, Case], design: Design, refits: int, seed: int
) -> dict[Key, Estimate]:
    """Estimates of other censoring distributions, refitted to bootstrap samples."""

    def redrawn(rows: np.ndarray) -> dict[Key, np.ndarray]:
        scored, again = refitted(design, rows, cases)
        values = {}
        for s, model, k in found.values:
            weight = design.subsets[s].weight[scored]
            subjects = np.nonzero(weight > 0)[0]
            pairs = found.measures[k].pairs(again[model], subjects)
            values[s, model, k] = np.array([share_of_pairs(pairs, weight[subjects])])
        return values

    return with_refits(found.values, design, redrawn, refits, seed, False, [])
