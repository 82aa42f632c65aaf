"""One training loop for every neural model: seeded, resumable, interruptible, on one process or several."""

from __future__ import annotations

import math
import operator
import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor, nn

from censcore.estimators.neural.batches import Batches
from censcore.estimators.neural.cuda_graphs import GraphedEpochs, fits_on_device
from censcore.estimators.neural.exchange import SharedGradient, share_of
from censcore.estimators.neural.history import Epoch, History
from censcore.estimators.neural.model_files import read_model_file, write_model_file
from censcore.estimators.neural.recipe import Recipe
from censcore.estimators.neural.standardised import Data, OnDemand, blocks, digest
from censcore.estimators.neural.streamed import StreamedRows, subjects_in
from censcore.exceptions import InvalidInputError, ModelFileError
from censcore.progress import ProgressBar

__all__ = [
    "Epoch",
    "History",
    "Recipe",
    "Rows",
    "Task",
    "mix_seed",
    "rank_and_processes",
    "same_everywhere",
    "train",
]

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


def train(
    task: Task,
    rows: Data | StreamedRows,
    validation: Data | None,
    recipe: Recipe,
    *,
    seed: int,
    device: torch.device,
    groups: np.ndarray | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool = False,
) -> History:
    """Train ``task.network`` in place and leave it with the best weights.

    Parameters
    ----------
    task : Task
        What is trained.
    rows, validation : mappings of tensors with the subjects as first axis
        Training and validation data; an entry ``"weight"`` holds weights. They may stay in CPU memory, and
        covariates in a mapped file (:class:`~censcore.estimators.neural.standardised.Standardised`):
        batches are copied to the device. Training data that are too large for that are read again in every
        epoch (:class:`~censcore.estimators.neural.streamed.StreamedRows`).
    recipe : Recipe
        How to train.
    seed : int
        The order of subjects, the noise and everything else random follow from it, epoch by epoch.
    device : torch.device
        Where to compute.
    groups : array, optional
        No two subjects of one group share a batch.
    callbacks : sequence of callables
        Called after every epoch with ``(epoch, network)``; one that returns True stops the training.
    checkpoint : path, optional
        State after every epoch. If the file exists, training goes on from it and ends where an uninterrupted
        run would have ended.
    progress : bool
        Show a progress bar.

    Returns
    -------
    History
        Losses by epoch.

    Examples
    --------
    Linear regression as a task without random numbers:

    >>> class Squares:
    ...     network = nn.Linear(2, 1)
    ...
    ...     def draw(self, n, generator, device, validating=False):
    ...         return {}
    ...
    ...     def loss(self, network, rows, random):
    ...         return (network(rows["x"])[:, 0] - rows["y"]) ** 2
    >>> x = torch.randn(200, 2, generator=torch.Generator().manual_seed(0))
    >>> recipe = Recipe(epochs=30, batch_size=20, learning_rate=0.05)
    >>> history = train(Squares(), {"x": x, "y": x.sum(1)}, None, recipe, seed=0, device=torch.device("cpu"))
    >>> history.epochs[-1].train_loss < 0.01
    True
    """
    run = _Run(task, rows, validation, recipe, seed, device, groups)
    if checkpoint is not None and Path(checkpoint).exists():
        run.resume(checkpoint)
    with ProgressBar("training", recipe.epochs, run.next_epoch, progress and run.rank == 0) as bar:
        try:
            while not run.finished:
                epoch = run.epoch()
                if checkpoint is not None and run.rank == 0:
                    run.save(checkpoint)
                loss = epoch.train_loss if epoch.validation_loss is None else epoch.validation_loss
                bar.advance(f"loss {loss:.4f}")
                if sum(callback(epoch, run.averaged) is True for callback in callbacks):
                    break
        except KeyboardInterrupt:
            run.history.interrupted = True
    run.keep_best()
    return run.history


class _Run:
    """The state of one training run: everything a checkpoint must hold."""

    def __init__(
        self,
        task: Task,
        rows: Data | StreamedRows,
        validation: Data | None,
        recipe: Recipe,
        seed: int,
        device: torch.device,
        groups: np.ndarray | None,
        captured: bool = True,
    ) -> None:
        self.task, self.rows, self.validation, self.recipe = task, rows, validation, recipe
        self.seed, self.device = seed, device
        self.rank, self.processes = rank_and_processes()
        n = subjects_in(rows)
        self.batches = Batches(n, recipe.batch_size, groups)
        self.network = task.network.to(device)
        self.subjects: np.ndarray | None = None
        self.shared: SharedGradient | None = None
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            if not isinstance(rows, StreamedRows):  # which has the share of this process already
                self.subjects = share_of(n, groups, self.rank, self.processes)
                own = None if groups is None else np.asarray(groups)[self.subjects]
                self.batches = Batches(len(self.subjects), recipe.batch_size, own, count=len(self.batches))
            self.shared = SharedGradient(self.network)
        captured = captured and device.type == "cuda" and not isinstance(rows, StreamedRows)
        self.optimizer = _optimizer(self.network, recipe, device if captured else None)
        self.averaged = _clone(self.network)
        self.best = _clone(self.network)
        self.history = History()
        self.best_losses: Tensor | None = None
        self.steps = 0
        self.graphed = self._graphed() if captured else None

    def _graphed(self) -> GraphedEpochs:
        """Epochs on a GPU are replays of one captured step."""
        assert not isinstance(self.rows, StreamedRows)
        total = self.recipe.epochs * len(self.batches)
        return GraphedEpochs(
            self.rows,
            fits_on_device(self.rows, self.device, self.processes),
            self.network,
            self.averaged,
            self.optimizer,
            self.task.draw,
            self.task.loss,
            self.batches,
            np.array([self.recipe.rate(step, total) for step in range(total)]),
            self.recipe.clip,
            self.recipe.averaging,
            self.recipe.compile,
            self.subjects,
            self.shared,
        )

    @property
    def next_epoch(self) -> int:
        return len(self.history.epochs)

    @property
    def finished(self) -> bool:
        waited = self.next_epoch - 1 - self.history.best_epoch
        out_of_patience = (
            self.validation is not None
            and self.recipe.patience is not None
            and waited >= self.recipe.patience
        )
        return self.next_epoch >= self.recipe.epochs or (self.next_epoch > 0 and out_of_patience)

    def epoch(self) -> Epoch:
        number = self.next_epoch
        self.network.train()
        total, weight = self._graph_steps(number) if self.graphed else self._eager_steps(number)
        rate = float(self.optimizer.param_groups[0]["lr"])
        epoch = Epoch(
            number, float(total / weight), self._validated(number), rate, self.history.best_epoch == number
        )
        if not math.isfinite(epoch.train_loss):
            raise InvalidInputError(
                f"The training loss became {epoch.train_loss} in epoch {number}. Lower learning_rate, or "
                "look for extreme values among the covariates and times."
            )
        self.history.epochs.append(epoch)
        return epoch

    def _eager_steps(self, number: int) -> tuple[Tensor, Tensor]:
        generator = torch.Generator(self.device).manual_seed(self._noise_seed(number))
        total, weight = torch.zeros((), device=self.device), torch.zeros((), device=self.device)
        for batch in self._minibatches(number):
            if _size(batch) or self.shared is not None:  # every process takes part in every exchange
                loss, size = self.step(batch, generator)
                total, weight = total + loss, weight + size
        return total, weight

    def _minibatches(self, number: int) -> Iterator[dict[str, Tensor]]:
        if isinstance(self.rows, StreamedRows):
            for batch in self.rows.epoch(self.seed, number, len(self.batches)):
                yield {name: value.to(self.device) for name, value in batch.items()}
            return
        for index in self.batches.epoch(self.seed, number):
            yield _gather(self.rows, index if self.subjects is None else self.subjects[index], self.device)

    def _noise_seed(self, number: int) -> int:
        """The seed of an epoch's noise, another one in every process."""
        seed = mix_seed(self.seed, number)
        return mix_seed(seed, self.rank) if self.processes > 1 else seed

    def _graph_steps(self, number: int) -> tuple[Tensor, Tensor]:
        assert self.graphed is not None
        sums = self.graphed.run(self.seed, number, self._noise_seed(number), self.steps)
        self.steps += len(self.batches)
        return sums

    def _validated(self, number: int) -> float | None:
        """The validation loss, if it is due; keeps the weights if it is among the best."""
        last = number + 1 == self.recipe.epochs
        if self.validation is None:
            # without validation data the last weights are kept
            self._keep(number)
            self.history.best_epoch = number
            return None
        if (number + 1) % self.recipe.validate_every and not last:
            return None
        losses = self.validate()
        if self.best_losses is None or float(losses.mean()) < float(self.best_losses.mean()):
            self.best_losses, self.history.best_epoch = losses, number
        worse = losses - self.best_losses
        error = float(worse.std()) / math.sqrt(len(worse)) if len(worse) > 1 else 0.0
        if float(worse.mean()) <= self.recipe.tolerance * error:
            self._keep(number)
        return float(losses.mean())

    def _keep(self, number: int) -> None:
        _copy(self.averaged, self.best)
        self.history.kept_epoch = number

    def step(self, batch: Rows, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """One update; the sums of losses and of weights, over all processes."""
        n = _size(batch)
        for group in self.optimizer.param_groups:
            group["lr"] = self.recipe.rate(self.steps, self.recipe.epochs * len(self.batches))
        random = self.task.draw(n, generator, self.device)
        weight = batch.get("weight", torch.ones(n, device=self.device))
        if self.shared is None:
            size = weight.sum()
            loss = (self.task.loss(self.network, batch, random) * weight).sum() / size
            self.optimizer.zero_grad(set_to_none=True)
            loss.backward()
            total = loss.detach() * size
        else:
            losses = self.task.loss(self.network, batch, random) if n else weight
            self.shared.add(losses, weight)
            self.shared.exchange()
            total, size = self.shared.finish()
        if self.recipe.clip is not None:
            nn.utils.clip_grad_norm_(self.network.parameters(), self.recipe.clip)
        self.optimizer.step()
        self.steps += 1
        _average(self.averaged, self.network, self.recipe.averaging, self.steps)
        return total, size

    @torch.no_grad()
    def validate(self) -> Tensor:
        """Validation losses of the averaged weights, weighted, with the same noise every time."""
        assert self.validation is not None
        generator = torch.Generator(self.device).manual_seed(mix_seed(self.seed, -1))
        self.averaged.eval()
        n = len(next(iter(self.validation.values())))
        losses = []
        for start in range(0, n, self.recipe.validation_batch):
            index = np.arange(start, min(n, start + self.recipe.validation_batch))
            batch = _gather(self.validation, index, self.device)
            loss = self.task.loss(
                self.averaged, batch, self.task.draw(len(index), generator, self.device, validating=True)
            )
            losses.append(loss * batch["weight"] if "weight" in batch else loss)
        weighted = torch.cat(losses).double().cpu()
        return weighted * n / _total(self.validation["weight"]) if "weight" in self.validation else weighted

    def keep_best(self) -> None:
        _copy(self.best, self.network)
        self.network.eval()

    def save(self, path: str | os.PathLike[str]) -> None:
        tensors = {f"network.{n}": v for n, v in self.network.state_dict().items()}
        tensors |= {f"averaged.{n}": v for n, v in self.averaged.state_dict().items()}
        tensors |= {f"best.{n}": v for n, v in self.best.state_dict().items()}
        for i, state in self.optimizer.state_dict()["state"].items():
            tensors |= {f"optimizer.{i}.{n}": v for n, v in state.items()}
        if self.best_losses is not None:
            tensors["best_losses"] = self.best_losses
        settings = {
            "history": self.history.to_dict(),
            "steps": self.steps,
            "identity": self._identity,
        }
        write_model_file(path, "training checkpoint", tensors, settings)

    def resume(self, path: str | os.PathLike[str]) -> None:
        tensors, settings = read_model_file(path, "training checkpoint")
        if settings.get("identity") != self._identity:
            raise ModelFileError(
                f"The checkpoint {path} belongs to a run with other data, settings or seed. Use another "
                "path, or delete it."
            )
        try:
            self._restore(tensors, settings)
        except (LookupError, TypeError, ValueError, RuntimeError, AttributeError) as error:
            raise ModelFileError(
                f"The checkpoint {path} cannot be restored ({type(error).__name__}: {error}). Delete it."
            ) from error

    def _restore(self, tensors: dict[str, Tensor], settings: dict[str, Any]) -> None:
        for name, module in (("network", self.network), ("averaged", self.averaged), ("best", self.best)):
            prefix = f"{name}."
            module.load_state_dict(
                {n.removeprefix(prefix): v for n, v in tensors.items() if n.startswith(prefix)}
            )
        self._resume_optimizer(tensors)
        self.history = History.from_dict(settings["history"] | {"interrupted": False})
        self.best_losses = tensors.get("best_losses")
        if self.best_losses is not None and self.best_losses.shape != (_subjects(self.validation),):
            raise ValueError("best_losses has not one loss per validation subject")
        self.steps = operator.index(settings["steps"])

    def _resume_optimizer(self, tensors: dict[str, Tensor]) -> None:
        state: dict[int, dict[str, Tensor]] = {}
        parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        for name, value in tensors.items():
            if name.startswith("optimizer."):
                _, i, entry = name.split(".")
                if value.ndim and value.shape != parameters[int(i)].shape:
                    raise ValueError(f"{name} has the shape {tuple(value.shape)}")
                state.setdefault(int(i), {})[entry] = value
        self.optimizer.load_state_dict(self.optimizer.state_dict() | {"state": state})

    @cached_property
    def _identity(self) -> dict[str, Any]:
        """What must be equal for a checkpoint to be continued; patience may change."""
        data = {"training": _content(self.rows), "validation": _content(self.validation or {})}
        return {
            "seed": self.seed,
            "rows": subjects_in(self.rows),
            "batches": len(self.batches),
            "data": data,
            "recipe": asdict(replace(self.recipe, patience=None)),
            "network": str(self.network),
            "task": getattr(self.task, "identity", {}),
        }


def _optimizer(network: nn.Module, recipe: Recipe, graphed: torch.device | None) -> torch.optim.AdamW:
    """AdamW; a network may name parameters that weight decay leaves alone."""
    undecayed: Any = getattr(network, "undecayed", list)
    spared = {id(p) for p in undecayed()}
    groups = [
        {
            "params": [p for p in network.parameters() if id(p) not in spared],
            "weight_decay": recipe.weight_decay,
        },
        {"params": [p for p in network.parameters() if id(p) in spared], "weight_decay": 0.0},
    ]
    groups = [g for g in groups if g["params"]]
    if graphed is None:
        return torch.optim.AdamW(groups, lr=recipe.learning_rate, foreach=True)
    for group in groups:
        group["lr"] = torch.tensor(recipe.learning_rate, device=graphed)
    # the compiler makes one kernel for all parameters of the foreach version; the fused one is closed to it
    return torch.optim.AdamW(groups, foreach=recipe.compile, fused=not recipe.compile, capturable=True)


def _content(rows: Data | StreamedRows) -> Any:
    """Hashes of the data."""
    if isinstance(rows, StreamedRows):
        return rows.digest
    return {name: digest(value) for name, value in rows.items()}


def _subjects(rows: Data | None) -> int:
    return 0 if rows is None else subjects_in(rows)


def _size(batch: Rows) -> int:
    return len(next(iter(batch.values())))


def _total(value: Tensor | OnDemand) -> float:
    width = math.prod(value.shape[1:])
    return sum(float(value[rows].double().sum()) for rows in blocks(len(value), width))


def _gather(rows: Data, index: np.ndarray, device: torch.device) -> dict[str, Tensor]:
    position = torch.from_numpy(index)
    return {
        name: value[position.to(value.device)].to(device, non_blocking=True) for name, value in rows.items()
    }


def _clone(module: nn.Module) -> nn.Module:
    import copy

    return copy.deepcopy(module).requires_grad_(False)


@torch.no_grad()
def _copy(source: nn.Module, target: nn.Module) -> None:
    target.load_state_dict(source.state_dict())


@torch.no_grad()
def _average(averaged: nn.Module, network: nn.Module, decay: float | None, step: int) -> None:
    """Exponential moving average whose memory grows with the run, so that the start is forgotten."""
    weight = 1.0 if decay is None else 1 - min(decay, (1 + step) / (10 + step))
    torch._foreach_lerp_(list(averaged.parameters()), list(network.parameters()), weight)
    for old, new in zip(averaged.buffers(), network.buffers(), strict=True):
        old.copy_(new)


def mix_seed(seed: int, part: int) -> int:
    """A seed for the noise of one part of a run, from the seed of the whole and the number of the part.

    >>> mix_seed(1, 0) == mix_seed(1, 0), mix_seed(1, 0) == mix_seed(1, 1)
    (True, False)
    """
    return int(np.random.SeedSequence([seed, part + 1]).generate_state(1, np.uint64)[0] >> 1)


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
