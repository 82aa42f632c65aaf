"""Weibull, log-normal and log-logistic regression."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore._arrays import ArrayLike, Covariates
from censcore.distributions import LogLogistic, LogNormal, PiecewiseWeibull, Weibull
from censcore.estimators.regression.along_time import check_path, given_survival, pieces_along
from censcore.estimators.regression.log_location_scale import (
    EXTREME_VALUE,
    LOGISTIC,
    NORMAL,
    LogLocationScale,
)
from censcore.outcomes import StartStop


class WeibullRegression(LogLocationScale):
    r"""Weibull distribution with a log-linear scale and one shape for all subjects, by maximum likelihood.

    .. math:: P(T>t\mid x)=\exp\{-(t/\lambda(x))^a\},\qquad \log\lambda(x)=\beta_0+x^\top\beta.

    An accelerated-failure-time and a proportional-hazards model at once: the hazard ratios are
    :math:`\exp(-a\beta)`, on whose logarithms the penalty is, as in :class:`CoxRegression`. Without
    covariates (``fit(None, y)``) it is the pooled Weibull distribution. Assumes that censoring is independent
    of T given x, and that T given x has a Weibull distribution.

    Parameters
    ----------
    alpha : float or "auto"
        Ridge penalty: :math:`\tfrac{\alpha}{2}\|\gamma\|^2` is taken off the log-likelihood, with
        :math:`\gamma=a\beta` for a shape a and :math:`\gamma=\beta/\sigma` for a spread. It makes the fit
        unique where columns are collinear or separate events from non-events. Without it, collinear columns
        are left out, and a column of numbers that separates raises an error. ``"auto"`` is the most likely
        penalty of standardised columns, as for :class:`CoxRegression`; ``alpha_`` holds it.

    Attributes
    ----------
    shape_, sigma_ : float
        The shape a, or of log-normal times the standard deviation of log T given x.
    intercept_ : float
        beta_0.
    coef_ : array, (p,)
        beta, effects on the log scale of time.
    covariance_, standard_errors_ : array, (p + 2, p + 2) and (p + 2,)
        Of ``coef_``, ``intercept_`` and the logarithm of shape or spread, in this order, under the model,
        with weights taken as counts. See :meth:`robust_covariance` for other weights and for clusters.
    columns_, notes_, n_features_in_, feature_names_in_
        Encoded columns that ``coef_`` belongs to, what was encoded or left out, and the columns of X.

    Notes
    -----
    In a and :math:`\gamma=a\beta` the log-likelihood is concave, so Newton's method finds the maximum from
    any start. A subject censored at time zero carries no information and gets no weight; an event at time
    zero, where densities are zero or infinite, enters as an event before the first time after zero. The
    distribution is continuous: for a time with atoms use :class:`KaplanMeier` or :class:`CoxRegression`.

    Intervals (:class:`~censcore.IntervalCensored`) enter the likelihood by :math:`F(U)-F(L)`.

    With delayed entry the likelihood is that of T given T > entry, which adds :math:`(s/\lambda)^a` for an
    entry s, and T is assumed independent of the entry given x. It is concave near its maximum only.

    See Also
    --------
    CoxRegression : Proportional hazards without a parametric baseline.
    LogNormalRegression, LogLogisticRegression : Other distributions of the same form.
    censcore.Weibull : The distribution.

    References
    ----------
    .. [1] J. D. Kalbfleisch and R. L. Prentice (2002). The Statistical Analysis of Failure Time Data, second
       edition. Wiley, Hoboken.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 1))
    >>> time = np.exp(1 + 0.5 * X[:, 0]) * rng.weibull(1.5, size=500)
    >>> y = cs.RightCensored(time, np.ones(500)).censor_at(5.0)
    >>> model = cs.WeibullRegression().fit(X, y)
    >>> round(model.shape_, 2), model.coef_.round(2)
    (1.53, array([0.56]))
    >>> model.predict_distribution([[0.0], [1.0]]).icdf(0.5).round(2)
    array([2.05, 3.6 ])
    """

    _baseline = EXTREME_VALUE
    takes_intervals = True
    shape_: float

    def _distribution(self, eta: np.ndarray, scale: np.ndarray) -> Weibull:
        return Weibull(scale, np.exp(eta))

    def predict_distribution(
        self, X: Covariates | None = None, *, given: ArrayLike | None = None, path: StartStop | None = None
    ) -> Any:
        """Predict the distribution of the event time.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates, as in ``fit``: of each subject, as they are at the time of the forecast.
        given : number or array, optional
            What subjects have survived to: the distribution of T given T > ``given``, with covariates
            held at the values in X. It uses nothing from the future. It is calibrated only if covariates stay
            as they are, or as long as that makes no difference.
        path : StartStop, optional
            For covariates that are known in advance, such as calendar time or a planned dose: the intervals
            on which the rows of X are in force, without events. There is one distribution for each of its
            ``subjects``, given survival to its first start, and the last row is held after its end.

        Returns
        -------
        Distribution
            One distribution per subject of X (of ``path``), or one for all subjects without covariates.
        """
        if path is None:
            return given_survival(super().predict_distribution(X), given)
        self.check_fitted()
        path = check_path(path, X)
        eta = np.broadcast_to(self._eta(X), len(path))
        pieces = pieces_along(path, np.zeros(0), np.exp(-self.shape_ * eta)[:, None])
        F = PiecewiseWeibull(*pieces, self.shape_)
        return given_survival(F.like(self._reference), given)


class LogNormalRegression(LogLocationScale):
    r"""Log-normal distribution with a linear mean of log T and one spread, by maximum likelihood.

    .. math:: \log T=\beta_0+x^\top\beta+\sigma\varepsilon,\qquad\varepsilon\sim N(0,1).

    An accelerated-failure-time model: :math:`\exp(\beta_j)` multiplies the time. Takes right-censored and
    interval-censored data, and delayed entry. Assumes that censoring, or the examination times, are
    independent of T given x, and that T given x has a log-normal distribution.

    Parameters
    ----------
    alpha : float or "auto"
        Ridge penalty: :math:`\tfrac{\alpha}{2}\|\gamma\|^2` is taken off the log-likelihood, with
        :math:`\gamma=a\beta` for a shape a and :math:`\gamma=\beta/\sigma` for a spread. It makes the fit
        unique where columns are collinear or separate events from non-events. Without it, collinear columns
        are left out, and a column of numbers that separates raises an error. ``"auto"`` is the most likely
        penalty of standardised columns, as for :class:`CoxRegression`; ``alpha_`` holds it.

    Attributes
    ----------
    shape_, sigma_ : float
        The shape a, or of log-normal times the standard deviation of log T given x.
    intercept_ : float
        beta_0.
    coef_ : array, (p,)
        beta, effects on the log scale of time.
    covariance_, standard_errors_ : array, (p + 2, p + 2) and (p + 2,)
        Of ``coef_``, ``intercept_`` and the logarithm of shape or spread, in this order, under the model,
        with weights taken as counts. See :meth:`robust_covariance` for other weights and for clusters.
    columns_, notes_, n_features_in_, feature_names_in_
        Encoded columns that ``coef_`` belongs to, what was encoded or left out, and the columns of X.

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

    _baseline = NORMAL
    _scale_name = "sigma_"
    _scale_sign = -1
    sigma_: float

    def _distribution(self, eta: np.ndarray, scale: np.ndarray) -> LogNormal:
        return LogNormal(eta, scale)


class LogLogisticRegression(LogLocationScale):
    r"""Log-logistic distribution with a log-linear scale and one shape, by maximum likelihood.

    .. math:: P(T>t\mid x)=\frac{1}{1+(t/\lambda(x))^a},\qquad\log\lambda(x)=\beta_0+x^\top\beta.

    An accelerated-failure-time and a proportional-odds model at once. Takes right-censored and
    interval-censored data, and delayed entry. Assumes that censoring, or the examination times, are
    independent of T given x, and that T given x has a log-logistic distribution.

    Parameters
    ----------
    alpha : float or "auto"
        Ridge penalty: :math:`\tfrac{\alpha}{2}\|\gamma\|^2` is taken off the log-likelihood, with
        :math:`\gamma=a\beta` for a shape a and :math:`\gamma=\beta/\sigma` for a spread. It makes the fit
        unique where columns are collinear or separate events from non-events. Without it, collinear columns
        are left out, and a column of numbers that separates raises an error. ``"auto"`` is the most likely
        penalty of standardised columns, as for :class:`CoxRegression`; ``alpha_`` holds it.

    Attributes
    ----------
    shape_, sigma_ : float
        The shape a, or of log-normal times the standard deviation of log T given x.
    intercept_ : float
        beta_0.
    coef_ : array, (p,)
        beta, effects on the log scale of time.
    covariance_, standard_errors_ : array, (p + 2, p + 2) and (p + 2,)
        Of ``coef_``, ``intercept_`` and the logarithm of shape or spread, in this order, under the model,
        with weights taken as counts. See :meth:`robust_covariance` for other weights and for clusters.
    columns_, notes_, n_features_in_, feature_names_in_
        Encoded columns that ``coef_`` belongs to, what was encoded or left out, and the columns of X.

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

    _baseline = LOGISTIC
    shape_: float

    def _distribution(self, eta: np.ndarray, scale: np.ndarray) -> LogLogistic:
        return LogLogistic(scale, np.exp(eta))
