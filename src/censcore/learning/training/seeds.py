"""Seeds of the parts of a training run."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch
from torch import nn

__all__ = ["mix_seed", "seeded"]


def mix_seed(seed: int, part: int) -> int:
    """A seed for the noise of one part of a run, from the seed of the whole and the number of the part.

    >>> mix_seed(1, 0) == mix_seed(1, 0), mix_seed(1, 0) == mix_seed(1, 1)
    (True, False)
    """
    return int(np.random.SeedSequence([seed, part + 1]).generate_state(1, np.uint64)[0] >> 1)


@contextmanager
def seeded(network: nn.Module, seed: int, device: torch.device) -> Iterator[None]:
    """Seed the generators of torch that dropout draws from, and leave them as they were found."""
    if not any(isinstance(module, nn.Dropout) and module.p for module in network.modules()):
        yield
        return
    with torch.random.fork_rng(devices=[device] if device.type == "cuda" else []):
        torch.manual_seed(seed)
        yield
