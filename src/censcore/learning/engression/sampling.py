"""Draws of a trained generator: the noise of a subject follows from its covariates, not from its place."""

from __future__ import annotations

from collections.abc import Iterator

import torch
from torch import Tensor

from censcore.learning.engression.generator import Generator
from censcore.learning.subject_windows import SubjectWindows

__all__ = ["NoisePool", "chunks_of"]

_UNITS = {"cpu": 2**18}  # hidden units at once: what a cache holds
_BYTES_PER_UNIT = 64  # on a GPU: a few copies of the hidden units in memory that is free


class NoisePool(SubjectWindows):
    r"""Noise :math:`\varepsilon_1,\dots,\varepsilon_P` that all subjects share, behind the first layer.

    Subject i uses the m vectors from place :math:`h(x_i)` on, counted round, where h is a hash of its
    covariates. So a forecast belongs to a subject: it is the same in any order and company. Windows of two
    subjects overlap rarely, and the product of noise and weights is computed P times instead of n m times.

    Parameters
    ----------
    network : Generator
        A trained generator, on its device.
    m : int
        Draws per subject.
    seed : int
        Of the noise.
    mixed : bool
        Let the network compute in bfloat16.

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
    step = max(1, units // (m * network.width))
    for start in range(0, n, step):
        yield slice(start, min(n, start + step))
