"""Quantiles of C given each observation, from which a training step takes its censoring times."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from censcore._arrays import to_numpy
from censcore.distributions import Grouped, Independent, Step
from censcore.learning.data.standardised import OnDemand
from censcore.outcomes import RightCensored
from censcore.scores.compatible_times import compatible_times, known_rows

__all__ = ["JUMPS", "LEVELS", "CensoringQuantiles", "censoring_quantiles"]

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
        self._C = copy.copy(C)
        self._C.estimated_from = None  # the covariates of an estimate would be taken with every batch

    @property
    def _whole(self) -> tuple[int, int, int]:
        return len(self._y), self._levels, self._C.k

    def _computed(self, rows: np.ndarray | slice) -> Tensor:
        y, C = self._y.take(rows), self._C if len(self._C) == 1 else self._C.take(rows)
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
