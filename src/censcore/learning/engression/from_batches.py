"""Censored engression from training data that are read in batches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

import numpy as np
from torch import Tensor

from censcore._arrays import to_numpy
from censcore.distributions import Distribution
from censcore.estimators.cause_times import cause_times
from censcore.estimators.kaplan_meier import KaplanMeier
from censcore.estimators.tails import end_of_follow_up
from censcore.learning.batch_training import followed_outcome, in_numpy
from censcore.learning.data.first_pass import FirstPass
from censcore.learning.data.sources import Block
from censcore.learning.data.standardised import Fold, Subjects
from censcore.learning.engression.censoring_quantiles import LEVELS
from censcore.learning.engression.codings import check_order, warn_of_ties
from censcore.learning.engression.generator_training import GeneratorTraining
from censcore.learning.engression.time_scale import TimeScale
from censcore.learning.engression.training_censoring import TrainingCensoring
from censcore.learning.training.task import Callback
from censcore.outcomes import CompetingRisks, RightCensored, SemiCompetingRisks
from censcore.scores.inputs import known_censoring

__all__ = ["FitFromBatches"]


class FitFromBatches(GeneratorTraining):
    """The method ``fit_batches`` of censored engression."""

    def fit_batches(
        self,
        batches: Any,
        *,
        censoring: Any = None,
        eval_set: tuple[Any, ...] | None = None,
        callbacks: Sequence[Callback] = (),
        buffer: int = 65_536,
    ) -> Self:
        """Train on data that are read in batches, in every epoch again; memory does not grow with them.

        One pass finds the number of subjects, the moments of the covariates, the unit of time, the
        Kaplan-Meier estimate of C (of times that are rounded up to 65,536 different ones), and a random
        sample. A share of the subjects, at most 50,000, is held out for validation; which ones follows from
        their groups or else their places in the data. Estimators of C other than Kaplan-Meier are fitted to a
        sample of 20,000 others. In every epoch parts of the data are read in
        random order, four side by side, and their subjects are shuffled in a buffer. There is one
        generator, unless ``n_networks`` is a number.

        Parameters
        ----------
        batches : TrainingTable, sequence or callable
            A :class:`~censcore.TrainingTable` of files; a sequence of batches ``(X, y)``, which may load them
            when they are asked for; or a function without arguments that returns an iterator of batches, the
            same every time. A batch may have weights, groups and a mask as in :meth:`fit`, or None in their
            places: ``(X, y, sample_weight, groups, mask)``. Subjects of one group are not separated by the
            validation split, but may share a minibatch.
        censoring : Distribution, estimator or "auto", optional
            As in :meth:`fit`; a distribution must serve all subjects.
        eval_set : (X, y), (X, y, censoring) or (X, y, censoring, mask), optional
            Validation data in memory; otherwise ``validation_fraction`` of the subjects is held out.
        callbacks : sequence of callables
            Called after every epoch with ``(epoch, network)``; True stops the training.
        buffer : int
            Subjects that are shuffled at a time.

        Returns
        -------
        self

        See Also
        --------
        censcore.TrainingTable : Files that are read in batches.

        Examples
        --------
        >>> import censcore as cs
        >>> from censcore.simulation import LogNormalScenario
        >>> parts = [LogNormalScenario(k=2, censoring="uniform").sample(200, seed=s) for s in range(3)]
        >>> model = cs.CensoredEngression(epochs=2, n_networks=1, random_state=0)
        >>> model = model.fit_batches([(part.X, part.y) for part in parts])
        >>> model.predict_distribution(parts[0].X[:5], n_samples=100)
        Ensemble(shape=(5, 2), m=100)
        """
        self._check_settings()
        self._forget()
        source = self._share_of(batches, buffer)
        found = self._first_pass(source, _stratify(censoring))
        held_out = self._held_out(found, eval_set is not None)
        sample = self._sample(found, held_out)
        self._learn_units(found, sample, censoring)
        training = self._streamed(source, found, sample, held_out, buffer)
        validation = self._validation_rows(found, held_out)
        if eval_set is not None:
            parts = self._check_eval_set(eval_set, "X", "y", "censoring", "mask")
            validation = self._evaluation_rows(*parts)
        count = 1 if self.n_networks == "auto" else int(self.n_networks)
        others = None if validation is None else Subjects(validation)
        self._fit_generators([Fold(training, others)] * count, callbacks)
        return self

    # ---- before training -----------------------------------------------------------------------

    def _plain_outcome(self, y: Any) -> Any:
        if isinstance(y, CompetingRisks):
            return cause_times(y, type(self).__name__)
        return in_numpy(y) if isinstance(y, SemiCompetingRisks) else super()._plain_outcome(y)

    def _learn_units(self, found: FirstPass, sample: Block, censoring: Any) -> None:
        """The kind of outcome, the censoring distribution and the units."""
        extreme = self._check_outcome(found.extreme.y, found.extreme.mask)
        outcome = self._other_outcome(sample.y)
        if isinstance(outcome, RightCensored) and not self.ordered:
            warn_of_ties(outcome, sample.mask)
        self._training_censoring = TrainingCensoring.choose_counted(
            self._training.objective,
            sample.X,
            followed_outcome(outcome),
            censoring,
            found.follow_up,
            sample.groups,
        )
        self._follow_up = end_of_follow_up(extreme, self._some_censoring(extreme, sample))
        some = self._as_seen(self._other_outcome(found.sample.y))
        self._times = TimeScale.of_sums(found.times, self._transform, some)

    def _some_censoring(self, extreme: Any, sample: Block) -> Distribution:
        """A censoring distribution that reaches as far as any."""
        chosen = self._training_censoring
        if chosen.distribution is not None:
            return chosen.distribution
        if chosen.estimator is not None:
            return chosen.estimator.predict_distribution(sample.X)
        known = known_censoring(followed_outcome(extreme))
        assert known is not None
        return known

    def _knows_censoring(self) -> bool:
        """Whether one censoring time is possible for every subject."""
        chosen = self._training_censoring
        if chosen.distribution is None:
            return chosen.estimator is None
        C = chosen.distribution
        return not any(np.isnan(to_numpy(C.marginal(j).known_time())).any() for j in range(C.k))

    def _block_tensors(self, block: Block) -> dict[str, Tensor]:
        outcome = self._as_seen(self._other_outcome(block.y))
        if self.ordered:
            check_order(outcome, block.mask)
        X = self._check_X(block.X, len(block), reset=False)
        chosen = self._training_censoring
        given = None if chosen.estimated or chosen.estimator is not None else chosen.distribution
        rows = self._tensors(X, *self._within_follow_up(block.X, outcome, given), block.mask, block.weight)
        # sums depend on the layout, which differs between tables and arrays
        tensors = {name: value[:].contiguous() for name, value in rows.items()}
        c = tensors["c"]
        if c.shape[1] == 1 and not self._knows_censoring():  # by chance every time of this block is known
            tensors["c"] = c.expand(-1, LEVELS, -1)
        return tensors


def _stratify(censoring: Any) -> Any:
    """The column by whose values a Kaplan-Meier estimate of C is stratified, if any."""
    estimator = getattr(censoring, "estimator", censoring)
    return estimator.stratify if isinstance(estimator, KaplanMeier) else None
