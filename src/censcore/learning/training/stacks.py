"""Stacks of networks of one shape: parameters with the networks as first axis, and their optimiser."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn

from censcore.learning.training.recipe import Recipe

__all__ = ["StackedAdamW", "fill", "flat_weights", "parts_of", "stacked", "with_penalty"]

_BETA, _EPS = (0.9, 0.999), 1e-8  # of AdamW, as torch has them


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
