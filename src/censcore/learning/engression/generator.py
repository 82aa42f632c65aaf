"""The generator g(x, eps) of censored engression: a network from covariates and noise to event times."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn

from censcore._validation import as_count, as_number, check_option
from censcore.learning.settings import Network
from censcore.learning.training.task import MOST_LAYERS, MOST_UNITS

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {
    "relu": nn.ReLU,
    "silu": nn.SiLU,
    "gelu": nn.GELU,
    "elu": nn.ELU,
    "tanh": nn.Tanh,
    "softplus": nn.Softplus,
}

# Units that fill up 16 bytes in half precision.
_ALIGNED = 8


def _tame_exp(u: Tensor) -> Tensor:
    """exp(u) up to u = 4, its tangent line beyond: tails stay finite and gradients bounded."""
    return torch.exp(u.clamp(max=4.0)) * (1 + (u - 4.0).clamp(min=0.0))


OUTPUTS: dict[str, Callable[[Tensor], Tensor]] = {
    "softplus": nn.functional.softplus,
    "exp": _tame_exp,
    "relu": torch.relu,
    "square": torch.square,
}


class Generator(nn.Module):
    r"""A noise-conditioned multilayer perceptron, :math:`g(x,\varepsilon)`, :math:`\varepsilon\sim N(0,I)`.

    Parameters
    ----------
    n_features, k : int
        Covariates, and times among the outputs.
    logits : int
        Outputs after the times that may have any sign.
    **shape
        As of :class:`~censcore.learning.Network`.

    Notes
    -----
    Networks of one shape can be trained side by side (:mod:`~censcore.learning.training.side_by_side`): every
    parameter then has them as its first axis, and the subjects of the networks follow each other.

    Examples
    --------
    >>> import torch
    >>> network = Generator(n_features=3, k=2, width=8, depth=2, noise_dim=4)
    >>> network(torch.zeros(5, 3), torch.zeros(5, 7, network.noise_size)).shape
    torch.Size([5, 7, 2])
    """

    def __init__(self, n_features: int, k: int, *, logits: int = 0, **shape: Any) -> None:
        super().__init__()
        net = Network(**shape)
        check_option(net.activation, "activation", ACTIVATIONS)
        check_option(net.output, "output", OUTPUTS)
        depth, k = as_count(net.depth, "depth", most=MOST_LAYERS), as_count(k, "k")
        width = as_count(net.width, "width", most=MOST_UNITS)
        noise_dim = as_count(net.noise_dim, "noise_dim", most=MOST_UNITS)
        dropout = as_number(net.dropout, "dropout", least=0, below=1)
        self.width, self.k, self.noise_dim, self.logits = width, k, noise_dim, logits
        self.noise_layers = depth if net.noise_everywhere else 1
        self.residual = net.residual
        self.from_x = nn.Linear(n_features, width)
        self.from_noise = nn.ModuleList(
            nn.Linear(noise_dim, width, bias=False) for _ in range(self.noise_layers)
        )
        self.hidden = nn.ModuleList(nn.Linear(width, width) for _ in range(depth - 1))
        self.norms = nn.ModuleList(
            nn.LayerNorm(width) if net.layer_norm else nn.Identity() for _ in range(depth - 1)
        )
        self.activation = ACTIVATIONS[net.activation]()
        self.dropout = nn.Dropout(dropout)
        self.last = nn.Linear(width, k + logits)
        self.skip = nn.Linear(n_features, k + logits, bias=False) if net.skip else None
        self.positive = OUTPUTS[net.output]
        self._initialise(n_features + noise_dim)

    @torch.no_grad()
    def _initialise(self, fan_in: int) -> None:
        """Start as one layer on (x, noise) together would, and with outputs around the centre."""
        bound = fan_in**-0.5
        for layer in (self.from_x, self.from_noise[0]):
            for parameter in layer.parameters():
                nn.init.uniform_(parameter, -bound, bound)
        nn.init.zeros_(self.last.bias)
        if self.skip is not None:
            nn.init.zeros_(self.skip.weight)

    def undecayed(self) -> list[nn.Parameter]:
        """Parameters that weight decay should leave alone: biases, norms and the linear skip."""
        spared = ("norms", "skip")
        return [p for name, p in self.named_parameters() if name.endswith("bias") or name.startswith(spared)]

    def input_norms(self) -> Tensor:
        """The sum over the covariates of the norm of the weights by which each enters."""
        layers = [self.from_x.weight] if self.skip is None else [self.from_x.weight, self.skip.weight]
        # the small number keeps the gradient finite at zero
        return (torch.cat(layers, dim=-2).square().sum(dim=-2) + 1e-8).sqrt().sum(dim=-1)

    @property
    def noise_size(self) -> int:
        """Random numbers that one sample of one subject needs."""
        return self.noise_dim * self.noise_layers

    def forward(self, x: Tensor, noise: Tensor) -> Tensor:
        """Samples (n, m, k) from covariates (n, d) and noise (n, m, noise_size)."""
        return self.from_parts(x, self.behind_first_layers(noise))

    def behind_first_layers(self, noise: Tensor) -> list[Tensor]:
        """What the noise (..., noise_size) adds to the layers that it enters, (..., width) each."""
        parts = noise.split(self.noise_dim, dim=-1)
        return [_linear(layer, _padded(part, 1)) for layer, part in zip(self.from_noise, parts, strict=True)]

    def from_parts(self, x: Tensor, noise: list[Tensor]) -> Tensor:
        """Samples (n, m, k) from covariates (n, d) and what :meth:`behind_first_layers` made of the noise."""
        h = noise[0] + _linear(self.from_x, _padded(x, 1))[:, None]
        for i, (layer, norm) in enumerate(zip(self.hidden, self.norms, strict=True), start=1):
            inner = _linear(layer, self.dropout(self.activation(h)))
            if i < self.noise_layers:
                inner = inner + noise[i]
            if not isinstance(norm, nn.Identity):
                inner = _padded(_normalised(norm, inner[..., : self.width]), 1)
            h = h + inner if self.residual else inner
        out = _linear(self.last, self.dropout(self.activation(h)))[..., : self.k + self.logits]
        if self.skip is not None:
            out = out + _affine(x, self.skip.weight, None)[:, None]
        out = out.float()
        if not self.logits:
            return self.positive(out)
        return torch.cat([self.positive(out[..., : self.k]), out[..., self.k :]], dim=-1)


def _linear(layer: nn.Module, h: Tensor) -> Tensor:
    """``layer(h)`` for padded features; those of the result are padded too, and what pads h has no weight."""
    assert isinstance(layer, nn.Linear)
    bias = None if layer.bias is None else _padded(layer.bias, 1)
    return _affine(h, _padded(layer.weight, 2), bias)


def _affine(h: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
    """The layer Wh + b for all subjects, or where networks are stacked, for the subjects of each."""
    if weight.ndim == 2:
        return nn.functional.linear(h, weight, bias)
    parts, W = h.reshape(len(weight), -1, h.shape[-1]), weight.mT
    out = torch.bmm(parts, W) if bias is None else torch.baddbmm(bias[:, None], parts, W)
    return out.reshape(*h.shape[:-1], -1)


def _normalised(norm: nn.Module, h: Tensor) -> Tensor:
    """``norm(h)``, by the scales and shifts of each network where networks are stacked."""
    assert isinstance(norm, nn.LayerNorm)
    if norm.weight.ndim == 1:
        return norm(h)
    plain = nn.functional.layer_norm(h, norm.normalized_shape, eps=norm.eps)
    parts = plain.reshape(len(norm.weight), -1, h.shape[-1])
    return torch.addcmul(norm.bias[:, None], parts, norm.weight[:, None]).reshape(h.shape)


def _padded(value: Tensor, axes: int) -> Tensor:
    """The last axes filled up with zeros to multiples of 8 in half precision.

    The fast kernels of a GPU need rows of whole 16 bytes: a layer of 500 units is three times slower than
    one of 504.
    """
    if not torch.is_autocast_enabled(value.device.type):
        return value
    missing = [end for axis in range(1, axes + 1) for end in (0, -value.shape[-axis] % _ALIGNED)]
    return nn.functional.pad(value, missing) if any(missing) else value
