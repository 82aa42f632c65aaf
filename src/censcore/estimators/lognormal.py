"""Log-normal and log-logistic regression."""

from __future__ import annotations

import numpy as np

from censcore.distributions import LogLogistic, LogNormal
from censcore.estimators.log_location_scale import Logistic, LogLocationScale, Normal

__all__ = ["LogLogisticRegression", "LogNormalRegression"]


class LogNormalRegression(LogLocationScale):
    r"""Log-normal distribution with a linear mean of log T and one spread, by maximum likelihood.

    .. math:: \log T=\beta_0+x^\top\beta+\sigma\varepsilon,\qquad\varepsilon\sim N(0,1).

    An accelerated-failure-time model: :math:`\exp(\beta_j)` multiplies the time. Takes right-censored and
    interval-censored data, and delayed entry. Assumes that censoring, or the examination times, are
    independent of T given x, and that T given x has a log-normal distribution.

    Parameters
    ----------
    alpha : float
        Ridge penalty: :math:`\tfrac{\alpha}{2}\|\beta/\sigma\|^2` is taken off the log-likelihood.

    Attributes
    ----------
    sigma_ : float
        Standard deviation of log T given x.
    intercept_ : float
        beta_0.
    coef_ : array, (p,)
        beta.
    covariance_, standard_errors_ : array, (p + 2, p + 2) and (p + 2,)
        Of ``coef_``, ``intercept_`` and the logarithm of ``sigma_``, in this order, under the model.
    columns_, notes_, n_features_in_, feature_names_in_
        As in :class:`~censcore.estimators.regression.CoefficientInference`.

    Notes
    -----
    In :math:`1/\sigma` and :math:`\beta/\sigma` the log-likelihood is concave [1]_, so Newton's method finds
    the maximum from any start; with delayed entry it is concave near its maximum only.

    See Also
    --------
    WeibullRegression, LogLogisticRegression : Other distributions of the same form.
    Turnbull : Without covariates and without a parametric form.

    References
    ----------
    .. [1] J. Burridge (1981). A note on maximum likelihood estimation for regression models using grouped
       data. Journal of the Royal Statistical Society B 43, 41-45.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 1))
    >>> T = np.exp(1 + 0.5 * X[:, 0] + 0.8 * rng.normal(size=500))
    >>> y = cs.IntervalCensored(np.floor(T), np.ceil(T))
    >>> model = cs.LogNormalRegression().fit(X, y)
    >>> round(model.sigma_, 2), model.coef_.round(2)
    (0.76, array([0.51]))
    """

    _baseline = Normal()
    _scale_name = "log sigma"
    _scale_sign = -1
    sigma_: float

    def _set_scale(self, a: float) -> None:
        self.sigma_ = 1 / a

    def _distribution(self, location: np.ndarray) -> LogNormal:
        return LogNormal(location, np.array([self.sigma_]))


class LogLogisticRegression(LogLocationScale):
    r"""Log-logistic distribution with a log-linear scale and one shape, by maximum likelihood.

    .. math:: P(T>t\mid x)=\frac{1}{1+(t/\lambda(x))^a},\qquad\log\lambda(x)=\beta_0+x^\top\beta.

    An accelerated-failure-time and a proportional-odds model at once. Takes right-censored and
    interval-censored data, and delayed entry. Assumes that censoring, or the examination times, are
    independent of T given x, and that T given x has a log-logistic distribution.

    Parameters
    ----------
    alpha : float
        Ridge penalty: :math:`\tfrac{\alpha}{2}\|a\beta\|^2` is taken off the log-likelihood.

    Attributes
    ----------
    shape_ : float
        a.
    intercept_ : float
        beta_0, the log median at x = 0.
    coef_ : array, (p,)
        beta.
    covariance_, standard_errors_ : array, (p + 2, p + 2) and (p + 2,)
        Of ``coef_``, ``intercept_`` and the logarithm of ``shape_``, in this order, under the model.
    columns_, notes_, n_features_in_, feature_names_in_
        As in :class:`~censcore.estimators.regression.CoefficientInference`.

    See Also
    --------
    WeibullRegression, LogNormalRegression : Other distributions of the same form.
    Turnbull : Without covariates and without a parametric form.

    References
    ----------
    .. [1] S. Bennett (1983). Log-logistic regression models for survival data. Applied Statistics
       32, 165-171.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> T = cs.LogLogistic(2.0, 3.0).sample(800, seed=0)[0]
    >>> model = cs.LogLogisticRegression().fit(None, cs.IntervalCensored(np.floor(T), np.ceil(T)))
    >>> round(model.shape_, 1), round(float(np.exp(model.intercept_)), 1)
    (2.0, 2.8)
    """

    _baseline = Logistic()
    shape_: float

    def _distribution(self, location: np.ndarray) -> LogLogistic:
        return LogLogistic(np.array([self.shape_]), np.exp(location))
