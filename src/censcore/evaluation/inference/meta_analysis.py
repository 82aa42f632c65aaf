r"""Random-effects pooling of estimates from several sites.

With estimates :math:`\theta_k` of variance :math:`v_k` and :math:`\theta_k\sim N(\mu,v_k+\tau^2)`, tau is
estimated by restricted maximum likelihood, and :math:`\mu` by weights :math:`w_k=1/(v_k+\tau^2)`. Its
variance is that of Hartung and Knapp, never less than Wald's,

.. math:: \max\Bigl\{1,\frac{\sum_kw_k(\theta_k-\hat\mu)^2}{K-1}\Bigr\}\Big/\sum_kw_k,

compared with Student's distribution of K - 1 degrees of freedom. The prediction interval, in which the value
of another site lies, adds :math:`\tau^2` and has K - 2 degrees of freedom.

References
----------
.. [1] Viechtbauer, W. (2005). Bias and efficiency of meta-analytic variance estimators in the random-effects
   model. Journal of Educational and Behavioral Statistics 30, 261-293.
.. [2] Röver, C., Knapp, G. and Friede, T. (2015). Hartung-Knapp-Sidik-Jonkman approach and its modification
   for random-effects meta-analysis with few studies. BMC Medical Research Methodology 15, 99.
.. [3] Higgins, J. P. T., Thompson, S. G. and Spiegelhalter, D. J. (2009). A re-evaluation of random-effects
   meta-analysis. JRSS A 172, 137-159.
.. [4] Snell, K. I. E., Ensor, J., Debray, T. P. A., Moons, K. G. M. and Riley, R. D. (2018). Meta-analysis of
   prediction model performance across multiple studies: which scale helps ensure between-study normality for
   the C-statistic and calibration measures? Statistical Methods in Medical Research 27, 3505-3522.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np


class Pooled(NamedTuple):
    """A pooled value with what it is known by, and where the value of another site lies."""

    value: float
    standard_error: float
    low: float
    high: float
    tau: float
    prediction_low: float
    prediction_high: float
    prediction_df: int


def random_effects(theta: np.ndarray, error: np.ndarray, confidence: float = 0.95) -> Pooled:
    """Pool estimates of three sites or more.

    Examples
    --------
    >>> import numpy as np
    >>> from censcore.evaluation.inference.meta_analysis import random_effects
    >>> found = random_effects(np.array([0.1, 0.4, 0.7, 0.2]), np.full(4, 0.1))
    >>> round(found.value, 3), round(found.tau, 3), found.prediction_df
    (0.35, 0.245, 2)
    """
    from scipy.special import stdtrit

    k, v = len(theta), error**2
    tau2 = _restricted_likelihood(theta, v)
    w = 1 / (v + tau2)
    mu = float(w @ theta / w.sum())
    spread = max(1.0, float(w @ (theta - mu) ** 2) / (k - 1))
    se = float(np.sqrt(spread / w.sum()))
    half = se * float(stdtrit(k - 1, 0.5 + confidence / 2))
    other = float(np.sqrt(tau2 + se**2) * stdtrit(k - 2, 0.5 + confidence / 2))
    return Pooled(mu, se, mu - half, mu + half, float(np.sqrt(tau2)), mu - other, mu + other, k - 2)


def _restricted_likelihood(theta: np.ndarray, v: np.ndarray) -> float:
    """The variance between sites of the greatest restricted likelihood."""
    from scipy.optimize import minimize_scalar

    def minus_likelihood(tau2: float) -> float:
        w = 1 / (v + tau2)
        mu = w @ theta / w.sum()
        return float(np.log(v + tau2).sum() + np.log(w.sum()) + w @ (theta - mu) ** 2) / 2

    top = 10 * float(np.var(theta)) + 1e-12
    grid = np.concatenate([[0.0], np.geomspace(1e-6 * top, top, 200)])
    best = int(np.argmin([minus_likelihood(x) for x in grid]))
    low, high = grid[max(best - 1, 0)], grid[min(best + 1, len(grid) - 1)]
    found = minimize_scalar(
        minus_likelihood, bounds=(low, high), method="bounded", options={"xatol": 1e-10 * top}
    )
    return float(found.x) if minus_likelihood(found.x) < minus_likelihood(0.0) else 0.0
