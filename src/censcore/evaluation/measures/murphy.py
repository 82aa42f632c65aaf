r"""Elementary scores under censoring, of which every proper score of :math:`F(\tau)` is an integral."""

from __future__ import annotations

import numpy as np

from censcore._arrays import Array
from censcore._validation import as_number
from censcore.distributions import Distribution
from censcore.evaluation.measures.case import RiskAt, risk_at
from censcore.evaluation.measures.case_scores import OfRisk
from censcore.evaluation.measures.net_benefit import check_thresholds
from censcore.outcomes import OutcomeLike
from censcore.scores.inputs import check_scale, scoring_inputs


def elementary_score(
    y: OutcomeLike,
    forecast: Distribution,
    censoring: Distribution | None,
    time: float,
    thresholds: Array,
    *,
    scale: str = "localized",
) -> np.ndarray:
    r"""The elementary score of :math:`p=F(\tau)` at thresholds :math:`\theta` in (0, 1).

    .. math::
        2\theta\,\mathbb 1\{p>\theta\}\,\mathbb 1\{y>\tau\}
        +2(1-\theta)\,\mathbb 1\{p\le\theta\}\,\delta\,\mathbb 1\{y\le\tau\}\frac{G(\tau)}{G(y-)}

    Its integral over :math:`\theta` is the Brier score at :math:`\tau`, and every proper score of p is such
    an integral with weights: a forecast that is better at every threshold is better by all of them. With
    delayed entry the forecast is that given survival to the entry.

    Parameters
    ----------
    y, forecast, censoring, time, thresholds
        As in :func:`~censcore.evaluation.net_benefit`.
    scale : {"localized", "ipcw"}
        As in :func:`~censcore.brier_score`.

    Returns
    -------
    array, (n, q)

    See Also
    --------
    censcore.brier_score : The integral over all thresholds.

    References
    ----------
    .. [1] Ehm, W., Gneiting, T., Jordan, A. and Krüger, F. (2016). Of quantiles and expectiles: consistent
       scoring functions, Choquet representations and forecast rankings. Journal of the Royal Statistical
       Society B 78, 505-562.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> from censcore.evaluation.measures.murphy import elementary_score
    >>> y = cs.RightCensored(time=[1.0, 3.0], event=[1, 0])
    >>> theta = np.linspace(0, 1, 1001)[1:-1]
    >>> F, C = cs.Exponential(0.5), cs.Uniform(0.0, 5.0)
    >>> elementary_score(y, F, C, 2.0, theta).mean(axis=1).round(2), cs.brier_score(y, F, C, 2.0).round(2)
    (array([0.1, 0.4]), array([0.1, 0.4]))
    """
    check_scale(scale)
    inputs = scoring_inputs(y, forecast, censoring, one_cause=True)
    known = risk_at(inputs, as_number(time, "time", least=0), scale)
    return _elementary(known, check_thresholds(thresholds))


def _elementary(known: RiskAt, theta: np.ndarray) -> np.ndarray:
    p, event, free = known.p[:, None], known.event[:, None], known.free[:, None]
    return 2 * np.where(p > theta, theta * free, (1 - theta) * event)


def elementary(time: float, thresholds: Array, scale: str = "localized") -> OfRisk:
    """:func:`elementary_score` of F(time) in a comparison, one column per threshold."""
    check_scale(scale)
    theta = check_thresholds(thresholds)
    return OfRisk(time, lambda known: _elementary(known, theta), scale)
