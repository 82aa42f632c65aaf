"""How the generators of censored engression are trained."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from censcore._validation import as_count, check_flag, check_kind
from censcore.learning.data.standardised import Data, Fold, Subjects
from censcore.learning.data.streamed import StreamedRows, sample_of, subjects_in
from censcore.learning.engression.generator import Generator
from censcore.learning.engression.loss import EngressionTask, bounded
from censcore.learning.engression.outcome_data import OutcomeData
from censcore.learning.engression.settings import Network, Training
from censcore.learning.model_contents import MOST_SAMPLES
from censcore.learning.training.devices import pick_device
from censcore.learning.training.exchange import rank_and_processes
from censcore.learning.training.held_out import held_out_losses
from censcore.learning.training.history import History
from censcore.learning.training.side_by_side import train_side_by_side
from censcore.learning.training.stacks import stacked
from censcore.learning.training.task import Callback

__all__ = ["GeneratorTraining"]

# of the penalty on covariates: in units of the noise, and for more covariates than these
_SPARSITY, _FEW_COVARIATES = 0.6, 5
_SCALE_SUBJECTS = 10_000  # at most, whose times tell the scale of the loss

_AT_ONCE = 1024  # subjects
_MOST_NETWORKS = 1000

_log = logging.getLogger("censcore")


class GeneratorTraining(OutcomeData):
    """Generators of the shape that the parameters describe, trained on folds of the subjects."""

    network: Network | None
    training: Training | None
    n_networks: int | str
    n_samples: int
    _generators: list[Generator]
    _fold_networks: list[Generator]  # before one that failed is left out

    def _check_settings(self) -> None:
        check_kind(self._network, "network", Network, "Network(width=..., ...)")
        check_kind(self._training, "training", Training, "Training(learning_rate=..., ...)")
        self._network.check()
        self._training.check()
        check_flag(self.ordered, "ordered")
        as_count(self._training.samples, "samples", least=2, most=MOST_SAMPLES)
        as_count(self.n_samples, "n_samples", most=MOST_SAMPLES)
        if not _is_auto(self.n_networks):
            as_count(self.n_networks, "n_networks", most=_MOST_NETWORKS)

    @property
    def _network(self) -> Network:
        return Network() if self.network is None else self.network

    @property
    def _training(self) -> Training:
        return Training() if self.training is None else self.training

    def _fit_generators(self, folds: Sequence[Fold], callbacks: Sequence[Callback]) -> None:
        """Train a generator on every fold, side by side where they share data in memory."""
        held_out = folds[0].validation
        again = len(folds) > 1 and held_out is not None and folds[-1].validation is None
        first = folds[:1] if again else folds
        device = pick_device(self.device)
        seeds = [self._seed + 7919 * i for i in range(len(folds))]
        self._generators = [self._new_generator(seed) for seed in seeds]
        if len(first) > 1 and _fits_side_by_side(first[0], device):
            self.histories_ = self._train_together(first, seeds, device, callbacks)
        else:
            self.histories_ = self._train_in_turn(folds, seeds, callbacks, device)
            self._generators = self._generators[: len(self.histories_)]
        self._fold_networks = list(self._generators)
        if again and held_out is not None and len(self._generators) > 1:
            networks = [self._task(network, device) for network in self._generators]
            failed = _is_worse(networks[1], networks[0], held_out, self._seed)
            self._generators = self._generators[:1] if failed else self._generators[1:]
            if failed:
                _log.info("censored engression: the generator trained on four fifths of the subjects is kept")
        self.history_ = self.histories_[0]

    def _train_together(
        self, folds: Sequence[Fold], seeds: Sequence[int], device: torch.device, callbacks: Sequence[Callback]
    ) -> list[History]:
        stack: Any = stacked(self._generators)
        sparsity = torch.tensor([self._penalty(fold.training.taken) for fold in folds])
        recipe = self._recipe(min(len(fold.training.numbers) for fold in folds))
        task = self._task(stack, device, sparsity)
        return train_side_by_side(
            task,
            self._generators,
            folds,
            recipe,
            seeds=seeds,
            device=device,
            callbacks=callbacks,
            checkpoint=self.checkpoint,
            progress=self.progress,
        )

    def _train_in_turn(
        self, folds: Sequence[Fold], seeds: Sequence[int], callbacks: Sequence[Callback], device: torch.device
    ) -> list[History]:
        histories: list[History] = []
        for i, (fold, network, seed) in enumerate(zip(folds, self._generators, seeds, strict=True)):
            rows = fold.training.taken if isinstance(fold.training, Subjects) else fold.training
            checkpoint = (
                self.checkpoint if self.checkpoint is None or i == 0 else Path(f"{self.checkpoint}.{i}")
            )
            again = fold.validation is None and i > 0 and folds[0].validation is not None
            history = self._train(
                self._task(network, device, self._penalty(rows)),
                rows,
                None if fold.validation is None else fold.validation.taken,
                fold.groups,
                callbacks,
                seed,
                checkpoint,
                self._epochs_again(histories[0], folds[0], rows) if again else None,
            )
            histories.append(history)
            if history.interrupted:
                break
        return histories

    def _epochs_again(self, first: History, some: Fold, everybody: Data) -> int:
        """Epochs of the training on all subjects, which nothing stops: as many steps as the first took."""
        epochs = self.epochs if self.patience is None else first.kept_epoch + 1
        return max(1, round(epochs * len(some.training.numbers) / subjects_in(everybody)))

    def _penalty(self, rows: Data | StreamedRows) -> float:
        r"""Weight of the penalty on covariates, of the order of the noise in the gradient of the loss.

        That of a covariate without effect is :math:`s/\sqrt n` with the scale s of the loss, and the largest
        of many grows with the root of the logarithm of their number.
        """
        if not _is_auto(self._training.sparsity):
            return float(self._training.sparsity)
        excess = np.log(max(1.0, self._n_inputs / _FEW_COVARIATES))
        scale = self._scale_of_loss(sample_of(rows))
        return _SPARSITY * scale * float(np.sqrt(excess / subjects_in(rows)))

    def _scale_of_loss(self, rows: Data) -> float:
        """Half the mean distance of two subjects up to the earlier of their censoring times.

        Differences of C are no part of the loss: with late and early ends of follow-up they would be most of
        the distance between observed times.
        """
        y, c = rows["y"][:_SCALE_SUBJECTS], rows["c"][:_SCALE_SUBJECTS]
        c = c[:, c.shape[1] // 2]  # the median of C given the observation
        if self._times.bounded:
            y, c = bounded(y), bounded(c)
        half = len(y) // 2
        end = torch.minimum(c, c.roll(half, 0))
        distance = torch.minimum(y, end) - torch.minimum(y.roll(half, 0), end)
        return 0.5 * float(distance.square().sum(dim=1).sqrt().mean())

    def _new_generator(self, seed: int) -> Generator:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(seed)
            return Generator(
                self._n_inputs,
                self._structure.outputs,
                **asdict(self._network),
                logits=self._structure.logits,
            )

    def _task(
        self, network: Generator, device: torch.device, sparsity: float | Tensor = 0.0
    ) -> EngressionTask:
        mixed = self._training.precision == "bfloat16" or (
            self._training.precision == "auto" and device.type == "cuda"
        )
        scale = torch.tensor(self._structure.scale(self._times.centre), device=device)
        samples = int(self._training.samples)
        return EngressionTask(
            network,
            scale,
            samples,
            self._training.beta,
            mixed,
            self._structure,
            self._times.bounded,
            sparsity,
        )


def _fits_side_by_side(fold: Fold, device: torch.device) -> bool:
    """On a GPU, recorded steps of one network after the other are faster."""
    in_memory = isinstance(fold.training, Subjects)
    return in_memory and device.type == "cpu" and rank_and_processes()[1] == 1


def _is_auto(setting: Any) -> bool:
    return isinstance(setting, str) and setting == "auto"


def _is_worse(again: EngressionTask, first: EngressionTask, held_out: Subjects, seed: int) -> bool:
    """Whether a generator that has seen the held-out subjects forecasts them worse than one that has not.

    Then its training has failed, for instance where few have events and all draws are late.
    """
    losses = [
        held_out_losses(task, task.network, held_out.taken, seed=seed, at_once=_AT_ONCE, most=_SCALE_SUBJECTS)
        for task in (again, first)
    ]
    worse = losses[0] - losses[1]
    return float(worse.mean()) > float(worse.std()) / np.sqrt(len(worse))
