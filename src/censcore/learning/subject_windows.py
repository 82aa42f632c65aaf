"""Random numbers that belong to subjects: each uses a window of shared ones, by its covariates."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor

from censcore._numerics import scramble

_POOL = 2**14  # numbers that subjects share, at least; as any number of them, a power of two


class SubjectWindows:
    """Random numbers that all subjects share, of which each uses m from a place that its covariates give."""

    def __init__(self, m: int, device: torch.device) -> None:
        self.m, self.device, self.size = m, device, max(_POOL, 4 << (m - 1).bit_length())

    def window(self, x: Tensor) -> Tensor:
        """Places (n, m) of the numbers of subjects with covariates (n, d)."""
        first = torch.from_numpy(places(x.cpu().numpy(), self.size)).to(self.device)
        return (first[:, None] + torch.arange(self.m, device=self.device)) % self.size


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
