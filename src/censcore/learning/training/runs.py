"""Training runs: epoch by epoch, validated, interruptible, and resumed from checkpoints."""

from __future__ import annotations

import functools
import json
import math
import operator
import os
from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from censcore.exceptions import InvalidInputError, ModelFileError
from censcore.files import as_path
from censcore.learning.data.standardised import Data, as_arrays, as_tensors, digest
from censcore.learning.training.task import Callback, Epoch, History, Recipe, Task, seeded
from censcore.model_files import read_model_file, write_model_file
from censcore.progress import ProgressBar


class Run(ABC):
    """The training of one network or several; a subclass trains them for an epoch.

    ``held_out`` are the numbers of subjects that validate each network. One without any keeps its last
    weights; others keep their averaged weights whenever the validation loss is among the best.
    """

    rank = 0  # of the process

    def __init__(self, task: Task, recipe: Recipe, device: torch.device, held_out: Sequence[int]) -> None:
        self.task, self.recipe, self.device, self.sizes = task, recipe, device, list(held_out)
        self.network = task.network.to(device)
        self.histories = [History() for _ in self.sizes]
        self.best: list[Tensor | None] = [None] * len(self.sizes)  # validation losses of the best epoch
        self.going = np.ones(len(self.sizes), dtype=bool)
        self.steps = 0

    @abstractmethod
    def _steps(self, number: int, seed: int) -> tuple[list[float], float]:
        """The steps of an epoch, with this seed of the noise: mean losses, and the last learning rate."""

    @abstractmethod
    def _noise_seed(self, number: int) -> int:
        """The seed of an epoch's noise."""

    @abstractmethod
    def validate(self) -> Sequence[Tensor]:
        """Validation losses of the averaged weights, weighted, with the same noise every time."""

    @abstractmethod
    def _keep(self, i: int) -> None:
        """Keep the averaged weights of network i."""

    @abstractmethod
    def _finish(self) -> None:
        """Give every network the weights that it keeps."""

    @abstractmethod
    def _averaged(self, i: int) -> nn.Module:
        """Network i with averaged weights."""

    @property
    @abstractmethod
    def _tensors(self) -> dict[str, Tensor]:
        """What changes, apart from losses."""

    @abstractmethod
    def _restore(self, tensors: dict[str, Tensor]) -> None:
        """Take back what ``_tensors`` gave."""

    @property
    @abstractmethod
    def _data(self) -> dict[str, Any]:
        """What identifies data and seeds, as JSON values."""

    # ---- epochs --------------------------------------------------------------------------------

    def train(
        self,
        callbacks: Sequence[Callback] = (),
        checkpoint: str | os.PathLike[str] | None = None,
        progress: bool | None = None,
    ) -> list[History]:
        """Train from a checkpoint on, until all have stopped or Ctrl-C ends it; keep the best weights."""
        first, epochs = self.rank == 0, self.recipe.epochs
        if checkpoint is not None and as_path(checkpoint, "checkpoint").exists():
            self.resume(checkpoint)
        with ProgressBar("training", epochs, self.next_epoch, first and progress) as bar:
            try:
                while self.going.any() and self.next_epoch < epochs:
                    self.epoch()
                    if checkpoint is not None and first:
                        self.save(checkpoint)
                    last = [history.epochs[-1] for history in self.histories]
                    bar.advance(f"loss {np.mean([epoch.train_loss for epoch in last]):.4f}")
                    for i in np.flatnonzero(self.going).tolist() if callbacks else ():
                        network = self._averaged(i)
                        self.going[i] &= not sum(callback(last[i], network) is True for callback in callbacks)
            except KeyboardInterrupt:
                for history in self.histories:
                    history.interrupted = True
        self._finish()
        return self.histories

    def epoch(self) -> None:
        """Train for an epoch, and validate where that is due."""
        number = self.next_epoch
        self.network.train()
        seed = self._noise_seed(number)
        with seeded(self.network, seed, self.device):
            losses, rate = self._steps(number, seed)
        held_out = self.validate() if any(self.sizes) and self.recipe.validates(number) else None
        for i in np.flatnonzero(self.going).tolist():
            self._note(i, losses[i], rate, held_out[i] if held_out is not None and self.sizes[i] else None)

    @property
    def next_epoch(self) -> int:
        """The number of epochs so far."""
        return max(len(history.epochs) for history in self.histories)

    def _note(self, i: int, loss: float, rate: float, losses: Tensor | None) -> None:
        """One more epoch of network i, with its validation losses if they were due."""
        number, history = len(self.histories[i].epochs), self.histories[i]
        if not math.isfinite(loss):
            raise InvalidInputError(
                f"The training loss became {loss} in epoch {number}. Lower learning_rate, or look for "
                "extreme values among the covariates and times."
            )
        keep = best = not self.sizes[i]
        if losses is not None:
            self.best[i], keep = _among_best(losses, self.best[i], self.recipe.tolerance)
            best = self.best[i] is losses
        if best:
            history.best_epoch = number
        if keep:
            history.kept_epoch = number
            self._keep(i)
        validated = None if losses is None else float(losses.mean())
        history.epochs.append(Epoch(number, loss, validated, rate, best))
        self.going[i] = self._has_patience(i)

    def _has_patience(self, i: int) -> bool:
        patience, history = self.recipe.patience, self.histories[i]
        if patience is None or not self.sizes[i] or not history.epochs:
            return True
        return len(history.epochs) - 1 - history.best_epoch < patience

    # ---- checkpoints ---------------------------------------------------------------------------

    @property
    def _kind(self) -> str:
        return f"checkpoint of {len(self.sizes)} networks"

    @functools.cached_property
    def _identity(self) -> dict[str, Any]:
        """What must be equal for a checkpoint to be continued; patience may change."""
        settings = {
            "recipe": asdict(replace(self.recipe, patience=None)),
            "network": str(self.task.network),
            "task": getattr(self.task, "identity", {}),
        }
        return json.loads(json.dumps(settings | self._data))

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write a checkpoint."""
        best = {f"best_losses.{i}": losses for i, losses in enumerate(self.best) if losses is not None}
        settings = {"histories": self.histories, "steps": self.steps, "identity": self._identity}
        write_model_file(path, self._kind, as_arrays(self._tensors | best), settings)

    def resume(self, path: str | os.PathLike[str]) -> None:
        """Continue from a checkpoint of a run of the same identity."""
        with checkpoint_of(path, self._kind, self._identity) as (tensors, settings):
            self.best = [tensors.get(f"best_losses.{i}") for i in range(len(self.best))]
            for losses, size in zip(self.best, self.sizes, strict=True):
                if losses is not None and losses.shape != (size,):
                    raise ValueError("best_losses has not one loss per validation subject")
            self.histories = [History.from_dict(h | {"interrupted": False}) for h in settings["histories"]]
            self.steps = operator.index(settings["steps"])
            self._restore(tensors)
            self.going = np.array([self._has_patience(i) for i in range(len(self.sizes))])


def _among_best(losses: Tensor, best: Tensor | None, tolerance: float) -> tuple[Tensor, bool]:
    """The best losses so far, and whether these exceed them by no more than so many standard errors."""
    if best is None or float(losses.mean()) < float(best.mean()):
        best = losses
    worse = losses - best
    error = float(worse.std()) / math.sqrt(len(worse)) if len(worse) > 1 else 0.0
    return best, float(worse.mean()) <= tolerance * error


def digests(rows: Data) -> dict[str, str]:
    """Return hashes of the data, by which a checkpoint knows them."""
    return {name: digest(value) for name, value in rows.items()}


@contextmanager
def checkpoint_of(
    path: str | os.PathLike[str], kind: str, identity: dict[str, Any]
) -> Iterator[tuple[dict[str, Tensor], dict[str, Any]]]:
    """Tensors and settings of a checkpoint of the same identity; errors in their use are the file's."""
    arrays, settings = read_model_file(path, kind)
    if settings.get("identity") != identity:
        raise ModelFileError(
            f"The checkpoint {path} belongs to a run with other data, settings or seed. Use another path, or "
            "delete it."
        )
    try:
        yield as_tensors(arrays), settings
    except (LookupError, TypeError, ValueError, RuntimeError, AttributeError) as error:
        raise ModelFileError(
            f"The checkpoint {path} cannot be restored ({type(error).__name__}: {error}). Delete it."
        ) from error
