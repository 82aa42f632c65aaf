"""A trained sampler as a program of torch, which runs without this library."""

from __future__ import annotations

import copy
import io
import os

import numpy as np
import torch
from torch import Tensor, nn

from censcore.files import write_atomically
from censcore.learning.engression.generator import Generator
from censcore.learning.engression.time_scale import TimeScale
from censcore.learning.structures import Structure

__all__ = ["Sampler", "export_sampler"]


class Sampler(nn.Module):
    """Covariates, noise and uniform numbers to event times, all steps in one module.

    Parameters
    ----------
    network : Generator
        Trained.
    structure : Structure
        How its outputs make event times.
    times : TimeScale
        From the scale of the loss to times.
    center, spread : arrays, (d,)
        Of the covariates.
    """

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


def export_sampler(
    path: str | os.PathLike[str],
    network: Generator,
    structure: Structure,
    times: TimeScale,
    center: np.ndarray,
    spread: np.ndarray,
) -> None:
    """Trace a sampler with free numbers of subjects and draws, and write it.

    Parameters
    ----------
    path : path
        Where to write.
    network, structure, times, center, spread
        As of :class:`Sampler`.
    """
    sampler = Sampler(network, structure, times, center, spread).eval()
    n, m = torch.export.Dim("subjects"), torch.export.Dim("draws")
    example = (torch.zeros(3, len(center)), torch.zeros(3, 5, network.noise_size), torch.zeros(3, 5))
    shapes = ({0: n}, {0: n, 1: m}, {0: n, 1: m})
    with torch.no_grad():
        program = torch.export.export(sampler, example, dynamic_shapes=shapes)
    content = io.BytesIO()
    torch.export.save(program, content)
    write_atomically(path, content.getvalue())
