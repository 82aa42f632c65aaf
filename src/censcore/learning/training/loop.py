"""One training loop for every neural model: seeded, resumable, interruptible, on one process or several."""

from __future__ import annotations

import copy
import os
from collections.abc import Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from censcore.learning.data.standardised import Data, gather, subjects_in
from censcore.learning.training.cuda_graphs import GraphedEpochs, fits_on_device
from censcore.learning.training.exchange import SharedGradient, rank_and_processes, share_of
from censcore.learning.training.minibatches import Batches
from censcore.learning.training.runs import Run, digests
from censcore.learning.training.task import Callback, History, Recipe, Rows, Task, held_out_losses, mix_seed
from censcore.model_files import part_of


def train(
    task: Task,
    rows: Data,
    validation: Data | None,
    recipe: Recipe,
    *,
    seed: int,
    device: torch.device,
    groups: np.ndarray | None = None,
    callbacks: Sequence[Callback] = (),
    checkpoint: str | os.PathLike[str] | None = None,
    progress: bool | None = None,
) -> History:
    """Train ``task.network`` in place and leave it with the best weights.

    Parameters
    ----------
    task : Task
        What is trained.
    rows, validation : mappings of tensors with the subjects as first axis
        Training and validation data; an entry ``"weight"`` holds weights. They may stay in CPU memory, and
        covariates in a mapped file (:class:`~censcore.learning.data.standardised.Standardised`):
        batches are copied to the device.
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
    progress : bool, optional
        Show a progress bar; by default in terminals and notebooks, after two seconds.

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
    return run.train(callbacks, checkpoint, progress)[0]


class _Run(Run):
    """The training of one network: itself, the moving average of its weights, and those to keep."""

    def __init__(
        self,
        task: Task,
        rows: Data,
        validation: Data | None,
        recipe: Recipe,
        seed: int,
        device: torch.device,
        groups: np.ndarray | None,
        captured: bool = True,
    ) -> None:
        super().__init__(task, recipe, device, [0 if validation is None else subjects_in(validation)])
        self.rows, self.validation, self.seed = rows, validation, seed
        self.rank, self.processes = rank_and_processes()
        n = subjects_in(rows)
        self.batches = Batches(n, recipe.batch_size, groups)
        self.subjects: np.ndarray | None = None
        self.shared: SharedGradient | None = None
        if torch.distributed.is_available() and torch.distributed.is_initialized():
            self.subjects = share_of(n, groups, self.rank, self.processes)
            own = None if groups is None else np.asarray(groups)[self.subjects]
            self.batches = Batches(len(self.subjects), recipe.batch_size, own, count=len(self.batches))
            self.shared = SharedGradient(self.network)
        captured &= device.type == "cuda"
        self.optimizer = _optimizer(self.network, recipe, device if captured else None)
        self.averaged, self.kept = (copy.deepcopy(self.network).requires_grad_(False) for _ in range(2))
        self.graphed: GraphedEpochs | None = None
        if captured:  # epochs are replays of one captured step
            resident = fits_on_device(rows, device, self.processes)
            self.graphed = GraphedEpochs(
                task, recipe, self, rows, self.batches, resident, self.subjects, self.shared
            )

    def _steps(self, number: int, seed: int) -> tuple[list[float], float]:
        steps = self._eager_steps if self.graphed is None else self.graphed.run
        total, weight = steps(self.seed, number, seed)
        return [float(total / weight)], float(self.optimizer.param_groups[0]["lr"])

    def _keep(self, i: int) -> None:
        self.kept.load_state_dict(self.averaged.state_dict())

    def _averaged(self, i: int) -> nn.Module:
        return self.averaged

    def _finish(self) -> None:
        self.network.load_state_dict(self.kept.state_dict())
        self.network.eval()

    def _eager_steps(self, seed: int, number: int, noise_seed: int) -> tuple[Tensor, Tensor]:
        """One epoch; sums of losses and of weights."""
        generator = torch.Generator(self.device).manual_seed(noise_seed)
        total, weight = torch.zeros((), device=self.device), torch.zeros((), device=self.device)
        for index in self.batches.epoch(seed, number):
            own = index if self.subjects is None else self.subjects[index]
            batch = gather(self.rows, own, self.device)
            if subjects_in(batch) or self.shared is not None:  # every process takes part in every exchange
                loss, size = self.step(batch, generator)
                total, weight = total + loss, weight + size
        return total, weight

    def _noise_seed(self, number: int) -> int:
        """The seed of an epoch's noise, another one in every process."""
        seed = mix_seed(self.seed, number)
        return mix_seed(seed, self.rank) if self.processes > 1 else seed

    def step(self, batch: Rows, generator: torch.Generator) -> tuple[Tensor, Tensor]:
        """One update; the sums of losses and of weights, over all processes."""
        n = subjects_in(batch)
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
        self._average()
        return total, size

    @torch.no_grad()
    def _average(self) -> None:
        """Exponential moving average whose memory grows with the run, so that the start is forgotten."""
        step, decay = self.steps, self.recipe.averaging
        weight = 1.0 if decay is None else 1 - min(decay, (1 + step) / (10 + step))
        torch._foreach_lerp_(list(self.averaged.parameters()), list(self.network.parameters()), weight)
        for old, new in zip(self.averaged.buffers(), self.network.buffers(), strict=True):
            old.copy_(new)

    def validate(self) -> list[Tensor]:
        """Validation losses."""
        assert self.validation is not None
        seed, at_once = mix_seed(self.seed, -1), self.recipe.validation_batch
        task, network, data = self.task, self.averaged, self.validation
        return [held_out_losses(task, network, data, seed=seed, at_once=at_once, weighted=True)]

    @property
    def _data(self) -> dict[str, Any]:
        data = {"training": digests(self.rows), "validation": digests(self.validation or {})}
        return {"seed": self.seed, "data": data}

    @property
    def _modules(self) -> dict[str, nn.Module]:
        return {"network": self.network, "averaged": self.averaged, "kept": self.kept}

    @property
    def _tensors(self) -> dict[str, Tensor]:
        modules = {prefix: module.state_dict() for prefix, module in self._modules.items()}
        moments = {f"optimizer.{i}": state for i, state in self.optimizer.state_dict()["state"].items()}
        return {
            f"{prefix}.{name}": v for prefix, part in (modules | moments).items() for name, v in part.items()
        }

    def _restore(self, tensors: dict[str, Tensor]) -> None:
        for name, module in self._modules.items():
            module.load_state_dict(part_of(tensors, name))
        state: dict[int, dict[str, Tensor]] = {}
        parameters = [p for group in self.optimizer.param_groups for p in group["params"]]
        for name, value in part_of(tensors, "optimizer").items():
            i, entry = name.split(".")
            if value.ndim:
                if value.shape != parameters[int(i)].shape:
                    raise ValueError(f"optimizer.{name} has the shape {tuple(value.shape)}")
                value = torch.empty_like(parameters[int(i)]).copy_(value)  # fused steps need equal strides
            state.setdefault(int(i), {})[entry] = value
        self.optimizer.load_state_dict(self.optimizer.state_dict() | {"state": state})


def _optimizer(network: nn.Module, recipe: Recipe, graphed: torch.device | None) -> torch.optim.AdamW:
    """AdamW; a network may name parameters that weight decay leaves alone."""
    groups = [group for group in recipe.parameter_groups(network) if group["params"]]
    if graphed is None:
        return torch.optim.AdamW(groups, lr=recipe.learning_rate, foreach=True)
    for group in groups:
        group["lr"] = torch.tensor(recipe.learning_rate, device=graphed)
    # the compiler makes one kernel for all parameters of the foreach version; the fused one is closed to it
    return torch.optim.AdamW(groups, foreach=recipe.compile, fused=not recipe.compile, capturable=True)
