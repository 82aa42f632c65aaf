r"""Right-censored scores on a time grid whose weights complete censored subjects by a forecast.

A subject censored at z is completed beyond z by a distribution F_w: the share of those like it that have the
event by q is :math:`w(q;z)=(F_w(q)-F_w(z))/(1-F_w(z))`. With the true distribution of T as F_w ("oracle
weights") these scores are proper. The truth is not known, so in practice F_w is the scored forecast itself
("plug-in weights"), and then they are not: a forecast gains by completing the data in its favour.

References
----------
.. [1] Yanagisawa, H. (2023). Proper scoring rules for survival analysis. Proceedings of the 40th
   International Conference on Machine Learning, PMLR 202, 39165-39182.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore._arrays import Array, as_float, to_numpy
from censcore._validation import (
    as_number,
    check_flag,
    check_kind,
    check_levels,
    check_option,
    check_positive,
    name_subjects,
)
from censcore.distributions import Distribution, Univariate
from censcore.exceptions import InvalidInputError
from censcore.outcomes import OutcomeLike
from censcore.scores.inputs import scoring_inputs

__all__ = [
    "yanagisawa_brier",
    "yanagisawa_log",
    "yanagisawa_multiclass_brier",
    "yanagisawa_pinball",
    "yanagisawa_rps",
]


@dataclass(frozen=True)
class _Completed:
    """Data on the grid, the scored forecast F, and F_w that completes censored subjects; all (n, ...)."""

    z: np.ndarray
    event: np.ndarray
    F: Univariate
    F_w: Univariate
    grid: np.ndarray

    @property
    def bin(self) -> np.ndarray:
        """i(z), counted from 1: left-closed bins, times at or beyond the end in the last one."""
        return np.clip(np.searchsorted(self.grid, self.z, side="right"), 1, len(self.grid) - 1)

    @property
    def masses(self) -> np.ndarray:
        """f_i = F(zeta_i) - F(zeta_{i-1}), (n, B)."""
        return np.diff(self.on_grid(self.F), axis=1)

    def on_grid(self, distribution: Univariate) -> np.ndarray:
        """The CDF at zeta_0..zeta_B, (n, B + 1)."""
        values = to_numpy(distribution.cdf(self.grid[None, :]))
        return np.broadcast_to(values, (len(self.z), len(self.grid)))

    def w(self, F_q: np.ndarray) -> np.ndarray:
        """w(q; z) from F_w(q), (n, q): one where nothing survives z under F_w."""
        F_z = np.broadcast_to(to_numpy(self.F_w.cdf(self.z)), self.z.shape)[:, None]
        left = 1 - F_z
        return np.where(left > 0, (F_q - F_z) / np.where(left > 0, left, 1.0), 1.0)


def _complete(y: Any, forecast: Any, weights: Any, grid: Array) -> _Completed:
    inputs = scoring_inputs(
        y, forecast, None, needs_censoring=False, without_entry="A score as published elsewhere"
    )
    grid = to_numpy(as_float(grid, "grid"))
    if weights is not None:
        check_kind(weights, "weights", Univariate, "the distribution of T that weighs the bins, or None")
    if grid.ndim != 1 or len(grid) < 2 or (np.diff(grid) <= 0).any() or not np.isfinite(grid).all():
        shown = np.array2string(grid.reshape(-1)[:6], precision=4)
        raise InvalidInputError(
            f"grid must be finite and increasing, (B + 1,) with B >= 1 bins; got {shown}, "
            f"{grid.shape}. Pass the sorted distinct edges of the bins."
        )
    return _Completed(
        to_numpy(inputs.y.time),
        to_numpy(inputs.y.event),
        inputs.F,
        inputs.F if weights is None else weights,
        grid,
    )


def yanagisawa_log(
    y: OutcomeLike,
    forecast: Distribution,
    censoring: Distribution | None = None,
    *,
    grid: Array,
    weights: Any = None,
    simple: bool = False,
    epsilon: float = 1e-6,
) -> Array:
    r"""Censored log score on a grid of B bins.

    An event in bin i costs :math:`-\log f_i`; a subject censored at z in bin i costs
    :math:`-\{w\log f_i+(1-w)\log(1-F(\zeta_i))\}` with :math:`w=w(\zeta_i;z)`.
    Proper with oracle weights, not with plug-in weights.

    Parameters
    ----------
    y, forecast : outcome and Distribution
        As for every score.
    censoring : ignored
        The score does not use the censoring distribution; accepted so that all scores are called alike.
    grid : array, (B + 1,)
        Bin edges zeta_0 < ... < zeta_B.
    weights : Distribution, optional
        The distribution that completes censored subjects; the forecast itself (plug-in) by default.
    simple : bool
        Take w = 0, which gives a censored subject -log(1 - F(zeta_i)).
    epsilon : float
        Added inside every logarithm.

    Returns
    -------
    array, (n,)

    See Also
    --------
    censcore.log_score : Proper, and without a grid.

    References
    ----------
    .. [1] Yanagisawa, H. (2023). Proper scoring rules for survival analysis. Proceedings of the 40th
       International Conference on Machine Learning, PMLR 202, 39165-39182.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> from censcore.published import yanagisawa_log
    >>> y = cs.RightCensored([0.4, 1.2], [1, 0])
    >>> yanagisawa_log(y, cs.Exponential(1.0), grid=np.linspace(0, 5, 11)).round(3)
    array([0.933, 1.612])
    """
    epsilon = as_number(epsilon, "epsilon", least=0, below=1)
    check_flag(simple, "simple")
    data = _complete(y, forecast, weights, grid)
    rows, i = np.arange(len(data.z)), data.bin
    f = data.masses[rows, i - 1]
    survival = 1 - data.on_grid(data.F)[rows, i]
    w = np.zeros_like(f) if simple else data.w(data.on_grid(data.F_w)[rows, i][:, None])[:, 0]
    log_f, log_s = np.log(f + epsilon), np.log(survival + epsilon)
    return -np.where(data.event, log_f, w * log_f + (1 - w) * log_s)


def yanagisawa_brier(
    y: OutcomeLike,
    forecast: Distribution,
    censoring: Distribution | None = None,
    times: Array = None,
    *,
    weights: Any = None,
) -> Array:
    r"""Censored binary Brier score at given times, (n, q).

    A subject censored before :math:`\zeta` counts as an event with weight :math:`w(\zeta;z)`:
    :math:`w(1-F(\zeta))^2+(1-w)F(\zeta)^2`. Proper with oracle weights, not with plug-in weights.

    Parameters
    ----------
    y, forecast : outcome and Distribution
        As for every score.
    censoring : ignored
        The score does not use the censoring distribution; accepted so that all scores are called alike.
    times : array, (q,)
        Evaluation times.
    weights : Distribution, optional
        The distribution that completes censored subjects; the forecast itself (plug-in) by default.

    Returns
    -------
    array, (n, q)

    See Also
    --------
    censcore.brier_score : Proper whatever completes the data.

    References
    ----------
    .. [1] Yanagisawa, H. (2023). Proper scoring rules for survival analysis. Proceedings of the 40th
       International Conference on Machine Learning, PMLR 202, 39165-39182.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.published import yanagisawa_brier
    >>> y = cs.RightCensored([0.4, 1.2], [1, 0])
    >>> yanagisawa_brier(y, cs.Exponential(1.0), times=[1.0, 2.0]).round(3)
    array([[0.135, 0.018],
           [0.4  , 0.346]])
    """
    if times is None:
        raise InvalidInputError("yanagisawa_brier needs times=..., the times at which F is judged.")
    t = to_numpy(as_float(times, "times")).reshape(-1)
    check_positive(t, "times", zero=True)
    return _binary_brier(_complete(y, forecast, weights, np.array([0.0, 1.0])), t)


def _binary_brier(data: _Completed, t: np.ndarray) -> np.ndarray:
    n = len(data.z)
    F = np.broadcast_to(to_numpy(data.F.cdf(t[None, :])), (n, len(t)))
    F_w = np.broadcast_to(to_numpy(data.F_w.cdf(t[None, :])), (n, len(t)))
    past = data.z[:, None] <= t
    occurred = np.where(past, np.where(data.event[:, None], 1.0, data.w(F_w)), 0.0)
    return occurred * (1 - F) ** 2 + (1 - occurred) * F**2


def yanagisawa_rps(
    y: OutcomeLike,
    forecast: Distribution,
    censoring: Distribution | None = None,
    *,
    grid: Array,
    weights: Any = None,
) -> Array:
    """Censored ranked probability score: the binary Brier scores summed over the inner grid points, (n,).

    Unnormalised; times the bin width it approximates a CRPS. Proper with oracle weights only.

    Parameters
    ----------
    y, forecast : outcome and Distribution
        As for every score.
    censoring : ignored
        The score does not use the censoring distribution; accepted so that all scores are called alike.
    grid : array, (B + 1,)
        Bin edges zeta_0 < ... < zeta_B.
    weights : Distribution, optional
        The distribution that completes censored subjects; the forecast itself (plug-in) by default.

    Returns
    -------
    array, (n,)

    See Also
    --------
    censcore.crps : Without a grid, and proper.

    References
    ----------
    .. [1] Yanagisawa, H. (2023). Proper scoring rules for survival analysis. Proceedings of the 40th
       International Conference on Machine Learning, PMLR 202, 39165-39182.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> from censcore.published import yanagisawa_rps
    >>> y = cs.RightCensored([0.4, 1.2], [1, 0])
    >>> yanagisawa_rps(y, cs.Exponential(1.0), grid=np.linspace(0, 5, 11)).round(3)
    array([0.582, 1.936])
    """
    data = _complete(y, forecast, weights, grid)
    return _binary_brier(data, data.grid[1:-1]).sum(axis=1)


def yanagisawa_multiclass_brier(
    y: OutcomeLike,
    forecast: Distribution,
    censoring: Distribution | None = None,
    *,
    grid: Array,
    weights: Any = None,
) -> Array:
    r"""Censored multiclass Brier score over the bins, :math:`\sum_i c_i(1-f_i)^2+(1-c_i)f_i^2`, (n,).

    Events have c one-hot; a subject censored in bin i spreads c over its bin and the later ones by F_w.
    Proper with oracle weights only.

    Parameters
    ----------
    y, forecast : outcome and Distribution
        As for every score.
    censoring : ignored
        The score does not use the censoring distribution; accepted so that all scores are called alike.
    grid : array, (B + 1,)
        Bin edges zeta_0 < ... < zeta_B.
    weights : Distribution, optional
        The distribution that completes censored subjects; the forecast itself (plug-in) by default.

    Returns
    -------
    array, (n,)

    See Also
    --------
    censcore.brier_score : Proper at every single time.

    References
    ----------
    .. [1] Yanagisawa, H. (2023). Proper scoring rules for survival analysis. Proceedings of the 40th
       International Conference on Machine Learning, PMLR 202, 39165-39182.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> from censcore.published import yanagisawa_multiclass_brier
    >>> y = cs.RightCensored([0.4, 1.2], [1, 0])
    >>> yanagisawa_multiclass_brier(y, cs.Exponential(1.0), grid=np.linspace(0, 5, 11)).round(3)
    array([0.458, 1.089])
    """
    data = _complete(y, forecast, weights, grid)
    f, n_bins = data.masses, len(data.grid) - 1
    c = np.where(data.event[:, None], np.eye(n_bins)[data.bin - 1], _completed_classes(data))
    return (c * (1 - f) ** 2 + (1 - c) * f**2).sum(axis=1)


def _completed_classes(data: _Completed) -> np.ndarray:
    """Where the event of a censored subject falls under F_w: differences of w over the edges not before z."""
    share = np.clip(data.w(data.on_grid(data.F_w)), 0.0, None)
    share[:, -1] = 1.0
    share = np.where(np.arange(share.shape[1]) < data.bin[:, None], 0.0, share)
    return np.diff(share, axis=1)


def yanagisawa_pinball(
    y: OutcomeLike,
    forecast: Distribution,
    censoring: Distribution | None = None,
    levels: Array = None,
    *,
    z_inf: float,
    weights: Any = None,
    below: str = "observed",
) -> Array:
    r"""Portnoy's censored pinball score, (n, q).

    With :math:`q=F^{-1}(\alpha)` a subject censored at z costs
    :math:`w\rho_\alpha(q,z)+(1-w)\rho_\alpha(q,z_\infty)`, :math:`w=(\alpha-F_w(z))/(1-F_w(z))`.

    Parameters
    ----------
    y, forecast : outcome and Distribution
        As for every score.
    censoring : ignored
        The score does not use the censoring distribution; accepted so that all scores are called alike.
    levels : array
        Quantile levels.
    z_inf : float
        Stand-in for a time above every quantile; the last grid point in practice.
    weights : Distribution, optional
        The distribution that completes censored subjects; the forecast itself by default.
    below : {"observed", "unobserved"}
        What w is where :math:`\alpha\le F_w(z)`: 1 (all weight at z), or the clamp to 0 (all at z_inf). The
        two have the same gradient in q but different values.

    Returns
    -------
    array, (n, q)

    See Also
    --------
    censcore.pinball_score : The proper score.

    References
    ----------
    .. [1] Portnoy, S. (2003). Censored regression quantiles. Journal of the American Statistical Association
       98, 1001-1012.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.published import yanagisawa_pinball
    >>> y = cs.RightCensored([0.4, 1.2], [1, 0])
    >>> yanagisawa_pinball(y, cs.Exponential(1.0), levels=[0.25, 0.5], z_inf=5.0).round(3)
    array([[0.028, 0.147],
           [0.228, 0.253]])
    """
    if levels is None:
        raise InvalidInputError("yanagisawa_pinball needs levels=..., the quantile levels.")
    check_option(below, "below", ("observed", "unobserved"))
    data = _complete(y, forecast, weights, np.array([0.0, 1.0]))
    alpha = to_numpy(as_float(levels, "levels")).reshape(1, -1)
    check_levels(alpha)
    z_inf = as_number(z_inf, "z_inf", above=0)
    q = np.broadcast_to(to_numpy(data.F.icdf(alpha)), (len(data.z), alpha.shape[1]))
    if np.isinf(q).any():
        rows = np.unique(np.nonzero(np.isinf(q))[0])
        raise InvalidInputError(
            f"The forecast has infinite quantiles, and so an infinite score, in {name_subjects(rows)}. Pass "
            "lower levels, or forecast.censor_at(z_inf)."
        )
    z = data.z[:, None]
    F_z = np.broadcast_to(to_numpy(data.F_w.cdf(data.z)), data.z.shape)[:, None]
    w = np.where(alpha > F_z, data.w(alpha), 1.0 if below == "observed" else 0.0)
    censored = w * _pinball(alpha, q, z) + (1 - w) * _pinball(alpha, q, z_inf)
    return np.where(data.event[:, None], _pinball(alpha, q, z), censored)


def _pinball(alpha: Array, q: Array, t: Array) -> Array:
    return np.maximum(alpha * (t - q), (alpha - 1) * (t - q))
