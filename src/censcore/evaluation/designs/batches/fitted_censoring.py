r"""A censoring distribution given covariates, fitted once, and how its estimation moves mean losses.

A regression of C is fitted to subjects in memory, a sample of training subjects, and sent to all tasks. Mean
losses move with the parameters of a Cox regression by sums over the scored subjects
(:class:`~censcore.evaluation.inference.censoring_influence.CoxPart`), which add up over batches like any
other. Other estimators have no such sums: they are taken as known, which a note says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from censcore._validation import check_instance
from censcore.distributions import Distribution
from censcore.estimators import Adapted, Censoring, CoxRegression, KaplanMeier
from censcore.estimators.censoring_choice import is_automatic
from censcore.estimators.pipelines import last_estimator
from censcore.evaluation.designs.batches.outcome_table import OutcomeTable
from censcore.evaluation.inference.censoring_influence import CoxPart, has_influence, parts_of
from censcore.evaluation.inference.resolved_censoring import describe
from censcore.evaluation.sample import Sample
from censcore.exceptions import InvalidInputError, InvalidTypeError

__all__ = ["FittedCensoring", "estimator_of", "regression_of"]


@dataclass(frozen=True, eq=False)
class FittedCensoring:
    """An estimator of the censoring distribution that was fitted to subjects in memory.

    Parameters
    ----------
    censoring : Censoring
        Fitted.
    columns : tuple of str
        Columns of the table that hold its covariates.
    """

    censoring: Censoring
    columns: tuple[str, ...]

    @classmethod
    def fitted_to(cls, estimator: Censoring, train: Any) -> FittedCensoring:
        """The estimator fitted to the subjects of a pair (X, y)."""
        if train is None or isinstance(train, OutcomeTable):
            raise InvalidInputError(
                f"censoring: got {describe(estimator)}, which is fitted to subjects in memory, and "
                f"{'no train=' if train is None else 'train= in a table'}; expected train=(X, y), a sample "
                "with the columns of its covariates in a data frame, an estimator that was fitted before, or "
                "Censoring(KaplanMeier()), whose fit is a sum over all subjects."
            )
        subjects = Sample.of(train).checked()
        columns = _names(getattr(subjects.X, "columns", None))
        return cls(clone(estimator).fit(subjects.X, subjects.y, subjects.weight), columns)

    @classmethod
    def fitted_before(cls, censoring: Censoring) -> FittedCensoring:
        """One that was fitted before."""
        fitted = censoring.estimators_[0]
        fitted = fitted.model_ if isinstance(fitted, Adapted) else fitted
        pooled = isinstance(fitted, KaplanMeier) and fitted.stratify is None
        if pooled or getattr(fitted, "n_features_in_", None) == 0:
            return cls(censoring, ())
        return cls(censoring, _names(getattr(fitted, "feature_names_in_", None)))

    @property
    def n_train(self) -> int:
        """How many subjects it was fitted to."""
        return len(self.censoring.trained_on_)

    def distribution(self, frame: Any) -> Distribution:
        """The censoring distribution of the subjects in some rows of the table."""
        C = self.censoring.predict_distribution(frame[list(self.columns)] if self.columns else None)
        C.estimated_from = None  # it would hold on to the rows
        return C

    @property
    def has_influence(self) -> bool:
        """Whether standard errors include its estimation."""
        return has_influence(self.censoring) and isinstance(self._last, CoxRegression)

    @property
    def taken_as_known(self) -> str:
        """That they do not, in words."""
        return (
            f"Standard errors take the censoring distribution ({describe(self.censoring)}) as known: the "
            "influence of its estimation is a sum over batches for Kaplan-Meier and Cox regression alone. It "
            f"is small where its {self.n_train} training subjects are many; compare a sample in memory."
        )

    @property
    def _last(self) -> Any:
        fitted = self.censoring.estimators_[0]
        return last_estimator(fitted.model_) if isinstance(fitted, Adapted) else fitted

    def part(self, frame: Any) -> CoxPart:
        """How mean losses move with its parameters, for the subjects in some rows of the table."""
        X = frame[list(self.columns)] if self.columns else None
        part = parts_of(self.censoring, X, np.arange(len(frame)), np.arange(self.n_train))[0]
        assert isinstance(part, CoxPart)
        return part

    def influence(self, A: np.ndarray, m: int) -> np.ndarray:
        """Influence of each training subject on mean losses, (training, m, q), from sums over all batches."""
        used = self.censoring.subjects_[0]
        xi = np.zeros((self.n_train, m, A.shape[2]))
        xi[used] = CoxPart(np.arange(0), used, self._last, None).from_derivative(A, m)
        return xi


def _names(given: Sequence[Any] | None) -> tuple[str, ...]:
    if given is None:
        raise InvalidInputError(
            "censoring: got an estimator with covariates that have no names, expected one that is fitted to "
            "a data frame: its columns are those that are read from the table."
        )
    return tuple(map(str, given))


def estimator_of(censoring: Any) -> tuple[Censoring | None, Distribution | None]:
    """The estimator of the censoring distribution, or the distribution itself; neither where it is known."""
    if censoring is None:
        return None, None
    if isinstance(censoring, Distribution):
        if len(censoring) > 1 or censoring.k > 1 or censoring.estimated_from is not None:
            raise InvalidInputError(
                "censoring: got a distribution for given subjects, or an estimate; for a table read in "
                "batches expected an estimator, Censoring(KaplanMeier()), with train= where it is fitted to "
                "others, or one known distribution for all subjects."
            )
        return None, censoring
    if is_automatic(censoring):
        raise InvalidInputError(
            "censoring: got 'auto'; whether covariates predict censoring is tested with all subjects in "
            "memory. For a table read in batches pass Censoring(KaplanMeier()) or Censoring(CoxRegression())."
        )
    check_instance(censoring, "censoring")
    if not hasattr(censoring, "fit"):
        raise InvalidTypeError(
            f"censoring: got {type(censoring).__name__}, expected an estimator of the distribution of C, "
            "such as Censoring(KaplanMeier()), or a distribution."
        )
    estimator = censoring if isinstance(censoring, Censoring) else Censoring(censoring)
    if estimator.cv is not None:
        raise InvalidInputError(
            f"censoring: got {describe(estimator)}, out of fold; for a table read in batches expected one "
            "fit for all subjects, without cv=. With a hundred thousand subjects or more no subject moves "
            "the fit; fit it to other subjects by train= where none may."
        )
    return estimator, None


def regression_of(estimator: Censoring | None, before: bool, train: Any) -> FittedCensoring | None:
    """An estimator other than Kaplan-Meier, fitted; None for that, and without any."""
    if estimator is None:
        return None
    if before:
        pooled = isinstance(estimator.estimators_[0], KaplanMeier) and estimator.ends_[0] is None
        return None if pooled else FittedCensoring.fitted_before(estimator)
    if isinstance(estimator.estimator, KaplanMeier):
        return None
    return FittedCensoring.fitted_to(estimator, train)
