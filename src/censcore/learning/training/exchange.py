"""Devices and processes: where to compute, who has which subjects, one exchange of gradients per step."""

from __future__ import annotations

import os

import numpy as np
import torch
from torch import Tensor, nn

from censcore._validation import is_auto, shown
from censcore.exceptions import InvalidInputError


def rank_and_processes() -> tuple[int, int]:
    """The number of this process and the number of processes; (0, 1) without a process group."""
    if torch.distributed.is_available() and torch.distributed.is_initialized():
        return torch.distributed.get_rank(), torch.distributed.get_world_size()
    return 0, 1


def pick_device(device: str) -> torch.device:
    """A device of torch that exists; ``"auto"`` is a GPU where there is one, in every process another."""
    if not is_auto(device):
        return _named_device(device)
    if not torch.cuda.is_available():
        return torch.device("cpu")
    rank, processes = rank_and_processes()
    number = int(os.environ.get("LOCAL_RANK", rank))
    return torch.device("cuda", number) if processes > 1 else torch.device("cuda")


def _named_device(device: str) -> torch.device:
    try:
        named = torch.device(device)
    except (RuntimeError, TypeError):
        raise InvalidInputError(
            f"device must be 'auto', 'cpu', 'cuda', 'cuda:1' or another device of torch; got {shown(device)}."
        ) from None
    if named.type == "cuda" and (named.index or 0) >= torch.cuda.device_count():
        raise InvalidInputError(
            f"device: got {device!r}, but torch finds {torch.cuda.device_count()} CUDA devices; use 'auto' "
            "to take one where there is one."
        )
    if named.type in ("cpu", "cuda"):
        return named
    try:
        torch.zeros(1, device=named).item()
    except (RuntimeError, NotImplementedError, AssertionError) as error:
        raise InvalidInputError(
            f"device: got {device!r}, on which torch cannot compute here ({str(error).splitlines()[0]}). "
            "Expected a device that is there; 'auto' takes a GPU where there is one."
        ) from error
    return named


def same_everywhere(number: int) -> int:
    """Return the number of the first process, in every process."""
    numbers = [number]
    if rank_and_processes()[1] > 1:
        torch.distributed.broadcast_object_list(numbers)
    return numbers[0]


def share_of(n: int, groups: np.ndarray | None, rank: int, processes: int) -> np.ndarray:
    """The subjects of one process: whole groups, dealt so that the processes have about equally many.

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
    The weights of the network become those of the first process.
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
