"""Training epochs on a GPU as replays of one captured step, without launch overhead or synchronisation."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from censcore.learning.data.standardised import Data, rows_of
from censcore.learning.training.exchange import SharedGradient
from censcore.learning.training.minibatches import Batches
from censcore.learning.training.task import Recipe, Task

# Batches of grouped subjects vary in size; the captured step has room for this many standard deviations.
_ROOM = 6.0

# Data that do not fit on the device are copied in blocks of about this many subjects.
_STREAMED_ROWS = 2**16


def fits_on_device(rows: Data, device: torch.device, processes: int = 1) -> bool:
    """Whether the data, or a process's share of them, take at most half of the free memory of the device."""
    if device.type != "cuda":
        return False
    size = sum(value.nbytes for value in rows.values()) / processes
    return size < torch.cuda.mem_get_info(device)[0] / 2


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """An older graph that is freed while a new one is recorded would end the recording with an error."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class GraphedEpochs:
    """One training step captured as a CUDA graph: gathering, loss, gradient, clipping, update and average.

    With several processes there are two graphs, up to the gradient and from there on, and between them the
    gradients are summed over the processes.

    The batches of an epoch are arranged beforehand, padded to one size with subjects of weight zero; the next
    epoch is arranged while the present one runs. Data that are not ``resident`` are copied to the device in
    blocks of batches, the next of which is gathered while the present one is trained on.

    The ``state`` is a :class:`Run` with the network, its average, and an optimiser that is capturable, with a
    tensor as its learning rate. Of several processes each has some ``subjects``, which ``batches`` numbers.
    """

    def __init__(
        self,
        task: Task,
        recipe: Recipe,
        state: Any,
        rows: Data,
        batches: Batches,
        resident: bool,
        subjects: np.ndarray | None = None,
        shared: SharedGradient | None = None,
    ) -> None:
        self.source, self.resident, self.state = rows, resident, state
        self.network, self.optimizer = state.network, state.optimizer
        self.live = list(state.network.parameters())
        self.mean: list[Tensor] = list(state.averaged.parameters())
        self.draw, self.batches = task.draw, batches
        self.subjects, self.shared = subjects, shared
        self.loss = torch.compile(task.loss, dynamic=False) if recipe.compile else task.loss
        self.update = torch.compile(self._update) if recipe.compile else self._update
        self.clip, self.averaging = recipe.clip, recipe.averaging
        self.device = self.live[0].device
        self.generator = torch.Generator(self.device)
        size = batches.n_rows / len(batches)
        self.room = int(np.ceil(size + (_ROOM * np.sqrt(size) if batches.grouped else 0)))
        self.block = len(batches) if resident else min(len(batches), max(1, _STREAMED_ROWS // self.room))
        self.rows = self._space()
        self.index = torch.arange(self.block * self.room, device=self.device).reshape(self.block, self.room)
        self.share = torch.zeros(self.block, self.room, device=self.device)
        steps = recipe.epochs * len(batches)
        self.rates = torch.tensor([recipe.rate(step, steps) for step in range(steps)], device=self.device)
        self.counters = {
            name: torch.zeros(1, dtype=torch.int64, device=self.device) for name in ("batch", "step")
        }
        self.total, self.weight = torch.zeros((), device=self.device), torch.zeros((), device=self.device)
        self._pool = ThreadPoolExecutor(2)
        self._ahead: tuple[tuple[int, int], Future[tuple[np.ndarray, np.ndarray]]] | None = None
        self._graphs: list[torch.cuda.CUDAGraph] = []

    def run(self, seed: int, epoch: int, noise_seed: int) -> tuple[Tensor, Tensor]:
        """One epoch; sums of losses and of weights."""
        index, share = self._laid_out(seed, epoch)
        self._ahead = ((seed, epoch + 1), self._pool.submit(self._arrange, seed, epoch + 1))
        blocks = [slice(start, start + self.block) for start in range(0, len(index), self.block)]
        self._load(index[blocks[0]], share[blocks[0]], self._gathered(index[blocks[0]]))
        if not self._graphs:
            self._capture()
        self.generator.manual_seed(noise_seed)
        self.counters["step"].fill_(self.state.steps)
        self.total.zero_()
        self.weight.zero_()
        for block, following in zip(blocks, [*blocks[1:], None], strict=True):
            gathered = following and self._pool.submit(self._gathered, index[following])
            self.counters["batch"].zero_()
            for _ in range(len(share[block])):
                self._replay()
            if following and gathered:
                self._load(index[following], share[following], gathered.result())
        self.state.steps += len(self.batches)
        return self.total, self.weight

    def _space(self) -> dict[str, Tensor]:
        """The data on the device, or room for a block of them."""
        if self.resident:
            mine = self.source if self.subjects is None else rows_of(self.source, self.subjects)
            return {name: value.to(self.device) for name, value in mine.items()}
        one = torch.zeros(1, dtype=torch.int64)
        return {
            name: value[one].to(self.device).expand(self.block * self.room, *value.shape[1:]).contiguous()
            for name, value in self.source.items()
        }

    def _gathered(self, index: np.ndarray) -> dict[str, Tensor]:
        """The data of a block in the order of its batches, unless all data are on the device."""
        flat = torch.from_numpy(index.ravel() if self.subjects is None else self.subjects[index.ravel()])
        return {} if self.resident else {name: value[flat] for name, value in self.source.items()}

    def _load(self, index: np.ndarray, share: np.ndarray, gathered: dict[str, Tensor]) -> None:
        self.share[: len(share)].copy_(torch.from_numpy(share))
        if self.resident:
            self.index.copy_(torch.from_numpy(index))
        for name, value in gathered.items():
            self.rows[name][: len(value)].copy_(value)

    def _laid_out(self, seed: int, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        if self._ahead is not None and self._ahead[0] == (seed, epoch):
            return self._ahead[1].result()
        return self._arrange(seed, epoch)

    def _arrange(self, seed: int, epoch: int) -> tuple[np.ndarray, np.ndarray]:
        """Subject numbers (batches, room) and their weights: one, or zero for padding."""
        index = np.zeros((len(self.batches), self.room), dtype=np.int64)
        share = np.zeros((len(self.batches), self.room), dtype=np.float32)
        late: list[np.ndarray] = []
        for b, rows in enumerate(self.batches.epoch(seed, epoch)):
            index[b, : len(rows[: self.room])] = rows[: self.room]
            share[b, : len(rows[: self.room])] = 1.0
            late.append(rows[self.room :])
        # the rare subjects beyond the room of their batch take free places of other batches
        spill = np.concatenate(late)
        if spill.size:
            free = np.argwhere(share == 0)[: spill.size]
            index[free[:, 0], free[:, 1]], share[free[:, 0], free[:, 1]] = spill, 1.0
        return index, share

    def _capture(self) -> None:
        """Warm up on a side stream, put the state back, and record one step."""
        state = self._state()
        saved = [tensor.detach().clone() for tensor in state]
        stream = torch.cuda.Stream(self.device)
        stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(stream):
            for _ in range(3):
                for counter in self.counters.values():
                    counter.zero_()
                for part in self._parts():
                    part()
        torch.cuda.current_stream(self.device).wait_stream(stream)
        known = {id(tensor) for tensor in state}
        with torch.no_grad():
            for tensor, value in zip(state, saved, strict=True):
                tensor.copy_(value)
            for tensor in self._state():
                if id(tensor) not in known:  # moments that the warm-up created start at zero
                    tensor.zero_()
        # the thread that watches over an exchange may call the device during a recording
        mode = "global" if self.shared is None else "thread_local"
        for part in [self._step] if self.shared is None else [self._gradient, self._follow]:
            graph = torch.cuda.CUDAGraph()
            graph.register_generator_state(self.generator)
            with _no_garbage_collection(), torch.cuda.graph(graph, stream=stream, capture_error_mode=mode):
                part()
            self._graphs.append(graph)

    def _parts(self) -> list[Callable[[], None]]:
        """A step: in one piece, or in two with an exchange between them."""
        if self.shared is None:
            return [self._step]
        return [self._gradient, self.shared.exchange, self._follow]

    def _replay(self) -> None:
        self._graphs[0].replay()
        if self.shared is not None:
            self.shared.exchange()
            self._graphs[1].replay()

    def _state(self) -> list[Tensor]:
        moments: list[Any] = [v for s in self.optimizer.state.values() for v in s.values()]
        return [*self.live, *self.mean, *[v for v in moments if isinstance(v, Tensor)]]

    def _step(self) -> None:
        losses, weight = self._losses()
        size = weight.sum()
        loss = (losses * weight).sum() / size
        self.optimizer.zero_grad(set_to_none=True)
        loss.backward()
        self._finish(loss.detach() * size, size)

    def _gradient(self) -> None:
        """The first part of a step of several processes: the gradient of the subjects of this one."""
        assert self.shared is not None
        self.shared.add(*self._losses())

    def _follow(self) -> None:
        """The second part: the update, when the gradients have been summed."""
        assert self.shared is not None
        self._finish(*self.shared.finish())

    def _losses(self) -> tuple[Tensor, Tensor]:
        """Losses and weights of the subjects of the present batch."""
        batch = self.counters["batch"]
        index = self.index.index_select(0, batch)[0]
        rows = {name: value.index_select(0, index) for name, value in self.rows.items()}
        weight = self.share.index_select(0, batch)[0]
        if "weight" in rows:
            weight = weight * rows["weight"]
        random = self.draw(self.room, self.generator, self.device)
        return self.loss(self.network, rows, random), weight

    def _finish(self, total: Tensor, size: Tensor) -> None:
        """Count, and update the weights and their average."""
        step = self.counters["step"]
        for group in self.optimizer.param_groups:
            group["lr"].copy_(self.rates.index_select(0, step)[0])
        with torch.no_grad():
            self.total.add_(total)
            self.weight.add_(size)
            step.add_(1)
            self.counters["batch"].add_(1)
        self.update(step)

    def _update(self, step: Tensor) -> None:
        if self.clip is not None:
            nn.utils.clip_grad_norm_(self.live, self.clip, foreach=True)
        self.optimizer.step()
        self._average(step)

    @torch.no_grad()
    def _average(self, step: Tensor) -> None:
        """The moving average of the weights, with a memory that grows from the start of the run."""
        t = step[0].float()
        decay = (
            torch.zeros_like(t) if self.averaging is None else ((1 + t) / (10 + t)).clamp(max=self.averaging)
        )
        torch._foreach_mul_(self.mean, decay)
        new = torch._foreach_mul([p.detach() for p in self.live], 1 - decay)
        torch._foreach_add_(self.mean, list(new))
