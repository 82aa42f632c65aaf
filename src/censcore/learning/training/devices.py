"""Devices: where networks compute."""

from __future__ import annotations

import torch

from censcore._validation import is_auto, shown
from censcore.exceptions import InvalidInputError


def pick_device(device: str) -> torch.device:
    """Return a device of torch that exists; ``"auto"`` is a GPU where there is one."""
    if is_auto(device):
        return torch.device("cuda" if torch.cuda.is_available() else "cpu")
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
