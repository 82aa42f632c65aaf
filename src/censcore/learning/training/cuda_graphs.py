"""Training epochs on a GPU as replays of one captured step, without launch overhead or synchronisation."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor

from censcore.learning.data.standardised import Data

# Batches of grouped subjects vary in size; the captured step has room for this many standard deviations.
_ROOM = 6.0


def fits_on_device(rows: Data, device: torch.device) -> bool:
    """Tell whether the data take at most half of the free memory of a GPU."""
    size = sum(value.nbytes for value in rows.values())
    return device.type == "cuda" and size < torch.cuda.mem_get_info(device)[0] / 2


@contextmanager
def _no_garbage_collection() -> Iterator[None]:
    """Keep older graphs: one that is freed while another is recorded would end the recording."""
    enabled = gc.isenabled()
    gc.collect()
    gc.disable()
    try:
        yield
    finally:
        if enabled:
            gc.enable()


class CapturedEpochs:
    """The epochs of a run, whose step is captured as a CUDA graph: gathering, gradient, update and average.

    The data of the :class:`Run` are on the device, and its optimiser is capturable, with a tensor as its
    learning rate. The batches of an epoch are arranged beforehand, padded to one size with subjects of weight
    zero; the next epoch is arranged while the present one runs.
    """

    def __init__(self, run: Any) -> None:
        recipe, device = run.recipe, run.device
        self.state, self.batches, self.device = run, run.batches, device
        self.rows = {name: value.to(device) for name, value in run.data.items()}
        self.loss = torch.compile(run.task.loss, dynamic=False) if recipe.compile else run.task.loss
        self.update = torch.compile(run.update) if recipe.compile else run.update
        self.generator = torch.Generator(device)
        sizes = [(order.n_rows / len(order), order.grouped) for order in run.batches.orders]
        room = max(int(np.ceil(size + _ROOM * np.sqrt(size) * grouped)) for size, grouped in sizes)
        shape = (len(run.batches), run.count, room)
        self.index = torch.zeros(shape, dtype=torch.int64, device=device)
        self.share = torch.zeros(shape, device=device)
        steps = recipe.epochs * len(run.batches)
        self.rates = torch.tensor([recipe.rate(step, steps) for step in range(steps)], device=device)
        self.memories = torch.tensor([recipe.memory(step + 1) for step in range(steps)], device=device)
        self.batch, self.step = (torch.zeros(1, dtype=torch.int64, device=device) for _ in range(2))
        self.sums = torch.zeros(2, run.count, device=device)
        self._pool = ThreadPoolExecutor(1)
        self._ahead: tuple[int, Future[tuple[np.ndarray, np.ndarray]]] | None = None
        self._graph: torch.cuda.CUDAGraph | None = None

    def run(self, number: int, seed: int) -> Tensor:
        """Train for an epoch, with this seed of the noise; return sums of losses and of weights."""
        expected, ahead = self._ahead or (None, None)
        index, share = ahead.result() if ahead and expected == number else self._arranged(number)
        self._ahead = (number + 1, self._pool.submit(self._arranged, number + 1))
        self.index.copy_(torch.from_numpy(index))
        self.share.copy_(torch.from_numpy(share))
        self._graph = self._graph or self._captured()
        self.generator.manual_seed(seed)
        self.batch.zero_()
        self.step.fill_(self.state.steps)
        self.sums.zero_()
        for _ in range(len(self.batches)):
            self._graph.replay()
        self.state.steps += len(self.batches)
        return self.sums

    def _arranged(self, number: int) -> tuple[np.ndarray, np.ndarray]:
        """Arrange places and shares of all batches of an epoch, (batches, networks, room)."""
        index, share = np.zeros(self.index.shape, dtype=np.int64), np.zeros(self.share.shape, np.float32)
        networks, room = index.shape[1:]
        late: list[list[np.ndarray]] = [[] for _ in range(networks)]
        for b, (rows, counted) in enumerate(self.batches.epoch(number)):
            fits = min(room, rows.shape[1])
            index[b, :, :fits], share[b, :, :fits] = rows[:, :fits], counted[:, :fits]
            for i in range(networks):
                late[i].append(rows[i, fits:][counted[i, fits:] > 0])
        # the rare subjects beyond the room of their batch take free places of other batches
        for i, spill in enumerate(map(np.concatenate, late)):
            b, place = np.argwhere(share[:, i] == 0)[: spill.size].T
            index[b, i, place], share[b, i, place] = spill, 1.0
        return index, share

    def _captured(self) -> torch.cuda.CUDAGraph:
        """Warm up on a side stream, put the state back, and record one step."""
        state = self._changing()
        saved = [tensor.detach().clone() for tensor in state]
        stream = torch.cuda.Stream(self.device)
        stream.wait_stream(torch.cuda.current_stream(self.device))
        with torch.cuda.stream(stream):
            for _ in range(3):
                self.batch.zero_()
                self.step.zero_()
                self._step()
        torch.cuda.current_stream(self.device).wait_stream(stream)
        known = {id(tensor) for tensor in state}
        with torch.no_grad():
            for tensor, value in zip(state, saved, strict=True):
                tensor.copy_(value)
            for tensor in self._changing():
                if id(tensor) not in known:  # moments that the warm-up created start at zero
                    tensor.zero_()
        graph = torch.cuda.CUDAGraph()
        graph.register_generator_state(self.generator)
        with _no_garbage_collection(), torch.cuda.graph(graph, stream=stream):
            self._step()
        return graph

    def _changing(self) -> list[Tensor]:
        """List the weights, their averages, and what the optimiser keeps of each."""
        moments: list[Any] = [v for s in self.state.optimizer.state.values() for v in s.values()]
        return [*self.state.live, *self.state.mean, *(v for v in moments if isinstance(v, Tensor))]

    def _step(self) -> None:
        """Update the weights by the present batch."""
        index, share = (part.index_select(0, self.batch)[0] for part in (self.index, self.share))
        rows = {name: value.index_select(0, index.flatten()) for name, value in self.rows.items()}
        sums = self.state.gradient(self.loss, rows, share, self.generator)
        rate, memory = (part.index_select(0, self.step)[0] for part in (self.rates, self.memories))
        for group in self.state.optimizer.param_groups:
            group["lr"].copy_(rate)
        self.update(memory)
        with torch.no_grad():
            self.sums.add_(sums)
            self.batch.add_(1)
            self.step.add_(1)
