"""The loss of censored engression: units of time, compatible draws of C, the energy score after censoring."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import torch
from torch import Tensor, nn

from censcore._arrays import to_numpy
from censcore.distributions import Grouped, Independent, Step
from censcore.learning.data.checks import single_holds
from censcore.learning.data.standardised import OnDemand, Subjects
from censcore.learning.data.units import mean_time, time_sums
from censcore.learning.engression.generator import Generator
from censcore.learning.structures import Free, Structure
from censcore.learning.training.side_by_side import with_penalty
from censcore.learning.training.task import Rows, held_out_losses
from censcore.outcomes import RightCensored
from censcore.scores.inputs.compatible_times import compatible_times, known_rows
from censcore.scores.kernels.energy_pairs import energy_loss


@dataclass(frozen=True)
class TimeScale:
    r"""Increasing maps between times and the scale of the loss; censoring commutes with them.

    Times are divided, never shifted: a positive output on times shifted by their mean could not fall below
    that mean.

    ``transform`` is "scale", :math:`t/u`; "log1p", :math:`\log(1+t)/u`; or "bounded", t/u for the generator
    and :math:`t/(t+u)` in the loss, where infinity is the point 1. The ``unit`` u is the mean time, or the
    logarithm of one plus the 95 % quantile of the ends of follow-up. The generator starts around ``centre``,
    the geometric mean of each event time on the scale of the loss.

    Examples
    --------
    >>> import censcore as cs
    >>> scale = TimeScale.of(cs.RightCensored([1.0, 3.0], [1, 0]), "scale")
    >>> scale.unit, scale.forward(np.array([4.0]))
    (2.0, array([2.]))
    """

    transform: str
    unit: float
    centre: tuple[float, ...]

    @classmethod
    def of(cls, y: RightCensored, transform: str) -> Self:
        """The scale of these observed times."""
        time = to_numpy(y.time).reshape(len(y), -1)
        sums = time_sums(time)
        unit = mean_time(sums)
        count, _, log, log_log = sums
        if transform == "log1p":
            unit, log = float(np.log1p(_last_contact(y, time))), log_log
        centre = np.where(count > 0, np.exp(log / np.maximum(count, 1)) / unit, 1.0)
        return cls(transform, unit, tuple(float(np.float32(value)) for value in centre))

    def forward(self, time: np.ndarray) -> np.ndarray:
        """Times to the scale of the loss."""
        return (np.log1p(time) if self.transform == "log1p" else time) / self.unit

    @property
    def bounded(self) -> bool:
        """Whether the loss maps z to z/(1+z)."""
        return self.transform == "bounded"

    def inverse(self, z: Tensor) -> Tensor:
        """The scale of the loss to times, in place of z; beyond the largest float lies infinity.

        In double precision where single has no such numbers.
        """
        z = z if single_holds(self.unit) else z.double()
        z *= self.unit
        return z.expm1_() if self.transform == "log1p" else z


def _last_contact(y: RightCensored, time: np.ndarray) -> float:
    """The 95 % quantile of the ends of follow-up, or of the largest times where no end is known."""
    largest = time.max(axis=1)
    known = largest if y.censoring_time is None else to_numpy(y.censoring_time).reshape(len(y), -1)[:, 0]
    finite = known[np.isfinite(known)]
    return float(np.quantile(finite if finite.size else largest, 0.95))


#: Quantiles of C per subject; the draws of a step are taken from them.
LEVELS = 64

#: Jumps, at most, of a curve that is looked up in every batch.
JUMPS = 2**16

_KEPT = 2**24  # numbers up to which the quantiles of all subjects are computed once and kept, 64 MiB


class CensoringQuantiles(OnDemand):
    r"""Quantiles of C given each observation, on the scale of the loss, (n, Q, 1) or (n, Q, k).

    What is kept is the outcome and the censoring distribution: one curve, those of the strata, or what
    gives each subject a curve. A table of 64 quantiles for each of n subjects would take 256 n bytes.
    There is one level, Q = 1, where C is known for every subject.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.RightCensored([1.0, 2.0], [1, 0])
    >>> table = CensoringQuantiles(y, cs.Uniform(0.0, 3.0), lambda t: t, levels=2)
    >>> table.shape, table[np.array([1, 0])][:, :, 0]  # C = 2, and C > 1
    ((2, 2, 1), tensor([[2.0000, 2.0000],
            [1.5000, 2.5000]]))
    """

    def __init__(
        self, y: RightCensored, C: Any, scale: Callable[[np.ndarray], np.ndarray], levels: int = LEVELS
    ) -> None:
        self._y, self._scale, self._levels = y, scale, levels
        self._censoring = copy.copy(C)
        self._censoring.estimated_from = None  # the covariates of an estimate would be taken with every batch

    @property
    def _whole(self) -> tuple[int, int, int]:
        return len(self._y), self._levels, self._censoring.k

    def _computed(self, rows: np.ndarray | slice) -> Tensor:
        y, C = self._y.take(rows), self._censoring.take(rows)
        q, k = self.shape[1:]
        levels = ((np.arange(q) + 0.5) / q)[None, :, None]
        times = compatible_times(y, C, np.broadcast_to(levels, (len(y), q, k)))
        return torch.from_numpy(self._scale(to_numpy(times)).astype(np.float32))


def _thinned(C: Any) -> Any:
    """Curves with fewer jumps, where there are more than a batch can afford to look through."""
    if isinstance(C, Independent):
        return Independent([_thinned(C.marginal(j)) for j in range(C.k)])
    return C.thinned(JUMPS) if isinstance(C, Step | Grouped) else C


def censoring_quantiles(
    y: RightCensored, C: Any, scale: Callable[[np.ndarray], np.ndarray]
) -> Tensor | CensoringQuantiles:
    """Quantiles of C given each observation: all of them, or where that is too much by subject.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.RightCensored([1.0, 2.0], [1, 0])
    >>> censoring_quantiles(y, cs.Uniform(0.0, 3.0), lambda t: t)[:, -1, 0]  # C > 1, and C = 2
    tensor([2.9844, 2.0000])
    """
    table = CensoringQuantiles(y, C, scale, 1 if known_rows(y, C).all() else LEVELS)
    n, q, k = table.shape
    if q > 1 and n * q * k > _KEPT:
        return CensoringQuantiles(y, _thinned(C), scale)
    return table.to(table.device)


_VALIDATION_SAMPLES = 32
_SCALE_SUBJECTS = 10_000  # at most, whose times tell the scale of the loss

_AT_ONCE, _COMPARED = 1024, 10_000  # held-out subjects


@dataclass(eq=False)
class EngressionTask:
    r"""The generator and its loss, one value per subject.

    Each of the m samples of a subject is compared at a separate compatible draw of C. The draws lie at m
    equidistant levels with one random offset, so that each is a draw of C given the observation and
    together they are stratified. Censoring then costs two minima per distance.

    Parameters
    ----------
    network, scale : Generator, tensor (outputs,)
        Gives samples in units of ``scale``, which is relative to the unit of the times.
    samples, beta : int, float
        m, the samples per subject and step; exponent of the energy score.
    mixed : bool
        Let the network compute in bfloat16.
    structure : Structure, optional
        How the outputs make event times.
    bounded : bool
        Measure the loss on z/(1+z), where events that never happen are the point 1.
    sparsity : float, or tensor of one for each of several networks
        lambda of the penalty :math:`\lambda\sum_j\|w_j\|` of training, a group lasso [1]_: :math:`w_j` are
        all weights by which covariate j enters the network.

    References
    ----------
    .. [1] M. Yuan and Y. Lin (2006). Model selection and estimation in regression with grouped variables.
       Journal of the Royal Statistical Society, Series B 68, 49-67.
    """

    network: Generator
    scale: Tensor
    samples: int
    beta: float
    mixed: bool = False
    structure: Structure = None  # type: ignore[assignment]
    bounded: bool = False
    sparsity: float | Tensor = 0.0

    def __post_init__(self) -> None:
        self.structure = self.structure or Free(len(self.scale))
        self.penalised = bool(torch.as_tensor(self.sparsity).any())

    @property
    def identity(self) -> dict[str, Any]:
        """What a run must agree in, besides data and recipe, to be continued from a checkpoint."""
        positive = getattr(getattr(self.network, "positive", None), "__name__", "")
        return {
            "samples": self.samples,
            "beta": self.beta,
            "mixed": self.mixed,
            "scale": self.scale.tolist(),
            "output": positive,
            "residual": getattr(self.network, "residual", None),
            "structure": self.structure.settings,
            "bounded": self.bounded,
            "sparsity": torch.as_tensor(self.sparsity).tolist(),
        }

    def draw(
        self, n: int, generator: torch.Generator, device: torch.device, validating: bool = False
    ) -> dict[str, Tensor]:
        """Noise, and the offsets and orders of the levels of C; more samples where losses are compared."""
        m = max(self.samples, _VALIDATION_SAMPLES) if validating else self.samples
        k = self.structure.k
        return {
            "noise": torch.randn(n, m, self.network.noise_size, generator=generator, device=device),
            "offset": torch.rand(n, k, generator=generator, device=device),
            "order": torch.rand(n, m, k, generator=generator, device=device),
        }

    def loss(self, network: nn.Module, rows: Rows, random: Rows) -> Tensor:
        """Energy score of the censored samples against the censored outcome."""
        z, weights = self.structure.members(self.generate(network, rows["x"], random["noise"]))
        y, c, branches = rows["y"], self.censoring_times(rows["c"], random), self.structure.branches
        if branches > 1 and c.shape[1] > 1:  # the values of a draw share its censoring time
            c = c.repeat(1, branches, 1)
        if self.bounded:
            z, y, c = bounded(z), bounded(y), bounded(c)
        losses = energy_loss(
            z, y, c[:, None], weights=weights, mask=rows.get("mask"), beta=self.beta, branches=branches
        )
        if not self.penalised or not network.training:  # validation compares the scores alone
            return losses
        return with_penalty(losses, self.sparsity, network)

    def generate(self, network: nn.Module, x: Tensor, noise: Tensor) -> Tensor:
        """Outputs in the unit of the times, (n, m, outputs), in float32 whatever the network computes in."""
        with torch.autocast(x.device.type, torch.bfloat16, enabled=self.mixed):
            z = network(x, noise)
        return self.scaled(z.float())

    def event_times(self, out: Tensor, uniform: Tensor | None) -> Tensor:
        """Event times (n, m, k) on the scale of the loss, from outputs and uniform numbers (n, m)."""
        return self.structure.draw(self.scaled(out), uniform)

    def scaled(self, out: Tensor) -> Tensor:
        """Positive outputs in the unit of the times; logits as they are."""
        size = len(self.scale)
        if out.shape[-1] == size:
            return out * self.scale
        return torch.cat([out[..., :size] * self.scale, out[..., size:]], dim=-1)

    def censoring_times(self, table: Tensor, random: Rows) -> Tensor:
        """(n, m, 1 or k): one draw for every sample."""
        q, k = table.shape[1], table.shape[2]
        if q == 1:
            return table
        m = random["noise"].shape[1]
        # coordinates with separate censoring times need independent draws: their strata are shuffled
        stratum = torch.arange(m, device=table.device)[None, :, None]
        if k > 1:
            stratum = random["order"][:, :, :k].argsort(dim=1)
        level = (stratum / m + random["offset"][:, None, :k]) % 1.0
        return table.gather(1, (level * q).long().clamp(max=q - 1))


def bounded(z: Tensor) -> Tensor:
    """z/(1+z), also for an infinite z."""
    return 1 - 1 / (1 + z)


def scale_of_loss(times: Tensor | OnDemand, quantiles: Tensor | OnDemand, on_bounded: bool) -> float:
    """Half the mean distance of two subjects up to the earlier of their censoring times.

    Differences of C are no part of the loss: with late and early ends of follow-up they would be most of
    the distance between observed times.
    """
    y, c = times[:_SCALE_SUBJECTS], quantiles[:_SCALE_SUBJECTS]
    c = c[:, c.shape[1] // 2]  # the median of C given the observation
    if on_bounded:
        y, c = bounded(y), bounded(c)
    half = len(y) // 2
    end = torch.minimum(c, c.roll(half, 0))
    distance = torch.minimum(y, end) - torch.minimum(y.roll(half, 0), end)
    return 0.5 * float(distance.square().sum(dim=1).sqrt().mean())


def is_worse(again: EngressionTask, first: EngressionTask, held_out: Subjects, seed: int) -> bool:
    """Whether a generator that has seen the held-out subjects forecasts them worse than one that has not.

    Then its training has failed, for instance where few have events and all draws are late.
    """
    index = held_out.numbers[None, :_COMPARED]
    losses = [
        held_out_losses(task, task.network, held_out.data, index, seed=seed, at_once=_AT_ONCE)[0][0]
        for task in (again, first)
    ]
    worse = losses[0] - losses[1]
    return float(worse.mean()) > float(worse.std()) / np.sqrt(len(worse))
