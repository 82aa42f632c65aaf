"""The closed test of Vergouwe et al. for how much of a model must change, in its Wald form."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.stats import chi2

from censcore.estimators.covariates import check_weights
from censcore.estimators.regression.base import sum_in_groups
from censcore.estimators.regression.cox import CoxRegression
from censcore.estimators.regression.recalibrated import Recalibrated, follow_up_until, log_cumulative_hazard
from censcore.estimators.survival_estimator import one_event_time
from censcore.exceptions import InvalidInputError


def closed_test(
    model: Any, X: Any, y: Any, time: float, sample_weight: Any = None, groups: Any = None
) -> list[dict[str, Any]]:
    r"""Test the refitted model against simpler rungs of the ladder, one line for each.

    Cox regression on :math:`\eta`, the complementary log-log of the model's risk by the time, and on the
    columns z gives :math:`\log H(t^*\mid x)=a+b\eta+\delta^\top z`. The hypotheses are a = 0, b = 1 and
    :math:`\delta=0` ("as it is"), b = 1 and :math:`\delta=0` ("intercept"), and :math:`\delta=0` ("slope").
    Errors are robust: the influences of a include those of the baseline hazard.

    Parameters
    ----------
    model, X, y, time, sample_weight, groups
        As in :func:`censcore.update`.

    Returns
    -------
    list of dict
        ``rung``, ``statistic``, ``degrees_of_freedom`` and ``p_value``.
    """
    y = one_event_time(y, "update")
    weight = check_weights(sample_weight, len(y))
    cut = follow_up_until(y, time, weight)
    eta = np.broadcast_to(log_cumulative_hazard(model, X, time), (len(y),))
    Z = Recalibrated(model, time, "refit").columns(X, reset=True)
    full = CoxRegression(ties="breslow").fit(np.column_stack([eta, Z]), cut, weight)
    if "column 0" not in full.columns_:
        raise InvalidInputError("The model: got the same risk for all subjects, which has no slope to test.")
    H, p = full.baseline_hazard_[-1], len(full.coef_)
    theta = np.append(np.log(H) - full.center_[0], full.coef_)
    theta[1] -= 1.0
    by_jump = np.zeros((len(full.baseline_times_), p + 1))
    by_jump[:, 0] = -1 / H  # log H = log(-sum of a_u)
    parts = sum_in_groups(full.influence(by_jump, np.eye(p, p + 1, k=1)), groups)
    return list(_tests(theta, parts.T @ parts))


def _tests(theta: np.ndarray, covariance: np.ndarray) -> Iterator[dict[str, Any]]:
    for first, rung in enumerate(("as it is", "intercept", "slope")):
        rest = theta[first:]
        if len(rest):
            W = float(rest @ np.linalg.solve(covariance[first:, first:], rest))
            df = len(rest)
            yield {"rung": rung, "statistic": W, "degrees_of_freedom": df, "p_value": float(chi2.sf(W, df))}
