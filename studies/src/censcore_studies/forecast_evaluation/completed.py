r"""Right-censored scores on a time grid that complete censored subjects by a forecast, of Yanagisawa.

A subject censored at z is completed beyond z by a distribution F_w: the share of those like it that have the
event by q is :math:`w(q;z)=(F_w(q)-F_w(z))/(1-F_w(z))`. With the true distribution of T as F_w ("oracle
weights") these scores are proper. The truth is not known, so in practice F_w is the scored forecast itself
("plug-in weights"), and then they are not: a forecast gains by completing the data in its favour.

Every score takes the outcome y, the forecast, and as ``weights`` the distribution F_w, the forecast itself if
it is None.

References
----------
.. [1] Yanagisawa, H. (2023). Proper scoring rules for survival analysis. Proceedings of the 40th
   International Conference on Machine Learning, PMLR 202, 39165-39182.
.. [2] Portnoy, S. (2003). Censored regression quantiles. Journal of the American Statistical Association
   98, 1001-1012.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore.distributions import Distribution, Univariate
from censcore.exceptions import InvalidInputError
from censcore.outcomes import OutcomeLike
from censcore.scores.inputs.scoring_inputs import scoring_inputs

__all__ = [
    "completed_brier",
    "completed_log",
    "completed_multiclass_brier",
    "completed_pinball",
    "completed_rps",
]


@dataclass(frozen=True)
class _Completed:
    """Data, the scored forecast F, and F_w that completes censored subjects."""

    z: np.ndarray
    event: np.ndarray
    F: Univariate
    F_w: Univariate

    @classmethod
    def of(cls, y: Any, forecast: Any, weights: Univariate | None) -> _Completed:
        inputs = scoring_inputs(y, forecast, None, needs_censoring=False, without_entry="A completed score")
        z, event = np.asarray(inputs.y.time), np.asarray(inputs.y.event)
        return cls(z, event, inputs.F, inputs.F if weights is None else weights)

    def cdf(self, distribution: Univariate, t: np.ndarray) -> np.ndarray:
        """At times (q,), (n, q)."""
        return np.broadcast_to(np.asarray(distribution.cdf(t[None, :])), (len(self.z), len(t)))

    @property
    def F_z(self) -> np.ndarray:
        """F_w(z), (n, 1)."""
        return np.broadcast_to(np.asarray(self.F_w.cdf(self.z)), self.z.shape)[:, None]

    def w(self, F_q: np.ndarray) -> np.ndarray:
        """w(q; z) from F_w(q), (n, q): one where nothing survives z under F_w."""
        left = 1 - self.F_z
        return np.where(left > 0, (F_q - self.F_z) / np.where(left > 0, left, 1.0), 1.0)

    def bin(self, grid: np.ndarray) -> np.ndarray:
        """i(z), counted from 1: left-closed bins, times at or beyond the end in the last one."""
        return np.clip(np.searchsorted(grid, self.z, side="right"), 1, len(grid) - 1)

    def binary_brier(self, t: np.ndarray) -> np.ndarray:
        """Brier scores of "the event happens by t", (n, q)."""
        F, past = self.cdf(self.F, t), self.z[:, None] <= t
        occurred = np.where(past, np.where(self.event[:, None], 1.0, self.w(self.cdf(self.F_w, t))), 0.0)
        return occurred * (1 - F) ** 2 + (1 - occurred) * F**2


def _edges(grid: Any) -> np.ndarray:
    edges = np.asarray(grid, dtype=np.float64)
    if edges.ndim != 1 or len(edges) < 2 or (np.diff(edges) <= 0).any() or not np.isfinite(edges).all():
        raise InvalidInputError(f"grid must be finite and increasing, with at least one bin; got {edges}.")
    return edges


def completed_log(
    y: OutcomeLike,
    forecast: Distribution,
    *,
    grid: Any,
    weights: Univariate | None = None,
    epsilon: float = 1e-6,
) -> np.ndarray:
    r"""Censored log score on a grid of B bins, (n,).

    An event in bin i costs :math:`-\log f_i`; a subject censored at z in bin i costs
    :math:`-\{w\log f_i+(1-w)\log(1-F(\zeta_i))\}` with :math:`w=w(\zeta_i;z)`. ``epsilon`` is added inside
    every logarithm.

    >>> import numpy as np, censcore as cs
    >>> y = cs.RightCensored([0.4, 1.2], [1, 0])
    >>> completed_log(y, cs.Exponential(1.0), grid=np.linspace(0, 5, 11)).round(3)
    array([0.933, 1.612])
    """
    data, edges = _Completed.of(y, forecast, weights), _edges(grid)
    rows, i = np.arange(len(data.z)), data.bin(edges)
    F = data.cdf(data.F, edges)
    w = data.w(data.cdf(data.F_w, edges)[rows, i][:, None])[:, 0]
    log_f, log_s = np.log(F[rows, i] - F[rows, i - 1] + epsilon), np.log(1 - F[rows, i] + epsilon)
    return -np.where(data.event, log_f, w * log_f + (1 - w) * log_s)


def completed_brier(
    y: OutcomeLike, forecast: Distribution, *, times: Any, weights: Univariate | None = None
) -> np.ndarray:
    r"""Censored binary Brier score at given times, (n, q).

    A subject censored before :math:`\zeta` counts as an event with weight :math:`w(\zeta;z)`:
    :math:`w(1-F(\zeta))^2+(1-w)F(\zeta)^2`.

    >>> import censcore as cs
    >>> y = cs.RightCensored([0.4, 1.2], [1, 0])
    >>> completed_brier(y, cs.Exponential(1.0), times=[1.0, 2.0]).round(3)
    array([[0.135, 0.018],
           [0.4  , 0.346]])
    """
    return _Completed.of(y, forecast, weights).binary_brier(np.asarray(times, dtype=np.float64))


def completed_rps(
    y: OutcomeLike, forecast: Distribution, *, grid: Any, weights: Univariate | None = None
) -> np.ndarray:
    """Censored ranked probability score: the binary Brier scores summed over the inner grid points, (n,).

    Unnormalised; times the bin width it approximates a CRPS.

    >>> import numpy as np, censcore as cs
    >>> y = cs.RightCensored([0.4, 1.2], [1, 0])
    >>> completed_rps(y, cs.Exponential(1.0), grid=np.linspace(0, 5, 11)).round(3)
    array([0.582, 1.936])
    """
    return _Completed.of(y, forecast, weights).binary_brier(_edges(grid)[1:-1]).sum(axis=1)


def completed_multiclass_brier(
    y: OutcomeLike, forecast: Distribution, *, grid: Any, weights: Univariate | None = None
) -> np.ndarray:
    r"""Censored multiclass Brier score over the bins, :math:`\sum_i c_i(1-f_i)^2+(1-c_i)f_i^2`, (n,).

    Events have c one-hot; a subject censored in bin i spreads c over its bin and the later ones by F_w.

    >>> import numpy as np, censcore as cs
    >>> y = cs.RightCensored([0.4, 1.2], [1, 0])
    >>> completed_multiclass_brier(y, cs.Exponential(1.0), grid=np.linspace(0, 5, 11)).round(3)
    array([0.458, 1.089])
    """
    data, edges = _Completed.of(y, forecast, weights), _edges(grid)
    f, i = np.diff(data.cdf(data.F, edges), axis=1), data.bin(edges)
    share = np.clip(data.w(data.cdf(data.F_w, edges)), 0.0, None)
    share[:, -1] = 1.0
    share = np.where(np.arange(len(edges)) < i[:, None], 0.0, share)
    c = np.where(data.event[:, None], np.eye(len(edges) - 1)[i - 1], np.diff(share, axis=1))
    return (c * (1 - f) ** 2 + (1 - c) * f**2).sum(axis=1)


def completed_pinball(
    y: OutcomeLike,
    forecast: Distribution,
    *,
    levels: Any,
    z_inf: float,
    weights: Univariate | None = None,
) -> np.ndarray:
    r"""Portnoy's censored pinball score, (n, q).

    With :math:`q=F^{-1}(\alpha)` a subject censored at z costs
    :math:`w\rho_\alpha(q,z)+(1-w)\rho_\alpha(q,z_\infty)`, :math:`w=(\alpha-F_w(z))/(1-F_w(z))`, or 1 where
    :math:`\alpha\le F_w(z)`. ``z_inf`` stands in for a time above every quantile.

    >>> import censcore as cs
    >>> y = cs.RightCensored([0.4, 1.2], [1, 0])
    >>> completed_pinball(y, cs.Exponential(1.0), levels=[0.25, 0.5], z_inf=5.0).round(3)
    array([[0.028, 0.147],
           [0.228, 0.253]])
    """
    data, alpha = _Completed.of(y, forecast, weights), np.asarray(levels, dtype=np.float64)[None, :]
    q = np.broadcast_to(np.asarray(data.F.icdf(alpha)), (len(data.z), alpha.shape[1]))

    def pinball(t: np.ndarray | float) -> np.ndarray:
        return np.maximum(alpha * (t - q), (alpha - 1) * (t - q))

    w, at_z = np.where(alpha > data.F_z, data.w(alpha), 1.0), pinball(data.z[:, None])
    return np.where(data.event[:, None], at_z, w * at_z + (1 - w) * pinball(z_inf))
