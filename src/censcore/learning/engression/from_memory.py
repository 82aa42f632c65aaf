"""Censored engression from training data in memory."""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from typing import Any, Self

import numpy as np

from censcore._arrays import Array
from censcore.estimators.tails import end_of_follow_up
from censcore.learning.batch_training import followed_outcome
from censcore.learning.data.masks import as_past, check_mask
from censcore.learning.data.standardised import Data, Fold, Subjects
from censcore.learning.engression.codings import warn_of_ties
from censcore.learning.engression.generator import Generator
from censcore.learning.engression.generator_training import GeneratorTraining
from censcore.learning.engression.time_scale import TimeScale
from censcore.learning.engression.training_censoring import TrainingCensoring
from censcore.learning.training.task import Callback
from censcore.outcomes import OutcomeLike, RightCensored, SemiCompetingRisks

__all__ = ["FitFromMemory"]

# Up to so many subjects "auto" is five generators, each validated on another fifth; up to so many one, which
# is trained again on all subjects.
_FEW, _SOME, _FOLDS = 1_000, 4_000, 5


class FitFromMemory(GeneratorTraining):
    """The method ``fit`` of censored engression."""

    def fit(
        self,
        X: Array | None,
        y: OutcomeLike | SemiCompetingRisks,
        sample_weight: Array | None = None,
        *,
        censoring: Any = None,
        eval_set: tuple[Any, ...] | None = None,
        groups: Array | None = None,
        mask: Array | None = None,
        callbacks: Sequence[Callback] = (),
    ) -> Self:
        """Train the generator.

        Parameters
        ----------
        X : array or frame, (n, d), or None
            Covariates.
        y : RightCensored, CompetingRisks, SemiCompetingRisks, structured array or frame
            The outcome, (n,) or (n, k).
        sample_weight : array, (n,), optional
            Weights of the subjects.
        censoring : Distribution, estimator or "auto", optional
            The censoring distribution: given, or an estimator that is fitted to the flipped outcome, apart
            from the generator. Without it, it is what is known (no censoring, or ``y.censoring_time``), and
            otherwise a pooled Kaplan-Meier estimate. ``"auto"`` chooses between that and a penalised Cox
            regression by a test of the covariates. A pooled estimate warns where the covariates predict
            censoring, by the test of :func:`~censcore.censoring_diagnostic`; ``censoring_choice_`` says what
            was used.
        eval_set : (X, y), (X, y, censoring) or (X, y, censoring, mask), optional
            Validation data; otherwise ``validation_fraction`` of the subjects is held out.
        groups : array, (n,), optional
            Subjects of one group (visits of a patient) never share a minibatch, and the validation split
            does not separate them.
        mask : array of bool, (n, k), optional
            False where an event time does not count: it is already past, or was not looked for. Whatever
            is in its place plays no part.
        callbacks : sequence of callables
            Called after every epoch with ``(epoch, network)``; True stops the training.

        Returns
        -------
        self
        """
        self._fit(X, y, sample_weight, censoring, groups, mask, eval_set, callbacks)
        return self

    def cross_fit(
        self,
        X: Array | None,
        y: OutcomeLike | SemiCompetingRisks,
        folds: Sequence[tuple[np.ndarray, np.ndarray]],
        sample_weight: Array | None = None,
        *,
        censoring: Any = None,
        groups: Array | None = None,
    ) -> list[tuple[Self, ...]]:
        """Train one network for every fold, and pool them; for use by :class:`~censcore.Stacking`.

        One fold alone is held out as in :meth:`fit`.

        Parameters
        ----------
        X, y, sample_weight, censoring, groups
            As in :meth:`fit`.
        folds : sequence of (array of int, array of int)
            Training and held-out subjects.

        Returns
        -------
        list of tuples of estimators
            For every fold the model with the network alone that has not seen the held-out subjects, and one
            with another network that it is pooled with, if any.
        """
        self._fit(X, y, sample_weight, censoring, groups, folds=folds)
        if any(history.interrupted for history in self.histories_):
            raise KeyboardInterrupt
        models = [self._alone(network) for network in self._fold_networks[: len(folds)]]
        if len(models) == 1:
            return [(models[0],)]
        return [(model, models[(i + 1) % len(models)]) for i, model in enumerate(models)]

    def _alone(self, network: Generator) -> Self:
        """The model with one network."""
        model = copy(self)
        model._generators = [network]
        return model

    def _fit(
        self,
        X: Any,
        y: Any,
        sample_weight: Any,
        censoring: Any,
        groups: Any,
        mask: Any = None,
        eval_set: tuple[Any, ...] | None = None,
        callbacks: Sequence[Callback] = (),
        folds: Sequence[tuple[np.ndarray, np.ndarray]] | None = None,
    ) -> None:
        self._check_settings()
        self._forget()
        outcome = self._check_outcome(y, mask)
        counts = check_mask(mask, outcome)
        outcome = as_past(outcome, counts)
        matrix = self._check_X(X, len(outcome), reset=True)
        groups = self._check_groups(groups, len(outcome))
        if isinstance(outcome, RightCensored) and not self.ordered:
            warn_of_ties(outcome, counts)
        self._training_censoring = TrainingCensoring.choose(
            self._training.objective, X, followed_outcome(outcome), censoring, groups
        )
        assert self._training_censoring.distribution is not None
        self._follow_up = end_of_follow_up(outcome, self._training_censoring.distribution)
        outcome = self._as_seen(outcome)
        self._fit_scaling(matrix, slice(None))
        self._times = TimeScale.of(outcome, self._transform)
        everything = self._tensors(
            matrix, outcome, self._training_censoring.distribution, counts, sample_weight
        )
        validation = None
        if eval_set is not None:
            validation = self._evaluation_rows(*self._check_eval_set(eval_set, "X", "y", "censoring", "mask"))
        parts = self._folds(everything, validation, groups, folds)
        self._fit_generators(parts, callbacks)

    def _folds(
        self,
        everything: Data,
        validation: Data | None,
        groups: np.ndarray | None,
        given: Sequence[tuple[np.ndarray, np.ndarray]] | None,
    ) -> list[Fold]:
        """The subjects of every generator, and those that validate it."""
        n = len(everything["x"])
        everybody = Fold(Subjects(everything), None, groups)

        def fold(rows: np.ndarray | slice, held_out: np.ndarray | None) -> Fold:
            others = None if held_out is None else Subjects(everything, held_out)
            return Fold(Subjects(everything, rows), others, None if groups is None else groups[rows])

        if given is not None:
            again = [everybody] if len(given) == 1 and n <= _SOME else []
            return [fold(*rows) for rows in given] + again
        if validation is not None or self._held_out_share == 0:
            count = 1 if self.n_networks == "auto" else int(self.n_networks)
            others = None if validation is None else Subjects(validation)
            return [Fold(Subjects(everything), others, groups)] * count
        if self.n_networks == "auto" and _FEW < n <= _SOME:
            return [fold(*self._split(n, groups, False)), everybody]
        count = (_FOLDS if n <= _FEW else 1) if self.n_networks == "auto" else int(self.n_networks)
        return [fold(*self._split(n, groups, False, i)) for i in range(count)]
