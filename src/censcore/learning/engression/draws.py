"""What a trained model draws: event times of its generators and of the baselines beside them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor

from censcore._arrays import Array
from censcore._validation import as_count, as_seed
from censcore.distributions import Distribution, Ensemble
from censcore.estimators.covariates import check_weights
from censcore.learning.engression.generator_training import GeneratorTraining
from censcore.learning.engression.loss import EngressionTask
from censcore.learning.engression.mixture import MixtureChoice
from censcore.learning.engression.predictions import SamplePredictions
from censcore.learning.engression.sampling import NoisePool, chunks_of, shares
from censcore.learning.model_contents import MOST_SAMPLES
from censcore.learning.training.devices import pick_device
from censcore.learning.training.loop import mix_seed
from censcore.outcomes import OutcomeLike, SemiCompetingRisks

__all__ = ["MixtureDraws"]


class MixtureDraws(SamplePredictions, GeneratorTraining):
    """Draws of the mixture, and the score of the forecasts that they make."""

    n_samples: int

    def _tensor_chunks(
        self, X: Any, m: int | None, seed: int | None, baselines: bool = True
    ) -> Iterator[Tensor]:
        """Draws (subjects, m, k) in chunks that fit into memory; the components share the draws."""
        self.check_fitted()
        x = self._standardised(self._check_X(X, None, reset=False))
        m = as_count(self.n_samples if m is None else m, "m, the number of samples,", most=MOST_SAMPLES)
        draws = self._components(m, self._seed if seed is None else as_seed(seed), baselines)
        for rows in chunks_of(len(x), m, self._generators[0]):
            some = x[rows]
            yield torch.cat([draw(some) for draw in draws], dim=1)

    def _components(self, m: int, seed: int, baselines: bool) -> list[Callable[[Tensor], Tensor]]:
        """What draws event times for covariates: the generators, and baselines if these are wanted."""
        device, choice = pick_device(self.device), self._mixture if baselines else MixtureChoice()
        tasks = [self._task(network.to(device).eval(), device) for network in self._generators]
        weights = [(1 - choice.total) / len(tasks)] * len(tasks) + list(choice.weights)
        offset = float(np.random.default_rng(seed).random()) if choice.baselines else 0.5
        sizes = shares(m, weights, offset)
        drawn = [
            self._draws_of(task, NoisePool(task.network, size, mix_seed(seed, i), task.mixed))
            for i, (task, size) in enumerate(zip(tasks, sizes, strict=False))
            if size
        ]
        for i, (baseline, size) in enumerate(zip(choice.baselines, sizes[len(tasks) :], strict=True)):
            if size:
                part = mix_seed(seed, len(tasks) + i)
                drawn.append(baseline.to(device).pool(self._structure, size, part).draw)
        return drawn

    def _draws_of(self, task: EngressionTask, pool: NoisePool) -> Callable[[Tensor], Tensor]:
        def draw(x: Tensor) -> Tensor:
            times: Tensor = self._times.inverse(task.event_times(pool.draw(x), pool.uniform(x)))
            return times

        return draw

    def score(
        self,
        X: Array | None,
        y: OutcomeLike | SemiCompetingRisks,
        sample_weight: Array | None = None,
        *,
        censoring: Distribution | None = None,
    ) -> float:
        """Compute minus the mean censored energy score (higher is better, as in scikit-learn).

        Parameters
        ----------
        X : array or frame, (n, d), or None
            Covariates.
        y : RightCensored, SemiCompetingRisks, structured array or frame
            The outcome, of the kind that the model was fitted to.
        sample_weight : array, (n,), optional
            Weights of the subjects in the mean.
        censoring : Distribution, optional
            The censoring distribution of these subjects. If omitted: known censoring times, or else the
            distribution that was used in training, up to the end of its follow-up. Semi-competing risks
            that nothing censors are scored up to their last time.

        Returns
        -------
        float
            Minus the mean loss.
        """
        from censcore.scores import energy_score

        self.check_fitted()
        outcome, distribution = self._within_follow_up(X, self._other_outcome(y), censoring)
        horizon = None
        if isinstance(outcome, SemiCompetingRisks) and bool(
            (distribution.marginal(0).mass_at_infinity() > 0).any()
        ):
            horizon = float(outcome.time.max())  # without an end, events that never happen are infinitely far
        losses = energy_score(outcome, Ensemble(self.sample(X)), distribution, fair=True, horizon=horizon)
        weight = None if sample_weight is None else check_weights(sample_weight, len(outcome))
        return -float(np.average(losses, weights=weight))
