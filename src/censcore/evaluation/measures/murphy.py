r"""Elementary scores under censoring, of which every proper score of :math:`F(\tau)` is an integral."""

from __future__ import annotations

import numpy as np

from censcore._arrays import Array
from censcore.evaluation.measures.case import RiskAt
from censcore.evaluation.measures.case_scores import OfRisk
from censcore.evaluation.measures.net_benefit import check_thresholds
from censcore.scores.inputs.scoring_inputs import check_scale


def elementary(time: float, thresholds: Array, scale: str = "localized") -> OfRisk:
    r"""Return the elementary score of :math:`p=F(\tau)` in a comparison, one column per threshold [1]_.

    .. math::
        2\theta\,\mathbb 1\{p>\theta\}\,\mathbb 1\{y>\tau\}
        +2(1-\theta)\,\mathbb 1\{p\le\theta\}\,\delta\,\mathbb 1\{y\le\tau\}\frac{G(\tau)}{G(y-)}

    Its integral over :math:`\theta` is the Brier score at :math:`\tau`, and every proper score of p is such
    an integral with weights: a forecast that is better at every threshold is better by all of them. With
    delayed entry the forecast is that given survival to the entry. ``scale`` is as in
    :func:`~censcore.brier_score`.

    References
    ----------
    .. [1] Ehm, W., Gneiting, T., Jordan, A. and Krüger, F. (2016). Of quantiles and expectiles: consistent
       scoring functions, Choquet representations and forecast rankings. Journal of the Royal Statistical
       Society B 78, 505-562.
    """
    check_scale(scale)
    theta = check_thresholds(thresholds)

    def losses(known: RiskAt) -> np.ndarray:
        p, event, free = known.p[:, None], known.event[:, None], known.free[:, None]
        return 2 * np.where(p > theta, theta * free, (1 - theta) * event)

    return OfRisk(time, losses, scale)
