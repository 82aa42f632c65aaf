"""Networks from covariates to log-normal mixtures, and their loss: the censored log score."""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import Tensor, nn

from censcore.learning.likelihood import LikelihoodTask
from censcore.learning.training.stacks import with_penalty
from censcore.learning.training.task import Rows

__all__ = ["DensityTask", "LogNormalComponents", "moments_of"]

_LOG_SCALES = (-4.0, 1.0)  # of a component, relative to the spread of all log-times


class LogNormalComponents(nn.Module):
    """Networks beside each other, from covariates to mixtures of log-normal distributions.

    Each is a perceptron and a linear map; they differ in their first weights.

    Examples
    --------
    >>> log_weight, location, log_scale = LogNormalComponents(3, 2)(torch.zeros(6, 3))
    >>> log_weight.shape, location.shape, log_scale.shape
    (torch.Size([4, 6, 5]), torch.Size([4, 6, 5, 2]), torch.Size([4, 6, 5, 2]))
    """

    def __init__(self, d: int, k: int, components: int = 5, width: int = 64, networks: int = 4) -> None:
        super().__init__()
        self.k, self.components, self.count = k, components, networks
        start = torch.zeros(networks, 1, components, 1 + 2 * k)
        location, log_scale = start[..., 1 : 1 + k], start[..., 1 + k :]
        location += torch.linspace(-1.5, 1.5, components)[:, None] + 0.1 * torch.randn(location.shape)
        log_scale -= 0.7
        outputs = components * (1 + 2 * k)
        self.linear = nn.Parameter(torch.zeros(networks, d, outputs))
        self.start = nn.Parameter(start.flatten(2))
        self.first, self.first_bias = _layer(networks, d, width)
        self.second, self.second_bias = _layer(networks, width, width)
        self.last = nn.Parameter(torch.zeros(networks, width, outputs))

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Logarithms of weights, locations and logarithms of scales of standardised log-times.

        Networks are the first axis, subjects the second, components the third.
        """
        folds = len(self.first) if self.first.ndim == 4 else 1  # stacks, with subjects of their own
        x = x.reshape(folds, 1, -1, x.shape[1]).expand(-1, self.count, -1, -1).flatten(0, 1)
        hidden = nn.functional.silu(_product(self.first_bias, x, self.first))
        hidden = nn.functional.silu(_product(self.second_bias, hidden, self.second))
        out = torch.baddbmm(_product(self.start, x, self.linear), hidden, self.last.flatten(0, -3))
        out = out.unflatten(2, (self.components, 1 + 2 * self.k))
        out = out.unflatten(0, (folds, self.count)).transpose(0, 1).flatten(1, 2)
        log_weight, location, log_scale = out.split([1, self.k, self.k], dim=3)
        return log_weight[..., 0].log_softmax(dim=2), location, log_scale.clamp(*_LOG_SCALES)

    def input_norms(self) -> Tensor:
        """The sum over covariates of the norm of all weights by which one enters a network, their mean."""
        entering = torch.cat([self.first, self.linear], dim=-1)
        return (entering.square().sum(dim=-1) + 1e-8).sqrt().sum(dim=-1).mean(dim=-1)

    def undecayed(self) -> list[nn.Parameter]:
        """Weight decay concerns the matrices only."""
        return [self.start, self.first_bias, self.second_bias]


def _product(bias: Tensor, x: Tensor, weight: Tensor) -> Tensor:
    """The product x W + b of every network, with the subjects of each."""
    return torch.baddbmm(bias.flatten(0, -3), x, weight.flatten(0, -3))


def _layer(networks: int, inputs: int, width: int) -> tuple[nn.Parameter, nn.Parameter]:
    """Weights and biases of a layer in every network, as torch draws them."""
    bound = 1 / math.sqrt(inputs)
    weight = torch.empty(networks, inputs, width).uniform_(-bound, bound)
    return nn.Parameter(weight), nn.Parameter(torch.empty(networks, 1, width).uniform_(-bound, bound))


class DensityTask(LikelihoodTask):
    r"""The censored log score of a mixture of log-normal distributions, with a penalty on covariates.

    .. math:: -\log\sum_c w_c(x)\prod_j f_{cj}(u_j)^{\Delta_j}\{1-F_{cj}(u_j)\}^{1-\Delta_j}

    ``sparsity``, the weight of the penalty, is a number, or a tensor of one for each of several networks.
    """

    def __init__(self, network: nn.Module, sparsity: float | Tensor) -> None:
        self.network, self.sparsity = network, sparsity

    def loss(self, network: nn.Module, rows: Rows, random: Rows) -> Tensor:
        """One loss per subject."""
        assert isinstance(network, LogNormalComponents)
        log_weight, location, log_scale = network(rows["x"])
        z = (rows["u"][:, None] - location) * torch.exp(-log_scale)  # networks, subjects, components, times
        density = -0.5 * z.square() - log_scale - 0.5 * math.log(2 * math.pi)
        terms = torch.where(rows["event"][:, None], density, torch.special.log_ndtr(-z))
        terms = torch.where(rows["counts"][:, None], terms, 0.0).sum(dim=3)
        losses = -torch.logsumexp(log_weight + terms, dim=2).mean(dim=0)
        return with_penalty(losses, self.sparsity, network)


def moments_of(u: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Mean and standard deviation of every column, of values that are not NaN."""
    count = np.maximum(1, (~np.isnan(u)).sum(axis=0))
    center = np.nansum(u, axis=0) / count
    spread = np.sqrt(np.nansum((u - center) ** 2, axis=0) / count)
    return center, np.where(spread > 1e-6, spread, 1.0)
