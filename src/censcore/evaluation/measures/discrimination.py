"""Concordance and AUC of compared forecasts, with errors that cover the censoring distribution.

Descriptive, not proper: they ignore calibration, and a forecast may gain by departing from the truth.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass, field, replace
from itertools import compress
from typing import Any, Self

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Distribution, PointMass
from censcore.evaluation.inference.estimates import Estimate
from censcore.evaluation.inference.mean_losses import Scope, why_unavailable, with_refits
from censcore.evaluation.inference.pooling import contributions, estimate_by_unit
from censcore.evaluation.inference.units import sums_within
from censcore.evaluation.measures.auc import cases_and_controls
from censcore.evaluation.measures.case import Case
from censcore.evaluation.measures.concordance import comparable_pairs
from censcore.evaluation.measures.pair_statistics import (
    Followed,
    Jumps,
    Pairs,
    PairStatistic,
    pair_statistic,
    share_of_pairs,
)
from censcore.exceptions import PositivityError, UnknownCurveError

NO_PAIR = "no pair of subjects can be compared, since no event is followed by a subject who survives it"
UNWEIGHTED = PointMass(np.inf)  # all weights are one
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
    def pairs(self, case: Case, followed: Followed) -> Pairs:
        """The pairs of some subjects, ranked by the forecast."""


class Concordance(Measure):
    """Concordance of the expected time up to the horizon, by Harrell, or with inverse weights by Uno."""

    def pairs(self, case: Case, followed: Followed) -> Pairs:
        """The comparable pairs."""
        return comparable_pairs(followed, -case.expected_time[followed.subjects], horizon=case.horizon)


class DynamicAUC(Measure):
    """The area under the curve of F(t) between cases, who have had the event by t, and controls."""

    def pairs(self, case: Case, followed: Followed) -> Pairs:
        """The pairs of a case and a control."""
        risk = np.broadcast_to(to_numpy(case.F.marginal(0).cdf(self.at_time)), (len(case.y),))
        return cases_and_controls(followed, risk[followed.subjects], self.at_time)


CONCORDANCES: tuple[Measure, ...] = (
    Concordance("concordance:harrell", "concordance, harrell", weighted=False),
    Concordance("concordance:uno", "concordance, uno"),
)


@dataclass(frozen=True, eq=False)
class Discrimination:
    """Estimates by subset, model and measure, and why others are not available."""

    measures: list[Measure]
    values: dict[Key, Estimate] = field(default_factory=dict)
    unavailable: dict[Key, str] = field(default_factory=dict)


def numbers_of_share(estimate: Estimate, confidence: float) -> dict[str, np.ndarray]:
    """Shares of pairs with intervals within [0, 1], from the logit scale, (q,) each."""
    share, error = estimate.value, estimate.standard_error
    with np.errstate(divide="ignore", invalid="ignore"):
        logit = Estimate(np.log(share / (1 - share)), estimate.influence / (share * (1 - share)))
        ends = (1 / (1 + np.exp(-end)) for end in logit.interval(confidence))
    # a forecast that is the same for all subjects ranks none of them, whatever the data
    low, high = (np.where(error == 0, share, end) for end in ends)
    return {"mean": share, "standard_error": error, "low": low, "high": high}


def discriminate(
    cases: dict[str, Case], scope: Scope, others: tuple[Measure, ...] = CONCORDANCES
) -> Discrimination:
    """AUC of F(t), after other measures: concordance of the expected time up to the horizon."""
    first = next(iter(cases.values()))
    result = Discrimination([*others, *(DynamicAUC("auc", "auc", "time", float(t)) for t in first.times)])
    for s, weight in enumerate(scope.weight.T):
        cache = dict[Any, Followed]()
        for model, case in cases.items():  # one after the other: their pairs need much memory
            _add_model(result, (s, model), case, weight, scope, cache)
    return result if scope.censoring.refit is None else _with_refits(result, cases, scope)


def _add_model(
    result: Discrimination,
    key: tuple[int, str],
    case: Case,
    weight: np.ndarray,
    scope: Scope,
    cache: dict[Any, Followed],
) -> None:
    """All measures of a model in a subset; those that are not available are noted."""
    subjects, counted = np.nonzero(weight > 0)[0], scope.weight[:, 0] > 0
    statistics = _statistics(result, key, case, subjects, weight, scope.units.groups, cache)
    if not statistics:
        return
    deviations = np.zeros((len(weight), len(statistics)))
    deviations[subjects] = np.column_stack([each.deviations for each in statistics.values()])
    weighted = np.array([result.measures[k].weighted for k in statistics])
    units, fitted = scope.units, bool(scope.censoring.parts)
    own = contributions(deviations, weight[:, None], np.ones(1), weight @ deviations)[:, 0]
    psi = sums_within(own, units.scored, units.count)
    psi = psi + _influences(list(statistics.values()), weighted, case, weight, scope)
    value = np.array([statistic.value for statistic in statistics.values()])
    every = estimate_by_unit(value, psi, units, weight > 0, counted, fitted)
    for j, k in enumerate(statistics):
        result.values[*key, k] = every.column(j)


def _statistics(
    result: Discrimination,
    key: tuple[int, str],
    case: Case,
    subjects: np.ndarray,
    weight: np.ndarray,
    clusters: np.ndarray | None,
    cache: dict[Any, Followed],
) -> dict[int, PairStatistic]:
    """The measures of a model, by their numbers."""
    statistics, share = {}, weight[subjects] / weight.sum()
    clusters = None if clusters is None else clusters[subjects]
    for k, measure in enumerate(result.measures):
        try:
            followed = _followed(case, measure, subjects, cache)
            statistic = pair_statistic(measure.pairs(case, followed), share, clusters)
        except (PositivityError, UnknownCurveError) as error:
            result.unavailable[*key, k] = why_unavailable(error)
            continue
        if np.isnan(statistic.value):
            result.unavailable[*key, k] = NO_PAIR
        else:
            statistics[k] = statistic
    return statistics


def _followed(case: Case, measure: Measure, subjects: np.ndarray, cache: dict[Any, Followed]) -> Followed:
    """The subjects with C, or unweighted; forecasts share those of the same outcome and C."""
    C = case.C if measure.weighted else UNWEIGHTED
    if (key := (id(case.y), id(C))) not in cache:
        cache[key] = Followed(case.y, C, subjects)
    return cache[key]


def _influences(
    statistics: list[PairStatistic],
    weighted: np.ndarray,
    case: Case,
    weight: np.ndarray,
    scope: Scope,
) -> np.ndarray:
    """What training subjects add to each statistic by the estimated C, (units, statistics)."""
    units, n = scope.units, len(weight)
    xi = np.zeros((units.count, len(statistics)))
    if not weighted.any():
        return xi
    moved = _Moved(list(compress(statistics, weighted)), np.nonzero(weight > 0)[0], n)
    numbers, equally = np.repeat(np.arange(n)[:, None], weighted.sum(), axis=1), np.ones((n, 1))
    for part in scope.censoring.parts:
        moves = part.influence_on([moved], [numbers], case, equally)[:, 0]
        xi[:, weighted] += sums_within(moves, units.trained[part.training], units.count)
    return xi


@dataclass(frozen=True, eq=False)
class _Moved:
    """The derivatives of pair statistics, for subjects that are known by their numbers."""

    statistics: list[PairStatistic]
    subjects: np.ndarray
    n: int

    def derivative(self, case: Case, losses: np.ndarray, weight: np.ndarray, u: np.ndarray) -> np.ndarray:
        """A(u), (m, J, q), where the hazards of the subjects with the numbers ``losses`` move by ``weight``.

        A pair may have subjects of two strata or folds, so that the others are needed as well.
        """
        loads = np.zeros((self.n, weight.shape[1]))
        loads[losses[:, 0]] = weight
        loads, jumps = loads[self.subjects], Jumps(u)
        return np.stack([statistic.derivatives(loads, jumps) for statistic in self.statistics], axis=2)


def _with_refits(without: Discrimination, cases: dict[str, Case], scope: Scope) -> Discrimination:
    """Where the estimator has no influence function, it is refitted to bootstrap samples."""

    def values_under(C: Distribution, weight: np.ndarray) -> np.ndarray:
        again = {model: case.with_censoring(C) for model, case in cases.items()}
        return np.array([_share(without.measures[k], again[m], weight[:, s]) for s, m, k in without.values])

    if not without.values:
        return without
    return replace(without, values=with_refits(without.values, values_under, scope)[0])


def _share(measure: Measure, case: Case, weight: np.ndarray) -> float:
    subjects = np.nonzero(weight > 0)[0]
    return share_of_pairs(measure.pairs(case, _followed(case, measure, subjects, {})), weight[subjects])
