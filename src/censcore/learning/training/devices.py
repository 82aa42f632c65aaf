"""The device that a network computes on."""

from __future__ import annotations

import os

import torch

from censcore._validation import shown
from censcore.exceptions import InvalidInputError
from censcore.learning.training.exchange import rank_and_processes

__all__ = ["pick_device"]


def pick_device(device: str) -> torch.device:
    """Choose a device.

    Parameters
    ----------
    device : str
        ``"auto"`` is the GPU where there is one; of several processes each takes a different one. Otherwise
        a device of torch.

    Returns
    -------
    torch.device
        The device; an error is raised if it does not exist.

    Examples
    --------
    >>> pick_device("cpu")
    device(type='cpu')
    """
    if not (isinstance(device, str) and device == "auto"):
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
