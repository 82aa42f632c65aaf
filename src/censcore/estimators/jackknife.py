"""Intervals by the delete-a-group jackknife."""

from __future__ import annotations

import numpy as np

__all__ = ["jackknife_interval"]


def jackknife_interval(p: np.ndarray, without: np.ndarray, level: float) -> np.ndarray:
    r"""Compute intervals (..., 2) of probabilities p from those of G fits without one group each, (G, ...).

    On the scale :math:`a(p)=\arcsin\sqrt p`, on which the variance of a share does not depend on it,

    .. math:: a(p)\pm t_{G-1}\Big[\frac{G-1}G\sum_{g=1}^G\{a(p_{(g)})-\bar a\}^2\Big]^{1/2},

    with the quantile of Student's t of G - 1 degrees of freedom [1]_.

    References
    ----------
    .. [1] P. S. Kott (2001). The delete-a-group jackknife. Journal of Official Statistics 17, 521-526.

    Examples
    --------
    >>> jackknife_interval(np.array(0.2), np.array([0.18, 0.2, 0.21, 0.19, 0.22]), 0.95).round(2)
    array([0.13, 0.28])
    """
    from scipy.special import stdtrit

    G = len(without)
    a = np.arcsin(np.sqrt(without))
    error = np.sqrt((G - 1) / G * ((a - a.mean(axis=0)) ** 2).sum(axis=0))
    reach = stdtrit(G - 1, (1 + level) / 2) * error
    ends = [np.arcsin(np.sqrt(p)) + side * reach for side in (-1, 1)]
    return np.sin(np.clip(np.stack(ends, axis=-1), 0.0, np.pi / 2)) ** 2
