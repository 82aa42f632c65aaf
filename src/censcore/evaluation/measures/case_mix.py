r"""The case mix of the scored subjects, as a model sees it: its linear predictors, and what they could rank.

Mean and standard deviation of the linear predictor :math:`\eta=\log\{-\log(1-p)\}`; and the AUC that the
model would have here if its risks were right,

.. math:: \frac{\sum_{i\ne j}w_iw_jp_i(1-p_j)\{\mathbb 1(p_i>p_j)+\tfrac12\mathbb 1(p_i=p_j)\}}
    {\sum_{i\ne j}w_iw_jp_i(1-p_j)},

which depends on no outcome. An AUC below it is a matter of the model, one far from that of the development
data with an equal one beside it is a matter of the subjects.

References
----------
.. [1] van Klaveren, D., Gönen, M., Steyerberg, E. W. and Vergouwe, Y. (2016). A new concordance measure for
   risk prediction models in external validation settings. Statistics in Medicine 35, 4136-4152.
.. [2] Debray, T. P. A., Vergouwe, Y., Koffijberg, H. et al. (2015). A new framework to enhance the
   interpretation of external validation studies of clinical prediction models. Journal of Clinical
   Epidemiology 68, 279-289.
"""

from __future__ import annotations

import numpy as np

from censcore.evaluation.inference.estimates import Estimate
from censcore.evaluation.measures.risk_of_model import RiskOfModel


def mean_and_spread(of: RiskOfModel) -> tuple[Estimate, Estimate]:
    """Estimate the mean and the standard deviation of the linear predictor."""
    eta = of.predictor
    mean = of.mean(lambda known: eta[:, None], weighted=False)
    variance = of.mean(lambda known: (eta[:, None] - mean.value) ** 2, weighted=False)
    sd = np.sqrt(variance.value / (1 - of.weight @ of.weight))
    with np.errstate(divide="ignore", invalid="ignore"):
        return mean, Estimate(sd, variance.influence * sd / (2 * variance.value))


def auc_if_right(of: RiskOfModel) -> Estimate:
    """Estimate the AUC that risks of these subjects would have if they were right."""
    of.check_spread()
    p, w = of.known.p, of.weight
    values, number = np.unique(p, return_inverse=True)
    event, free = (np.bincount(number, w * share, len(values)) for share in (p, 1 - p))
    free_below = (np.cumsum(free) - free / 2)[number] - w * (1 - p) / 2
    event_above = (event.sum() - np.cumsum(event) + event / 2)[number] - w * p / 2
    free_all, event_all = free.sum() - w * (1 - p), event.sum() - w * p
    pairs = float((w * p) @ free_all)
    auc = float((w * p) @ free_below) / pairs
    parts = p * (free_below - auc * free_all) + (1 - p) * (event_above - auc * event_all)
    return Estimate(np.array([auc]), of.mean(lambda known: parts[:, None], weighted=False).influence / pairs)
