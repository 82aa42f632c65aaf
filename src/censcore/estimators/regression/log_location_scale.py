r"""Regressions of the logarithm of time: one likelihood for exact, censored and interval-censored times.

With :math:`u=a\log t-\gamma_0-x^\top\gamma` and a baseline density f of u (extreme value for Weibull, normal
for log-normal, logistic for log-logistic) the log-likelihood is :math:`\log a+\log f(u)` of an exact time and
:math:`\log\{S(u_L)-S(u_U)\}` of an interval. It is concave in a and gamma, since f is log-concave.
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

import numpy as np
from scipy.special import expit, log_ndtr

from censcore._arrays import Covariates
from censcore.distributions import Univariate
from censcore.estimators.regression.base import StandardisedColumns
from censcore.estimators.regression.intervals import Ends, IntervalRegression, check_some_event
from censcore.estimators.regression.newton import PenalisedLikelihood, maximise
from censcore.exceptions import InvalidInputError


@dataclass(frozen=True)
class Baseline:
    """The distribution of u: log f with its first and second derivative, and log S."""

    log_density: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray, np.ndarray]]
    log_sf: Callable[[np.ndarray], np.ndarray]
    symmetric: bool = True

    def log_interval(self, low: np.ndarray, high: np.ndarray) -> np.ndarray:
        """Log of S(low) - S(high), from the tail in which it has its digits."""
        if self.symmetric:
            with np.errstate(invalid="ignore"):
                flip = low + high < 0
            low, high = np.where(flip, -high, low), np.where(flip, -low, high)
        start, end = self.log_sf(low), self.log_sf(high)
        with np.errstate(divide="ignore", invalid="ignore"):
            return start + np.log(-np.expm1(end - start))


def _extreme_value(u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log f = u - e^u."""
    e = np.exp(u)
    return u - e, 1 - e, -e


def _normal(u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log f = -u²/2 - log(2 pi)/2."""
    return -0.5 * u**2 - 0.5 * np.log(2 * np.pi), -u, -np.ones_like(u)


def _logistic(u: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Log f = u - 2 log(1 + e^u)."""
    p = expit(u)
    return u - 2 * np.logaddexp(0.0, u), 1 - 2 * p, -2 * p * (1 - p)


EXTREME_VALUE = Baseline(_extreme_value, lambda u: -np.exp(u), symmetric=False)
NORMAL = Baseline(_normal, lambda u: log_ndtr(-u))
LOGISTIC = Baseline(_logistic, lambda u: -np.logaddexp(0.0, u))


class LogLocationScale(IntervalRegression):
    r"""Base class of regressions of log T: a subclass has a baseline and the distribution it predicts.

    The parameter a, to the power of ``_scale_sign``, is reported as the attribute ``_scale_name``.

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
    """

    _baseline: ClassVar[Baseline]
    _scale_name: ClassVar[str] = "shape_"
    _scale_sign: ClassVar[int] = 1
    intercept_: float

    def __init__(self, alpha: float | str = 0.0) -> None:
        self.alpha = alpha

    @abstractmethod
    def _distribution(self, eta: np.ndarray, scale: np.ndarray) -> Univariate:
        """What is predicted for linear predictors (n,) and a shape or spread (1,)."""

    @property
    def _start(self) -> float:  # type: ignore[override]
        return self.intercept_ + self._center @ self.coef_

    def predict_distribution(self, X: Covariates | None = None) -> Any:
        """Predict the distribution of the event time.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates, as in ``fit``.

        Returns
        -------
        Distribution
            One distribution per subject of X, or one for all subjects where covariates play no part.
        """
        self.check_fitted()
        scale = np.atleast_1d(getattr(self, self._scale_name))
        return self._distribution(self._eta(X), scale).like(self._reference)

    def _maximise(self, X: np.ndarray, ends: Ends, weight: np.ndarray) -> None:
        lower, upper = ends.lower, self._after_zero(ends.lower, ends.upper, weight)
        _check_events(lower, upper, weight)
        used = ((lower > 0) | np.isfinite(upper)) & (weight > 0)
        with np.errstate(divide="ignore"):
            times = Ends(lower, upper, ends.entry).each(lambda t: np.log(t[used]))
        influences = self._influences(X[used], times, weight[used])
        self._parts = np.zeros((len(X), influences.shape[1]))
        self._parts[used] = influences

    def _after_zero(self, lower: np.ndarray, upper: np.ndarray, weight: np.ndarray) -> np.ndarray:
        """Ends of intervals, those of events at time zero being the first time that is not zero.

        A density is zero or infinite at zero. Times are recorded in some unit, so that such an event happened
        before anything that was recorded later.
        """
        at_zero = (upper == 0) & (weight > 0)
        times = np.concatenate([lower[lower > 0], upper[(upper > 0) & np.isfinite(upper)]])
        if not at_zero.any() or not times.size:
            return upper
        self.notes_.append(
            f"{int(at_zero.sum())} events at time zero enter as events between 0 and {times.min():g}, the "
            "first time after it."
        )
        return np.where(at_zero, times.min(), upper)

    def _influences(self, X: np.ndarray, times: Ends, weight: np.ndarray) -> np.ndarray:
        """Set the estimates and their covariance; give each subject's influence on them."""
        columns = StandardisedColumns.of(X, weight, self)
        typical = _typical(times)
        mean = np.average(typical, weights=weight)
        spread = np.sqrt(np.average((typical - mean) ** 2, weights=weight)) or 1.0
        Z = np.column_stack([np.ones(len(X)), columns.Z])
        times = times.each(lambda u: (u - mean) / spread)
        likelihood = _Likelihood(times, Z, weight, self._baseline)
        theta, _, _ = self._solved(columns, partial(self._solve, likelihood), 1)
        slope = self._map_back(theta, columns, mean, spread)
        return self._covariance_from(slope, likelihood(theta)[2], weight[:, None] * likelihood.scores(theta))

    def _solve(self, likelihood: _Likelihood, penalty: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The maximum in theta = (a, gamma), where the likelihood is concave."""
        likelihood.penalty = np.append(0.0, penalty)
        theta, information = maximise(likelihood, np.append(1.0, np.zeros(likelihood.Z.shape[1])))
        if theta[0] < 1e-6:
            raise InvalidInputError(
                "The likelihood grows as the spread of log T grows without bound: later "
                f"visits find no later events, so that {type(self).__name__} does not fit the data. Use "
                "Turnbull."
            )
        return theta, information

    def _map_back(
        self, theta: np.ndarray, columns: StandardisedColumns, mean: float, spread: float
    ) -> np.ndarray:
        """Set the estimates on the scale of X and log T; give their derivative by theta."""
        a, beta = theta[0], theta[1:] / theta[0]
        unit, p = spread / columns.scale, len(columns.scale)
        self._center, self._log_a = columns.center, np.log(a) - np.log(spread)
        self.coef_ = unit * beta[1:]
        self.intercept_ = float(mean + spread * beta[0] - columns.center @ self.coef_)
        setattr(self, self._scale_name, float(np.exp(self._scale_sign * self._log_a)))
        by_beta = np.zeros((p + 2, p + 1))
        by_beta[:p, 1:] = np.diag(unit)
        by_beta[p] = np.append(spread, -columns.center * unit)
        slope = by_beta @ np.column_stack([-beta / a, np.eye(p + 1) / a])
        slope[p + 1, 0] = self._scale_sign / a
        return slope

    def estimates(self) -> tuple[list[str], np.ndarray]:
        """Names and values of ``coef_``, ``intercept_`` and the logarithm of shape or spread."""
        names, coef = super().estimates()
        scale = f"log {self._scale_name[:-1]}"
        return [*names, "intercept", scale], np.append(
            coef, [self.intercept_, self._scale_sign * self._log_a]
        )


# ---- the likelihood ------------------------------------------------------------------------------


def _typical(times: Ends) -> np.ndarray:
    """A log time for each subject, to choose the units by: the middle of the interval, or its finite end."""
    lower, upper, _ = times
    middle = (np.exp(np.where(np.isfinite(lower), lower, upper)) + np.exp(upper)) / 2
    return np.where(np.isfinite(upper), np.log(np.where(np.isfinite(middle), middle, 1.0)), lower)


class _Likelihood(PenalisedLikelihood):
    """In theta = (a, gamma), u = a L - Z gamma.

    An entry s takes log S(u_s) off: it is an interval (s, inf) with a negative weight.
    """

    def __init__(self, times: Ends, Z: np.ndarray, weight: np.ndarray, baseline: Baseline) -> None:
        self.Z, self.weight, self.baseline = Z, weight, baseline
        self.penalty = np.zeros(Z.shape[1])
        exact = times.lower == times.upper
        self.exact, between, late = (np.nonzero(x)[0] for x in (exact, ~exact, np.isfinite(times.entry)))
        self.rows = np.concatenate([between, late])
        self.sign = np.concatenate([np.ones(len(between)), -np.ones(len(late))])
        self.at = self._design(times.lower[self.exact], self.exact)[0]
        self.low = self._design(np.concatenate([times.lower[between], times.entry[late]]), self.rows)
        high = np.concatenate([times.upper[between], np.full(len(late), np.inf)])
        self.high = self._design(high, self.rows)

    def _design(self, L: np.ndarray, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Derivatives of u by theta, zero where u is infinite and nothing depends on it; and u at zero."""
        finite = np.isfinite(L)
        G = np.where(finite[:, None], np.column_stack([L, -self.Z[rows]]), 0.0)
        return G, np.where(finite, 0.0, L)

    def _terms(self, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        a, w, G = theta[0], self.weight[self.exact], self.at
        f, first, second = self.baseline.log_density(G @ theta)
        value = w.sum() * np.log(a) + w @ f
        curvature = (G * (-w * second)[:, None]).T @ G
        curvature[0, 0] += w.sum() / a**2
        scores = np.zeros((len(self.Z), len(theta)))
        scores[self.exact] = G * first[:, None]
        scores[self.exact, 0] += 1 / a

        w = self.sign * self.weight[self.rows]
        log_p, r_l, s_l, r_u, s_u = self._interval_terms(theta)
        G_l, G_u = self.low[0], self.high[0]
        np.add.at(scores, self.rows, self.sign[:, None] * (G_u * r_u[:, None] - G_l * r_l[:, None]))
        curvature += (G_l * (w * (r_l**2 + s_l))[:, None]).T @ G_l
        value += w @ log_p
        ends = self.high[1] == 0  # without those that are censored there
        G_u, G_l, r_u, r_l, s_u, w = (part[ends] for part in (G_u, G_l, r_u, r_l, s_u, w))
        cross = (G_u * (w * r_u * r_l)[:, None]).T @ G_l
        curvature += (G_u * (w * (r_u**2 - s_u))[:, None]).T @ G_u - cross - cross.T
        return float(value), scores, curvature

    def _interval_terms(self, theta: np.ndarray) -> tuple[np.ndarray, ...]:
        r"""The logarithm of P, :math:`r=f/P` at both ends, and :math:`r\,(\log f)'` at both."""
        low, high = (G @ theta + infinite for G, infinite in (self.low, self.high))
        log_p = self.baseline.log_interval(low, high)
        ends = []
        for u in (low, high):
            finite = np.isfinite(u)
            f, slope, _ = self.baseline.log_density(np.where(finite, u, 0.0))
            r = np.where(finite, np.exp(f - log_p), 0.0)
            ends += [r, r * slope]
        return log_p, *ends


def _check_events(lower: np.ndarray, upper: np.ndarray, weight: np.ndarray) -> None:
    counts = weight > 0
    check_some_event(upper[counts])
    latest, earliest = lower[counts].max(), upper[counts].min()
    if latest <= earliest and (lower[counts] == upper[counts]).any():
        raise InvalidInputError(
            f"All {int(np.isfinite(upper[counts]).sum())} events are at the largest time, {latest:g}, so the "
            "likelihood grows without bound with the shape. Use KaplanMeier or CoxRegression."
        )
    if latest < earliest:
        raise InvalidInputError(
            f"All intervals have the times from {latest:g} to {earliest:g} in common, so the likelihood is "
            "largest where all mass lies there, and has no maximum. Use Turnbull."
        )
