"""Forecasts from risk scores: Breslow's baseline hazard for a score of any model."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore._arrays import Array, ArrayLike, as_float, detach, is_torch, to_numpy
from censcore._validation import as_number, check_finite, check_option, check_positive, name_subjects
from censcore.distributions import ProportionalHazards
from censcore.estimators.covariates import check_weights
from censcore.estimators.regression.cox import CoxRegression
from censcore.estimators.risk_sets import RiskSets
from censcore.estimators.survival_estimator import one_event_time
from censcore.exceptions import InvalidInputError
from censcore.outcomes import OutcomeLike, RightCensored

# exp() of more than this leaves the range of double precision.
_LARGEST_LOG = 700.0


def from_risk(
    train_risk: ArrayLike,
    y_train: OutcomeLike,
    test_risk: ArrayLike,
    *,
    scale: str = "log",
    slope: float | str = 1.0,
    sample_weight: ArrayLike | None = None,
) -> ProportionalHazards:
    r"""Turn the risk scores of any model into forecasts, with Breslow's baseline hazard.

    .. math:: P(T>t\mid x)=\exp\{-e^{b\,\eta(x)}H_0(t)\},\qquad
        H_0(t)=\sum_{u\le t}\frac{\sum_{i:Y_i=u}w_i\Delta_i}{\sum_{j:Y_j\ge u}w_j\,e^{b\,\eta(x_j)}}

    for scores :math:`\eta` on the log scale: the linear predictor of a Cox model, the output of a network or
    of boosting with Cox's partial likelihood. Sums are taken in logarithms, so that scores of any location
    neither overflow nor make all survival probabilities zero.

    Parameters
    ----------
    train_risk : array, (m,)
        Scores of the subjects of ``y_train``; larger means earlier events.
    y_train : RightCensored, structured array or frame
        Outcomes that the baseline is estimated from.
    test_risk : array, (n,)
        Scores of the subjects to forecast.
    scale : "log" or "hazard"
        Whether scores are log hazard ratios (CatBoost, LightGBM, networks, scikit-survival) or hazard ratios
        (XGBoost's ``predict`` of ``survival:cox``, lifelines' ``predict_partial_hazard``).
    slope : number or "estimate"
        b. 1 if the model was trained by Cox's partial likelihood. "estimate" fits b by Cox regression on the
        score, which makes log hazard ratios of any score, such as a rank or a probability of dying.
    sample_weight : array, (m,), optional
        Weights of the subjects of ``y_train``.

    Returns
    -------
    ProportionalHazards
        One distribution per test subject. The baseline is stored once.

    Notes
    -----
    A flexible model separates its training subjects better than new ones. Its scores on the training subjects
    then give a baseline and a slope that are too optimistic for new subjects: use out-of-fold scores for
    ``train_risk``, or subjects that were held out.

    See Also
    --------
    as_forecast : Forecasts of models that have a survival function.
    CoxRegression : Cox regression of this library.

    References
    ----------
    N. E. Breslow (1972). Discussion of the paper by D. R. Cox. Journal of the Royal Statistical Society,
    Series B 34, 216-217.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> y_train = cs.RightCensored([1.0, 2.0, 3.0, 4.0], [1, 1, 0, 1])
    >>> F = cs.from_risk([0.5, 0.0, 0.0, -0.5], y_train, [0.0, np.log(2)])
    >>> F.sf([[1.0, 4.0]]).round(3)
    array([[0.791, 0.104],
           [0.625, 0.011]])
    """
    y = one_event_time(y_train, "from_risk")
    train, test = (
        _log_risk(r, name, scale) for r, name in ((train_risk, "train_risk"), (test_risk, "test_risk"))
    )
    if len(train) != len(y):
        raise InvalidInputError(
            f"train_risk: got {len(train)} scores, expected {len(y)}, one per subject of y_train."
        )
    weight = check_weights(sample_weight, len(y))
    b = _slope(slope, train, y, weight)
    with np.errstate(over="ignore"):
        train, test = b * train, b * test
    check_finite(train, "slope * train_risk")
    check_finite(test, "slope * test_risk")
    times, log_hazard = breslow(train, y, weight)
    forecast = proportional_hazards(times, log_hazard, test)
    return forecast.like(detach(test_risk)) if is_torch(test_risk) else forecast


def _log_risk(risk: Any, name: str, scale: str) -> np.ndarray:
    """Scores as log hazard ratios, (n,)."""
    check_option(scale, "scale", ("log", "hazard"))
    eta = to_numpy(detach(as_float(risk, name))).astype(np.float64)
    if eta.ndim == 2 and eta.shape[1] == 1:
        eta = eta[:, 0]
    if eta.ndim != 1 or not len(eta):
        raise InvalidInputError(f"{name} must have shape (n,), one score per subject; got {eta.shape}.")
    if scale == "log":
        check_finite(eta, name)
        return eta
    check_positive(eta, name)
    return np.log(eta)


def _slope(slope: float | str, eta: np.ndarray, y: RightCensored, weight: np.ndarray) -> float:
    if isinstance(slope, str) and slope == "estimate":
        return float(CoxRegression(ties="breslow").fit(eta[:, None], y, sample_weight=weight).coef_[0])
    if isinstance(slope, str):
        raise InvalidInputError(f"slope must be a number or 'estimate'; got {slope!r}.")
    return as_number(slope, "slope")


def breslow(eta: np.ndarray, y: RightCensored, weight: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Distinct event times (J,), and the logarithm of Breslow's cumulative baseline hazard after each.

    ``eta`` are the log hazard ratios of the subjects.
    """
    used = weight > 0
    sets = RiskSets(to_numpy(y.time)[used].astype(np.float64), to_numpy(y.event)[used], weight[used])
    if not len(sets.times):
        raise InvalidInputError("from_risk: got no event in y_train, expected at least one.")
    log_at_risk = np.logaddexp.accumulate((eta[used][sets.order] + np.log(sets.weight))[::-1])[::-1]
    return sets.times, np.logaddexp.accumulate(np.log(sets.d) - log_at_risk[sets.first])


def proportional_hazards(times: Array, log_hazard: np.ndarray, eta: np.ndarray) -> ProportionalHazards:
    """Proportional hazards from logarithms, for linear predictors eta and baselines of any size.

    The risk is relative to the median linear predictor.
    """
    center = float(np.median(eta))
    spread = np.abs(eta - center)
    far = np.nonzero(~(spread <= _LARGEST_LOG))[0]
    if far.size:
        raise InvalidInputError(
            f"Log hazard ratios: got values up to {spread.max():.4g} from their median, in "
            f"{name_subjects(far)}, expected at most {_LARGEST_LOG:.0f}. Check the unit of the covariates of "
            "these subjects, or penalise the model."
        )
    with np.errstate(over="ignore"):  # an infinite hazard: nobody survives
        hazard = np.exp(np.asarray(log_hazard) + center)
    return ProportionalHazards(times, hazard, np.exp(eta - center))
