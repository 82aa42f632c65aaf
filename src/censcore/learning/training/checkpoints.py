"""Checkpoints: everything that changes while a network is trained, in one file."""

from __future__ import annotations

import copy
import operator
import os
from typing import Any

import torch
from torch import Tensor, nn

from censcore.exceptions import ModelFileError
from censcore.learning.data.standardised import Data, digest
from censcore.learning.data.streamed import StreamedRows
from censcore.learning.model_files import read_model_file, write_model_file
from censcore.learning.training.history import History

__all__ = ["TrainingState", "digests"]

_CHECKPOINT = "training checkpoint"


class TrainingState:
    """What changes while a network is trained.

    Parameters
    ----------
    network : module
        What is trained.
    optimizer : optimizer
        With its moments.

    Attributes
    ----------
    averaged, best : module
        The moving average of the weights, and the weights to keep.
    history : History
        The epochs so far.
    best_losses : tensor or None
        Validation losses of the best epoch.
    steps : int
        Steps so far.
    """

    def __init__(self, network: nn.Module, optimizer: torch.optim.Optimizer) -> None:
        self.network, self.optimizer = network, optimizer
        self.averaged, self.best = _frozen(network), _frozen(network)
        self.history = History()
        self.best_losses: Tensor | None = None
        self.steps = 0

    @torch.no_grad()
    def average(self, decay: float | None) -> None:
        """Exponential moving average whose memory grows with the run, so that the start is forgotten."""
        step = self.steps
        weight = 1.0 if decay is None else 1 - min(decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(list(self.averaged.parameters()), list(self.network.parameters()), weight)
        for old, new in zip(self.averaged.buffers(), self.network.buffers(), strict=True):
            old.copy_(new)

    def keep(self, epoch: int) -> None:
        """Keep the averaged weights of an epoch."""
        self.best.load_state_dict(self.averaged.state_dict())
        self.history.kept_epoch = epoch

    def finish(self) -> None:
        """Give the network the weights that were kept."""
        self.network.load_state_dict(self.best.state_dict())
        self.network.eval()

    @property
    def _modules(self) -> dict[str, nn.Module]:
        return {"network": self.network, "averaged": self.averaged, "best": self.best}

    def save(self, path: str | os.PathLike[str], identity: dict[str, Any]) -> None:
        """Write a checkpoint, with what a run must have in common with this one to continue it."""
        tensors = {
            f"{prefix}.{name}": value
            for prefix, module in self._modules.items()
            for name, value in module.state_dict().items()
        }
        for i, state in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{i}.{name}": value for name, value in state.items()}
        if self.best_losses is not None:
            tensors["best_losses"] = self.best_losses
        settings = {"history": self.history.to_dict(), "steps": self.steps, "identity": identity}
        write_model_file(path, _CHECKPOINT, tensors, settings)

    def resume(self, path: str | os.PathLike[str], identity: dict[str, Any], validation: int) -> None:
        """Continue from a checkpoint of a run of the same identity, with so many validation subjects."""
        tensors, settings = read_model_file(path, _CHECKPOINT)
        if settings.get("identity") != identity:
            raise ModelFileError(
                f"The checkpoint {path} belongs to a run with other data, settings or seed. Use another "
                "path, or delete it."
            )
        try:
            self._restore(tensors, settings, validation)
        except (LookupError, TypeError, ValueError, RuntimeError, AttributeError) as error:
            raise ModelFileError(
                f"The checkpoint {path} cannot be restored ({type(error).__name__}: {error}). Delete it."
            ) from error

    def _restore(self, tensors: dict[str, Tensor], settings: dict[str, Any], validation: int) -> None:
        for name, module in self._modules.items():
            prefix = f"{name}."
            module.load_state_dict(
                {n.removeprefix(prefix): v for n, v in tensors.items() if n.startswith(prefix)}
            )
        self._restore_optimizer(tensors)
        self.history = History.from_dict(settings["history"] | {"interrupted": False})
        self.best_losses = tensors.get("best_losses")
        if self.best_losses is not None and self.best_losses.shape != (validation,):
            raise ValueError("best_losses has not one loss per validation subject")
        self.steps = operator.index(settings["steps"])

    def _restore_optimizer(self, tensors: dict[str, Tensor]) -> None:
        state: dict[int, dict[str, Tensor]] = {}
        parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        for name, value in tensors.items():
            if name.startswith("optimizer."):
                _, i, entry = name.split(".")
                if value.ndim and value.shape != parameters[int(i)].shape:
                    raise ValueError(f"{name} has the shape {tuple(value.shape)}")
                state.setdefault(int(i), {})[entry] = value
        self.optimizer.load_state_dict(self.optimizer.state_dict() | {"state": state})


def _frozen(network: nn.Module) -> nn.Module:
    """A copy that is not trained."""
    return copy.deepcopy(network).requires_grad_(False)


def digests(rows: Data | StreamedRows) -> Any:
    """Hashes of the data, by which a checkpoint knows them."""
    if isinstance(rows, StreamedRows):
        return rows.digest
    return {name: digest(value) for name, value in rows.items()}
