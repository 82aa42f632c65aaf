"""Checkpoints: everything that changes while a network is trained, in one file."""

from __future__ import annotations

import copy
import json
import math
import operator
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

import torch
from torch import Tensor, nn

from censcore.exceptions import ModelFileError
from censcore.learning.data.standardised import Data, digest
from censcore.learning.data.streamed import StreamedRows
from censcore.learning.model_files import part_of, read_model_file, write_model_file
from censcore.learning.training.history import History
from censcore.learning.training.recipe import Recipe
from censcore.learning.training.task import Task

__all__ = ["TrainingState", "among_best", "checkpoint_of", "digests", "identity_of"]

_CHECKPOINT = "training checkpoint"


class TrainingState:
    """What changes while a network is trained: weights, their average, those to keep, the optimiser."""

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
        with checkpoint_of(path, _CHECKPOINT, identity) as (tensors, settings):
            self._restore(tensors, settings, validation)

    def _restore(self, tensors: dict[str, Tensor], settings: dict[str, Any], validation: int) -> None:
        for name, module in self._modules.items():
            module.load_state_dict(part_of(tensors, name))
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


def among_best(losses: Tensor, best: Tensor | None, tolerance: float) -> tuple[Tensor, bool]:
    """The best losses so far, and whether these exceed them by no more than so many standard errors."""
    if best is None or float(losses.mean()) < float(best.mean()):
        best = losses
    worse = losses - best
    error = float(worse.std()) / math.sqrt(len(worse)) if len(worse) > 1 else 0.0
    return best, float(worse.mean()) <= tolerance * error


def digests(rows: Data | StreamedRows) -> Any:
    """Hashes of the data, by which a checkpoint knows them."""
    if isinstance(rows, StreamedRows):
        return rows.digest
    return {name: digest(value) for name, value in rows.items()}


def identity_of(task: Task, network: nn.Module, recipe: Recipe, **data: Any) -> dict[str, Any]:
    """What must be equal for a checkpoint to be continued, as JSON values; patience may change."""
    settings = {
        "recipe": asdict(replace(recipe, patience=None)),
        "network": str(network),
        "task": getattr(task, "identity", {}),
    }
    return json.loads(json.dumps(settings | data))


@contextmanager
def checkpoint_of(
    path: str | os.PathLike[str], kind: str, identity: dict[str, Any]
) -> Iterator[tuple[dict[str, Tensor], dict[str, Any]]]:
    """Tensors and settings of a checkpoint of the same identity; errors in their use are the file's."""
    tensors, settings = read_model_file(path, kind)
    if settings.get("identity") != identity:
        raise ModelFileError(
            f"The checkpoint {path} belongs to a run with other data, settings or seed. Use another path, or "
            "delete it."
        )
    try:
        yield tensors, settings
    except (LookupError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        raise ModelFileError(
            f"The checkpoint {path} cannot be restored ({type(error).__name__}: {error}). Delete it."
        ) from error
