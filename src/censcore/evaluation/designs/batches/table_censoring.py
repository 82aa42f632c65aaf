"""The censoring distribution of subjects who stay in their table.

A Kaplan-Meier estimate is fitted to counts of outcomes, a regression of C to training subjects in memory;
either is sent to all tasks. Mean losses move with the estimate by sums over the scored subjects, the A(u) of
:mod:`censcore.evaluation.inference.censoring_influence`, which add up over batches like any other. Estimators
without an influence function are taken as known, which a note says.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from sklearn.base import clone

from censcore.distributions import Distribution
from censcore.estimators import Adapted, Censoring, KaplanMeier
from censcore.estimators.censoring_choice import is_automatic
from censcore.evaluation.designs.fold_store import model_key
from censcore.evaluation.inference.censoring_influence import Part, has_influence, parts_of
from censcore.evaluation.inference.resolved_censoring import as_censoring, describe
from censcore.evaluation.sample import Sample
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored
from censcore.scores.inputs import known_censoring

__all__ = ["TableCensoring", "estimator_of", "fitted_regression", "is_kaplan_meier"]


@dataclass(frozen=True, eq=False)
class TableCensoring:
    """A distribution for all subjects, a fitted estimator, or neither where the censoring times are known."""

    known: Distribution | None = None
    fitted: Censoring | None = None
    columns: tuple[str, ...] = ()  #: of the table, that hold the covariates of the estimate
    identity: str = ""  #: of what it predicts: an estimator is described by its parameters alone

    def identified(self, C: Distribution | None) -> TableCensoring:
        """The same, known by what it predicts for some subjects."""
        return (
            self
            if C is None
            else TableCensoring(self.known, self.fitted, self.columns, model_key("C", C, None))
        )

    @property
    def pooled(self) -> bool:
        """Whether few curves serve all subjects, so that counts of outcomes tell all of it."""
        return self.fitted is None or is_kaplan_meier(self.fitted)

    def covariates(self, frame: Any, labels: dict[str, np.ndarray]) -> Any:
        """Those of the subjects in some rows of the table; strata are their labels."""
        import pandas as pd

        if not self.columns:
            return None
        return (
            pd.DataFrame({name: labels[name] for name in self.columns})
            if self.pooled
            else frame[list(self.columns)]
        )

    def of(self, X: Any, y: RightCensored) -> Distribution | None:
        """The censoring distribution of subjects; None where nothing is known of it."""
        if self.fitted is None:
            return known_censoring(y) if self.known is None else self.known
        C = self.fitted.predict_distribution(X)
        C.estimated_from = None  # it would hold on to the rows
        return C

    def part(self, X: Any, n: int) -> Part | None:
        """How mean losses of n subjects move with the estimate; None where it is known, or taken as known."""
        if self.fitted is None or not has_influence(self.fitted):
            return None
        return parts_of(self.fitted, X, np.arange(n), np.arange(len(self.fitted.trained_on_)))[0]

    @property
    def notes(self) -> list[str]:
        """That standard errors do not include its estimation, where they do not."""
        if self.fitted is None or has_influence(self.fitted):
            return []
        return [
            f"Standard errors take the censoring distribution ({describe(self.fitted)}) as known: the "
            "influence of its estimation is a sum over batches for Kaplan-Meier and Cox regression alone. It "
            f"is small where its {len(self.fitted.trained_on_)} training subjects are many; compare a sample "
            "in memory."
        ]


def is_kaplan_meier(estimator: Censoring) -> bool:
    """Whether an estimator is Kaplan-Meier, or was fitted as such."""
    if hasattr(estimator, "estimators_"):
        return isinstance(estimator.estimators_[0], KaplanMeier) and estimator.ends_[0] is None
    return isinstance(estimator.estimator, KaplanMeier)


def fitted_regression(estimator: Censoring, before: bool, train: Any) -> TableCensoring:
    """An estimator given covariates that was fitted before, or is fitted to training subjects in memory."""
    if before:
        fitted = estimator.estimators_[0]
        fitted = fitted.model_ if isinstance(fitted, Adapted) else fitted
        alike = isinstance(fitted, KaplanMeier) and fitted.stratify is None
        if alike or getattr(fitted, "n_features_in_", None) == 0:
            return TableCensoring(fitted=estimator)
        return TableCensoring(fitted=estimator, columns=_names(getattr(fitted, "feature_names_in_", None)))
    if not isinstance(train, Sample):
        raise InvalidInputError(
            f"censoring: got {describe(estimator)}, which is fitted to subjects in memory, and "
            f"{'no train=' if train is None else 'train= in a table'}; expected train=(X, y), a sample "
            "with the columns of its covariates in a data frame, an estimator that was fitted before, or "
            "Censoring(KaplanMeier()), whose fit is a sum over all subjects."
        )
    columns = _names(getattr(train.X, "columns", None))
    return TableCensoring(fitted=clone(estimator).fit(train.X, train.y, train.weight), columns=columns)


def _names(names: Sequence[Any] | None) -> tuple[str, ...]:
    if names is None:
        raise InvalidInputError(
            "censoring: got an estimator with covariates that have no names, expected one that is fitted to "
            "a data frame: its columns are those that are read from the table."
        )
    return tuple(map(str, names))


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
    estimator = as_censoring(censoring)
    if estimator.cv is not None:
        raise InvalidInputError(
            f"censoring: got {describe(estimator)}, out of fold; for a table read in batches expected one "
            "fit for all subjects, without cv=. With a hundred thousand subjects or more no subject moves "
            "the fit; fit it to other subjects by train= where none may."
        )
    return estimator, None
