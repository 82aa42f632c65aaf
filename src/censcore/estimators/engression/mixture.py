"""The mixture that censored engression forecasts: its generators, and baselines where these help."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from censcore.estimators.engression.baseline import Baseline, BaselinePool, fit_baselines
from censcore.estimators.engression.loss import EngressionTask, bounded
from censcore.estimators.engression.sampling import NoisePool
from censcore.estimators.engression.stacking import mixture_terms, weighed_mixture
from censcore.estimators.engression.structures import Structure
from censcore.estimators.engression.time_scale import TimeScale
from censcore.estimators.neural.model_contents import check_number
from censcore.estimators.neural.standardised import Data, Standardised, rows_of
from censcore.estimators.neural.streamed import StreamedRows
from censcore.estimators.neural.training import mix_seed
from censcore.exceptions import ModelFileError

__all__ = ["BaselineData", "Fold", "MixtureChoice", "choose_mixture"]

_SUBJECTS, _VALUES = 20_000, 2**17  # at most, of subjects and their covariates, that a baseline is fitted to
_HELD_OUT = 5_000  # at most, of a fold, that the weights are fitted to
_DRAWS = 512  # per component: what sampling adds to a comparison is small beside the spread of subjects
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

    def fit(self, rows: np.ndarray | slice, structure: Structure, seed: int) -> list[Baseline]:
        """Baselines of these subjects, or of a random part of them where they are very many."""
        index = np.arange(len(self.time))[rows]
        most = min(_SUBJECTS, max(1000, _VALUES // self.x.shape[1]))
        if len(index) > most:
            index = np.sort(np.random.default_rng(seed).choice(index, most, replace=False))
        time = self.time[index].astype(np.float64, copy=False)
        counts = np.ones(time.shape, dtype=bool) if self.counts is None else self.counts[index]
        weight = None if self.weight is None else self.weight[index]
        x = self.x[index].numpy().astype(np.float64)
        return fit_baselines(x, time, self.event[index], counts, weight, structure)


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
    """Baselines with positive weights; the generators share the rest.

    Attributes
    ----------
    baselines : tuple of Baseline
        Fitted to all training subjects.
    weights : tuple of float
        Share of the draws that each makes.
    compared : bool
        Whether network and baselines were compared on held-out subjects.
    """

    baselines: tuple[Baseline, ...] = ()
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
        parts = [
            f"{100 * w:.0f} % {b.name} margins{_joined(b)}"
            for b, w in zip(self.baselines, self.weights, strict=True)
        ]
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
        baselines = tuple(Baseline.empty(name, k, d) for name in weights)
        return cls(baselines, tuple(weights.values()), settings["compared"])


def _joined(baseline: Baseline) -> str:
    theta = float(baseline.dependence)
    if baseline.k == 1:
        return ""
    return f" with Clayton's copula (theta {theta:.2g})" if theta > 0 else " with independence"


def choose_mixture(
    data: BaselineData,
    folds: Sequence[Fold],
    tasks: Sequence[EngressionTask],
    times: TimeScale,
    seed: int,
    pooled: int,
) -> MixtureChoice:
    """Weigh generators and baselines by the energy score of their mixture on held-out subjects.

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
    structure = tasks[0].structure
    final = data.fit(slice(None), structure, seed)
    fitted = {i: {b.name: b for b in data.fit(folds[i].rows, structure, seed)} for i in held}
    final = [b for b in final if all(b.name in part for part in fitted.values())]
    terms = []
    for i in held:
        pair = [tasks[i], tasks[(i + 1) % pooled]]
        part, validation = [fitted[i][b.name] for b in final], folds[i].validation
        assert validation is not None
        terms.append(_held_out_terms(pair, part, validation, times, mix_seed(seed, i)))
    a, D, weight = (np.concatenate(values) for values in zip(*terms, strict=True))
    weights = weighed_mixture(*_pooled(a, D, pooled), weight, data.events)[1:]
    chosen = [(b, float(w)) for b, w in zip(final, weights, strict=True) if w >= _SMALLEST]
    return MixtureChoice(tuple(b for b, _ in chosen), tuple(w for _, w in chosen), True)


def _pooled(a: np.ndarray, D: np.ndarray, generators: int) -> tuple[np.ndarray, np.ndarray]:
    """The terms with all generators pooled, from those of one (first) and another one (second).

    A held-out subject can be compared with the generator alone that did not see it. But draws of two
    generators are further apart than two draws of one, and that is what pooling gains.
    """
    D = D.copy()
    D[:, 0, 0] += (1 - 1 / generators) * (D[:, 0, 1] - D[:, 0, 0])
    rest = [0, *range(2, a.shape[1])]
    return a[:, rest], D[:, rest][:, :, rest]


@torch.no_grad()
def _held_out_terms(
    tasks: Sequence[EngressionTask],
    baselines: Sequence[Baseline],
    validation: Data,
    times: TimeScale,
    seed: int,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The terms of the energy score of mixtures, and the weights of the subjects, one entry for each."""
    task = tasks[0]
    device = next(task.network.parameters()).device
    pools = [NoisePool(t.network.eval(), _DRAWS, mix_seed(seed, i), t.mixed) for i, t in enumerate(tasks)]
    others = [
        BaselinePool(b.to(device), task.structure, _DRAWS, mix_seed(seed, i))
        for i, b in enumerate(baselines, start=len(pools))
    ]
    generator = torch.Generator().manual_seed(seed)
    n = min(len(validation["x"]), _HELD_OUT)
    parts = []
    for start in range(0, n, _AT_ONCE):
        rows = rows_of(validation, slice(start, min(n, start + _AT_ONCE)))
        part = {name: value[:].to(device) for name, value in rows.items()}
        x = part["x"]
        draws = [task.structure.draw(task.scaled(pool.draw(x)), pool.uniform(x)) for pool in pools]
        draws += [times.forward_tensor(other.draw(x)) for other in others]
        found = _terms(task, torch.stack(draws, dim=1), part, generator)
        weight = part.get("weight", torch.ones(len(x), device=device))
        parts.append([value.double().cpu().numpy() for value in (*found, weight)])
    a, D, weights = (np.concatenate(values) for values in zip(*parts, strict=True))
    return a, D, weights


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
