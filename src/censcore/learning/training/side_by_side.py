"""Several networks of one shape, trained side by side as one stack on subjects of their own."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from censcore.learning.data.first_pass import content_hash
from censcore.learning.data.standardised import Data, Fold, gather
from censcore.learning.training.batches import Batches
from censcore.learning.training.history import History
from censcore.learning.training.recipe import Recipe
from censcore.learning.training.runs import Run, digests
from censcore.learning.training.stacks import StackedAdamW, fill, flat_weights, parts_of
from censcore.learning.training.task import Callback, Task, mix_seed, seeded

__all__ = ["train_side_by_side"]


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
    run.train(callbacks, checkpoint, progress)
    kept = parts_of(task.network, run.kept)
    for i, network in enumerate(networks):
        fill(network.to(device), kept, i)
    return run.histories


class _Run(Run):
    """The stack, its moving average, and the weights that each network keeps."""

    def __init__(
        self,
        task: Task,
        networks: Sequence[nn.Module],
        folds: Sequence[Fold],
        recipe: Recipe,
        seeds: Sequence[int],
        device: torch.device,
    ) -> None:
        held_out = [0 if fold.validation is None else fold.validation.n for fold in folds]
        super().__init__(task, recipe, device, held_out)
        self.networks, self.seeds = networks, seeds
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

    def epoch(self) -> None:
        number = self.next_epoch
        self.network.train()
        seed = mix_seed(self.seeds[0], number)
        generator = torch.Generator(self.device).manual_seed(seed)
        sums = torch.zeros(2, len(self.seeds), device=self.device)
        with seeded(self.network, seed, self.device):
            for index, share in self._batches(number):
                sums += self._step(index, share, generator)
        train_losses = (sums[0] / sums[1]).tolist()
        losses = self._held_out_losses() if any(self.sizes) and self.recipe.validates(number) else None
        for i in np.flatnonzero(self.going).tolist():
            due = None if losses is None or not self.sizes[i] else losses[i]
            self._note(i, train_losses[i], self.adam.rate, due)

    def _keep(self, i: int) -> None:
        self.kept = torch.where(self.adam.owner == i, self.mean, self.kept)

    def _averaged(self, i: int) -> nn.Module:
        network = self.networks[i].to(self.device)
        fill(network, parts_of(self.network, self.mean), i)
        return network

    # ---- checkpoints ---------------------------------------------------------------------------

    @property
    def _data(self) -> dict[str, Any]:
        held_out = [None if part is None else part.numbers for part in self.held_out]
        some = next((part.data for part in self.held_out if part is not None), {})
        data = [digests(self.data), digests(some), content_hash(self.numbers), content_hash(held_out)]
        return {"seeds": list(self.seeds), "data": data}

    @property
    def _tensors(self) -> dict[str, Tensor]:
        moments = {"first": self.adam.first, "second": self.adam.second}
        return {"weights": self.weights, "mean": self.mean, "kept": self.kept} | moments

    def _restore(self, tensors: dict[str, Tensor]) -> None:
        for name, value in self._tensors.items():
            value.copy_(tensors[name])
        self.adam.steps = self.steps

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
