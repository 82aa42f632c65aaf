"""One training loop for every neural model: networks side by side, seeded, resumable, interruptible."""

from __future__ import annotations

import copy
import math
import os
from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor, nn

from censcore.exceptions import InvalidInputError
from censcore.learning.data.standardised import Data, Fold, Subjects, gather
from censcore.learning.training.checkpoints import Checkpoint, identity_of, restore, tensors_of
from censcore.learning.training.cuda_graphs import CapturedEpochs, fits_on_device
from censcore.learning.training.minibatches import FoldBatches, filled
from censcore.learning.training.side_by_side import by_network, clip_gradients, fill
from censcore.learning.training.task import (
    Callback,
    Epoch,
    History,
    Recipe,
    Rows,
    Task,
    held_out_losses,
    mix_seed,
    seeded,
)
from censcore.progress import ProgressBar


def train(
    task: Task,
    rows: Data,
    validation: Data | None,
    recipe: Recipe,
    *,
    seed: int,
    device: torch.device,
    groups: np.ndarray | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> History:
    """Train ``task.network`` in place and leave it with the best weights.

    Parameters
    ----------
    task : Task
        What is trained.
    rows, validation : mappings of tensors with the subjects as first axis
        Training and validation data; an entry ``"weight"`` holds weights. They may stay in CPU memory, and
        covariates in a mapped file (:class:`~censcore.learning.data.standardised.Standardised`):
        batches are copied to the device.
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
    progress : bool, optional
        Show a progress bar; by default in terminals and notebooks, after two seconds.

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
    fold = Fold(Subjects(rows), None if validation is None else Subjects(validation), groups)
    run = Run(task, [task.network], [fold], recipe, [seed], device)
    return run.train(callbacks, checkpoint, progress)[0]


class Run:
    """The training of networks side by side: themselves, the moving average of their weights, those to keep.

    The task is that of the only network, or of a stack of them, each of which is trained as it would be
    alone: many small products of matrices are then few larger ones. Their folds share data, and the subjects
    of each follow each other in a batch. A network without subjects for validation keeps its last weights;
    others keep averaged weights whenever the validation loss is among the best, until patience ends.
    """

    def __init__(
        self,
        task: Task,
        networks: Sequence[nn.Module],
        folds: Sequence[Fold],
        recipe: Recipe,
        seeds: Sequence[int],
        device: torch.device,
    ) -> None:
        self.task, self.networks, self.recipe, self.seeds, self.device = task, networks, recipe, seeds, device
        self.network, self.count = task.network.to(device), len(networks)
        self.averaged, self.kept = (copy.deepcopy(self.network).requires_grad_(False) for _ in range(2))
        self.live, self.mean = list(self.network.parameters()), list(self.averaged.parameters())
        self.buffers = list(zip(self.averaged.buffers(), self.network.buffers(), strict=True))
        self.data, self.held_out = folds[0].training.data, [fold.validation for fold in folds]
        self.batches = FoldBatches(folds, recipe.batch_size, seeds)
        self.histories = [History() for _ in folds]
        self.best: list[Tensor | None] = [None] * len(folds)  # validation losses of the best epoch
        self.going, self.steps = np.ones(len(folds), dtype=bool), 0
        captured = device.type == "cuda" and fits_on_device(self.data, device)
        self.optimizer = _optimizer(self.network, recipe, device, captured)
        self.captured = CapturedEpochs(self) if captured else None

    def train(
        self,
        callbacks: Sequence[Callback] = (),
        checkpoint: str | os.PathLike[str] | None = None,
        progress: bool | None = None,
    ) -> list[History]:
        """Train from a checkpoint on, until all have stopped or Ctrl-C ends it; keep the best weights."""
        kind = f"checkpoint of {self.count} networks"
        file = None if checkpoint is None else Checkpoint(checkpoint, kind, identity_of(self))
        if file is not None and file.path.exists():
            with file.state() as state:
                restore(self, *state)
                self.going = np.array([self._has_patience(i) for i in range(self.count)])
        with ProgressBar("training", self.recipe.epochs, self.next_epoch, progress) as bar:
            try:
                while self.going.any() and self.next_epoch < self.recipe.epochs:
                    self.epoch()
                    if file is not None:
                        file.save(tensors_of(self), {"histories": self.histories, "steps": self.steps})
                    last = [history.epochs[-1] for history in self.histories]
                    bar.advance(f"loss {np.mean([epoch.train_loss for epoch in last]):.4f}")
                    for i in np.flatnonzero(self.going).tolist() if callbacks else ():
                        network = copy.deepcopy(self.networks[i]).to(self.device).requires_grad_(False)
                        fill(network, self.averaged, self.count, i)
                        self.going[i] &= not sum(callback(last[i], network) is True for callback in callbacks)
            except KeyboardInterrupt:
                for history in self.histories:
                    history.interrupted = True
        for i, network in enumerate(self.networks):
            fill(network.to(self.device), self.kept, self.count, i)
        return self.histories

    # ---- epochs --------------------------------------------------------------------------------

    @property
    def next_epoch(self) -> int:
        """Count the epochs so far."""
        return max(len(history.epochs) for history in self.histories)

    def epoch(self) -> None:
        """Train for an epoch, and validate where that is due."""
        number = self.next_epoch
        seed = mix_seed(self.seeds[0], number)
        self.network.train()
        steps = self._steps if self.captured is None else self.captured.run
        with seeded(self.network, seed, self.device):
            losses, weights = steps(number, seed)
        means, rate = (losses / weights).tolist(), float(self.optimizer.param_groups[0]["lr"])
        due = any(part is not None for part in self.held_out) and self.recipe.validates(number)
        held_out = self.validate() if due else [None] * self.count
        for i in np.flatnonzero(self.going).tolist():
            self._note(i, means[i], rate, held_out[i])

    def _steps(self, number: int, seed: int) -> Tensor:
        """Take the steps of an epoch; return sums of losses and of weights, (2, networks)."""
        generator = torch.Generator(self.device).manual_seed(seed)
        sums, steps = torch.zeros(2, self.count, device=self.device), self.recipe.epochs * len(self.batches)
        for index, share in self.batches.epoch(number):
            if not index.size:
                continue
            for group in self.optimizer.param_groups:
                group["lr"] = self.recipe.rate(self.steps, steps)
            batch = gather(self.data, index.ravel(), self.device)
            weight = torch.from_numpy(share).to(self.device)
            sums += self.gradient(self.task.loss, batch, weight, generator)
            self.steps += 1
            self.update(self.recipe.memory(self.steps))
        return sums

    def gradient(
        self, loss: Callable[..., Tensor], rows: Rows, share: Tensor, generator: torch.Generator
    ) -> Tensor:
        """Compute the gradient of each mean loss; return sums of losses and of weights, (2, networks)."""
        weight = share * rows["weight"].reshape(share.shape) if "weight" in rows else share
        random = self.task.draw(share.numel(), generator, self.device)
        losses = loss(self.network, rows, random).reshape(share.shape)
        total, size = (losses * weight).sum(dim=1), weight.sum(dim=1)
        self.optimizer.zero_grad(set_to_none=True)
        (total / size.clamp(min=torch.finfo(size.dtype).tiny)).sum().backward()
        return torch.stack([total.detach(), size])

    def update(self, memory: float | Tensor) -> None:
        """Move the weights against the gradient, and their average after them."""
        if self.recipe.clip is not None:
            clip_gradients(self.live, self.count, self.recipe.clip)
        self.optimizer.step()
        with torch.no_grad():
            for mean, live in zip(self.mean, self.live, strict=True):
                mean.lerp_(live, 1 - memory)
            for old, new in self.buffers:
                old.copy_(new)

    # ---- validation ----------------------------------------------------------------------------

    def validate(self) -> list[Tensor | None]:
        """Compute validation losses of the averaged weights, weighted, with the same noise every time."""
        parts = [part.numbers if part is not None else np.zeros(1, int) for part in self.held_out]
        data = next(part.data for part in self.held_out if part is not None)
        seed, at_once = mix_seed(self.seeds[0], -1), self.recipe.validation_batch
        losses, weights = held_out_losses(
            self.task, self.averaged, data, filled(parts)[0], seed=seed, at_once=at_once
        )
        found: list[Tensor | None] = []
        for i, part in enumerate(self.held_out):
            own, weight = losses[i, : len(parts[i])], weights[i, : len(parts[i])]
            found.append(None if part is None else own * weight * (len(own) / weight.sum()))
        return found

    def _note(self, i: int, loss: float, rate: float, losses: Tensor | None) -> None:
        """Add an epoch to the history of network i, with its validation losses if they were due."""
        number, history = len(self.histories[i].epochs), self.histories[i]
        if not math.isfinite(loss):
            raise InvalidInputError(
                f"The training loss became {loss} in epoch {number}. Lower learning_rate, or look for "
                "extreme values among the covariates and times."
            )
        keep = best = self.held_out[i] is None
        if losses is not None:
            self.best[i], keep = _among_best(losses, self.best[i], self.recipe.tolerance)
            best = self.best[i] is losses
        if best:
            history.best_epoch = number
        if keep:
            history.kept_epoch = number
            self._keep(i)
        validated = None if losses is None else float(losses.mean())
        history.epochs.append(Epoch(number, loss, validated, rate, best))
        self.going[i] = self._has_patience(i)

    def _keep(self, i: int) -> None:
        """Keep the averaged weights of network i."""
        for kept, mean in zip(self.kept.parameters(), self.mean, strict=True):
            by_network(kept, self.count)[i].copy_(by_network(mean, self.count)[i])
        for old, new in zip(self.kept.buffers(), self.averaged.buffers(), strict=True):
            old.copy_(new)

    def _has_patience(self, i: int) -> bool:
        patience, history = self.recipe.patience, self.histories[i]
        if patience is None or self.held_out[i] is None or not history.epochs:
            return True
        return len(history.epochs) - 1 - history.best_epoch < patience


def _among_best(losses: Tensor, best: Tensor | None, tolerance: float) -> tuple[Tensor, bool]:
    """Return the best losses so far, and whether these exceed them by few enough standard errors."""
    if best is None or float(losses.mean()) < float(best.mean()):
        best = losses
    worse = losses - best
    error = float(worse.std()) / math.sqrt(len(worse)) if len(worse) > 1 else 0.0
    return best, float(worse.mean()) <= tolerance * error


def _optimizer(network: nn.Module, recipe: Recipe, device: torch.device, captured: bool) -> torch.optim.AdamW:
    """Make AdamW; a network may name parameters that weight decay leaves alone."""
    groups = [group for group in recipe.parameter_groups(network) if group["params"]]
    if not captured:
        fused = True if device.type in ("cpu", "cuda") else None
        return torch.optim.AdamW(groups, lr=recipe.learning_rate, fused=fused)
    for group in groups:
        group["lr"] = torch.tensor(recipe.learning_rate, device=device)
    # the compiler makes one kernel for all parameters of the foreach version; the fused one is closed to it
    return torch.optim.AdamW(groups, foreach=recipe.compile, fused=not recipe.compile, capturable=True)
