"""How the generators of censored engression are trained."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch

from censcore._validation import as_count, check_flag, check_kind
from censcore.learning.data.standardised import Data
from censcore.learning.data.streamed import StreamedRows, sample_of, subjects_in
from censcore.learning.engression.generator import Generator
from censcore.learning.engression.loss import EngressionTask, bounded
from censcore.learning.engression.outcome_data import OutcomeData
from censcore.learning.engression.settings import Network, Training
from censcore.learning.model_contents import MOST_SAMPLES
from censcore.learning.training.devices import pick_device
from censcore.learning.training.held_out import held_out_losses
from censcore.learning.training.history import History
from censcore.learning.training.loop import Callback

__all__ = ["Fold", "GeneratorTraining"]

# of the penalty on covariates: in units of the noise, and for more covariates than these
_SPARSITY, _FEW_COVARIATES = 0.6, 5
_SCALE_SUBJECTS = 10_000  # at most, whose times tell the scale of the loss

_AT_ONCE = 1024  # subjects
_MOST_NETWORKS = 1000

_log = logging.getLogger("censcore")


@dataclass(frozen=True)
class Fold:
    """Subjects that train a generator, and those held out for its validation.

    Attributes
    ----------
    training, validation : Data
        Their data, and those of the others, if any.
    groups : array or None
        Groups of the training subjects.
    """

    training: Data | StreamedRows
    validation: Data | None
    groups: np.ndarray | None


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
        """Train a generator on every fold."""
        device = pick_device(self.device)
        self._generators = []
        tasks: list[EngressionTask] = []
        histories: list[History] = []
        for i, fold in enumerate(folds):
            seed = self._seed + 7919 * i
            task = self._task(self._new_generator(seed), device, self._penalty(fold.training))
            checkpoint = (
                self.checkpoint if self.checkpoint is None or i == 0 else Path(f"{self.checkpoint}.{i}")
            )
            again = fold.validation is None and histories and folds[0].validation is not None
            epochs = self._epochs_again(histories[0], folds[0], fold) if again else None
            history = self._train(
                task, fold.training, fold.validation, fold.groups, callbacks, seed, checkpoint, epochs
            )
            histories.append(history)
            tasks.append(task)
            self._generators.append(task.network)
            if history.interrupted:
                break
        self._fold_networks = list(self._generators)
        if len(tasks) > 1 and folds[0].validation is not None and folds[-1].validation is None:
            failed = _is_worse(tasks[-1], tasks[0], folds[0].validation, self._seed)
            self._generators = self._generators[:1] if failed else self._generators[1:]
            if failed:
                _log.info("censored engression: the generator trained on four fifths of the subjects is kept")
        self.history_, self.histories_ = histories[0], histories

    def _epochs_again(self, first: History, some: Fold, everybody: Fold) -> int:
        """Epochs of the training on all subjects, which nothing stops: as many steps as the first took."""
        epochs = self.epochs if self.patience is None else first.kept_epoch + 1
        return max(1, round(epochs * subjects_in(some.training) / subjects_in(everybody.training)))

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

    def _task(self, network: Generator, device: torch.device, sparsity: float = 0.0) -> EngressionTask:
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


def _is_auto(setting: Any) -> bool:
    return isinstance(setting, str) and setting == "auto"


def _is_worse(again: EngressionTask, first: EngressionTask, held_out: Data, seed: int) -> bool:
    """Whether a generator that has seen the held-out subjects forecasts them worse than one that has not.

    Then its training has failed, for instance where few have events and all draws are late.
    """
    losses = [
        held_out_losses(task, task.network, held_out, seed=seed, at_once=_AT_ONCE, most=_SCALE_SUBJECTS)
        for task in (again, first)
    ]
    worse = losses[0] - losses[1]
    return float(worse.mean()) > float(worse.std()) / np.sqrt(len(worse))
