"""Units of time in training: of the loss, and of the output of the generator."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from censcore._arrays import Array, to_numpy
from censcore.learning.data.first_pass import mean_time, time_sums
from censcore.outcomes import RightCensored

__all__ = ["TimeScale"]


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
    def of(cls, y: RightCensored, transform: str, sums: np.ndarray | None = None) -> Self:
        """The scale of these observed times, or of those with other sums, of which y is a sample."""
        time = to_numpy(y.time).reshape(len(y), -1)
        sums = time_sums(time) if sums is None else sums
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

    def inverse(self, z: Array) -> Array:
        """The scale of the loss to times, in place of z; beyond the largest float lies infinity."""
        z *= self.unit
        return z.expm1_() if self.transform == "log1p" else z


def _last_contact(y: RightCensored, time: np.ndarray) -> float:
    """The 95 % quantile of the ends of follow-up, or of the largest times where no end is known."""
    largest = time.max(axis=1)
    known = largest if y.censoring_time is None else to_numpy(y.censoring_time).reshape(len(y), -1)[:, 0]
    finite = known[np.isfinite(known)]
    return float(np.quantile(finite if finite.size else largest, 0.95))
