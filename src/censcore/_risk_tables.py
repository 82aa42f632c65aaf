r"""Functions of a subject's risk under proportional hazards, from tables at a few risks.

Every integral of :math:`\exp\{-rH(t)\}` is a smooth function of :math:`\log r`: on an interval
[2^k, 2^(k+1)) of risks it is known to 1e-10 from its values at twelve Chebyshev nodes. So sums over thousands
of jumps are made for a few dozen risks and not for every subject.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import NamedTuple

import numpy as np

from censcore._arrays import searchsorted

RISKS = 12
PART = 10_000  # subjects at a time
_ANGLES = (2 * np.arange(RISKS) + 1) * np.pi / (2 * RISKS)
_NODES = np.cos(_ANGLES)
_BARYCENTRIC = (-1.0) ** np.arange(RISKS) * np.sin(_ANGLES)
# Values at the nodes times these are the last two coefficients in Chebyshev polynomials.
_LAST = 2 / RISKS * np.cos(np.outer([RISKS - 2, RISKS - 1], _ANGLES))


class RiskGroup(NamedTuple):
    """Subjects whose risks lie in one interval."""

    rows: np.ndarray  #: their numbers, (m,)
    risks: np.ndarray  #: where tables are made, (RISKS,)
    mix: np.ndarray  #: weights of the tables in the value of each subject, (m, RISKS)

    def read(self, values: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Values (RISKS, m) at the nodes as values of the subjects, and the estimate of their error: (m,)."""
        return np.einsum("mk,km->m", self.mix, values), interpolation_error(values.T)

    def read_in_parts(self, values: Callable[[slice], np.ndarray]) -> tuple[np.ndarray, np.ndarray]:
        """The same from a function of a slice of the subjects, which bounds the memory of the tables."""
        starts = range(0, len(self.rows), PART)
        slices = [slice(start, start + PART) for start in starts]
        parts = [self._replace(mix=self.mix[rows]).read(values(rows)) for rows in slices]
        value, error = (np.concatenate(part) for part in zip(*parts, strict=True))
        return value, error


def interpolation_error(values: np.ndarray) -> np.ndarray:
    """The larger of the last two coefficients in Chebyshev polynomials, from values (..., RISKS) at nodes."""
    one, other = (np.abs(values @ weights) for weights in _LAST)
    return np.maximum(one, other)


def risk_groups(risk: np.ndarray) -> Iterator[RiskGroup]:
    """The subjects of positive finite risks (n,), group by group.

    >>> risk, H = np.array([0.3, 1.0, 1.7]), 0.9
    >>> value = np.empty(3)
    >>> for group in risk_groups(risk):
    ...     at_nodes = np.exp(-group.risks[:, None] * np.full(len(group.rows), H))
    ...     value[group.rows], error = group.read(at_nodes)
    >>> bool(np.abs(value - np.exp(-risk * H)).max() < 1e-12)
    True
    """
    octave = np.floor(np.log2(risk))
    order = np.argsort(octave, kind="stable")
    starts = np.flatnonzero(np.diff(octave[order], prepend=-np.inf))
    for rows in np.split(order, starts[1:]):
        low = octave[rows[0]]
        away = (2 * (np.log2(risk[rows]) - low) - 1)[:, None] - _NODES
        weights = _BARYCENTRIC / np.where(np.abs(away) > 1e-15, away, 1e-15)
        yield RiskGroup(rows, 2.0 ** (low + (_NODES + 1) / 2), weights / weights.sum(axis=1, keepdims=True))


def weights_at(hazard: np.ndarray, risks: np.ndarray, *, inverse: bool) -> np.ndarray:
    """exp(-r H), or its inverse, for hazards (J,) and risks: (J, RISKS); zero where follow-up has ended."""
    ended = np.isinf(hazard)[:, None]
    exponent = np.where(ended, 0.0, hazard[:, None]) * risks * (1.0 if inverse else -1.0)
    return np.where(ended, 0.0, np.exp(np.minimum(exponent, 700.0)))


class AreaTable:
    """Integrals of exp(-r H), or of its inverse, from 0 on for a few risks r.

    From jumps (J,) and the hazard after 0, 1, ..., J of them, infinite where follow-up has ended.
    """

    def __init__(
        self, times: np.ndarray, hazard: np.ndarray, risks: np.ndarray, *, inverse: bool = False
    ) -> None:
        self._times, self._starts = times, np.append(0.0, times)
        self._heights = weights_at(hazard, risks, inverse=inverse)
        self._passed = np.zeros_like(self._heights)
        np.cumsum(self._heights[:-1] * np.diff(self._starts)[:, None], axis=0, out=self._passed[1:])

    def up_to(self, t: np.ndarray, k: np.ndarray | None = None) -> np.ndarray:
        """Integrals to times (q,) with k jumps before them, (q, RISKS); constant after the end."""
        k = searchsorted(self._times[None], t[None], "left")[0] if k is None else k
        # rows are gathered several times faster by take than by an index
        heights, way = self._heights.take(k, axis=0), (t - self._starts.take(k))[:, None]
        if np.isinf(t).any():
            way = np.where(heights > 0, way, 0.0)
        heights *= way
        heights += self._passed.take(k, axis=0)
        return heights
