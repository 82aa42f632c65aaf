"""How the outputs of a generator make event times: freely, in order, before a terminal event, or by cause."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import cached_property
from itertools import pairwise, product
from typing import Any

import torch
from torch import Tensor

from censcore.exceptions import InvalidInputError
from censcore.outcomes import CompetingRisks, SemiCompetingRisks

# Patterns of which events happen are enumerated: 2 to this power.
_MOST_PREVENTED = 3


class Structure:
    """What is known of k event times before any data: the constraints that every draw fulfils."""

    branches = 1
    logits = 0

    def __init__(self, k: int) -> None:
        self.k = k

    @property
    def outputs(self) -> int:
        """Positive outputs of the generator."""
        return self.k

    def scale(self, centre: tuple[float, ...]) -> list[float]:
        """The unit of every positive output, from a typical value of every event time."""
        return list(centre)

    def members(self, out: Tensor) -> tuple[Tensor, Tensor | None]:
        """All values that m draws can take, (n, branches m, k), and their probabilities, which sum to one."""
        return out, None

    def draw(self, out: Tensor, uniform: Tensor | None) -> Tensor:
        """Event times (n, m, k), one value of each draw, chosen by uniform numbers (n, m)."""
        return self.members(out)[0]

    def from_latent(self, times: Tensor) -> Tensor:
        """Event times (n, m, k) that fulfil the constraints, from times that ignore them."""
        return times

    @property
    def settings(self) -> dict[str, Any]:
        """What a model file keeps; :func:`structure_of` takes it."""
        return {"kind": type(self).__name__.lower()}


class Free(Structure):
    """Event times without constraints."""


class Ordered(Structure):
    r"""Event times with :math:`T_1\le\dots\le T_k`: the outputs are the gaps.

    >>> Ordered(2).members(torch.tensor([[[3.0, 1.0]]]))[0]
    tensor([[[3., 4.]]])
    """

    def scale(self, centre: tuple[float, ...]) -> list[float]:
        """Typical gaps; those that the typical times do not show are a tenth of the time."""
        gaps = [centre[0], *(b - a for a, b in pairwise(centre))]
        return [max(gap, 0.1 * time) for gap, time in zip(gaps, centre, strict=True)]

    def members(self, out: Tensor) -> tuple[Tensor, Tensor | None]:
        """Sums of the gaps."""
        return out.cumsum(dim=-1), None


class Branching(Structure):
    """Draws that can take several values, which differ in the events that happen."""

    @abstractmethod
    def _values(self, out: Tensor) -> tuple[Tensor, Tensor]:
        """Times (n, branches, m, k) and probabilities (n, branches, m)."""

    def members(self, out: Tensor) -> tuple[Tensor, Tensor | None]:
        """Every draw in every pattern; the patterns are consecutive blocks of m members."""
        times, probability = self._values(out)
        return times.flatten(1, 2), probability.flatten(1, 2) / out.shape[1]

    def draw(self, out: Tensor, uniform: Tensor | None) -> Tensor:
        """Every draw in one pattern."""
        times, probability = self._values(out)
        if uniform is None:  # there is one value
            return times[:, 0]
        chosen = (uniform[:, None] >= probability.cumsum(dim=1)).sum(dim=1).clamp(max=self.branches - 1)
        return times.gather(1, chosen[:, None, :, None].expand(-1, 1, -1, self.k))[:, 0]


class Semicompeting(Branching):
    r"""A terminal event at :math:`T_D`, before which each of the others happens or never does.

    The generator chooses a pattern S of events that happen, by probabilities :math:`\pi_S(x,\varepsilon)`.
    Their times are outputs :math:`a_j`; :math:`T_D=\max_{j\in S}a_j+g_S` with another output for every
    pattern, and :math:`T_j=\infty` for the others. The loss sums over the patterns of every draw, so that
    the gradient of the probabilities is exact.

    >>> structure = Semicompeting(2, terminal=1)
    >>> times, weights = structure.members(torch.tensor([[[3.0, 5.0, 1.0, 0.0]]]))
    >>> times  # death at 5 without recurrence; recurrence at 3 and death at 4
    tensor([[[inf, 5.],
             [3., 4.]]])
    >>> weights
    tensor([[0.5000, 0.5000]])
    """

    def __init__(self, k: int, terminal: int) -> None:
        super().__init__(k)
        if k - 1 > _MOST_PREVENTED:
            raise InvalidInputError(
                f"got {k - 1} events beside the terminal one, expected at most {_MOST_PREVENTED}. Model "
                "fewer of them together."
            )
        self.terminal = terminal
        self.others = [j for j in range(k) if j != terminal]
        self.branches = 2 ** (k - 1)
        self.logits = self.branches - 1

    @cached_property
    def patterns(self) -> list[tuple[bool, ...]]:
        """Which of the other events happen, for every branch; the first is that none does."""
        return list(product((False, True), repeat=self.k - 1))

    @property
    def outputs(self) -> int:
        """A time for every other event, and a gap before the terminal one for every pattern."""
        return self.k - 1 + self.branches

    @property
    def settings(self) -> dict[str, Any]:
        """What a model file keeps."""
        return super().settings | {"terminal": self.terminal}

    def scale(self, centre: tuple[float, ...]) -> list[float]:
        """Typical times of the other events, and of the terminal one for every gap."""
        return [*(centre[j] for j in self.others), *[centre[self.terminal]] * self.branches]

    def from_latent(self, times: Tensor) -> Tensor:
        """What comes after the terminal event never happens.

        >>> Semicompeting(2, terminal=1).from_latent(torch.tensor([[[3.0, 1.0], [2.0, 4.0]]]))
        tensor([[[inf, 1.],
                 [2., 4.]]])
        """
        return times.where(times <= times[..., self.terminal, None], torch.inf)

    def _values(self, out: Tensor) -> tuple[Tensor, Tensor]:
        """Times (n, branches, m, k) and probabilities (n, branches, m)."""
        early, gaps = out[..., : self.k - 1], out[..., self.k - 1 : self.outputs]
        logits = torch.cat([torch.zeros_like(gaps[..., :1]), out[..., self.outputs :]], dim=-1)
        values = []
        for branch, happens in enumerate(self.patterns):
            times = [early[..., i] if here else None for i, here in enumerate(happens)]
            end = gaps[..., branch]
            happening = [time for time in times if time is not None]
            if happening:
                end = end + torch.stack(happening).amax(dim=0)
            never = torch.full_like(end, torch.inf)
            row = [never if time is None else time for time in times]
            row.insert(self.terminal, end)
            values.append(torch.stack(row, dim=-1))
        return torch.stack(values, dim=1), logits.softmax(dim=-1).movedim(-1, 1)


class Competing(Branching):
    r"""The first of several kinds of event: one of the times is finite, the others are never.

    The generator chooses a cause by probabilities :math:`\pi_j(x,\varepsilon)`, and its time is the output
    :math:`a_j`. The loss sums over the causes of every draw, so that the gradient of the probabilities is
    exact.

    >>> times, weights = Competing(2, ["relapse", "death"]).members(torch.tensor([[[3.0, 5.0, 0.0]]]))
    >>> times
    tensor([[[3., inf],
             [inf, 5.]]])
    >>> weights
    tensor([[0.5000, 0.5000]])
    """

    def __init__(self, k: int, names: Sequence[str]) -> None:
        super().__init__(k)
        if len(names) != k:
            raise InvalidInputError(f"causes: got {len(names)} names, expected {k}.")
        self.names, self.branches, self.logits = tuple(names), k, k - 1

    @property
    def settings(self) -> dict[str, Any]:
        """What a model file keeps."""
        return super().settings | {"names": list(self.names)}

    def from_latent(self, times: Tensor) -> Tensor:
        """The first of the times; the others never happen.

        >>> Competing(2, ["relapse", "death"]).from_latent(torch.tensor([[[3.0, 1.0]]]))
        tensor([[[inf, 1.]]])
        """
        first = torch.zeros_like(times).scatter(-1, times.argmin(dim=-1, keepdim=True), 1.0)
        return times.where(first > 0, torch.inf)

    def _values(self, out: Tensor) -> tuple[Tensor, Tensor]:
        """Times (n, branches, m, k) and probabilities (n, branches, m)."""
        times, never = out[..., : self.k], torch.full_like(out[..., : self.k], torch.inf)
        happens = torch.eye(self.k, dtype=torch.bool, device=out.device)[None, :, None, :]
        logits = torch.cat([torch.zeros_like(out[..., :1]), out[..., self.k :]], dim=-1)
        values = torch.where(happens, times[:, None], never[:, None])
        return values, logits.softmax(dim=-1).movedim(-1, 1)


def structure_for(y: Any, ordered: bool = False) -> Structure:
    """The structure of an outcome.

    >>> structure_for(CompetingRisks([1.0, 2.0], [1, 2], names=["relapse", "death"])).branches
    2
    """
    if isinstance(y, CompetingRisks):
        return Competing(y.n_causes, y.names)
    if isinstance(y, SemiCompetingRisks):
        return Semicompeting(y.k, y.terminal)
    return Ordered(y.k) if ordered else Free(y.k)


def structure_of(k: int, kind: str = "free", **settings: Any) -> Structure:
    """A structure from its settings.

    >>> structure_of(3, "ordered").outputs
    3
    """
    kinds = {"free": Free, "ordered": Ordered, "semicompeting": Semicompeting, "competing": Competing}
    if kind not in kinds:
        raise InvalidInputError(f"structure: got {kind!r}, expected one of {', '.join(map(repr, kinds))}.")
    return kinds[kind](k, **settings)
