"""The mixture that censored engression forecasts: its generators, and baselines where these help."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from censcore.exceptions import InvalidInputError, ModelFileError
from censcore.learning.data.standardised import Data, Standardised, rows_of
from censcore.learning.data.streamed import StreamedRows, subjects_in
from censcore.learning.density_network import (
    DensityNetwork,
    DensityPool,
    LogNormalComponents,
    fit_density_network,
)
from censcore.learning.engression.baseline import Baseline, BaselinePool, fit_baselines
from censcore.learning.engression.loss import EngressionTask, bounded
from censcore.learning.engression.sampling import NoisePool
from censcore.learning.engression.stacking import mixture_terms, weighed_mixture
from censcore.learning.engression.time_scale import TimeScale
from censcore.learning.model_contents import check_number
from censcore.learning.structures import Branching, Structure
from censcore.learning.training.loop import mix_seed

__all__ = ["BaselineData", "Fold", "MixtureChoice", "choose_mixture"]

Component = Baseline | DensityNetwork

_SUBJECTS, _VALUES = 20_000, 2**17  # at most, of subjects and their covariates, that a baseline is fitted to
_DENSITY_SUBJECTS = 50_000  # at most, that a density network is trained on
_HELD_OUT = 5_000  # at most, of a fold, that the weights are fitted to
_DRAWS = 256  # per component: what sampling adds to a comparison is small beside the spread of subjects
_AT_ONCE = 8  # subjects, with all their draws in memory
_SMALLEST = 0.01  # a weight below is none


@dataclass(frozen=True)
class BaselineData:
    """What baselines are fitted to.

    Attributes
    ----------
    x : Standardised
        Covariates, (n, d).
    time, event, counts : arrays, (n, k)
        Observed times, whether they are events, and whether they count.
    weight : array, (n,), or None
        Weights of the subjects.
    """

    x: Standardised
    time: np.ndarray
    event: np.ndarray
    counts: np.ndarray | None
    weight: np.ndarray | None

    @property
    def events(self) -> float:
        """Number of events per event time."""
        counted = self.event if self.counts is None else self.event & self.counts
        return float(counted.sum(axis=0).mean())

    def fit(
        self, rows: np.ndarray | slice, structure: Structure, seed: int, device: torch.device
    ) -> dict[str, Component]:
        """Density network and baselines that these subjects allow, by name."""
        found: list[Component] = []
        if not isinstance(structure, Branching):  # an event that another prevents has no density
            found += self._density_network(rows, seed, device)
        some = self._some(rows, min(_SUBJECTS, max(1000, _VALUES // self.x.shape[1])), seed)
        found += fit_baselines(self.x[some].numpy().astype(np.float64), *self._outcome(some), structure)
        return {component.name: component for component in found}

    def _density_network(
        self, rows: np.ndarray | slice, seed: int, device: torch.device
    ) -> list[DensityNetwork]:
        some = self._some(rows, _DENSITY_SUBJECTS, seed)
        try:  # an event at time zero has no log-normal density
            found = fit_density_network(self.x.take(some), *self._outcome(some), seed, device)
        except InvalidInputError:
            return []
        return [] if found is None else [found]

    def density_subjects(self, rows: np.ndarray | slice) -> int:
        """How many subjects train the density network."""
        return min(len(self._index(rows)), _DENSITY_SUBJECTS)

    def _some(self, rows: np.ndarray | slice, most: int, seed: int) -> np.ndarray:
        """Places of subjects, a random part of very many."""
        index = self._index(rows)
        if len(index) > most:
            index = np.sort(np.random.default_rng(seed).choice(index, most, replace=False))
        return index

    def _outcome(self, index: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray | None]:
        """Times, events, what counts, and weights."""
        time = self.time[index].astype(np.float64, copy=False)
        counts = np.ones(time.shape, dtype=bool) if self.counts is None else self.counts[index]
        weight = None if self.weight is None else self.weight[index]
        return time, self.event[index], counts, weight

    def _index(self, rows: np.ndarray | slice) -> np.ndarray:
        return np.arange(len(self.time))[rows]


@dataclass(frozen=True)
class Fold:
    """Subjects that train a generator, and those held out for its validation.

    Attributes
    ----------
    rows : array of int or slice
        The training subjects.
    training, validation : Data
        Their data, and those of the others, if any.
    groups : array or None
        Groups of the training subjects.
    """

    rows: np.ndarray | slice
    training: Data | StreamedRows
    validation: Data | None
    groups: np.ndarray | None


@dataclass(frozen=True)
class MixtureChoice:
    """Baselines with positive weights, a density network among them; the generators share the rest.

    Attributes
    ----------
    baselines : tuple of DensityNetwork or Baseline
        Fitted to all training subjects.
    weights : tuple of float
        Share of the draws that each makes.
    compared : bool
        Whether network and baselines were compared on held-out subjects.
    """

    baselines: tuple[Component, ...] = ()
    weights: tuple[float, ...] = ()
    compared: bool = False

    @property
    def total(self) -> float:
        """Share of all baselines."""
        return float(sum(self.weights))

    @property
    def words(self) -> str:
        """What was chosen, and why."""
        if not self.compared:
            return "none: the network was not compared with a baseline on held-out subjects"
        if not self.baselines:
            return "none: held-out subjects speak for the network alone"
        parts = [f"{100 * w:.0f} % {b.words}" for b, w in zip(self.baselines, self.weights, strict=True)]
        return f"{' and '.join(parts)}: weighed against the network on held-out subjects"

    @property
    def settings(self) -> dict[str, Any]:
        """What a model file keeps beside the tensors of the baselines."""
        weights = {b.name: w for b, w in zip(self.baselines, self.weights, strict=True)}
        return {"weights": weights, "compared": self.compared}

    @classmethod
    def restored(cls, settings: dict[str, Any] | None, k: int, d: int) -> MixtureChoice:
        """From what a model file kept, with baselines to be filled."""
        if settings is None:
            return cls()
        weights = settings["weights"]
        for value in weights.values():
            check_number("weights", value, positive=True)
        if sum(weights.values()) > 1 + 1e-6 or not isinstance(settings["compared"], bool):
            raise ModelFileError(f"weights of the baselines: got {weights}, expected a sum of at most 1.")
        baselines = tuple(_empty(name, k, d) for name in weights)
        return cls(baselines, tuple(weights.values()), settings["compared"])


def _empty(name: str, k: int, d: int) -> Component:
    """One to be filled from a file."""
    if name == DensityNetwork.name:
        return DensityNetwork(LogNormalComponents(d, k), np.zeros(k), np.ones(k))
    return Baseline.empty(name, k, d)


def choose_mixture(
    data: BaselineData,
    folds: Sequence[Fold],
    tasks: Sequence[EngressionTask],
    times: TimeScale,
    seed: int,
    pooled: int,
) -> MixtureChoice:
    """Weigh generators, density network and baselines by the energy score of mixtures on held-out subjects.

    Parameters
    ----------
    data : BaselineData
        All training subjects.
    folds, tasks : sequences
        The data of every generator, and the trained generator.
    times : TimeScale
        From times to the scale of the loss.
    seed : int
        Of the draws.
    pooled : int
        How many of the generators forecast together.

    Returns
    -------
    MixtureChoice
        With baselines fitted to all training subjects.
    """
    held = [i for i, _ in enumerate(tasks) if folds[i].validation is not None]
    if not held:
        return MixtureChoice()
    structure, device = tasks[0].structure, next(tasks[0].network.parameters()).device
    final = data.fit(slice(None), structure, seed, device)
    fitted = {
        i: final if isinstance(folds[i].rows, slice) else data.fit(folds[i].rows, structure, seed, device)
        for i in held
    }
    names = [name for name in final if all(name in part for part in fitted.values())]
    terms = []
    for i in held:
        pair = [tasks[i], tasks[(i + 1) % pooled]] if pooled > 1 else [tasks[i]]
        part, validation = [fitted[i][name] for name in names], folds[i].validation
        assert validation is not None
        terms.append(_held_out_terms(pair, part, validation, times, mix_seed(seed, i)))
    a, D, weight = (np.concatenate(values) for values in zip(*terms, strict=True))
    density = _density_prior(data, folds[held[0]]) if DensityNetwork.name in names else None
    weights = weighed_mixture(*_pooled(a, D, pooled), weight, data.events, density)[1:]
    chosen = {name: float(w) for name, w in zip(names, weights, strict=True) if w >= _SMALLEST}
    return MixtureChoice(tuple(final[name] for name in chosen), tuple(chosen.values()), True)


def _density_prior(data: BaselineData, fold: Fold) -> float:
    """The share that a density network has beforehand: networks share by the subjects they learn from."""
    learned = data.density_subjects(fold.rows)
    return learned / (learned + subjects_in(fold.training))


def _pooled(a: np.ndarray, D: np.ndarray, generators: int) -> tuple[np.ndarray, np.ndarray]:
    """The terms with all generators pooled, from those of one (first) and another one (second).

    A held-out subject can be compared with the generator alone that did not see it. But draws of two
    generators are further apart than two draws of one, and that is what pooling gains.
    """
    if generators == 1:
        return a, D
    D = D.copy()
    D[:, 0, 0] += (1 - 1 / generators) * (D[:, 0, 1] - D[:, 0, 0])
    rest = [0, *range(2, a.shape[1])]
    return a[:, rest], D[:, rest][:, :, rest]


@torch.no_grad()
def _held_out_terms(
    tasks: Sequence[EngressionTask],
    baselines: Sequence[Component],
    validation: Data,
    times: TimeScale,
    seed: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The terms of the energy score of mixtures, and the weights of the subjects, one entry for each."""
    task = tasks[0]
    device = next(task.network.parameters()).device
    generator = torch.Generator().manual_seed(seed)
    n = min(len(validation["x"]), _HELD_OUT)
    parts = []
    for start in range(0, n, _AT_ONCE):
        draws = _component_draws(tasks, baselines, times, mix_seed(seed, start))
        rows = rows_of(validation, slice(start, min(n, start + _AT_ONCE)))
        part = {name: value[:].to(device) for name, value in rows.items()}
        z = torch.stack([draw(part["x"]) for draw in draws], dim=1)
        weight = part.get("weight", torch.ones(len(z), device=device))
        found = _terms(task, z, part, generator)
        parts.append([value.double().cpu().numpy() for value in (*found, weight)])
    a, D, weights = (np.concatenate(values) for values in zip(*parts, strict=True))
    return a, D, weights


def _component_draws(
    tasks: Sequence[EngressionTask], baselines: Sequence[Component], times: TimeScale, seed: int
) -> list[Callable[[Tensor], Tensor]]:
    """For every component, what draws event times on the scale of the loss for the next subjects.

    An error of sampling that subjects share would not average out, nor be part of a standard error.
    """
    device = next(tasks[0].network.parameters()).device

    def generated(task: EngressionTask, pool: NoisePool) -> Callable[[Tensor], Tensor]:
        return lambda x: task.event_times(pool.draw(x), pool.uniform(x))

    def fitted(pool: BaselinePool | DensityPool) -> Callable[[Tensor], Tensor]:
        return lambda x: times.forward_tensor(pool.draw(x))

    networks = [
        generated(task, NoisePool(task.network.eval(), _DRAWS, mix_seed(seed, i), task.mixed, _AT_ONCE))
        for i, task in enumerate(tasks)
    ]
    others = [
        fitted(b.to(device).pool(tasks[0].structure, _DRAWS, mix_seed(seed, len(tasks) + i), _AT_ONCE))
        for i, b in enumerate(baselines)
    ]
    return networks + others


def _terms(
    task: EngressionTask, z: Tensor, part: dict[str, Tensor], generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    n, _, m, k = z.shape
    random = {
        "noise": z[:, 0],
        "offset": torch.rand(n, k, generator=generator).to(z.device),
        "order": torch.rand(n, m, k, generator=generator).to(z.device),
    }
    y, c = part["y"], task.censoring_times(part["c"], random)
    if task.bounded:
        z, y, c = bounded(z), bounded(y), bounded(c)
    return mixture_terms(z, y, c, part.get("mask"), task.beta)
