"""Losses of subjects that are not trained on, under the same noise every time."""

from __future__ import annotations

import numpy as np
import torch
from torch import Tensor, nn

from censcore.learning.data.standardised import Data, gather
from censcore.learning.data.streamed import subjects_in
from censcore.learning.training.task import Task

__all__ = ["held_out_losses"]


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
    """The loss of every subject, on the CPU and in double precision.

    Parameters
    ----------
    task : Task
        Draws the noise and knows the loss.
    network : module
        What is judged; it is set to evaluation.
    data : mapping of tensors with the subjects as first axis
        The subjects.
    seed : int
        Of the noise: networks that are judged with the same seed, data and batches meet the same.
    at_once : int
        Subjects per batch, which alone are on the device of the network.
    weighted : bool
        Multiply by the weights of the subjects, where there are any.
    most : int, optional
        Only this many subjects, the first ones.

    Returns
    -------
    tensor, (n,)

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
    return torch.cat(losses).double().cpu()
