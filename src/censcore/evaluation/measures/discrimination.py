"""Concordance and AUC of compared forecasts, with errors that cover the censoring distribution.

Descriptive, not proper: they ignore calibration, and a forecast may gain by departing from the truth.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from typing import Self

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Distribution
from censcore.evaluation.inference.bootstrap import spread_over_refits
from censcore.evaluation.inference.estimates import Estimate
from censcore.evaluation.inference.losses import Scope, mean_with_influence
from censcore.evaluation.measures.auc import cases_and_controls
from censcore.evaluation.measures.case import Case
from censcore.evaluation.measures.concordance import comparable_pairs
from censcore.evaluation.measures.pair_statistics import Pairs, PairStatistic, pair_statistic, share_of_pairs
from censcore.exceptions import PositivityError

__all__ = ["Discrimination", "Measure", "discriminate"]

NO_PAIR = "no pair of subjects can be compared, since no event is followed by a subject who survives it"
Key = tuple[int, str, int]
"""Number of the subset, model, number of the measure."""


@dataclass(frozen=True)
class Measure(ABC):
    """A share of pairs that a forecast ranks rightly."""

    name: str
    title: str
    axis: str = ""  #: what the column is, "time" or nothing
    at_time: float = np.nan  #: its one time; NaN without any
    weighted: bool = True  #: whether pairs have weights that depend on the censoring distribution
    outcome: str = ""  #: which of several event times or causes it is of; empty where there is one time

    def of_outcome(self, outcome: str) -> Self:
        """The measure of one of several outcomes, which its name and title say."""
        name, title = f"{self.name}[{outcome}]", f"{self.title}, {outcome}"
        return replace(self, name=name, title=title, outcome=outcome)

    def at(self, case: Case) -> np.ndarray:
        """Its one time; NaN without any."""
        return np.array([self.at_time])

    @abstractmethod
    def pairs(self, case: Case, subjects: np.ndarray) -> Pairs:
        """The pairs of some subjects, ranked by the forecast."""


class Concordance(Measure):
    """Concordance of the expected time up to the horizon, by Harrell, or with inverse weights by Uno."""

    def pairs(self, case: Case, subjects: np.ndarray) -> Pairs:
        """The comparable pairs."""
        C = case.C if self.weighted else None
        return comparable_pairs(case.y, -case.restricted_mean, C, horizon=case.horizon, subjects=subjects)


class DynamicAUC(Measure):
    """The area under the curve of F(t) between cases, who have had the event by t, and controls."""

    def pairs(self, case: Case, subjects: np.ndarray) -> Pairs:
        """The pairs of a case and a control."""
        risk = np.broadcast_to(to_numpy(case.F.marginal(0).cdf(self.at_time)), (len(case.y),))
        return cases_and_controls(case.y, risk, case.C, self.at_time, subjects=subjects)


def measures_at(times: np.ndarray) -> list[Measure]:
    """Both concordances, and the AUC at each of the times."""
    harrell = Concordance("concordance:harrell", "concordance, harrell", weighted=False)
    uno = Concordance("concordance:uno", "concordance, uno")
    return [harrell, uno, *(DynamicAUC("auc", "auc", "time", float(t)) for t in times)]


@dataclass(frozen=True, eq=False)
class Discrimination:
    """Estimates by subset, model and measure, and why others are not available."""

    measures: list[Measure]
    values: dict[Key, Estimate] = field(default_factory=dict)
    unavailable: dict[Key, str] = field(default_factory=dict)


def discriminate(cases: dict[str, Case], scope: Scope) -> Discrimination:
    """Concordance of the expected time up to the horizon, and AUC of F(t), in all subsets."""
    measures = measures_at(next(iter(cases.values())).times)
    result = Discrimination(measures)
    for model, case in cases.items():
        pieces = [part.cases(case) for part in scope.censoring.parts]
        for s, subset in enumerate(scope.subsets):
            for k, measure in enumerate(measures):
                try:
                    estimate = _estimate(measure, case, pieces, subset.weight, scope)
                except PositivityError as error:
                    result.unavailable[s, model, k] = str(error)
                    continue
                if np.isnan(estimate.value[0]):
                    result.unavailable[s, model, k] = NO_PAIR
                else:
                    result.values[s, model, k] = estimate
    if scope.censoring.refit is None:
        return result
    return _with_refits(result, cases, scope)


def _estimate(
    measure: Measure, case: Case, pieces: list[list[Case]], weight: np.ndarray, scope: Scope
) -> Estimate:
    """A measure and its influence, with what the estimation of the censoring distribution adds."""
    subjects = np.nonzero(weight > 0)[0]
    n = len(weight)
    statistic = pair_statistic(measure.pairs(case, subjects), weight[subjects] / weight[subjects].sum())
    deviations = np.zeros((n, 1))
    deviations[subjects, 0] = statistic.deviations
    xi = np.zeros((scope.censoring.n_train, 1))
    if measure.weighted:
        moved = _Moved(statistic, subjects, n)
        everyone, equally = np.arange(n)[:, None], np.ones((n, 1))
        for part, of_part in zip(scope.censoring.parts, pieces, strict=True):
            xi[part.training] += part.influence(moved, of_part, everyone, equally)[:, 0]
    counted = scope.subsets[0].weight > 0
    influence = mean_with_influence(deviations, weight, scope.clusters, xi, counted).influence
    return Estimate(np.array([statistic.value]), influence)


@dataclass(frozen=True, eq=False)
class _Moved:
    """The derivative of a pair statistic, for subjects that are known by their numbers."""

    statistic: PairStatistic
    subjects: np.ndarray
    n: int

    def derivative(self, case: Case, losses: np.ndarray, weight: np.ndarray, u: np.ndarray) -> np.ndarray:
        """A(u), (m, J, 1), where the hazards of the subjects with the numbers ``losses`` move by ``weight``.

        A pair may have subjects of two strata or folds, so that the others are needed as well.
        """
        loads = np.zeros((self.n, weight.shape[1]))
        loads[losses[:, 0]] = weight
        derivatives = self.statistic.derivatives(loads[self.subjects], [u] * weight.shape[1])
        return np.stack(derivatives)[:, :, None]


def _with_refits(without: Discrimination, cases: dict[str, Case], scope: Scope) -> Discrimination:
    """Where the estimator has no influence function, it is refitted to bootstrap samples."""

    def values_under(C: Distribution, weight: np.ndarray) -> np.ndarray:
        again = {model: case.with_censoring(C) for model, case in cases.items()}
        return np.array([_share(without.measures[k], again[m], weight[:, s]) for s, m, k in without.values])

    if not without.values:
        return without
    spread, _ = spread_over_refits(values_under, scope)
    values = {}
    for (key, estimate), column in zip(without.values.items(), spread.T, strict=True):
        entries = [column[:, None]] if scope.clusters.overlap else [estimate.influence, column[:, None]]
        values[key] = Estimate(estimate.value, np.concatenate(entries))
    return replace(without, values=values)


def _share(measure: Measure, case: Case, weight: np.ndarray) -> float:
    subjects = np.nonzero(weight > 0)[0]
    return share_of_pairs(measure.pairs(case, subjects), weight[subjects])
