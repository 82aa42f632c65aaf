"""A forecast of one event by one time, among the scored subjects: what a validation measures."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np

from censcore._arrays import to_numpy
from censcore._validation import name_subjects
from censcore.evaluation.inference.estimates import Estimate
from censcore.evaluation.inference.mean_losses import shares_of
from censcore.evaluation.inference.pooling import estimate_by_unit
from censcore.evaluation.inference.units import sums_within
from censcore.evaluation.measures.case import Case, RiskAt
from censcore.evaluation.measures.case_scores import OfRisk
from censcore.exceptions import InvalidInputError

if TYPE_CHECKING:
    from censcore.evaluation.comparison import Comparison

Equations = Callable[[RiskAt], np.ndarray]
"""One number per subject and column, (n, q), of what is known."""
CONSTANT = 1e-9  # spread of linear predictors below which they are one


@dataclass(frozen=True, eq=False)
class RiskOfModel:
    """The risk of an event by ``time`` that a model of a comparison gives to the scored subjects."""

    comparison: Comparison
    model: str
    time: float

    @property
    def case(self) -> Case:
        """The forecast, what happened, and C."""
        return self.comparison.cases[self.model]

    @cached_property
    def known(self) -> RiskAt:
        """Risks, and the inverse-probability weights of what is known at the time."""
        return self.case.risk_at(self.time)

    @cached_property
    def weight(self) -> np.ndarray:
        """The share of each subject in means, (n,), zero for those who do not count."""
        return shares_of(self.comparison.subsets[0].weight[:, None], self.known.counted)[:, 0]

    @cached_property
    def predictor(self) -> np.ndarray:
        r"""The linear predictor :math:`\log\{-\log(1-p)\}`, (n,): of a Cox model, up to a constant.

        Zero for subjects without a weight. A risk of 0 or 1 has an infinite one, which no measure on this
        scale can use: it is an error that names the subjects.
        """
        used, p = self.weight > 0, self.known.p
        # a risk that rounds to one may have a survival that is known to all digits
        survival = np.broadcast_to(to_numpy(self.case.F.marginal(0).sf(self.time)), p.shape)
        certain = used & ((p <= 0) | (survival <= 0))
        if certain.any():
            raise InvalidInputError(
                f"{int(certain.sum())} of {int(used.sum())} subjects have a risk of 0 or 1, whose "
                f"complementary log-log is infinite ({name_subjects(np.nonzero(certain)[0])}). Nothing is "
                "clipped: leave these subjects out, or give the model bounds within 0 and 1."
            )
        p, survival = np.where(used, p, 0.5), np.where(used, survival, 0.5)
        return np.log(np.where(p < 0.5, -np.log1p(-np.minimum(p, 0.5)), -np.log(survival)))

    def check_spread(self) -> None:
        """Check that linear predictors differ, so that a slope is determined."""
        if np.ptp(self.predictor[self.weight > 0]) < CONSTANT:
            raise InvalidInputError(
                "the model gives all subjects one risk: it has no slope, and ranks nobody."
            )

    def mean(self, values: Equations, weighted: bool = True) -> Estimate:
        """The mean of a function of what is known, with errors that cover the estimation of C."""
        score = OfRisk(self.time, values, weighted=weighted)
        score.counted(self.case)  # where the status at the time is not known, the error says why
        return self.comparison.mean_of(score, self.model)

    def solution(self, root: np.ndarray, equations: Equations, information: np.ndarray) -> Estimate:
        """The root of mean equations U = 0, from the values of U at the root, (n, q), and -dU at it."""
        mean = self.mean(equations)
        return Estimate(root, mean.influence @ np.linalg.inv(information).T, rows=mean.rows)

    def of_subjects(self, value: np.ndarray, contributions: np.ndarray) -> Estimate:
        """An estimate that does not depend on C, from contributions of the subjects, (n, q)."""
        units = self.comparison.decided.scope.units
        psi = sums_within(contributions, units.scored, units.count_scored)
        used = self.comparison.subsets[0].weight > 0
        return estimate_by_unit(value, psi, units, used, used, fitted=False)
