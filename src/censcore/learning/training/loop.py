"""One training loop for every neural model: seeded, resumable, interruptible, on one process or several."""

from __future__ import annotations

import math
import os
from collections.abc import Iterator, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from censcore.exceptions import InvalidInputError
from censcore.learning.data.standardised import Data, gather
from censcore.learning.data.streamed import StreamedRows, subjects_in
from censcore.learning.training.batches import Batches
from censcore.learning.training.checkpoints import TrainingState, among_best, digests, identity_of
from censcore.learning.training.cuda_graphs import GraphedEpochs, fits_on_device
from censcore.learning.training.exchange import SharedGradient, rank_and_processes, share_of
from censcore.learning.training.history import Epoch, History
from censcore.learning.training.recipe import Recipe
from censcore.learning.training.task import Callback, Rows, Task, held_out_losses, mix_seed, seeded
from censcore.progress import ProgressBar

__all__ = ["Callback", "Epoch", "History", "Recipe", "Rows", "Task", "drive", "finite", "mix_seed", "train"]


def train(
    task: Task,
    rows: Data | StreamedRows,
    validation: Data | None,
    recipe: Recipe,
    *,
    seed: int,
    device: torch.device,
    groups: np.ndarray | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> History:
    """Train ``task.network`` in place and leave it with the best weights.

    Parameters
    ----------
    task : Task
        What is trained.
    rows, validation : mappings of tensors with the subjects as first axis
        Training and validation data; an entry ``"weight"`` holds weights. They may stay in CPU memory, and
        covariates in a mapped file (:class:`~censcore.learning.data.standardised.Standardised`):
        batches are copied to the device. Training data that are too large for that are read again in every
        epoch (:class:`~censcore.learning.data.streamed.StreamedRows`).
    recipe : Recipe
        How to train.
    seed : int
        The order of subjects, the noise and everything else random follow from it, epoch by epoch.
    device : torch.device
        Where to compute.
    groups : array, optional
        No two subjects of one group share a batch.
    callbacks : sequence of callables
        Called after every epoch with ``(epoch, network)``; one that returns True stops the training.
    checkpoint : path, optional
        State after every epoch. If the file exists, training goes on from it and ends where an uninterrupted
        run would have ended.
    progress : bool
        Show a progress bar.

    Returns
    -------
    History
        Losses by epoch.

    Examples
    --------
    Linear regression as a task without random numbers:

    >>> class Squares:
    ...     network = nn.Linear(2, 1)
    ...
    ...     def draw(self, n, generator, device, validating=False):
    ...         return {}
    ...
    ...     def loss(self, network, rows, random):
    ...         return (network(rows["x"])[:, 0] - rows["y"]) ** 2
    >>> x = torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
    >>> recipe = Recipe(epochs=30, batch_size=20, learning_rate=0.05)
    >>> history = train(Squares(), {"x": x, "y": x.sum(1)}, None, recipe, seed=0, device=torch.device("cpu"))
    >>> history.epochs[-1].train_loss < 0.01
    True
    """
    run = _Run(task, rows, validation, recipe, seed, device, groups)
    drive(run, callbacks, checkpoint, progress)
    run.state.finish()
    return run.state.history


def drive(
    run: Any, callbacks: Sequence[Callback], checkpoint: str | os.PathLike[str] | None, progress: bool
) -> None:
    """Train epoch by epoch: from a checkpoint on, until the run is finished or Ctrl-C ends it."""
    first = run.rank == 0
    if checkpoint is not None and Path(checkpoint).exists():
        run.resume(checkpoint)
    with ProgressBar("training", run.recipe.epochs, run.next_epoch, first and progress) as bar:
        try:
            while run.next_epoch < run.recipe.epochs and not run.finished:
                loss = run.epoch()
                if checkpoint is not None and first:
                    run.save(checkpoint)
                bar.advance(f"loss {loss:.4f}")
                run.call(callbacks)
        except KeyboardInterrupt:
            for history in run.histories:
                history.interrupted = True


def finite(loss: float, epoch: int) -> float:
    """A loss that is a number; anything else is an error."""
    if not math.isfinite(loss):
        raise InvalidInputError(
            f"The training loss became {loss} in epoch {epoch}. Lower learning_rate, or look for extreme "
            "values among the covariates and times."
        )
    return loss


class _Run:
    """One training run, epoch by epoch; what changes on the way is its ``state``."""

    def __init__(
        self,
        task: Task,
        rows: Data | StreamedRows,
        validation: Data | None,
        recipe: Recipe,
        seed: int,
        device: torch.device,
        groups: np.ndarray | None,
        captured: bool = True,
    ) -> None:
        self.task, self.rows, self.validation, self.recipe = task, rows, validation, recipe
        self.seed, self.device = seed, device
        self.rank, self.processes = rank_and_processes()
        n = subjects_in(rows)
        self.batches = Batches(n, recipe.batch_size, groups)
        network = task.network.to(device)
        self.subjects: np.ndarray | None = None
        self.shared: SharedGradient | None = None
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            if not isinstance(rows, StreamedRows):  # which has the share of this process already
                self.subjects = share_of(n, groups, self.rank, self.processes)
                own = None if groups is None else np.asarray(groups)[self.subjects]
                self.batches = Batches(len(self.subjects), recipe.batch_size, own, count=len(self.batches))
            self.shared = SharedGradient(network)
        captured &= device.type == "cuda" and not isinstance(rows, StreamedRows)
        self.state = TrainingState(network, _optimizer(network, recipe, device if captured else None))
        self.stopped, self.graphed = False, None
        if captured and not isinstance(rows, StreamedRows):  # epochs are replays of one captured step
            resident = fits_on_device(rows, device, self.processes)
            self.graphed = GraphedEpochs(
                task, recipe, self.state, rows, self.batches, resident, self.subjects, self.shared
            )

    @property
    def histories(self) -> list[History]:
        return [self.state.history]

    @property
    def next_epoch(self) -> int:
        return len(self.state.history.epochs)

    @property
    def finished(self) -> bool:
        """Whether a callback or the lack of a better loss ends the run."""
        if self.stopped or self.validation is None or self.recipe.patience is None or not self.next_epoch:
            return self.stopped
        return self.next_epoch - 1 - self.state.history.best_epoch >= self.recipe.patience

    def call(self, callbacks: Sequence[Callback]) -> None:
        epoch = self.state.history.epochs[-1]
        self.stopped = sum(callback(epoch, self.state.averaged) is True for callback in callbacks) > 0

    def epoch(self) -> float:
        """One epoch; its loss, of validation where it was due."""
        number, state = self.next_epoch, self.state
        state.network.train()
        with seeded(state.network, self._noise_seed(number), self.device):
            steps = self._eager_steps if self.graphed is None else self.graphed.run
            total, weight = steps(self.seed, number, self._noise_seed(number))
        rate = float(state.optimizer.param_groups[0]["lr"])
        validated, loss = self._validated(number), finite(float(total / weight), number)
        state.history.epochs.append(Epoch(number, loss, validated, rate, state.history.best_epoch == number))
        return loss if validated is None else validated

    def _eager_steps(self, seed: int, number: int, noise_seed: int) -> tuple[Tensor, Tensor]:
        """One epoch; sums of losses and of weights."""
        generator = torch.Generator(self.device).manual_seed(noise_seed)
        total, weight = torch.zeros((), device=self.device), torch.zeros((), device=self.device)
        for batch in self._minibatches(seed, number):
            if _size(batch) or self.shared is not None:  # every process takes part in every exchange
                loss, size = self.step(batch, generator)
                total, weight = total + loss, weight + size
        return total, weight

    def _minibatches(self, seed: int, number: int) -> Iterator[dict[str, Tensor]]:
        if isinstance(self.rows, StreamedRows):
            for batch in self.rows.epoch(seed, number, len(self.batches)):
                yield {name: value.to(self.device) for name, value in batch.items()}
            return
        for index in self.batches.epoch(seed, number):
            yield gather(self.rows, index if self.subjects is None else self.subjects[index], self.device)

    def _noise_seed(self, number: int) -> int:
        """The seed of an epoch's noise, another one in every process."""
        seed = mix_seed(self.seed, number)
        return mix_seed(seed, self.rank) if self.processes > 1 else seed

    def _validated(self, number: int) -> float | None:
        """The validation loss, if it is due; keeps the weights if it is among the best."""
        state = self.state
        if self.validation is None:
            # without validation data the last weights are kept
            state.keep(number)
            state.history.best_epoch = number
            return None
        if not self.recipe.validates(number):
            return None
        losses = self.validate()
        state.best_losses, kept = among_best(losses, state.best_losses, self.recipe.tolerance)
        if state.best_losses is losses:
            state.history.best_epoch = number
        if kept:
            state.keep(number)
        return float(losses.mean())

    def step(self, batch: Rows, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """One update; the sums of losses and of weights, over all processes."""
        n, state = _size(batch), self.state
        for group in state.optimizer.param_groups:
            group["lr"] = self.recipe.rate(state.steps, self.recipe.epochs * len(self.batches))
        random = self.task.draw(n, generator, self.device)
        weight = batch.get("weight", torch.ones(n, device=self.device))
        if self.shared is None:
            size = weight.sum()
            loss = (self.task.loss(state.network, batch, random) * weight).sum() / size
            state.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            total = loss.detach() * size
        else:
            losses = self.task.loss(state.network, batch, random) if n else weight
            self.shared.add(losses, weight)
            self.shared.exchange()
            total, size = self.shared.finish()
        if self.recipe.clip is not None:
            nn.utils.clip_grad_norm_(state.network.parameters(), self.recipe.clip)
        state.optimizer.step()
        state.steps += 1
        state.average(self.recipe.averaging)
        return total, size

    def validate(self) -> Tensor:
        """Validation losses of the averaged weights, weighted, with the same noise every time."""
        assert self.validation is not None
        return held_out_losses(
            self.task,
            self.state.averaged,
            self.validation,
            seed=mix_seed(self.seed, -1),
            at_once=self.recipe.validation_batch,
            weighted=True,
        )

    @cached_property
    def identity(self) -> dict[str, Any]:
        """What must be equal for a checkpoint to be continued."""
        data = {"training": digests(self.rows), "validation": digests(self.validation or {})}
        return identity_of(self.task, self.state.network, self.recipe, seed=self.seed, data=data)

    def save(self, path: str | os.PathLike[str]) -> None:
        self.state.save(path, self.identity)

    def resume(self, path: str | os.PathLike[str]) -> None:
        held_out = 0 if self.validation is None else subjects_in(self.validation)
        self.state.resume(path, self.identity, held_out)


def _optimizer(network: nn.Module, recipe: Recipe, graphed: torch.device | None) -> torch.optim.AdamW:
    """AdamW; a network may name parameters that weight decay leaves alone."""
    groups = [group for group in recipe.parameter_groups(network) if group["params"]]
    if graphed is None:
        return torch.optim.AdamW(groups, lr=recipe.learning_rate, foreach=True)
    for group in groups:
        group["lr"] = torch.tensor(recipe.learning_rate, device=graphed)
    # the compiler makes one kernel for all parameters of the foreach version; the fused one is closed to it
    return torch.optim.AdamW(groups, foreach=recipe.compile, fused=not recipe.compile, capturable=True)


def _size(batch: Rows) -> int:
    return len(next(iter(batch.values())))
