"""What is trained: a network, the noise of a batch, a loss per subject; losses of held-out ones."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from censcore.learning.data.standardised import Data, gather
from censcore.learning.data.streamed import subjects_in
from censcore.learning.training.history import Epoch

__all__ = ["Callback", "Rows", "Task", "held_out_losses", "mix_seed", "seeded"]

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


@torch.no_grad()
def held_out_losses(
    task: Task,
    network: nn.Module,
    data: Data,
    *,
    seed: int,
    at_once: int,
    weighted: bool = False,
    most: int | None = None,
) -> Tensor:
    """The loss of every subject, or of so many, on the CPU and in double precision.

    Networks that are judged with the same seed of the noise, data and batches meet the same. Only a batch is
    on the device of the network. ``weighted`` multiplies by the weights of the subjects, relative to their
    mean, where there are any.

    Examples
    --------
    >>> class Squares:
    ...     def draw(self, n, generator, device, validating=False):
    ...         return {}
    ...
    ...     def loss(self, network, rows, random):
    ...         return (network(rows["x"])[:, 0] - rows["y"]) ** 2
    >>> data = {"x": torch.ones(3, 2), "y": torch.tensor([0.0, 1.0, 2.0])}
    >>> held_out_losses(Squares(), nn.Linear(2, 1), data, seed=0, at_once=2).shape
    torch.Size([3])
    """
    device = next(network.parameters()).device
    generator = torch.Generator(device).manual_seed(seed)
    network.eval()
    n = subjects_in(data) if most is None else min(most, subjects_in(data))
    losses = []
    for start in range(0, n, at_once):
        index = np.arange(start, min(n, start + at_once))
        batch = gather(data, index, device)
        loss = task.loss(network, batch, task.draw(len(index), generator, device, validating=True))
        losses.append(loss * batch["weight"] if weighted and "weight" in batch else loss)
    # made last: a result that outlives the batches, placed below them, would keep the heap from shrinking
    found = torch.cat(losses).double().cpu()
    return found * n / float(data["weight"][:].double().sum()) if weighted and "weight" in data else found
