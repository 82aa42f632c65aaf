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

from dataclasses import dataclass

import numpy as np

from censcore._arrays import to_numpy
from censcore.estimators import CoxRegression
from censcore.estimators.risk_sets import RiskSets, entries_of
from censcore.evaluation.inference.estimates import Estimate, effective_number
from censcore.evaluation.measures.risk_of_model import RiskOfModel
from censcore.exceptions import InvalidInputError

KAPPA = np.sqrt(8 / np.pi)


def cox_slope(of: RiskOfModel) -> Estimate:
    """Estimate the coefficient of the linear predictor."""
    return _Fitted.of(of, of.predictor).estimate


def royston_d(of: RiskOfModel) -> Estimate:
    """Estimate the prognostic separation D."""
    from scipy.special import ndtri
    from scipy.stats import norm

    w = of.weight
    values, number = np.unique(of.predictor[w > 0], return_inverse=True)
    tied = np.bincount(number, w[w > 0], len(values))
    n, share = effective_number(w), np.full(len(w), 0.5)
    share[w > 0] = ((np.cumsum(tied) - tied / 2)[number] * n + 1 / 8) / (n + 1 / 4)  # Blom's normal scores
    scores = ndtri(share)
    fitted = _Fitted.of(of, scores / KAPPA)
    c = fitted.by_covariate / (KAPPA * norm.pdf(scores))
    within = np.bincount(number, c[w > 0], len(values))
    beyond = (np.cumsum(within[::-1])[::-1] - within / 2)[number]
    ranks = np.zeros((len(w), 1))
    ranks[w > 0, 0] = w[w > 0] * (beyond - c @ share) / fitted.information
    D = fitted.estimate
    return Estimate(D.value, D.influence + of.of_subjects(D.value, ranks).influence)


@dataclass(frozen=True, eq=False)
class _Fitted:
    """Cox regression on one covariate, of the subjects with a weight."""

    estimate: Estimate
    information: float
    by_covariate: np.ndarray  #: derivatives of the partial score by the covariate of each subject, (n,)

    @classmethod
    def of(cls, of: RiskOfModel, covariate: np.ndarray) -> _Fitted:
        """Fit it to the follow-up up to the time."""
        if of.case.never.any():
            raise InvalidInputError(
                "Cox regression takes one kind of event: with competing risks it would be of the "
                "cause-specific hazard, which is not what a cumulative incidence forecasts."
            )
        of.check_spread()
        y, w = of.case.y.censor_at(of.time), of.weight
        model = CoxRegression().fit(covariate[:, None], y, w)
        beta, sets = float(model.coef_[0]), RiskSets(to_numpy(y.time), to_numpy(y.event), w, entries_of(y))
        z = covariate[sets.order]
        risk = np.exp(beta * (z - z @ sets.weight))
        total, sums = (sets.at_risk(sets.weight * risk * factor)[0] for factor in (1.0, z))
        jump, mean = sets.d / total, sums / total
        zero, one, two = (sets.while_at_risk(jump * mean**power) for power in range(3))
        failed = np.zeros(len(z))
        failed[sets.failed] = 1.0
        by_covariate, own = np.empty(len(z)), np.empty(len(z))
        by_covariate[sets.order] = sets.weight * (failed - risk * zero - beta * risk * (z * zero - one))
        own[sets.order] = (
            sets.weight * risk * (z**2 * zero - 2 * z * one + two)
        )  # information of each subject
        alone = (1 - w) / (1 - own / own.sum())  # what a contribution grows by where its subject is left out
        psi = of.of_subjects(model.coef_, model.coefficient_influence() * alone[:, None])
        return cls(psi, float(own.sum()), by_covariate)
