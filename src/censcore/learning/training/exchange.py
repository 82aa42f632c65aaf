"""Several processes: how many, which subjects each of them has, and one exchange of gradients per step."""

from __future__ import annotations

from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from censcore.exceptions import InvalidInputError

__all__ = ["SharedGradient", "gathered", "rank_and_processes", "same_everywhere", "share_of"]


def rank_and_processes() -> tuple[int, int]:
    """The number of this process and the number of processes; (0, 1) without a process group.

    >>> rank_and_processes()
    (0, 1)
    """
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return 0, 1


def same_everywhere(number: int) -> int:
    """The number of the first process, in every process.

    >>> same_everywhere(7)
    7
    """
    if rank_and_processes()[1] == 1:
        return number
    shared = [number]
    torch.distributed.broadcast_object_list(shared)
    return shared[0]


def gathered(value: Any) -> list[Any]:
    """The values of all processes, in their order.

    >>> gathered(7)
    [7]
    """
    processes = rank_and_processes()[1]
    if processes == 1:
        return [value]
    found: list[Any] = [None] * processes
    torch.distributed.all_gather_object(found, value)
    return found


def share_of(n: int, groups: np.ndarray | None, rank: int, processes: int) -> np.ndarray:
    """The subjects of one process: whole groups, dealt so that the processes have about equally many.

    Parameters
    ----------
    n : int
        Number of subjects.
    groups : array, (n,), optional
        Subjects of one group belong to one process, so that batches of different processes share none.
    rank, processes : int
        Number of the process, and of processes.

    Examples
    --------
    >>> share_of(5, None, 0, 2), share_of(5, np.array([7, 7, 7, 8, 9]), 1, 2)
    (array([0, 2, 4]), array([3, 4]))
    """
    if groups is None:
        number, sizes = np.arange(n), np.ones(n, dtype=np.intp)
    else:
        number, sizes = np.unique(groups, return_inverse=True, return_counts=True)[1:]
    if len(sizes) < processes:
        what = "subjects" if groups is None else "groups"
        raise InvalidInputError(
            f"got {len(sizes)} {what} for {processes} processes, expected at least one for each; use fewer "
            "processes."
        )
    # the largest first, forth and back
    lap, seat = np.divmod(np.arange(len(sizes)), processes)
    forth = (lap % 2 == 0) | (groups is None)
    owner = np.empty(len(sizes), dtype=np.intp)
    owner[np.argsort(-sizes, kind="stable")] = np.where(forth, seat, processes - 1 - seat)
    return np.flatnonzero(owner[number] == rank)


class SharedGradient:
    """The gradients of all parameters in one buffer, with the sum of losses and the weight they belong to.

    One sum over the processes per step then gives every process the gradient of the whole batch.

    Parameters
    ----------
    network : module
        Its gradients become parts of the buffer; its weights those of the first process.
    """

    def __init__(self, network: nn.Module) -> None:
        parameters = list(network.parameters())
        for tensor in (*parameters, *network.buffers()):
            torch.distributed.broadcast(tensor.detach(), 0)
        sizes = [p.numel() for p in parameters]
        self.flat = torch.zeros(sum(sizes) + 2, dtype=parameters[0].dtype, device=parameters[0].device)
        for p, part in zip(parameters, self.flat[:-2].split(sizes), strict=True):
            p.grad = part.view_as(p)

    def add(self, losses: Tensor, weight: Tensor) -> None:
        """The gradient of the weighted sum of the losses of this process."""
        self.flat.zero_()
        loss = (losses * weight).sum()
        if loss.requires_grad:  # not where the batch has no subject in this process
            loss.backward()
        with torch.no_grad():
            self.flat[-2].copy_(loss.detach())
            self.flat[-1].copy_(weight.sum())

    def exchange(self) -> None:
        """Sum over the processes."""
        torch.distributed.all_reduce(self.flat)

    @torch.no_grad()
    def finish(self) -> tuple[Tensor, Tensor]:
        """Make it the gradient of the mean; the sum of losses and of weights of all processes."""
        total, weight = self.flat[-2].clone(), self.flat[-1].clone()
        self.flat[:-2].div_(torch.where(weight > 0, weight, torch.ones_like(weight)))
        return total, weight
