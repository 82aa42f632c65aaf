r"""Observed and expected risk by a time, and their ratio.

.. math:: O=\frac{\sum_iw_iW_i\mathbb 1\{y_i\le t,\delta_i=1\}}{\sum_iw_iW_i},\qquad
    E=\sum_iw_ip_i,\qquad O/E

with sampling weights :math:`w_i` that sum to one, forecast risks :math:`p_i=F_i(t)` and the
inverse-probability weights :math:`W_i` of what is known at t (:mod:`censcore.scores.inputs.known_at`).
Where C is a Kaplan-Meier curve of the scored subjects, O is their Kaplan-Meier or Aalen-Johansen estimate,
and the denominator is one. E is as random as the subjects are: the error of O/E counts both. Its interval is
symmetric on the logarithmic scale, unless O is zero.

References
----------
.. [1] Satten, G. A. and Datta, S. (2001). The Kaplan-Meier estimator as an inverse-probability-of-censoring
   weighted average. The American Statistician 55, 207-210.
.. [2] Debray, T. P. A., Damen, J. A. A. G., Snell, K. I. E. et al. (2017). A guide to systematic review and
   meta-analysis of prediction model performance. BMJ 356, i6460.
"""

from __future__ import annotations

import numpy as np

from censcore.evaluation.inference.estimates import Estimate
from censcore.evaluation.measures.risk_of_model import RiskOfModel


def observed_and_expected(of: RiskOfModel) -> tuple[Estimate, Estimate]:
    """Estimate the observed and the mean forecast risk."""
    means = of.mean(lambda known: np.column_stack([known.event, known.event + known.free]))
    expected = of.mean(lambda known: known.p[:, None], weighted=False)
    return means.column(0) / means.column(1), expected
