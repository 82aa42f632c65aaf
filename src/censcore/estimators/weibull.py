"""Weibull regression."""

from __future__ import annotations

from typing import Self

import numpy as np

from censcore._arrays import Array, to_numpy
from censcore._validation import name_subjects
from censcore.distributions import Weibull
from censcore.estimators.covariates import as_matrix
from censcore.estimators.newton import Derivatives, maximise
from censcore.estimators.regression import CoefficientInference, StandardisedColumns
from censcore.estimators.risk_sets import entries_of
from censcore.exceptions import InvalidInputError
from censcore.outcomes import OutcomeLike

__all__ = ["WeibullRegression"]


class WeibullRegression(CoefficientInference):
    r"""Weibull distribution with a log-linear scale and one shape for all subjects, by maximum likelihood.

    .. math:: P(T>t\mid x)=\exp\{-(t/\lambda(x))^a\},\qquad \log\lambda(x)=\beta_0+x^\top\beta.

    An accelerated-failure-time and a proportional-hazards model at once: the hazard ratios are
    :math:`\exp(-a\beta)`. Without covariates (``fit(None, y)``) it is the pooled Weibull distribution.
    Assumes that censoring is independent of T given x, and that T given x has a Weibull distribution.

    Parameters
    ----------
    alpha : float
        Ridge penalty: :math:`\tfrac{\alpha}{2}\|a\beta\|^2`, on the log hazard ratios as in
        :class:`CoxRegression`, is taken off the log-likelihood. It makes the fit unique where columns
        are collinear or separate events from non-events; without it such data raise an error.

    Attributes
    ----------
    shape_ : float
        a.
    intercept_ : float
        beta_0.
    coef_ : array, (p,)
        beta, effects on the log scale of time.
    covariance_, standard_errors_ : array, (p + 2, p + 2) and (p + 2,)
        Of ``coef_``, ``intercept_`` and the logarithm of ``shape_``, in this order, under the model, with
        weights taken as counts. See :meth:`robust_covariance` for other weights and for clusters.
    n_features_in_, feature_names_in_
        Number of columns, and their names where X is a frame.

    Notes
    -----
    In a and :math:`\gamma=a\beta` the log-likelihood is concave, so Newton's method finds the maximum from
    any start. A subject censored at time zero carries no information and gets no weight; an event at time
    zero has density zero or infinity under every Weibull distribution and raises an error. The distribution
    is continuous: for a time with atoms use :class:`KaplanMeier` or :class:`CoxRegression`.

    With delayed entry the likelihood is that of T given T > entry, which adds :math:`(s/\lambda)^a` for an
    entry s, and T is assumed independent of the entry given x. It is concave near its maximum only.

    See Also
    --------
    CoxRegression : Proportional hazards without a parametric baseline.
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

    def __init__(self, alpha: float = 0.0) -> None:
        self.alpha = alpha

    def fit(self, X: Array | None, y: OutcomeLike, sample_weight: Array | None = None) -> Self:
        """Maximise the (penalised) likelihood.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates.
        y : RightCensored, structured array or frame
            The outcome, one event time per subject.
        sample_weight : array, (n,), optional
            Weights of the subjects; ones if omitted.

        Returns
        -------
        self
        """
        covariates, y, weight = self._check_inputs(X, y, sample_weight)
        time, event = to_numpy(y.time).astype(np.float64), to_numpy(y.event)
        _check_events(time, event, weight)
        used = (time > 0) & (weight > 0)
        entry = entries_of(y)
        since = np.full(used.sum(), -np.inf)
        if entry is not None:
            late = entry[used] > 0
            since[late] = np.log(entry[used][late])
        parts = self._maximise(covariates[used], np.log(time[used]), event[used], weight[used], since)
        self._parts = np.zeros((len(y), parts.shape[1]))
        self._parts[used] = parts
        self._reference = y.time[:0]
        return self

    def _maximise(
        self,
        X: np.ndarray,
        log_time: np.ndarray,
        event: np.ndarray,
        weight: np.ndarray,
        log_entry: np.ndarray,
    ) -> np.ndarray:
        """Set the estimates and their covariance; give each subject's influence on them."""
        columns = StandardisedColumns.of(X, weight, self)
        if not self.alpha and X.shape[1]:
            columns.check_collinear(weight, "WeibullRegression")
        mean = np.average(log_time, weights=weight)
        spread = np.sqrt(np.average((log_time - mean) ** 2, weights=weight)) or 1.0
        L, L0 = (log_time - mean) / spread, (log_entry - mean) / spread
        Z = np.column_stack([np.ones(len(L)), columns.Z])
        penalty = np.append(0.0, self.alpha / columns.scale**2)
        start = np.zeros(2 + X.shape[1])
        start[0] = 1.0
        start[1] = np.log((weight @ (np.exp(L) - np.exp(L0))) / (weight @ event))
        data = (L, L0, Z, event, weight)
        theta, information = maximise(lambda theta: _likelihood(theta, *data, penalty), start)
        if not self.alpha and X.shape[1]:
            columns.check_separation(information[1:, 1:], "WeibullRegression")
        self._map_back(theta, columns, mean, spread)
        slope = self._slope(theta, columns, spread)
        by_theta = slope @ np.linalg.pinv(information, hermitian=True)
        self.covariance_ = by_theta @ slope.T
        self.standard_errors_ = np.sqrt(np.diag(self.covariance_))
        return weight[:, None] * _scores(theta, L, L0, Z, event) @ by_theta.T

    def _map_back(self, theta: np.ndarray, columns: StandardisedColumns, mean: float, spread: float) -> None:
        a, gamma0, gamma = theta[0] / spread, theta[1], theta[2:] / columns.scale
        self.shape_ = float(a)
        self.coef_ = gamma / a
        self.intercept_ = float(mean + gamma0 / a - columns.center @ self.coef_)

    def _slope(self, theta: np.ndarray, columns: StandardisedColumns, spread: float) -> np.ndarray:
        """Derivative of (coef_, intercept_, log shape_) by theta, which :meth:`_map_back` maps to them."""
        p = len(self.coef_)
        slope = np.zeros((p + 2, p + 2))
        slope[:p, 0] = -self.coef_ / theta[0]
        slope[:p, 2:] = np.diag(1 / (columns.scale * self.shape_))
        slope[p, 0] = (columns.center @ self.coef_ - theta[1] / self.shape_) / theta[0]
        slope[p, 1] = 1 / self.shape_
        slope[p, 2:] = -columns.center / (columns.scale * self.shape_)
        slope[p + 1, 0] = 1 / theta[0]
        return slope

    def estimates(self) -> tuple[list[str], np.ndarray]:
        """Names and values of ``coef_``, ``intercept_`` and the logarithm of ``shape_``."""
        names, coef = super().estimates()
        return [*names, "intercept", "log shape"], np.append(coef, [self.intercept_, np.log(self.shape_)])

    def coefficient_influence(self) -> np.ndarray:
        """Each subject's influence on the estimates, (n, p + 2)."""
        return self._parts

    def predict_distribution(self, X: Array | None = None) -> Weibull:
        """Predict the distribution of the event time.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates, as in ``fit``.

        Returns
        -------
        Weibull
            One distribution per subject of X, or the pooled one for all subjects.
        """
        self.check_fitted()
        X = as_matrix(self, X, reset=False)
        log_scale = np.array([self.intercept_]) if X is None else self.intercept_ + X @ self.coef_
        return Weibull(np.array([self.shape_]), np.exp(log_scale)).like(self._reference)


def _likelihood(
    theta: np.ndarray,
    L: np.ndarray,
    L0: np.ndarray,
    Z: np.ndarray,
    event: np.ndarray,
    weight: np.ndarray,
    penalty: np.ndarray,
) -> Derivatives:
    r"""Log-likelihood :math:`\sum w\{\delta(\log a+u)-e^u+e^{u_0}\}`, u = a L - Z gamma, less the penalty.

    u_0 is u at the entry, minus infinity where there is none.
    """
    a, gamma = theta[0], theta[1:]
    if a <= 0:
        return -np.inf, theta, np.eye(len(theta))
    u = a * L - Z @ gamma
    with np.errstate(over="ignore"):
        H = weight * np.exp(u)
    if not np.isfinite(H).all():
        return -np.inf, theta, np.eye(len(theta))
    d = weight * event
    value = d.sum() * np.log(a) + d @ u - H.sum() - penalty @ gamma**2 / 2
    G = np.column_stack([L, -Z])  # du / dtheta
    gradient = G.T @ (d - H) - np.append(0.0, penalty * gamma)
    gradient[0] += d.sum() / a
    curvature = (G * H[:, None]).T @ G + np.diag(np.append(d.sum() / a**2, penalty))
    late = np.isfinite(L0)
    if late.any():
        H0 = weight[late] * np.exp(a * L0[late] - Z[late] @ gamma)
        G0 = np.column_stack([L0[late], -Z[late]])
        value += H0.sum()
        gradient += G0.T @ H0
        curvature -= (G0 * H0[:, None]).T @ G0
    return float(value), gradient, curvature


def _scores(theta: np.ndarray, L: np.ndarray, L0: np.ndarray, Z: np.ndarray, event: np.ndarray) -> np.ndarray:
    """Derivative of each subject's log-likelihood by theta, (n, p + 2)."""
    u = theta[0] * L - Z @ theta[1:]
    scores = np.column_stack([L, -Z]) * (event - np.exp(u))[:, None]
    scores[:, 0] += event / theta[0]
    late = np.isfinite(L0)
    if late.any():
        H0 = np.exp(theta[0] * L0[late] - Z[late] @ theta[1:])
        scores[late] += np.column_stack([L0[late], -Z[late]]) * H0[:, None]
    return scores


def _check_events(time: np.ndarray, event: np.ndarray, weight: np.ndarray) -> None:
    event = event & (weight > 0)
    at_zero = np.nonzero(event & (time == 0))[0]
    if at_zero.size:
        raise InvalidInputError(
            "A Weibull distribution has density zero or infinity at time zero; got an event at time zero in "
            f"{name_subjects(at_zero)}. Record times to a finer unit, "
            "or use KaplanMeier or CoxRegression, which allow it."
        )
    if not event.any():
        raise InvalidInputError(
            "No subject has an event, so the likelihood has no maximum. If this is the censoring "
            "distribution and nothing is censored, pass PointMass(inf), which is what KaplanMeier gives."
        )
    if (time[event] == time[weight > 0].max()).all():
        raise InvalidInputError(
            f"All {int(event.sum())} events are at the largest time, so the likelihood grows without bound "
            "with the shape. Use KaplanMeier or CoxRegression."
        )
