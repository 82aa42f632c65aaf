"""The censoring distribution of subjects in a table: known, or estimated once and sent to all tasks."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from sklearn.base import clone

from censcore.distributions import Distribution
from censcore.estimators import Adapted, Censoring, KaplanMeier
from censcore.estimators.censoring.censoring_choice import is_automatic
from censcore.evaluation.inference.censoring_influence import Part, has_influence, parts_of
from censcore.evaluation.inference.resolved_censoring import as_censoring, describe
from censcore.evaluation.parts.batches.reading import Rows
from censcore.evaluation.sample import Sample
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored
from censcore.scores.inputs.scoring_inputs import known_censoring


@dataclass(frozen=True, eq=False)
class TableCensoring:
    """A distribution for all subjects, an estimator, or neither where the censoring times are known.

    A Kaplan-Meier estimate is fitted to counts of outcomes, a regression of C to training subjects in memory.
    Estimators without an influence function are taken as known, with a note.
    """

    known: Distribution | None = None
    estimator: Censoring | None = None
    before: bool = False  #: whether the estimator was fitted before
    columns: tuple[str, ...] = ()  #: of the table, that hold the covariates of the estimate
    identity: str = ""  #: of what it predicts: an estimator is described by its parameters alone

    @classmethod
    def of(cls, censoring: Any, train: Any) -> TableCensoring:
        """From what a comparison is asked for; what cannot be had in batches is an error."""
        if isinstance(censoring, Distribution):
            if len(censoring) > 1 or censoring.k > 1 or censoring.estimated_from is not None:
                raise InvalidInputError(
                    "censoring: got a distribution for given subjects, or an estimate; for a table read in "
                    "batches expected an estimator, Censoring(KaplanMeier()), with train= where it is fitted "
                    "to others, or one known distribution for all subjects."
                )
            return cls(censoring)
        if is_automatic(censoring):
            raise InvalidInputError(
                "censoring: got 'auto'; whether covariates predict censoring is tested with all subjects in "
                "memory. For a table read in batches pass Censoring(KaplanMeier()) or "
                "Censoring(CoxRegression())."
            )
        if censoring is None:
            return cls()
        estimator = as_censoring(censoring)
        if estimator.cv is not None:
            raise InvalidInputError(
                f"censoring: got {describe(estimator)}, out of fold; for a table read in batches expected "
                "one fit for all subjects, without cv=. With a hundred thousand subjects or more no subject "
                "moves the fit; fit it to other subjects by train= where none may."
            )
        return cls(None, estimator, train is None and hasattr(estimator, "estimators_"))

    @property
    def pooled(self) -> bool:
        """Whether few curves serve all subjects, so that counts of outcomes determine them."""
        if self.estimator is None:
            return True
        if hasattr(self.estimator, "estimators_"):
            first = self.estimator.estimators_[0]
            return isinstance(first, KaplanMeier) and self.estimator.ends_[0] is None
        return isinstance(self.estimator.estimator, KaplanMeier)

    @property
    def stratify(self) -> str | None:
        """The column of the strata that have a curve each."""
        return getattr(self.estimator.estimator, "stratify", None) if self.estimator and self.pooled else None

    @property
    def strata(self) -> Any:
        """Their labels, once they are fitted."""
        return [] if self.estimator is None else self.estimator.estimators_[0].strata_

    @property
    def n_train(self) -> int:
        """How many subjects, or distinct outcomes, it was fitted to."""
        return 0 if self.estimator is None else len(self.estimator.trained_on_)

    @property
    def one_for_each_time(self) -> bool:
        """Whether it was asked for one C per event time."""
        estimator = self.estimator
        return getattr(estimator, "shared", None) is False or len(getattr(estimator, "estimators_", ())) > 1

    def fitted(self, train: Sample | None, given: bool) -> TableCensoring:
        """The estimate from training subjects; a regression needs these in memory (``given``)."""
        estimator = self.estimator
        if estimator is None:
            return self
        stratify = () if self.stratify is None else (self.stratify,)
        if self.before:
            if self.pooled:
                return replace(self, columns=stratify)
            inner = estimator.estimators_[0]
            inner = inner.model_ if isinstance(inner, Adapted) else inner
            alike = isinstance(inner, KaplanMeier) and inner.stratify is None
            if alike or getattr(inner, "n_features_in_", None) == 0:
                return self
            return replace(self, columns=self._named(getattr(inner, "feature_names_in_", None)))
        if not (self.pooled or given):
            raise InvalidInputError(
                f"censoring: got {describe(estimator)}, which is fitted to subjects in memory, and "
                f"{'no train=' if train is None else 'train= in a table'}; expected train=(X, y), a sample "
                "with the columns of its covariates in a data frame, an estimator that was fitted before, or "
                "Censoring(KaplanMeier()), whose fit is a sum over all subjects."
            )
        assert train is not None
        columns = stratify if self.pooled else self._named(getattr(train.X, "columns", None))
        return replace(self, estimator=train.fit(clone(estimator)), columns=columns)

    @staticmethod
    def _named(names: Any) -> tuple[str, ...]:
        if names is None:
            raise InvalidInputError(
                "censoring: got an estimator with covariates that have no names, expected one that is fitted "
                "to a data frame: its columns are those that are read from the table."
            )
        return tuple(map(str, names))

    def covariates(self, rows: Rows) -> Any:
        """Those of some subjects; strata are their labels."""
        import pandas as pd

        if not self.columns:
            return None
        if self.pooled:
            return pd.DataFrame({name: rows.labels[name] for name in self.columns})
        return rows.frame[list(self.columns)]

    def distribution(self, X: Any, y: RightCensored) -> Distribution | None:
        """The censoring distribution of subjects; None where nothing is known of it."""
        if self.estimator is None:
            return known_censoring(y) if self.known is None else self.known
        C = self.estimator.predict_distribution(X)
        C.estimated_from = None  # it would hold on to the rows
        return C

    @property
    def moves(self) -> bool:
        """Whether means move with it by an influence function."""
        return self.estimator is not None and has_influence(self.estimator)

    def part(self, rows: Rows) -> Part | None:
        """How mean losses of some subjects move with the estimate; None where it counts as known."""
        if not self.moves:
            return None
        assert self.estimator is not None
        everyone, trained = np.arange(len(rows.weight)), np.arange(len(self.estimator.trained_on_))
        return parts_of(self.estimator, self.covariates(rows), everyone, trained)[0]

    def description(self, trained: bool) -> str:
        """How it was obtained, in words."""
        if self.known is not None:
            return f"given: {type(self.known).__name__}, taken as known"
        if self.estimator is None:
            return "known: the censoring times are given"
        if self.before:
            return f"{describe(self.estimator)}, fitted before to {len(self.estimator.trained_on_)} subjects"
        return f"{describe(self.estimator)}, fitted to the {'training' if trained else 'scored'} subjects"

    @property
    def notes(self) -> list[str]:
        """That standard errors do not include its estimation, where they do not."""
        if self.estimator is None or self.moves:
            return []
        return [
            f"Standard errors take the censoring distribution ({describe(self.estimator)}) as known: the "
            "influence of its estimation is a sum over batches for Kaplan-Meier and Cox regression alone. It "
            f"is small where its {len(self.estimator.trained_on_)} training subjects are many; compare a "
            "sample in memory."
        ]
