"""Several networks of one shape, trained side by side as one stack on subjects of their own."""

from __future__ import annotations

import copy
import operator
import os
from collections.abc import Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from censcore.learning.data.first_pass import content_hash
from censcore.learning.data.standardised import Data, Fold, gather
from censcore.learning.model_files import write_model_file
from censcore.learning.training.batches import Batches
from censcore.learning.training.checkpoints import among_best, checkpoint_of, digests, identity_of
from censcore.learning.training.history import Epoch, History
from censcore.learning.training.loop import drive, finite
from censcore.learning.training.recipe import Recipe
from censcore.learning.training.stacks import StackedAdamW, fill, flat_weights, parts_of
from censcore.learning.training.task import Callback, Task, mix_seed, seeded

__all__ = ["train_side_by_side"]

_CHECKPOINT = "checkpoint of networks"


def train_side_by_side(
    task: Task,
    networks: Sequence[nn.Module],
    folds: Sequence[Fold],
    recipe: Recipe,
    *,
    seeds: Sequence[int],
    device: torch.device,
    callbacks: Sequence[Callback] = (),
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> list[History]:
    """Train networks in place, each as :func:`~censcore.learning.train` would, in steps of all of them.

    Many small products of matrices are then few larger ones. The folds must share their data. A network
    that runs out of patience keeps its weights while others go on.

    The task is that of a stack of the networks; the subjects of each follow each other in its batches. The
    callbacks see one network after the other, and stop one.
    """
    run = _Run(task, networks, folds, recipe, seeds, device)
    drive(run, callbacks, checkpoint, progress)
    kept = parts_of(task.network, run.kept)
    for i, network in enumerate(networks):
        fill(network.to(device), kept, i)
    return run.histories


class _Run:
    """The stack, its moving average, and the weights that each network keeps."""

    rank = 0

    def __init__(
        self,
        task: Task,
        networks: Sequence[nn.Module],
        folds: Sequence[Fold],
        recipe: Recipe,
        seeds: Sequence[int],
        device: torch.device,
    ) -> None:
        self.task, self.networks, self.recipe = task, networks, recipe
        self.seeds, self.device = seeds, device
        self.data = folds[0].training.data
        self.held_out = [fold.validation for fold in folds]
        self.numbers = [fold.training.numbers for fold in folds]
        alone = [
            Batches(len(rows), recipe.batch_size, fold.groups)
            for rows, fold in zip(self.numbers, folds, strict=True)
        ]
        self.count = max(len(batches) for batches in alone)
        self.batches = [
            Batches(len(rows), recipe.batch_size, fold.groups, count=self.count)
            for rows, fold in zip(self.numbers, folds, strict=True)
        ]
        self.network = task.network.to(device)
        self.averaged = copy.deepcopy(self.network).requires_grad_(False)
        self.weights, self.mean = flat_weights(self.network), flat_weights(self.averaged)
        self.kept = self.mean.clone()
        self.adam = StackedAdamW(self.network, self.weights, recipe)
        self.histories = [History() for _ in folds]
        self.best: list[Tensor | None] = [None] * len(folds)
        self.going = np.ones(len(folds), dtype=bool)
        self.steps = 0

    def epoch(self) -> float:
        """One epoch of every network; the mean of their losses."""
        number = self.next_epoch
        self.network.train()
        seed = mix_seed(self.seeds[0], number)
        generator = torch.Generator(self.device).manual_seed(seed)
        sums = torch.zeros(2, len(self.seeds), device=self.device)
        with seeded(self.network, seed, self.device):
            for index, share in self._batches(number):
                sums += self._step(index, share, generator)
        train_losses, rate = (sums[0] / sums[1]).tolist(), self.adam.rate
        validated = self._validated(number)
        for i, history in enumerate(self.histories):
            if self.going[i]:
                loss, best = finite(train_losses[i], number), history.best_epoch == number
                history.epochs.append(Epoch(number, loss, validated[i], rate, best))
                self.going[i] = self._goes_on(i, number)
        return float(np.mean([history.epochs[-1].train_loss for history in self.histories]))

    def _goes_on(self, i: int, number: int) -> bool:
        """Whether a network has patience left after an epoch."""
        patience = self.recipe.patience
        if patience is None or self.held_out[i] is None:
            return True
        return number - self.histories[i].best_epoch < patience

    @property
    def next_epoch(self) -> int:
        return max(len(history.epochs) for history in self.histories)

    @property
    def finished(self) -> bool:
        return not self.going.any()

    def call(self, callbacks: Sequence[Callback]) -> None:
        """Show every network, with averaged weights, to the callbacks; those that one ends do not go on."""
        if not callbacks:
            return
        averaged = parts_of(self.network, self.mean)
        for i in np.flatnonzero(self.going).tolist():
            network = self.networks[i].to(self.device)
            fill(network, averaged, i)
            epoch = self.histories[i].epochs[-1]
            self.going[i] &= not sum(callback(epoch, network) is True for callback in callbacks)

    # ---- checkpoints ---------------------------------------------------------------------------

    @cached_property
    def _identity(self) -> dict[str, Any]:
        """What must be equal for a checkpoint to be continued."""
        held_out = [None if part is None else part.numbers for part in self.held_out]
        some = next((part.data for part in self.held_out if part is not None), {})
        data = [digests(self.data), digests(some), content_hash(self.numbers), content_hash(held_out)]
        return identity_of(self.task, self.network, self.recipe, seeds=list(self.seeds), data=data)

    @property
    def _tensors(self) -> dict[str, Tensor]:
        """What changes, apart from the best losses."""
        return {
            "weights": self.weights,
            "mean": self.mean,
            "kept": self.kept,
            "first": self.adam.first,
            "second": self.adam.second,
        }

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint."""
        best = {f"best.{i}": losses for i, losses in enumerate(self.best) if losses is not None}
        settings = {
            "histories": [history.to_dict() for history in self.histories],
            "steps": self.steps,
            "identity": self._identity,
        }
        write_model_file(path, _CHECKPOINT, self._tensors | best, settings)

    def resume(self, path: str | os.PathLike[str]) -> None:
        """Continue from a checkpoint of a run of the same identity."""
        with checkpoint_of(path, _CHECKPOINT, self._identity) as (tensors, settings):
            for name, value in self._tensors.items():
                value.copy_(tensors[name])
            self.best = [tensors.get(f"best.{i}") for i in range(len(self.best))]
            self.histories = [
                History.from_dict(history | {"interrupted": False}) for history in settings["histories"]
            ]
            self.steps = self.adam.steps = operator.index(settings["steps"])
        last = self.next_epoch - 1
        self.going = np.array([self._goes_on(i, last) for i in range(len(self.best))])

    # ---- epochs --------------------------------------------------------------------------------

    def _batches(self, number: int) -> Any:
        """Places of the subjects of every step, (networks, room), and their share: 1, or 0 to fill up."""
        orders = [batches.epoch(seed, number) for batches, seed in zip(self.batches, self.seeds, strict=True)]
        for parts in zip(*orders, strict=True):
            yield filled([rows[part] for rows, part in zip(self.numbers, parts, strict=True)])

    def _gathered(self, data: Data, index: np.ndarray, share: np.ndarray) -> tuple[dict[str, Tensor], Tensor]:
        """The subjects of all networks, one after the other, and their weights, (networks, room)."""
        batch = gather(data, index.ravel(), self.device)
        weight = torch.from_numpy(share).to(self.device)
        if "weight" in batch:
            weight = weight * batch["weight"].reshape(weight.shape)
        return batch, weight

    def _step(self, index: np.ndarray, share: np.ndarray, generator: torch.Generator) -> Tensor:
        """One update; the sums of losses and of weights of every network, (2, networks)."""
        batch, weight = self._gathered(self.data, index, share)
        random = self.task.draw(index.size, generator, self.device)
        losses = self.task.loss(self.network, batch, random).reshape(weight.shape)
        size = weight.sum(dim=1)
        loss = (losses * weight).sum(dim=1)
        self.adam.gradient.zero_()
        (loss / size.clamp(min=torch.finfo(size.dtype).tiny)).sum().backward()
        self.adam.step(self._rate)
        self.steps += 1
        decay = self.recipe.averaging
        memory = 0.0 if decay is None else min(decay, (1 + self.steps) / (10 + self.steps))
        with torch.no_grad():
            self.mean.lerp_(self.weights, 1 - memory)
            return torch.stack([loss, size])

    @property
    def _rate(self) -> float:
        """The learning rate of the next step."""
        return self.recipe.rate(self.steps, self.recipe.epochs * self.count)

    def _validated(self, number: int) -> list[float | None]:
        """The validation loss of every network, where it is due; weights among the best are kept."""
        found: list[float | None] = [None] * len(self.histories)
        due = self.recipe.validates(number) and any(part is not None for part in self.held_out)
        losses = self._held_out_losses() if due else None
        for i, history in enumerate(self.histories):
            if not self.going[i]:
                continue
            kept = self.held_out[i] is None  # then the last weights are kept
            if kept:
                history.best_epoch = number
            elif losses is not None:
                found[i] = float(losses[i].mean())
                self.best[i], kept = among_best(losses[i], self.best[i], self.recipe.tolerance)
                if self.best[i] is losses[i]:
                    history.best_epoch = number
            if kept:
                history.kept_epoch = number
                self.kept = torch.where(self.adam.owner == i, self.mean, self.kept)
        return found

    @torch.no_grad()
    def _held_out_losses(self) -> list[Tensor]:
        """Losses of the averaged weights, weighted, with the same noise every time."""
        self.averaged.eval()
        some = next(part for part in self.held_out if part is not None)
        numbers = [np.zeros(1, int) if part is None else part.numbers for part in self.held_out]
        index, share = filled(numbers)
        generator = torch.Generator(self.device).manual_seed(mix_seed(self.seeds[0], -1))
        found = []
        for start in range(0, index.shape[1], self.recipe.validation_batch):
            part = slice(start, start + self.recipe.validation_batch)
            batch, weight = self._gathered(some.data, index[:, part], share[:, part])
            random = self.task.draw(index[:, part].size, generator, self.device, validating=True)
            losses = self.task.loss(self.averaged, batch, random).reshape(weight.shape)
            found.append(torch.stack([losses, weight]).double().cpu())
        losses, weight = torch.cat(found, dim=2)
        sizes = [len(rows) for rows in numbers]
        return [losses[i, :n] * weight[i, :n] * (n / weight[i, :n].sum()) for i, n in enumerate(sizes)]


def filled(parts: Sequence[np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
    """Numbers of different length as rows of a matrix, and which of its entries they are: 1, else 0."""
    room = max(len(part) for part in parts)
    index = np.zeros((len(parts), room), dtype=np.intp)
    share = np.zeros((len(parts), room), dtype=np.float32)
    for i, part in enumerate(parts):
        index[i, : len(part)], share[i, : len(part)] = part, 1.0
    return index, share
