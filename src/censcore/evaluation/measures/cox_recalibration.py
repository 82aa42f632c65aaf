r"""Cox regression on what a forecast says: the calibration slope over the whole follow-up, and Royston's D.

*Calibration slope, Cox*: the coefficient b of a Cox regression of the event times up to t on the linear
predictor :math:`\eta=\log\{-\log(1-p)\}`. *Royston's D*: that of a Cox regression on the scaled normal scores
:math:`z_i=\Phi^{-1}(u_i)/\kappa` of the linear predictors, where :math:`u_i` is the rank of
:math:`\eta_i` as a share and :math:`\kappa=\sqrt{8/\pi}`: the log hazard ratio between the half of the
subjects with the higher and the half with the lower risks, if the predictor were normal.

Both need no censoring distribution: they assume that C is independent of T given the covariate. Errors are
robust, :math:`\psi_i=A^{-1}w_i\hat U_i` with Lin and Wei's residuals. For D the normal scores are estimated
too, from the ranks: with the derivative :math:`c_k` of the equation by :math:`u_k`,

.. math:: \psi_i=A^{-1}\Bigl[w_i\hat U_i+w_i\sum_kc_k\{\mathbb 1(\eta_i<\eta_k)-u_k\}\Bigr],\quad
    c_k=\frac{w_k}{\kappa\,\varphi(\Phi^{-1}(u_k))}\Bigl\{M_k-\beta e^{\beta z_k}\int_0^{y_k}
    (z_k-\bar z)\,d\Lambda_0\Bigr\}

with the martingale residuals M.

References
----------
.. [1] Lin, D. Y. and Wei, L. J. (1989). The robust inference for the Cox proportional hazards model. JASA 84,
   1074-1078.
.. [2] Royston, P. and Sauerbrei, W. (2004). A new measure of prognostic separation in survival data.
   Statistics in Medicine 23, 723-748.
"""

from __future__ import annotations

import numpy as np

from censcore._arrays import to_numpy
from censcore.estimators import CoxRegression
from censcore.estimators.risk_sets import RiskSets, entries_of
from censcore.evaluation.inference.estimates import Estimate, effective_number
from censcore.evaluation.measures.risk_of_model import RiskOfModel
from censcore.exceptions import InvalidInputError
from censcore.outcomes import RightCensored

KAPPA = np.sqrt(8 / np.pi)


def cox_slope(of: RiskOfModel) -> Estimate:
    """Estimate the coefficient of the linear predictor."""
    return _fitted(of, of.predictor)[0]


def royston_d(of: RiskOfModel) -> Estimate:
    """Estimate the prognostic separation D."""
    from scipy.special import ndtri
    from scipy.stats import norm

    w, eta = of.weight, of.predictor
    values, number = np.unique(eta[w > 0], return_inverse=True)
    tied = np.bincount(number, w[w > 0], len(values))
    n, share = effective_number(w), np.zeros(len(w))
    share[w > 0] = ((np.cumsum(tied) - tied / 2)[number] * n + 1 / 8) / (n + 1 / 4)  # Blom's normal scores
    share[w == 0] = 0.5
    scores = ndtri(share)
    D, y, information = _fitted(of, scores / KAPPA)
    c = _by_covariate(y, w, scores / KAPPA, float(D.value[0])) / (KAPPA * norm.pdf(scores))
    beyond = np.bincount(number, c[w > 0], len(values))
    beyond = (np.cumsum(beyond[::-1])[::-1] - beyond / 2)[number]
    ranks = np.zeros((len(w), 1))
    ranks[w > 0, 0] = w[w > 0] * (beyond - c @ share) / information
    return Estimate(D.value, D.influence + of.of_subjects(D.value, ranks).influence)


def _fitted(of: RiskOfModel, covariate: np.ndarray) -> tuple[Estimate, RightCensored, float]:
    """The coefficient of a covariate, the outcome up to the time, and the information."""
    if of.case.never.any():
        raise InvalidInputError(
            "Cox regression takes one kind of event: with competing risks it would be of the cause-specific "
            "hazard, which is not what a cumulative incidence forecasts."
        )
    of.check_spread()
    y, w = of.case.y.censor_at(of.time), of.weight
    model = CoxRegression().fit(covariate[:, None], y, w)
    estimate = of.of_subjects(model.coef_, model.coefficient_influence())
    return estimate, y, float(1 / model.covariance_[0, 0])


def _by_covariate(y: RightCensored, w: np.ndarray, z: np.ndarray, beta: float) -> np.ndarray:
    """Derivatives of the partial score by the covariate of each subject, (n,)."""
    sets = RiskSets(to_numpy(y.time), to_numpy(y.event), w, entries_of(y))
    z, risk = z[sets.order], np.exp(beta * z[sets.order])
    (total, _), (sums, _) = (sets.at_risk(sets.weight * risk * factor) for factor in (1.0, z))
    jump = sets.d / total
    hazard, mean = sets.while_at_risk(jump), sets.while_at_risk(jump * sums / total)
    failed = np.zeros(len(z))
    failed[sets.failed] = 1.0
    c = np.empty(len(z))
    c[sets.order] = sets.weight * (failed - risk * hazard - beta * risk * (z * hazard - mean))
    return c
