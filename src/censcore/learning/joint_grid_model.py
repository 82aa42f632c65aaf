"""Joint distribution of two event times by the cells of a grid, from a network."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any, ClassVar

import numpy as np
import torch
from torch import Tensor

from censcore._arrays import ArrayLike, as_float, to_numpy
from censcore._validation import as_count, as_number
from censcore.distributions import JointGrid
from censcore.exceptions import InvalidInputError
from censcore.learning.file_checks import check_numbers
from censcore.learning.likelihood import ParameterEstimator, ParameterNetwork
from censcore.learning.settings import Training
from censcore.outcomes import RightCensored
from censcore.plain_text import some_values

_MOST_BINS = 1000  # a million cells, each an output of the network


@dataclass(kw_only=True, eq=False, repr=False)
class JointGridModel(ParameterEstimator):
    r"""Softmax over the cells of a joint grid of two event times, trained by the censored log score.

    A network gives one logit for each of :math:`(B+1)^2` cells, including a tail cell per axis. Within a cell
    times are independent and uniform, beyond the last edge exponential. The likelihood of an observation that
    is censored in a coordinate sums the cells that remain possible. Assumes that C is independent of T
    given x.

    Parameters
    ----------
    bins : int
        B, the bins per axis below the last edge.
    edges : {"quantile", "uniform"} or array
        Edges at quantiles of the observed event times of both coordinates together, equally wide, or given.
    tail : {"hazard", "infinity"} or float
        Rate of the exponential distribution beyond the last edge: events per time at risk in the last
        quarter of the grid, zero (no event after the last edge), or given.
    hidden : sequence of int
        Widths of hidden layers; empty for logits linear in x.
    solver : {"auto", "lbfgs", "adam"}
        ``"lbfgs"`` maximises the likelihood of all subjects to convergence, with the ``weight_decay`` of
        ``training`` as the penalty and no validation split; ``"adam"`` trains in minibatches and stops early.
        ``"auto"`` is the first without hidden layers and the second with them.
    max_iter : int
        Most iterations of L-BFGS.
    epochs, patience, random_state, device, progress, checkpoint
        As for :class:`~censcore.CensoredEngression`.
    training : Training, optional
        Its fields that concern any network; ``default_training`` of the class if omitted, of which
        :func:`dataclasses.replace` changes some.

    Attributes
    ----------
    history_ : History
        Losses by epoch or iteration; ``gradient_norm`` and ``converged`` after L-BFGS.
    k_ : int
        Number of event times.

    See Also
    --------
    CopulaWeibull, CensoredEngression : Joint distributions of any number of event times.
    censcore.JointGrid : What it predicts.

    References
    ----------
    .. [1] C. Lee, W. R. Zame, J. Yoon and M. van der Schaar (2018). DeepHit: a deep learning approach to
       survival analysis with competing risks. Proceedings of the AAAI Conference on Artificial Intelligence
       32. A softmax over time intervals, for one event time.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.simulation import LogNormalScenario
    >>> data = LogNormalScenario(k=2).sample(500, seed=0)
    >>> model = cs.JointGridModel(bins=8, epochs=5, random_state=0).fit(data.X, data.y)
    >>> model.predict_distribution(data.X).shape
    (500, 2)
    """

    _kind: ClassVar[str] = "JointGridModel"
    default_training: ClassVar[Training] = Training(
        batch_size=512, learning_rate=3e-3, weight_decay=1e-3, validate_every=1, tolerance=0.0
    )

    bins: int = field(default=20, kw_only=False)
    edges: ArrayLike | str = "quantile"
    tail: ArrayLike | str = "hazard"
    hidden: Sequence[int] = (128, 128)

    def _fit_units(self, y: RightCensored) -> None:
        if y.k != 2:
            raise InvalidInputError(f"The joint grid is for two event times; got {y.k}.")
        time, event = to_numpy(y.time) / self._unit, to_numpy(y.event)
        self._edges = self._choose_edges(time, event)
        self._rate = self._choose_rate(time, event)

    def _choose_edges(self, time: np.ndarray, event: np.ndarray) -> np.ndarray:
        if not isinstance(self.edges, str):
            edges = to_numpy(as_float(self.edges, "edges"))
            if edges.ndim != 1 or len(edges) < 2 or edges[0] != 0 or not (np.diff(edges) > 0).all():
                raise InvalidInputError(f"edges must start at 0 and increase; got {some_values(edges)}.")
            return edges / self._unit
        bins = as_count(self.bins, "bins", least=2, most=_MOST_BINS)
        if self.edges == "uniform":
            return np.linspace(0.0, time.max(), bins + 1)
        if self.edges != "quantile":
            raise InvalidInputError(f"edges must be 'quantile', 'uniform' or an array; got {self.edges!r}.")
        if not event.any():
            raise InvalidInputError(
                "No subject has an event, so edges cannot be quantiles of event times; pass edges=..."
            )
        inner = np.quantile(time[event], np.linspace(0, 1, bins)[1:])
        return np.unique(np.concatenate([[0.0], inner, [max(time.max(), inner[-1] * 1.001)]]))

    def _choose_rate(self, time: np.ndarray, event: np.ndarray) -> np.ndarray:
        """Per coordinate: events per time at risk in the last quarter of the grid."""
        if not isinstance(self.tail, str):
            return np.full(2, as_number(self.tail, "tail", least=0) * self._unit)
        if self.tail == "infinity":
            return np.zeros(2)
        if self.tail != "hazard":
            raise InvalidInputError(
                f"tail must be 'hazard', 'infinity' or a rate of at least 0; got {self.tail!r}."
            )
        start = self._edges[-1] * 0.75
        at_risk = np.clip(time - start, 0.0, None).sum(axis=0)
        events = (event & (time > start)).sum(axis=0)
        # without an event that late, the rate of the whole follow-up is used
        return np.where(
            events > 0, events / np.where(at_risk > 0, at_risk, 1.0), event.sum(axis=0) / time.sum(axis=0)
        )

    def _new_network(self) -> ParameterNetwork:
        cells = len(self._edges) ** 2
        return ParameterNetwork(self._n_inputs, cells, 0, self.hidden)

    def _distribution(self, raw: Tensor, unit: float) -> JointGrid:
        size = len(self._edges)
        logits = raw.reshape(-1, size, size)
        edges = _constant(tuple(self._edges * unit), raw.dtype, raw.device)
        rate = _constant(tuple(self._rate / unit), raw.dtype, raw.device)
        return JointGrid.from_logits([edges, edges], logits, tail=rate[None, :])

    def _fitted_settings(self) -> dict[str, Any]:
        return super()._fitted_settings() | {"edges": self._edges.tolist(), "rate": self._rate.tolist()}

    def _restore_settings(self, settings: dict[str, Any]) -> None:
        super()._restore_settings(settings)
        self._edges = check_numbers("edges", settings["edges"], least=0, increasing=True)
        self._rate = check_numbers("rate", settings["rate"], count=2, least=0)


@lru_cache(maxsize=64)
def _constant(values: tuple[float, ...], dtype: torch.dtype, device: torch.device) -> Tensor:
    """Numbers on a device, made once: a recorded step of training cannot bring them there."""
    return torch.tensor(values, dtype=dtype, device=device)
