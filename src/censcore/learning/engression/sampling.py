"""Draws of a trained generator: the noise of a subject follows from its covariates, not from its place."""

from __future__ import annotations

import copy
import io
import os
from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from censcore.files import write_atomically
from censcore.learning.data.standardised import blocks
from censcore.learning.engression.generator import Generator
from censcore.learning.engression.loss import TimeScale
from censcore.learning.structures import Structure
from censcore.learning.subject_windows import SubjectWindows

__all__ = ["NoisePool", "Sampler", "chunks_of", "export_sampler"]

_UNITS = {"cpu": 2**18}  # hidden units at once: what a cache holds
_BYTES_PER_UNIT = 64  # on a GPU: a few copies of the hidden units in memory that is free


class NoisePool(SubjectWindows):
    r"""Noise :math:`\varepsilon_1,\dots,\varepsilon_P` that all subjects share, behind the first layer.

    Subject i uses the m vectors from place :math:`h(x_i)` on, counted round, where h is a hash of its
    covariates. So a forecast belongs to a subject: it is the same in any order and company. Windows of two
    subjects overlap rarely, and the product of noise and weights is computed P times instead of n m times.

    Examples
    --------
    >>> network = Generator(n_features=3, k=2, width=8, depth=2, noise_dim=4).eval()
    >>> pool = NoisePool(network, m=5, seed=0)
    >>> x = torch.arange(6.0).reshape(2, 3)
    >>> one, two = pool.draw(x), pool.draw(x.flip(0))
    >>> one.shape, torch.allclose(one[0], two[1])
    (torch.Size([2, 5, 2]), True)
    """

    def __init__(self, network: Generator, m: int, seed: int, mixed: bool = False) -> None:
        super().__init__(m, network.last.weight.device)
        self.network, self.mixed = network, mixed
        # the same numbers on every device, so that a model answers alike wherever it runs
        source = torch.Generator().manual_seed(seed)
        noise = torch.randn(self.size, network.noise_size, generator=source)
        self._uniform = torch.rand(self.size, generator=source).to(self.device) if network.logits else None
        with torch.no_grad(), self._precision():
            self._parts = network.behind_first_layers(noise.to(self.device))

    def _precision(self) -> torch.autocast:
        return torch.autocast(self.device.type, torch.bfloat16, enabled=self.mixed)

    def uniform(self, x: Tensor) -> Tensor | None:
        """Uniform numbers (n, m) that belong to the draws, for generators that make choices."""
        return None if self._uniform is None else self._uniform[self.window(x)]

    @torch.no_grad()
    def draw(self, x: Tensor) -> Tensor:
        """Outputs (n, m, outputs) for covariates (n, d), in float32."""
        window = self.window(x)
        with self._precision():
            parts = [part.index_select(0, window.ravel()).unflatten(0, window.shape) for part in self._parts]
            return self.network.from_parts(x.to(self.device), parts).float()


def chunks_of(n: int, m: int, network: Generator) -> Iterator[slice]:
    """Consecutive subjects with m draws each, whose hidden layers fit where they are computed fastest."""
    device, units = network.last.weight.device, _UNITS["cpu"]
    if device.type == "cuda":
        units = int(torch.cuda.mem_get_info(device)[0] // _BYTES_PER_UNIT)
    return blocks(n, m * network.width, units)


class Sampler(nn.Module):
    """Covariates, noise and uniform numbers to event times, all steps in one module that torch can export."""

    center: Tensor
    spread: Tensor
    scale: Tensor

    def __init__(
        self,
        network: Generator,
        structure: Structure,
        times: TimeScale,
        center: np.ndarray,
        spread: np.ndarray,
    ) -> None:
        super().__init__()
        self.network = copy.deepcopy(network).cpu().eval()
        self.structure, self.times = structure, times
        self.register_buffer("center", torch.from_numpy(center.copy()))
        self.register_buffer("spread", torch.from_numpy(spread.copy()))
        self.register_buffer("scale", torch.tensor(structure.scale(times.centre)))

    def forward(self, x: Tensor, noise: Tensor, uniform: Tensor) -> Tensor:
        """Event times (n, m, k)."""
        x = (x - self.center) / self.spread if len(self.center) else x.new_zeros(x.shape[0], 1)
        out = self.network(x, noise)
        size = self.structure.outputs
        out = torch.cat([out[..., :size] * self.scale, out[..., size:]], dim=-1)
        z = self.structure.draw(out, uniform) * self.times.unit
        return torch.expm1(z) if self.times.transform == "log1p" else z


def export_sampler(path: str | os.PathLike[str], network: Generator, *units: Any) -> None:
    """Trace a :class:`Sampler` with free numbers of subjects and draws, and write it."""
    sampler = Sampler(network, *units).eval()
    n, m = torch.export.Dim("subjects"), torch.export.Dim("draws")
    example = (torch.zeros(3, len(sampler.center)), torch.zeros(3, 5, network.noise_size), torch.zeros(3, 5))
    shapes = ({0: n}, {0: n, 1: m}, {0: n, 1: m})
    with torch.no_grad():
        program = torch.export.export(sampler, example, dynamic_shapes=shapes)
    content = io.BytesIO()
    torch.export.save(program, content)
    write_atomically(path, content.getvalue())
