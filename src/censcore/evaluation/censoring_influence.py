r"""The influence of each training subject on mean scores, through the estimated censoring distribution.

An estimator of the censoring distribution has an influence function if it knows how much each training
subject moves a function of its estimate, given the derivative of the function: ``influence`` of
:class:`~censcore.KaplanMeier` and :class:`~censcore.CoxRegression`. A :class:`Part` is such an estimator,
fitted, together with the scored subjects that it serves; out-of-fold distributions have one part per fold.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from censcore.distributions import Distribution
from censcore.estimators import Adapted, Censoring, CoxRegression, KaplanMeier
from censcore.estimators.covariates import as_matrix, column_of
from censcore.estimators.pipelines import last_estimator, last_step
from censcore.evaluation.case import Case

__all__ = ["CoxPart", "Differentiable", "KaplanMeierPart", "Part", "has_influence", "parts_of"]


class Differentiable(Protocol):
    """A score, or another statistic, with a derivative with respect to the censoring distribution."""

    def derivative(self, case: Case, losses: np.ndarray, weight: np.ndarray, u: np.ndarray) -> np.ndarray:
        """A(u) for each column of weights (n, m), (m, J, q)."""


@dataclass(frozen=True, eq=False)
class Part(ABC):
    """Scored subjects, and the fitted estimator that their censoring distribution comes from.

    ``subjects`` are numbers of scored subjects, ``training`` those of the training subjects that the
    estimator was fitted to; ``X`` are the covariates of the scored ones. ``coordinate`` is the event time
    that the estimated C belongs to, where every event time has its C; None where one C serves all.
    """

    subjects: np.ndarray
    training: np.ndarray
    estimator: Any
    X: Any
    coordinate: int | None = None

    @abstractmethod
    def cases(self, case: Case) -> list[Case]:
        """The scored subjects of a comparison that this part serves, in as few pieces as it has curves."""

    @abstractmethod
    def influence(
        self, score: Differentiable, cases: list[Case], losses: np.ndarray, weight: np.ndarray
    ) -> np.ndarray:
        """Influence of each training subject on mean losses, (training, m, q), for weights (n, m)."""

    def _restricted(self, case: Case, subjects: np.ndarray, C: Distribution) -> Case:
        some = case if len(subjects) == len(case.y) else case.take(subjects)
        return some.with_censoring(C, self.coordinate)


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
                w = weight[subjects]
                found = score.derivative(case, losses[subjects], w, table["time"][jumps])
                A[jumps] = np.moveaxis(found, 0, 1)
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
        return [self._restricted(case, self.subjects, C)]

    def influence(
        self, score: Differentiable, cases: list[Case], losses: np.ndarray, weight: np.ndarray
    ) -> np.ndarray:
        """From A(u) and the derivative by the coefficients."""
        A = score.derivative(cases[0], losses[self.subjects], self.moves(weight[self.subjects]), self.jumps)
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
    fitted = zip(censoring.estimators_, censoring.ends_, strict=True)
    return all(end is None and _is_differentiable(estimator) for estimator, end in fitted)


def _is_differentiable(estimator: Any) -> bool:
    """Whether an estimator has an influence function.

    It may be the last step of a pipeline: the steps before it then count as fixed, which they are up to the
    noise of imputed and scaled values. A step that was fitted to the outcome is not.
    """
    if isinstance(estimator, Adapted):
        return type(last_estimator(estimator.model_)) in _PARTS and not _uses_outcome(estimator.model_)
    return type(estimator) in _PARTS


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


_PARTS: dict[type, type[Part]] = {KaplanMeier: KaplanMeierPart, CoxRegression: CoxPart}


def parts_of(censoring: Censoring, X: Any, subjects: np.ndarray, training: np.ndarray) -> list[Part]:
    """The parts of a fitted ``Censoring`` for scored subjects with covariates X: one, or one per event time.

    ``training`` are the numbers of the subjects it was fitted to; those with an event at time zero carry
    no information on C and are left out.
    """
    parts = []
    for j, (estimator, used) in enumerate(zip(censoring.estimators_, censoring.subjects_, strict=True)):
        inner, columns = last_step(estimator.model_, X) if isinstance(estimator, Adapted) else (estimator, X)
        coordinate = None if censoring.shared_ else j
        parts.append(_PARTS[type(inner)](subjects, training[used], inner, columns, coordinate))
    return parts
