"""D-calibration: uniformity of the survival probabilities at the observed times."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.exceptions import InvalidInputError
from censcore.scores._problem import pose

__all__ = ["DCalibration", "d_calibration"]


@dataclass(frozen=True)
class DCalibration:
    """Result of :func:`d_calibration`.

    Attributes
    ----------
    shares : array, (bins,)
        Share of rows in each bin of S(y), lowest survival first; 1 / bins each under calibration.
    contributions : array, (n, bins)
        What each row adds to each bin; rows sum to one.
    statistic, p_value : float
        Pearson's chi-square with bins - 1 degrees of freedom.
    """

    shares: np.ndarray
    contributions: np.ndarray
    statistic: float
    p_value: float


def d_calibration(y: Any, forecast: Any, censoring: Any = None, *, bins: int = 10) -> DCalibration:
    r"""D-calibration of a forecast on right-censored data.

    Under the true law S(T) is uniform. An event at y adds one to the bin of s = S(y); a row censored there
    adds
    :math:`(s-l)/s` to its own bin [l, u) and width/s to every lower one: the uniform law below s. A
    necessary condition, not a score: a forecast that ignores the covariates can pass it.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> from censcore.rivals import d_calibration
    >>> rng = np.random.default_rng(0)
    >>> t, c = rng.exponential(1.0, 2000), rng.exponential(2.0, 2000)
    >>> y = cs.RightCensored(np.minimum(t, c), t <= c)
    >>> right, wrong = (d_calibration(y, cs.Exponential(rate)) for rate in (1.0, 1.5))
    >>> right.p_value > 0.01, wrong.p_value < 1e-6
    (True, True)
    """
    if bins < 2:
        raise InvalidInputError(f"bins must be at least 2; {bins} came.")
    from scipy.special import chdtrc

    problem = pose(y, forecast, None, needs_law=False)
    s = np.broadcast_to(to_numpy(problem.F.sf(problem.y.time)), (problem.n,))
    each = _contributions(s, to_numpy(problem.y.event), bins)
    observed, expected = each.sum(axis=0), problem.n / bins
    statistic = float(((observed - expected) ** 2 / expected).sum())
    return DCalibration(observed / problem.n, each, statistic, float(chdtrc(bins - 1, statistic)))


def _contributions(s: np.ndarray, event: np.ndarray, bins: int) -> np.ndarray:
    low = np.arange(bins) / bins
    own = np.minimum((s * bins).astype(int), bins - 1)
    one_hot = np.eye(bins)[own]
    covered = np.clip(s[:, None] - low, 0.0, 1.0 / bins)
    spread = covered / np.where(s > 0, s, 1.0)[:, None]
    return np.where((event | (s <= 0))[:, None], one_hot, spread)
