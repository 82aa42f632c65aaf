"""Networks of one shape side by side: a stack, whose parameters have the networks as their first axis."""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor, nn


def stacked(networks: Sequence[nn.Module]) -> nn.Module:
    """Make a module whose parameters are those of networks of one shape, along a new first axis.

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


def by_network(tensor: Tensor, count: int) -> Tensor:
    """View a parameter of a stack of ``count`` networks, or of one, as a matrix with a row for each."""
    return tensor.detach().view(count, tensor.numel() // count)


@torch.no_grad()
def fill(network: nn.Module, stack: nn.Module, count: int, i: int) -> None:
    """Give a network the weights of network i of a stack of ``count``.

    >>> stack, alone = stacked([nn.Linear(2, 3), nn.Linear(2, 3)]), nn.Linear(2, 3)
    >>> fill(alone, stack, count=2, i=1)
    >>> bool((alone.weight == stack.weight[1]).all())
    True
    """
    for parameter, part in zip(network.parameters(), stack.parameters(), strict=True):
        by_network(parameter, 1)[0].copy_(by_network(part, count)[i])
    for buffer, other in zip(network.buffers(), stack.buffers(), strict=True):
        buffer.copy_(other)
    network.eval()


def clip_gradients(parameters: Sequence[Tensor], count: int, most: float) -> None:
    """Bound the norm of the gradient of each network of a stack of ``count``."""
    gradients = [by_network(p.grad, count) for p in parameters if p.grad is not None]
    norms = torch.stack([torch.linalg.vector_norm(gradient, dim=1) for gradient in gradients])
    factors = (most / (torch.linalg.vector_norm(norms, dim=0) + 1e-6)).clamp(max=1.0)
    for gradient in gradients:
        gradient.mul_(factors[:, None])


def with_penalty(losses: Tensor, weight: Any, network: Any) -> Tensor:
    """Add the penalty on covariates of each network, of which there may be a stack, to subjects' losses."""
    penalty = (weight * network.input_norms()).reshape(-1, 1)
    return (losses.unflatten(0, (len(penalty), -1)) + penalty).flatten()
