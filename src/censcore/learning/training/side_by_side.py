"""Several networks of one shape, trained side by side as one stack on subjects of their own."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from censcore.learning.data.standardised import Data, Fold, digest, gather
from censcore.learning.training.minibatches import Batches
from censcore.learning.training.runs import Run, digests
from censcore.learning.training.task import Recipe, Task, mix_seed

_BETA, _EPS = (0.9, 0.999), 1e-8  # of AdamW, as torch has them


class SideBySide(Run):
    """Networks that are trained in place, each as :func:`~censcore.learning.train` would, in steps of all.

    Many small products of matrices are then few larger ones. The folds must share their data. A network
    that runs out of patience keeps its weights while others go on.

    The task is that of a stack of the networks; the subjects of each follow each other in its batches. The
    callbacks see one network after the other, and stop one.
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
        held_out = [0 if fold.validation is None else fold.validation.n for fold in folds]
        super().__init__(task, recipe, device, held_out)
        self.networks, self.seeds = networks, seeds
        self.data = folds[0].training.data
        self.held_out = [fold.validation for fold in folds]
        self.numbers = [fold.training.numbers for fold in folds]
        self.batches = [
            Batches(len(rows), recipe.batch_size, fold.groups)
            for rows, fold in zip(self.numbers, folds, strict=True)
        ]
        self.count = max(len(batches) for batches in self.batches)
        for batches in self.batches:
            batches.count = self.count
        self.averaged = copy.deepcopy(self.network).requires_grad_(False)
        self.weights, self.mean = flat_weights(self.network), flat_weights(self.averaged)
        self.kept = self.mean.clone()
        self.adam = StackedAdamW(self.network, self.weights, recipe)

    def _noise_seed(self, number: int) -> int:
        return mix_seed(self.seeds[0], number)

    def _steps(self, number: int, seed: int) -> tuple[list[float], float]:
        generator = torch.Generator(self.device).manual_seed(seed)
        sums = torch.zeros(2, len(self.seeds), device=self.device)
        for index, share in self._batches(number):
            sums += self._step(index, share, generator)
        return (sums[0] / sums[1]).tolist(), self.adam.rate

    def _keep(self, i: int) -> None:
        self.kept = torch.where(self.adam.owner == i, self.mean, self.kept)

    def _averaged(self, i: int) -> nn.Module:
        network = self.networks[i].to(self.device)
        fill(network, parts_of(self.network, self.mean), i)
        return network

    def _finish(self) -> None:
        weights = parts_of(self.network, self.kept)
        for i, network in enumerate(self.networks):
            fill(network.to(self.device), weights, i)

    # ---- checkpoints ---------------------------------------------------------------------------

    @property
    def _data(self) -> dict[str, Any]:
        held_out = [part for part in self.held_out if part is not None]
        validation = held_out[0].data if held_out else {}
        rows = [*self.numbers, *(part.numbers for part in held_out)]
        data = [digests(self.data), digests(validation), [digest(torch.from_numpy(own)) for own in rows]]
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
    def validate(self) -> list[Tensor]:
        """Validation losses of every network."""
        self.averaged.eval()
        any_part = next(part for part in self.held_out if part is not None)
        numbers = [np.zeros(1, int) if part is None else part.numbers for part in self.held_out]
        index, share = filled(numbers)
        generator = torch.Generator(self.device).manual_seed(mix_seed(self.seeds[0], -1))
        batches = []
        for start in range(0, index.shape[1], self.recipe.validation_batch):
            part = slice(start, start + self.recipe.validation_batch)
            batch, weight = self._gathered(any_part.data, index[:, part], share[:, part])
            random = self.task.draw(index[:, part].size, generator, self.device, validating=True)
            losses = self.task.loss(self.averaged, batch, random).reshape(weight.shape)
            batches.append(torch.stack([losses, weight]).double().cpu())
        losses, weight = torch.cat(batches, dim=2)
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


def stacked(networks: Sequence[nn.Module]) -> nn.Module:
    """One module whose parameters are those of networks of the same shape, along a new first axis.

    >>> stacked([nn.Linear(2, 3), nn.Linear(2, 3)]).weight.shape
    torch.Size([2, 3, 2])
    """
    stack = copy.deepcopy(networks[0])
    for path, module in stack.named_modules():
        for name in list(dict(module.named_parameters(recurse=False))):
            place = f"{path}.{name}" if path else name
            parts = [network.get_parameter(place).detach() for network in networks]
            setattr(module, name, nn.Parameter(torch.stack(parts)))
    return stack


def with_penalty(losses: Tensor, weight: Any, network: Any) -> Tensor:
    """Losses of subjects plus the penalty on covariates of their network, of which there may be a stack."""
    penalty = (weight * network.input_norms()).reshape(-1, 1)
    return (losses.unflatten(0, (len(penalty), -1)) + penalty).flatten()


def fill(network: nn.Module, parts: Sequence[Tensor], i: int) -> None:
    """Give a network the weights of place i of a stack."""
    for parameter, part in zip(network.parameters(), parts, strict=True):
        parameter.data.copy_(part[i])
    network.eval()


class StackedAdamW:
    """AdamW with the norm of the gradient bounded, of every network of a stack [1]_.

    References
    ----------
    .. [1] I. Loshchilov and F. Hutter (2019). Decoupled weight decay regularization. International
       Conference on Learning Representations.
    """

    def __init__(self, network: nn.Module, weights: Tensor, recipe: Recipe) -> None:
        self.weights, self.clip, self.rate = weights, recipe.clip, 0.0
        self.gradient, self.first, self.second = (torch.zeros_like(weights) for _ in range(3))
        for parameter, part in zip(network.parameters(), parts_of(network, self.gradient), strict=True):
            parameter.grad = part
        spared = {id(p) for group in recipe.parameter_groups(network)[1:] for p in group["params"]}
        places = [torch.arange(len(p)).repeat_interleave(p[0].numel()) for p in network.parameters()]
        decay = [torch.full((p.numel(),), float(id(p) not in spared)) for p in network.parameters()]
        self.owner = torch.cat(places).to(weights.device)  # the network of every weight
        self.decay = torch.cat(decay).to(weights.device) * recipe.weight_decay
        self.count = int(self.owner[-1]) + 1
        self.steps = 0

    @torch.no_grad()
    def step(self, rate: float) -> None:
        """Update the weights."""
        g, self.rate = self.gradient, rate
        self.steps += 1
        if self.clip is not None:
            squares = g.new_zeros(self.count).index_add_(0, self.owner, g.square())
            g *= (self.clip / (squares.sqrt() + 1e-6)).clamp(max=1.0)[self.owner]
        self.first.lerp_(g, 1 - _BETA[0])
        self.second.mul_(_BETA[1]).addcmul_(g, g, value=1 - _BETA[1])
        spread = (self.second / (1 - _BETA[1] ** self.steps)).sqrt_().add_(_EPS)
        self.weights.mul_(1 - rate * self.decay)
        self.weights.addcdiv_(self.first, spread, value=-rate / (1 - _BETA[0] ** self.steps))


def flat_weights(network: nn.Module) -> Tensor:
    """The parameters of a stack in one vector, of which they become views."""
    weights = torch.cat([p.detach().ravel() for p in network.parameters()])
    for parameter, part in zip(network.parameters(), parts_of(network, weights), strict=True):
        parameter.data = part
    return weights


def parts_of(network: nn.Module, vector: Tensor) -> list[Tensor]:
    """What belongs to each parameter of a stack, in its shape."""
    parts = vector.split([p.numel() for p in network.parameters()])
    return [part.view(p.shape) for part, p in zip(parts, network.parameters(), strict=True)]
