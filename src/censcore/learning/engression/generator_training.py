"""How the generators of censored engression are trained, and what they are mixed with."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import torch

from censcore._validation import as_count, as_number, check_flag, check_option
from censcore.learning.data.standardised import Data
from censcore.learning.data.streamed import StreamedRows, sample_of, subjects_in
from censcore.learning.engression.generator import Generator
from censcore.learning.engression.loss import EngressionTask, bounded
from censcore.learning.engression.mixture import BaselineData, Fold, MixtureChoice, choose_mixture
from censcore.learning.engression.outcome_data import OutcomeData
from censcore.learning.engression.time_scale import TRANSFORMS
from censcore.learning.engression.training_censoring import OBJECTIVES
from censcore.learning.model_contents import MOST_SAMPLES
from censcore.learning.training.devices import pick_device
from censcore.learning.training.held_out import held_out_losses
from censcore.learning.training.history import History
from censcore.learning.training.loop import Callback

__all__ = ["GeneratorTraining"]

# of the penalty on covariates: in units of the noise, and for more covariates than these
_SPARSITY, _FEW_COVARIATES = 0.6, 5
_SCALE_SUBJECTS = 10_000  # at most, whose times tell the scale of the loss

_AT_ONCE = 1024  # subjects
_MOST_GENERATORS = 1000

_log = logging.getLogger("censcore")


class GeneratorTraining(OutcomeData):
    """Generators of the shape that the parameters describe, trained on folds of the subjects."""

    width: int
    depth: int
    noise_dim: int
    noise_everywhere: bool
    activation: str
    residual: bool
    layer_norm: bool
    skip: bool
    dropout: float
    output: str
    beta: float
    samples: int
    sparsity: float | str
    baseline: bool
    n_generators: int | str
    precision: str
    ordered: bool
    n_samples: int
    _generators: list[Generator]
    _fold_networks: list[Generator]  # before one that failed is left out
    _mixture: MixtureChoice
    _baseline_sample: int | None  # subjects that baselines were fitted to, where not all

    def _check_settings(self) -> None:
        check_option(self.objective, "objective", OBJECTIVES)
        check_option(self.time_transform, "time_transform", TRANSFORMS)
        check_option(self.precision, "precision", ("auto", "float32", "bfloat16"))
        for name in ("noise_everywhere", "residual", "layer_norm", "skip", "ordered", "baseline"):
            check_flag(getattr(self, name), name)
        as_count(self.samples, "samples", least=2, most=MOST_SAMPLES)
        as_count(self.n_samples, "n_samples", most=MOST_SAMPLES)
        if not _is_auto(self.n_generators):
            as_count(self.n_generators, "n_generators", most=_MOST_GENERATORS)
        if not _is_auto(self.sparsity):
            as_number(self.sparsity, "sparsity", least=0)
        as_number(self.beta, "beta", above=0, below=2)

    def _fit_folds(
        self, folds: list[Fold], callbacks: Sequence[Callback], data: Callable[[], BaselineData]
    ) -> None:
        """Train the generators, and choose what they are mixed with."""
        tasks, histories = self._fit_generators(folds, callbacks)
        self._mixture = MixtureChoice()
        if self.baseline:
            self._mixture = choose_mixture(
                data(), folds, tasks, self._times, self._seed, len(self._generators)
            )
            _log.info("baseline of censored engression: %s", self._mixture.words)
        self.history_, self.histories_ = histories[0], histories

    def _fit_generators(
        self, folds: Sequence[Fold], callbacks: Sequence[Callback]
    ) -> tuple[list[EngressionTask], list[History]]:
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
        return tasks, histories

    def _epochs_again(self, first: History, some: Fold, everybody: Fold) -> int:
        """Epochs of the training on all subjects, which nothing stops: as many steps as the first took."""
        epochs = self.epochs if self.patience is None else first.kept_epoch + 1
        return max(1, round(epochs * subjects_in(some.training) / subjects_in(everybody.training)))

    def _penalty(self, rows: Data | StreamedRows) -> float:
        r"""Weight of the penalty on covariates, of the order of the noise in the gradient of the loss.

        That of a covariate without effect is :math:`s/\sqrt n` with the scale s of the loss, and the largest
        of many grows with the root of the logarithm of their number.
        """
        if not _is_auto(self.sparsity):
            return float(self.sparsity)
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
                width=self.width,
                depth=self.depth,
                noise_dim=self.noise_dim,
                noise_everywhere=self.noise_everywhere,
                activation=self.activation,
                residual=self.residual,
                layer_norm=self.layer_norm,
                skip=self.skip,
                dropout=self.dropout,
                output=self.output,
                logits=self._structure.logits,
            )

    def _task(self, network: Generator, device: torch.device, sparsity: float = 0.0) -> EngressionTask:
        mixed = self.precision == "bfloat16" or (self.precision == "auto" and device.type == "cuda")
        scale = torch.tensor(self._structure.scale(self._times.centre), device=device)
        samples = int(self.samples)
        return EngressionTask(
            network, scale, samples, self.beta, mixed, self._structure, self._times.bounded, sparsity
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
