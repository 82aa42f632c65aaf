r"""The influence of each training subject on mean scores, through the estimated censoring distribution.

An estimator of the censoring distribution has an influence function if it knows how much each training
subject moves a function of its estimate, given the derivative of the function: ``influence`` of
:class:`~censcore.KaplanMeier` and :class:`~censcore.CoxRegression`. A :class:`Part` is such an estimator,
fitted, together with the scored subjects that it serves; out-of-fold distributions have one part per fold.

Drop-out is estimated on the scale of visit numbers, and a jump u of the estimate is another time for each
subject, :math:`v_{i,u+1}`. The derivative is then numerical, one number at a time.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol, cast

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from censcore._arrays import to_numpy
from censcore.distributions import Distribution, Step
from censcore.estimators import Adapted, Censoring, CoxRegression, KaplanMeier
from censcore.estimators.covariates import column_of
from censcore.estimators.encoding import as_matrix
from censcore.estimators.kaplan_meier import DropOut
from censcore.estimators.pipelines import last_estimator, last_step
from censcore.evaluation.measures.case import Case

__all__ = ["CoxPart", "Differentiable", "KaplanMeierPart", "Part", "has_influence", "parts_of"]


STEP = 0.01  # by which P(C >= t) is made smaller from a visit on, for derivatives by the number of the visit


class Differentiable(Protocol):
    """A score, or another statistic, with a derivative with respect to the censoring distribution."""

    def derivative(self, case: Case, losses: np.ndarray, weight: np.ndarray, u: np.ndarray) -> np.ndarray:
        """A(u) for each column of weights (n, m), (m, J, q)."""


class Rescored(Protocol):
    """Scores that can be taken again under another censoring distribution."""

    def losses_of(self, case: Case) -> np.ndarray:
        """Losses of all subjects under the censoring distribution of the case, (n, q)."""


@dataclass(frozen=True, eq=False)
class Part(ABC):
    """Scored subjects, and the fitted estimator that their censoring distribution comes from."""

    subjects: np.ndarray  #: numbers of scored subjects
    training: np.ndarray  #: numbers of the training subjects that the estimator was fitted to
    estimator: Any
    X: Any  #: covariates of the scored subjects
    coordinate: int | None = None  #: the event time that C belongs to; None where one C serves all
    by_visit: bool = False  #: whether the estimate is of the number of the last visit attended
    end: float | None = None  #: of follow-up, which the estimator did not see: C is at most this

    @abstractmethod
    def cases(self, case: Case) -> list[Case]:
        """The scored subjects of a comparison that this part serves, in as few pieces as it has curves."""

    @abstractmethod
    def influence(
        self, score: Differentiable, cases: list[Case], losses: np.ndarray, weight: np.ndarray
    ) -> np.ndarray:
        """Influence of each training subject on mean losses, (training, m, q), for weights (n, m)."""

    def _restricted(self, case: Case, subjects: np.ndarray, C: Distribution) -> Case:
        if self.by_visit:  # of all subjects, since scores are taken again
            return case
        case = case if len(subjects) == len(case.y) else case.take(subjects)
        return case.with_censoring(C, self.coordinate)

    def _derivative(
        self,
        score: Differentiable,
        case: Case,
        subjects: np.ndarray,
        losses: np.ndarray,
        weight: np.ndarray,
        u: np.ndarray,
    ) -> np.ndarray:
        """A(u) at the jumps u of the estimate, (m, J, q), for weights of some subjects, whom the case has."""
        if self.by_visit:
            return derivative_by_number(cast(Rescored, score), case, subjects, losses, weight, u)
        return score.derivative(case, losses[subjects], weight, u)


def derivative_by_number(
    score: Rescored,
    case: Case,
    subjects: np.ndarray,
    losses: np.ndarray,
    weight: np.ndarray,
    numbers: np.ndarray,
) -> np.ndarray:
    r"""A(k), the derivative of mean losses by :math:`\log(1-h_k)`, h_k the hazard to leave after visit k.

    :math:`P(C\ge t)` gets the factor :math:`e^{-\epsilon}` from visit k + 1 on, and all losses are computed
    again. On the localized scale they are linear in the factor, so that the derivative is exact.
    """
    times, sf = (to_numpy(values) for values in case.C.marginal(0)._steps())
    planned = np.isfinite(to_numpy(case.y.visits)).sum(axis=1, keepdims=True)  # type: ignore[attr-defined]
    place = np.arange(times.shape[1])
    A = np.empty((weight.shape[1], len(numbers), losses.shape[1]))
    for j, k in enumerate(numbers):
        smaller = np.where((place >= k) & (planned > k), np.exp(-STEP), 1.0)
        moved = score.losses_of(case.with_censoring(Step._trusted(times, sf * smaller, falls=True)))
        with np.errstate(invalid="ignore"):
            change = (moved - losses)[subjects] / np.expm1(-STEP)
        A[:, j] = weight.T @ np.where(np.isfinite(change), change, 0.0)
    return A


@dataclass(frozen=True, eq=False)
class KaplanMeierPart(Part):
    """One Kaplan-Meier curve, or one per stratum; all subjects of a stratum share a curve."""

    estimator: KaplanMeier

    def _strata(self) -> list[np.ndarray]:
        """The scored subjects of each stratum."""
        curve = self.estimator
        if curve.stratify is None:
            return [self.subjects]
        stratum = np.searchsorted(curve.strata_, column_of(self.X, curve.stratify))
        return [self.subjects[stratum == i] for i in range(len(curve.strata_))]

    def cases(self, case: Case) -> list[Case]:
        """One case per stratum."""
        curves = zip(self._strata(), self.estimator.distributions_, strict=True)
        return [self._restricted(case, subjects, C) if len(subjects) else case for subjects, C in curves]

    def influence(
        self, score: Differentiable, cases: list[Case], losses: np.ndarray, weight: np.ndarray
    ) -> np.ndarray:
        """From A(u) under each stratum's curve."""
        table = self.estimator.event_table_
        A = np.zeros((len(table), weight.shape[1], losses.shape[1]))
        for i, (subjects, case) in enumerate(zip(self._strata(), cases, strict=True)):
            jumps = np.nonzero((table["stratum"] == i) & (table["sf"] > 0))[0]
            if len(subjects) and len(jumps):
                w, u = weight[subjects], table["time"][jumps]
                A[jumps] = np.moveaxis(self._derivative(score, case, subjects, losses, w, u), 0, 1)
        m, q = A.shape[1:]
        xi = self.estimator.influence(A.reshape(len(table), m * q))  # the table may be empty
        return xi.reshape(len(xi), m, q)


@dataclass(frozen=True, eq=False)
class CoxPart(Part):
    r"""A Cox regression: :math:`\log G_i(t)=r_i\sum_{u\le t}a_u`, :math:`r_i=e^{(x_i-\bar x)^\top\gamma}`.

    A mean score moves with :math:`a_u` by A(u) under the weights :math:`w_ir_i`, and with
    :math:`\gamma_p` by :math:`\sum_ua_uA_p(u)`, where :math:`A_p` has the weights
    :math:`w_ir_i(x_{ip}-\bar x_p)`.
    """

    estimator: CoxRegression

    def cases(self, case: Case) -> list[Case]:
        """One case, with a curve per subject."""
        if len(self.subjects) == len(case.y):
            C: Distribution = case.C.marginal(self.coordinate if self.coordinate and case.C.k > 1 else 0)
        else:
            C = self.estimator.predict_distribution(self.X)
            C = C if self.end is None else C.censor_at(self.end)
        return [self._restricted(case, self.subjects, C)]

    def influence(
        self, score: Differentiable, cases: list[Case], losses: np.ndarray, weight: np.ndarray
    ) -> np.ndarray:
        """From A(u) and the derivative by the coefficients."""
        moves = self.moves(weight[self.subjects])
        A = self._derivative(score, cases[0], self.subjects, losses, moves, self.jumps)
        return self.from_derivative(A, weight.shape[1])

    @property
    def jumps(self) -> np.ndarray:
        """The times u."""
        return self.estimator.baseline_times_[np.isfinite(self.estimator.baseline_hazard_)]

    def moves(self, weight: np.ndarray) -> np.ndarray:
        """The weights (n, m (1 + p)) of A and of all A_p, from those of the scored subjects, (n, m)."""
        model = self.estimator
        X = as_matrix(model, self.X, reset=False)
        x = np.zeros((1, 0)) if X is None else X - model.center_
        moves = np.exp(x @ model.coef_)[:, None] * np.column_stack([np.ones(len(x)), x])  # r (1, x)
        return (weight[:, :, None] * moves[:, None, :]).reshape(len(weight), -1)

    def from_derivative(self, A: np.ndarray, m: int) -> np.ndarray:
        """Influence of each training subject, (training, m, q), from A and all A_p, (m (1 + p), J, q)."""
        hazard = self.estimator.baseline_hazard_
        jumps, q = np.isfinite(hazard), A.shape[2]
        a = -np.diff(hazard[jumps], prepend=0.0)
        A = A.reshape(m, len(A) // m, len(a), q)  # (m, 1 + p, J, q), where J may be zero
        by_hazard = np.zeros((len(hazard), m * q))
        by_hazard[jumps] = np.moveaxis(A[:, 0], 1, 0).reshape(len(a), m * q)
        by_coef = np.einsum("mpjq,j->pmq", A[:, 1:], a).reshape(A.shape[1] - 1, m * q)
        return self.estimator.influence(by_hazard, by_coef).reshape(-1, m, q)


def has_influence(censoring: Censoring) -> bool:
    """Whether a fitted ``Censoring`` predicts what an estimator with an influence function does."""
    return all(map(_is_differentiable, censoring.estimators_))


def _is_differentiable(estimator: Any) -> bool:
    """Whether an estimator has an influence function.

    It may be the last step of a pipeline: the steps before it then count as fixed, which they are up to the
    noise of imputed and scaled values. A step that was fitted to the outcome is not.
    """
    if isinstance(estimator, Adapted):
        last = last_estimator(estimator.model_)
        return _is_differentiable(last) and not _uses_outcome(estimator.model_)
    return type(estimator) in _PARTS and getattr(estimator, "strata", None) is None


def _uses_outcome(model: Any) -> bool:
    """Whether a step before the last, or a search, looked at the outcome."""
    if not isinstance(model, Pipeline):
        return last_estimator(model) is not model
    *before, (_, last) = model.steps
    return any(_looks_at_outcome(step) for _, step in before) or _uses_outcome(last)


def _looks_at_outcome(step: Any) -> bool:
    """Whether a transformer, or one inside it, selects columns or needs the outcome."""
    inside = step.get_params(deep=True).values() if hasattr(step, "get_params") else ()
    return any(
        isinstance(part, SelectorMixin) or get_tags(part).target_tags.required
        for part in (step, *inside)
        if isinstance(part, BaseEstimator)
    )


_PARTS: dict[type, type[Part]] = {
    KaplanMeier: KaplanMeierPart,
    DropOut: KaplanMeierPart,
    CoxRegression: CoxPart,
}


def parts_of(censoring: Censoring, X: Any, subjects: np.ndarray, training: np.ndarray) -> list[Part]:
    """The parts of a fitted ``Censoring`` for scored subjects with covariates X: one, or one per event time.

    ``training`` are the numbers of the subjects it was fitted to; those with an event at time zero carry
    no information on C and are left out.
    """
    parts = []
    fitted = zip(censoring.estimators_, censoring.subjects_, censoring.ends_, strict=True)
    for j, (estimator, used, end) in enumerate(fitted):
        inner, columns = last_step(estimator.model_, X) if isinstance(estimator, Adapted) else (estimator, X)
        coordinate = None if censoring.shared_ else j
        kind, by_visit = _PARTS[type(inner)], censoring.by_visit_
        parts.append(kind(subjects, training[used], inner, columns, coordinate, by_visit, end))
    return parts
