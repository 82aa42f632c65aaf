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
from censcore.learning.data.standardised import blocks, copied_to
from censcore.outcomes import RightCensored
from censcore.scores.compatible_times import compatible_times, known_rows

__all__ = ["JUMPS", "LEVELS", "CensoringQuantiles", "censoring_quantiles"]

#: Quantiles of C per subject; the draws of a step are taken from them.
LEVELS = 64

#: Jumps, at most, of a curve that is looked up in every batch.
JUMPS = 2**16

_KEPT = 2**24  # numbers up to which the quantiles of all subjects are computed once and kept, 64 MiB


class CensoringQuantiles:
    r"""Quantiles of C given each observation, computed for the subjects that are asked for.

    What is kept is the outcome and the censoring distribution: one curve, those of the strata, or what
    gives each subject a curve. A table of 64 quantiles for each of n subjects would take 256 n bytes.

    Parameters
    ----------
    y : RightCensored
        The outcome.
    C : Distribution
        The censoring distribution, one for all or one per subject.
    scale : callable
        Maps times to the scale of the loss.
    levels : int
        Q, the number of quantiles; 1 where C is known for every subject.
    rows : array of int, optional
        Only these subjects, in this order.

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
        self,
        y: RightCensored,
        C: Any,
        scale: Callable[[np.ndarray], np.ndarray],
        levels: int = LEVELS,
        rows: np.ndarray | None = None,
    ) -> None:
        self._y, self._scale, self._levels, self._rows = y, scale, levels, rows
        self._C = copy.copy(C)
        self._C.estimated_from = None  # the covariates of an estimate would be taken with every batch

    @property
    def device(self) -> torch.device:
        """Where it is computed."""
        return torch.device("cpu")

    def __len__(self) -> int:
        return len(self._y if self._rows is None else self._rows)

    @property
    def shape(self) -> tuple[int, int, int]:
        """(n, Q, 1), or (n, Q, k) with one C per event time."""
        return len(self), self._levels, self._C.k

    @property
    def nbytes(self) -> int:
        """Bytes of the whole table."""
        n, q, k = self.shape
        return 4 * n * q * k

    def __getitem__(self, index: np.ndarray | Tensor | slice) -> Tensor:
        if isinstance(index, Tensor):
            index = index.numpy()
        rows = index if self._rows is None else self._rows[index]
        y, C = self._y.take(rows), self._C if len(self._C) == 1 else self._C.take(rows)
        q, k = self.shape[1:]
        levels = ((np.arange(q) + 0.5) / q)[None, :, None]
        times = compatible_times(y, C, np.broadcast_to(levels, (len(y), q, k)))
        return torch.from_numpy(self._scale(to_numpy(times)).astype(np.float32))

    def take(self, rows: np.ndarray | slice) -> CensoringQuantiles:
        """Those of some subjects, not computed yet."""
        chosen = (np.arange(len(self)) if self._rows is None else self._rows)[rows]
        return CensoringQuantiles(self._y, self._C, self._scale, self._levels, chosen)

    def to(self, device: torch.device) -> Tensor:
        """All subjects on a device, computed a block at a time."""
        return copied_to(self, device)


def _thinned(C: Any) -> Any:
    """Curves with fewer jumps, where there are more than a batch can afford to look through."""
    if isinstance(C, Independent):
        return Independent([_thinned(C.marginal(j)) for j in range(C.k)])
    return C.thinned(JUMPS) if isinstance(C, Step | Grouped) else C


def censoring_quantiles(
    y: RightCensored, C: Any, scale: Callable[[np.ndarray], np.ndarray]
) -> Tensor | CensoringQuantiles:
    """Quantiles of C given each observation: all of them, or where that is too much by subject.

    Parameters
    ----------
    y : RightCensored
        The outcome.
    C : Distribution
        The censoring distribution.
    scale : callable
        Maps times to the scale of the loss.

    Returns
    -------
    tensor or CensoringQuantiles, (n, Q, 1) or (n, Q, k)
        On the scale of the loss; Q = 1 where C is known for every subject.

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
    whole = torch.empty(n, q, k)
    for rows in blocks(n, q * k):
        whole[rows] = table[rows]
    return whole
