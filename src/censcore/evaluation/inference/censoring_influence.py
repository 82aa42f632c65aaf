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
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator
from sklearn.feature_selection import SelectorMixin
from sklearn.pipeline import Pipeline
from sklearn.utils import get_tags

from censcore._arrays import to_numpy
from censcore.distributions import Distribution, Step
from censcore.estimators import Adapted, Censoring, CoxRegression, KaplanMeier
from censcore.estimators.covariates import column_of, take_rows
from censcore.estimators.encoding import as_matrix
from censcore.estimators.libraries.pipelines import last_estimator, last_step
from censcore.estimators.nonparametric.kaplan_meier import DropOut
from censcore.evaluation.measures.case import Case

STEP = 0.01  # by which P(C >= t) is made smaller from a visit on, for derivatives by the number of the visit


@dataclass(frozen=True, eq=False)
class Piece:
    """Scored subjects whose censoring distributions move together, so that A(u) is one sum over them."""

    subjects: np.ndarray  #: their numbers
    case: Case  #: of these subjects; of all where ``by_visit``, since scores are taken again
    weight: np.ndarray  #: by which each of them moves, (n, m)
    jumps: np.ndarray  #: the times u
    by_visit: bool = False  #: whether these are numbers of visits

    def derivative(self, scores: Sequence[Any], losses: list[np.ndarray]) -> np.ndarray:
        """A(u) of scores with the losses (n, q) of all scored subjects, side by side, (m, J, sum of q)."""
        every = zip(scores, losses, strict=True)
        if self.by_visit:
            return np.concatenate([self._by_number(*each) for each in every], axis=2)
        where = self.weight, self.jumps
        return np.concatenate(
            [score.derivative(self.case, values[self.subjects], *where) for score, values in every], axis=2
        )

    def _by_number(self, score: Any, losses: np.ndarray) -> np.ndarray:
        r"""A(k), the derivative of mean losses by :math:`\log(1-h_k)`, h_k the hazard to leave after visit k.

        :math:`P(C\ge t)` gets the factor :math:`e^{-\epsilon}` from visit k + 1 on, and all losses are
        computed again. On the localized scale they are linear in the factor, so that the derivative is exact.
        """
        case, w = self.case, self.weight
        times, sf = (to_numpy(values) for values in case.C.marginal(0).steps())
        planned = np.isfinite(to_numpy(case.y.visits)).sum(axis=1, keepdims=True)  # type: ignore[attr-defined]
        place = np.arange(times.shape[1])
        A = np.empty((w.shape[1], len(self.jumps), losses.shape[1]))
        for j, k in enumerate(self.jumps):
            smaller = np.where((place >= k) & (planned > k), np.exp(-STEP), 1.0)
            moved = score.losses(case.with_censoring(Step.trusted(times, sf * smaller, falls=True)))
            with np.errstate(invalid="ignore"):
                change = (moved - losses)[self.subjects] / np.expm1(-STEP)
            A[:, j] = w.T @ np.where(np.isfinite(change), change, 0.0)
        return A


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
    def pieces(self, case: Case, weight: np.ndarray) -> dict[int, Piece]:
        """The scored subjects of a comparison that this part serves, with weights (n, m), by curve."""

    @abstractmethod
    def influence(self, A: dict[int, np.ndarray], m: int, q: int) -> np.ndarray:
        """Influence of each training subject on mean losses, (training, m, q), from A of every piece."""

    def influence_on(
        self, scores: list[Any], losses: list[np.ndarray], case: Case, weight: np.ndarray
    ) -> np.ndarray:
        """Influence of each training subject on the mean losses (n, q) of scores, (training, m, sum of q)."""
        A = self.derivatives(scores, losses, case, weight)
        return self.influence(A, weight.shape[1], sum(values.shape[1] for values in losses))

    def derivatives(
        self, scores: Sequence[Any], losses: list[np.ndarray], case: Case, weight: np.ndarray
    ) -> dict[int, np.ndarray]:
        """A of the losses (n, q) of scores under weights (n, m), by curve."""
        return {i: piece.derivative(scores, losses) for i, piece in self.pieces(case, weight).items()}

    def among(self, rows: np.ndarray) -> Self:
        """Serve those of some scored subjects that it serves, by their places among these."""
        _, here, own = np.intersect1d(rows, self.subjects, assume_unique=True, return_indices=True)
        order = np.argsort(here)
        X = None if self.X is None else take_rows(self.X, own[order])
        return replace(self, subjects=here[order], X=X)

    def _restricted(self, case: Case, subjects: np.ndarray, C: Distribution) -> Case:
        if self.by_visit:
            return case
        case = case if len(subjects) == len(case.y) else case.take(subjects)
        return case.with_censoring(C, self.coordinate)


@dataclass(frozen=True, eq=False)
class KaplanMeierPart(Part):
    """One Kaplan-Meier curve, or one per stratum; all subjects of a stratum share a curve."""

    estimator: KaplanMeier

    @cached_property
    def _jumps(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Entries of the event table at which the curve of each stratum can move, and their times."""
        table, strata = self.estimator.event_table_, range(len(self.estimator.distributions_))
        moves = [(table["stratum"] == i) & (table["sf"] > 0) for i in strata]
        return [(np.nonzero(mask)[0], table["time"][mask]) for mask in moves]

    def pieces(self, case: Case, weight: np.ndarray) -> dict[int, Piece]:
        """One for every stratum with subjects whose curve has jumps."""
        curve, stratum = self.estimator, np.zeros(len(self.subjects), dtype=np.intp)
        if curve.stratify is not None:
            stratum = np.searchsorted(curve.strata_, column_of(self.X, curve.stratify))
        pieces = {}
        for i, (C, (_, u)) in enumerate(zip(curve.distributions_, self._jumps, strict=True)):
            subjects = self.subjects[stratum == i]
            if len(subjects) and len(u):
                # where one curve serves all subjects, it is that of the case, with what was made under it
                one = len(subjects) == len(case.y) and len(case.C) == case.C.k == 1 and self.end is None
                under = case if one else self._restricted(case, subjects, C)
                pieces[i] = Piece(subjects, under, weight[subjects], u, self.by_visit)
        return pieces

    def influence(self, A: dict[int, np.ndarray], m: int, q: int) -> np.ndarray:
        """From A(u) under each stratum's curve."""
        by_hazard = np.zeros((len(self.estimator.event_table_), m, q))
        for i, of_stratum in A.items():
            by_hazard[self._jumps[i][0]] = np.moveaxis(of_stratum, 0, 1)
        xi = self.estimator.influence(by_hazard.reshape(len(by_hazard), m * q))  # the table may be empty
        return xi.reshape(len(xi), m, q)


@dataclass(frozen=True, eq=False)
class CoxPart(Part):
    r"""A Cox regression: :math:`\log G_i(t)=r_i\sum_{u\le t}a_u`, :math:`r_i=e^{(x_i-\bar x)^\top\gamma}`.

    A mean score moves with :math:`a_u` by A(u) under the weights :math:`w_ir_i`, and with
    :math:`\gamma_p` by :math:`\sum_ua_uA_p(u)`, where :math:`A_p` has the weights
    :math:`w_ir_i(x_{ip}-\bar x_p)`.
    """

    estimator: CoxRegression

    def pieces(self, case: Case, weight: np.ndarray) -> dict[int, Piece]:
        """One, with a curve per subject, and the weights (n, m (1 + p)) of A and of all A_p."""
        everyone = len(self.subjects) == len(case.y)
        own = case.C.marginal(self.coordinate if self.coordinate and case.C.k > 1 else 0)
        C = own if everyone else self._distribution
        w = (weight[self.subjects][:, :, None] * self._moves[:, None, :]).reshape(len(self.subjects), -1)
        under = self._restricted(case, self.subjects, C)
        return {0: Piece(self.subjects, under, w, self._jumps, self.by_visit)}

    @cached_property
    def _distribution(self) -> Distribution:
        """The censoring distribution of the scored subjects of this part."""
        C = self.estimator.predict_distribution(self.X)
        return C if self.end is None else C.censor_at(self.end)

    @cached_property
    def _moves(self) -> np.ndarray:
        """How the hazard of each scored subject moves with the baseline and the coefficients: r (1, x)."""
        model = self.estimator
        X = as_matrix(model, self.X, reset=False)
        x = np.zeros((1, 0)) if X is None else X - model.center_
        return np.exp(x @ model.coef_)[:, None] * np.column_stack([np.ones(len(x)), x])

    @cached_property
    def _jumps(self) -> np.ndarray:
        return self.estimator.baseline_times_[np.isfinite(self.estimator.baseline_hazard_)]

    def influence(self, A: dict[int, np.ndarray], m: int, q: int) -> np.ndarray:
        """From A(u) and the derivative by the coefficients."""
        hazard = self.estimator.baseline_hazard_
        jumps = np.isfinite(hazard)
        a = -np.diff(hazard[jumps], prepend=0.0)
        moved = A[0].reshape(m, len(A[0]) // m, len(a), q)  # (m, 1 + p, J, q), where J may be zero
        by_hazard = np.zeros((len(hazard), m * q))
        by_hazard[jumps] = np.moveaxis(moved[:, 0], 1, 0).reshape(len(a), m * q)
        by_coef = np.einsum("mpjq,j->pmq", moved[:, 1:], a).reshape(moved.shape[1] - 1, m * q)
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
