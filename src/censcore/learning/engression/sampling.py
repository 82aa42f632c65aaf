"""Draws of a trained generator: the noise of a subject follows from its covariates, not from its place."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np
import torch
from torch import Tensor

from censcore._numerics import scramble
from censcore.learning.engression.generator import Generator

__all__ = ["NoisePool", "SubjectWindows", "chunks_of", "places", "pool_size", "shares"]

_POOL = 2**14  # noise vectors that subjects share; each subject uses a window of them
_UNITS = {"cpu": 2**18}  # hidden units at once: what a cache holds
_BYTES_PER_UNIT = 64  # on a GPU: a few copies of the hidden units in memory that is free


class SubjectWindows:
    """Random numbers that all subjects share, of which each uses a window that its covariates tell.

    Parameters
    ----------
    m : int
        Draws per subject.
    device : torch.device
        Where they are drawn.
    subjects : int, optional
        So many subjects share nothing: each has the next window, whatever its covariates are.
    """

    def __init__(self, m: int, device: torch.device, subjects: int | None = None) -> None:
        self.m, self.device, self.apart = m, device, subjects is not None
        self.size = pool_size(m) if subjects is None else m * subjects

    def window(self, x: Tensor) -> Tensor:
        """Places (n, m) of the numbers of subjects with covariates (n, d)."""
        start = self.m * np.arange(len(x)) if self.apart else places(x.cpu().numpy(), self.size)
        first = torch.from_numpy(start).to(self.device)
        return (first[:, None] + torch.arange(self.m, device=self.device)) % self.size


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
    subjects : int, optional
        As of :class:`SubjectWindows`.

    Examples
    --------
    >>> network = Generator(n_features=3, k=2, width=8, depth=2, noise_dim=4).eval()
    >>> pool = NoisePool(network, m=5, seed=0)
    >>> x = torch.arange(6.0).reshape(2, 3)
    >>> one, two = pool.draw(x), pool.draw(x.flip(0))
    >>> one.shape, torch.allclose(one[0], two[1])
    (torch.Size([2, 5, 2]), True)
    """

    def __init__(
        self, network: Generator, m: int, seed: int, mixed: bool = False, subjects: int | None = None
    ) -> None:
        super().__init__(m, network.last.weight.device, subjects)
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


def pool_size(m: int) -> int:
    """How many draws all subjects share, a power of two, where each has m of them.

    >>> pool_size(10)
    16384
    """
    return max(_POOL, 4 << (m - 1).bit_length())


def shares(m: int, weights: Sequence[float], offset: float = 0.5) -> list[int]:
    """How many of m draws each component of a mixture makes.

    With a uniform ``offset`` the expected numbers are exactly proportional to the weights.

    >>> shares(10, [0.5, 0.3, 0.2])
    [5, 3, 2]
    >>> shares(1, [0.5, 0.3, 0.2], offset=0.9), shares(1, [0.5, 0.3, 0.2], offset=0.1)
    ([1, 0, 0], [0, 0, 1])
    """
    ends = np.cumsum([0.0, *weights])
    return [int(size) for size in np.diff(np.floor(ends / ends[-1] * m + offset))]


def places(x: np.ndarray, size: int) -> np.ndarray:
    """A place below ``size``, a power of two, for every row of float32 covariates, from its content.

    >>> x = np.array([[0.5, 1.0], [0.5, -1.0], [0.5, 1.0]], dtype=np.float32)
    >>> first, second, third = places(x, 2**14)
    >>> first == third, first == second
    (np.True_, np.False_)
    """
    bits = np.ascontiguousarray(x + np.float32(0)).view(np.uint32).astype(np.uint64)  # -0.0 becomes 0.0
    state = np.full(len(bits), 0x9E3779B97F4A7C15, dtype=np.uint64)
    for column in bits.T:
        state = scramble(state ^ column)
    return (state >> np.uint64(33)).astype(np.int64) & (size - 1)
