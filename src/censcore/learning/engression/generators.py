"""What the generators of censored engression share: their shape and loss, and the units of their data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from censcore._arrays import to_numpy
from censcore.distributions import Ensemble
from censcore.estimators.covariates import check_weights
from censcore.learning.data.standardised import OnDemand, Standardised, Subjects, blocks
from censcore.learning.engression.censoring_quantiles import censoring_quantiles
from censcore.learning.engression.generator import Generator
from censcore.learning.engression.loss import EngressionTask, scale_of_loss
from censcore.learning.engression.time_scale import TimeScale
from censcore.learning.neural_estimator import followed_outcome
from censcore.learning.settings import Training
from censcore.learning.structures import Structure
from censcore.learning.training.task import held_out_losses
from censcore.outcomes import SemiCompetingRisks
from censcore.scores.inputs import scoring_inputs

__all__ = ["Generators", "is_worse"]

# of the penalty on covariates: in units of the noise, and for more covariates than these
_SPARSITY, _FEW_COVARIATES = 0.6, 5
_AT_ONCE, _COMPARED = 1024, 10_000  # held-out subjects


@dataclass(frozen=True)
class Generators:
    """Generators of one shape, structure and unit of time."""

    n_inputs: int
    training: Training
    structure: Structure
    times: TimeScale

    def task(
        self, network: Generator, device: torch.device, sparsity: float | Tensor = 0.0
    ) -> EngressionTask:
        """A generator and its loss."""
        precision = self.training.precision
        mixed = precision == "bfloat16" or (precision == "auto" and device.type == "cuda")
        scale = torch.tensor(self.structure.scale(self.times.centre), device=device)
        samples, beta = int(self.training.samples), self.training.beta
        return EngressionTask(
            network, scale, samples, beta, mixed, self.structure, self.times.bounded, sparsity
        )

    def penalty(self, subjects: Any) -> float:
        r"""Weight of the penalty on covariates, of the order of the noise in the gradient of the loss.

        That of a covariate without effect is :math:`s/\sqrt n` with the scale s of the loss, and the largest
        of many grows with the root of the logarithm of their number.
        """
        if not isinstance(self.training.sparsity, str):
            return float(self.training.sparsity)
        excess = np.log(max(1.0, self.n_inputs / _FEW_COVARIATES))
        scale = scale_of_loss(subjects.sample["y"], subjects.sample["c"], self.times.bounded)
        return _SPARSITY * scale * float(np.sqrt(excess / subjects.n))

    def tensors(
        self, x: Standardised, y: Any, C: Any, mask: np.ndarray | None = None, weight: Any = None
    ) -> dict[str, Tensor | OnDemand]:
        """Covariates, times and quantiles of C; times that do not count are events at time zero."""
        time = to_numpy(y.known_time if isinstance(y, SemiCompetingRisks) else y.time).reshape(len(y), y.k)
        followed = followed_outcome(y)
        anything = Ensemble(np.zeros((1, 1, *followed.shape[1:])))  # to check y and C against each other
        inputs = scoring_inputs(followed, anything, C, joint=True)
        scaled = np.empty(time.shape, dtype=np.float32)
        for rows in blocks(*time.shape):
            scaled[rows] = self.times.forward(time[rows])
        data: dict[str, Tensor | OnDemand] = {
            "x": x,
            "y": torch.from_numpy(scaled),
            "c": censoring_quantiles(inputs.y, inputs.C, self.times.forward),
        }
        if mask is not None:
            data["mask"] = torch.from_numpy(mask)
        if weight is not None:
            data["weight"] = torch.from_numpy(check_weights(weight, len(y)).astype(np.float32))
        return data


def is_worse(again: EngressionTask, first: EngressionTask, held_out: Subjects, seed: int) -> bool:
    """Whether a generator that has seen the held-out subjects forecasts them worse than one that has not.

    Then its training has failed, for instance where few have events and all draws are late.
    """
    losses = [
        held_out_losses(task, task.network, held_out.taken, seed=seed, at_once=_AT_ONCE, most=_COMPARED)
        for task in (again, first)
    ]
    worse = losses[0] - losses[1]
    return float(worse.mean()) > float(worse.std()) / np.sqrt(len(worse))
