"""What is trained: a network, the noise of a batch, and a loss per subject."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, Protocol

import torch
from torch import Tensor, nn

from censcore.learning.training.history import Epoch

__all__ = ["Callback", "Rows", "Task"]

Rows = Mapping[str, Tensor]


class Task(Protocol):
    """What is trained: a network, the random numbers that a batch needs, and a loss per subject.

    A task may have an ``identity``, JSON values that must be equal for a checkpoint to be continued.
    """

    @property
    def network(self) -> nn.Module:
        """What is trained."""

    def draw(
        self, n: int, generator: torch.Generator, device: torch.device, validating: bool = False
    ) -> dict[str, Tensor]:
        """The random numbers of a batch of n subjects, which are the first axis of each array."""

    def loss(self, network: nn.Module, rows: Rows, random: Rows) -> Tensor:
        """One loss per subject of the batch."""


Callback = Callable[[Epoch, nn.Module], Any]
