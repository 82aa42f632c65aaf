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
from operator import itemgetter
from typing import Any, ClassVar, Self

import numpy as np
from scipy.special import expit, log_ndtr

from censcore._arrays import Array
from censcore.distributions import Univariate
from censcore.estimators.intervals import Ends, IntervalRegression, as_intervals, check_some_event
from censcore.estimators.newton import Derivatives, PenalisedLikelihood, maximise
from censcore.estimators.regression import StandardisedColumns
from censcore.estimators.risk_sets import fitted_strata, strata_of, without_column
from censcore.exceptions import InvalidInputError
from censcore.outcomes import OutcomeLike
from censcore.plain_text import some_of


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
    strata : str or int, optional
        Name or number of a column of X. Each of its values has a shape or spread of its own; intercept and
        coefficients are shared: ``survreg(~ x + strata(s))``. The column is no covariate. For intercepts of
        their own, ``~ x + s + strata(s)``, X has the column twice, under two names. The penalty is the mean
        of those of the strata.

    Attributes
    ----------
    shape_, sigma_ : float, or array with ``strata``
        The shape a, or of log-normal times the standard deviation of log T given x.
    strata_ : array
        With ``strata``: its values.
    intercept_ : float
        beta_0.
    coef_ : array, (p,)
        beta, effects on the log scale of time.
    covariance_, standard_errors_ : array, (p + 2, p + 2) and (p + 2,)
        Of ``coef_``, ``intercept_`` and the logarithm of shape or spread (one for each stratum), in this
        order, under the model, with weights taken as counts. See :meth:`robust_covariance` for other weights
        and for clusters.
    columns_, notes_, n_features_in_, feature_names_in_
        Encoded columns that ``coef_`` belongs to, what was encoded or left out, and the columns of X.
    """

    _baseline: ClassVar[Baseline]
    _scale_name: ClassVar[str] = "shape_"
    _scale_sign: ClassVar[int] = 1
    intercept_: float
    strata_: np.ndarray
    _stratum: np.ndarray
    _of_subjects = ("_parts", "_stratum")

    def __init__(self, alpha: float | str = 0.0, strata: str | int | None = None) -> None:
        self.alpha = alpha
        self.strata = strata

    @abstractmethod
    def _distribution(self, eta: np.ndarray, scale: np.ndarray) -> Univariate:
        """What is predicted for linear predictors (n,), and shapes or spreads (n,) or (1,)."""

    @property
    def _start(self) -> float:  # type: ignore[override]
        return self.intercept_ + self._center @ self.coef_

    def fit(self, X: Array | None, y: OutcomeLike, sample_weight: Array | None = None) -> Self:
        """Maximise the (penalised) likelihood of IntervalCensored or RightCensored times."""
        outcome = as_intervals(y, type(self).__name__)
        self.strata_, self._stratum = fitted_strata(X, self.strata, len(outcome))
        return super().fit(without_column(X, self.strata), outcome, sample_weight)

    def predict_distribution(self, X: Array | None = None) -> Any:
        """Predict the distribution of the event time."""
        self.check_fitted()
        eta = self._eta(without_column(X, self.strata))
        return self._distribution(eta, self._scale_of(X)).like(self._reference)

    def _scale_of(self, X: Any) -> np.ndarray:
        """Shape or spread of each row of X, or of all."""
        scale = np.atleast_1d(getattr(self, self._scale_name))
        if self.strata is None:
            return scale
        known, group = strata_of(X, self.strata, self.strata_)
        return scale[known][group]

    def _maximise(self, X: np.ndarray, ends: Ends, weight: np.ndarray) -> None:
        lower, upper = ends.lower, self._after_zero(ends.lower, ends.upper, weight)
        _check_events(lower, upper, weight)
        used = ((lower > 0) | np.isfinite(upper)) & (weight > 0)
        with np.errstate(divide="ignore"):
            times = Ends(lower, upper, ends.entry).each(lambda t: np.log(t[used]))
        without = np.setdiff1d(self._stratum, self._stratum[used & np.isfinite(upper)])
        if without.size:
            raise InvalidInputError(
                f"strata: got no event in {some_of([str(stratum) for stratum in self.strata_[without]])}, so "
                "that nothing is known of the scale there. Merge strata."
            )
        influences = self._influences(X[used], times, weight[used], self._stratum[used])
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

    def _influences(self, X: np.ndarray, times: Ends, weight: np.ndarray, stratum: np.ndarray) -> np.ndarray:
        """Set the estimates and their covariance; give each subject's influence on them."""
        columns = StandardisedColumns.of(X, weight, self)
        typical = _typical(times)
        mean = np.average(typical, weights=weight)
        spread = np.sqrt(np.average((typical - mean) ** 2, weights=weight)) or 1.0
        Z = np.column_stack([np.ones(len(X)), columns.Z])
        times = times.each(lambda u: (u - mean) / spread)
        likelihood = _StratifiedLikelihood(times, Z, weight, self._baseline, stratum)
        solve, simple = (partial(f, likelihood) for f in (self._solve, self._solve_pooled))
        phi, _, _ = self._solved(columns, solve, len(likelihood.parts), simple)
        slope = self._map_back(phi, columns, mean, spread)
        return self._covariance_from(slope, likelihood(phi)[2], weight[:, None] * likelihood.scores(phi))

    def _solve_pooled(
        self, likelihood: _StratifiedLikelihood, penalty: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The maximum in theta with one scale for all, which is concave."""
        likelihood.penalise(np.append(0.0, penalty))
        pooled = likelihood.pooled
        theta, information = maximise(pooled, np.append(1.0, np.zeros(pooled.Z.shape[1])))
        if theta[0] < 1e-6:
            raise InvalidInputError(
                "The likelihood grows as the spread of log T grows without bound: later "
                f"visits find no later events, so that {type(self).__name__} does not fit the data. Use "
                "Turnbull."
            )
        return theta, information

    def _solve(self, likelihood: _StratifiedLikelihood, penalty: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The maximum in phi: with one scale for all, and from there with those of the strata."""
        theta, information = self._solve_pooled(likelihood, penalty)
        strata = len(likelihood.parts)
        phi = np.append(np.full(strata, np.log(theta[0])), theta[1:] / theta[0])
        return (phi, information) if strata == 1 else maximise(likelihood, phi)

    def _map_back(
        self, phi: np.ndarray, columns: StandardisedColumns, mean: float, spread: float
    ) -> np.ndarray:
        """Set the estimates on the scale of X and log T; give the derivative of :meth:`estimates` by phi."""
        unit, p = spread / columns.scale, len(columns.scale)
        strata = len(phi) - p - 1
        self._center, self._log_a = columns.center, phi[:strata] - np.log(spread)
        self.coef_ = unit * phi[strata + 1 :]
        self.intercept_ = float(mean + spread * phi[strata] - columns.center @ self.coef_)
        scale = np.exp(self._scale_sign * self._log_a)
        setattr(self, self._scale_name, float(scale[0]) if self.strata is None else scale)
        slope = np.zeros((len(phi), len(phi)))
        slope[:p, strata + 1 :] = np.diag(unit)
        slope[p, strata:] = np.append(spread, -columns.center * unit)
        slope[p + 1 :, :strata] = self._scale_sign * np.eye(strata)
        return slope

    def estimates(self) -> tuple[list[str], np.ndarray]:
        """Names and values of ``coef_``, ``intercept_`` and the logarithms of shapes or spreads."""
        names, coef = super().estimates()
        name = f"log {self._scale_name[:-1]}"
        scales = [name] if self.strata is None else [f"{name} of {stratum}" for stratum in self.strata_]
        return [*names, "intercept", *scales], np.concatenate(
            [coef, [self.intercept_], self._scale_sign * self._log_a]
        )


# ---- the likelihood ------------------------------------------------------------------------------


def _typical(times: Ends) -> np.ndarray:
    """A log time for each subject, to choose the units by: the middle of the interval, or its finite end."""
    lower, upper, _ = times
    middle = (np.exp(np.where(np.isfinite(lower), lower, upper)) + np.exp(upper)) / 2
    return np.where(np.isfinite(upper), np.log(np.where(np.isfinite(middle), middle, 1.0)), lower)


class _StratifiedLikelihood:
    r"""The sum over strata in phi = (log a_1, ..., log a_S, beta): theta_s = a_s (1, beta) in stratum s.

    With one stratum it is :class:`_Likelihood` in other parameters, in which it is not concave everywhere.
    """

    def __init__(
        self, times: Ends, Z: np.ndarray, weight: np.ndarray, baseline: Baseline, stratum: np.ndarray
    ) -> None:
        self.rows = [np.nonzero(stratum == s)[0] for s in range(stratum.max() + 1)]
        self.pooled = _Likelihood(times, Z, weight, baseline)
        self.parts = [self.pooled]
        if len(self.rows) > 1:
            of_each = [(times.each(itemgetter(rows)), Z[rows], weight[rows]) for rows in self.rows]
            self.parts = [_Likelihood(*part, baseline) for part in of_each]

    def penalise(self, penalty: np.ndarray) -> None:
        """Set the penalty of gamma, of which each stratum has the same share."""
        self.pooled.penalty = penalty
        for part in self.parts:
            part.penalty = penalty / len(self.parts)

    def _of_stratum(self, phi: np.ndarray, s: int) -> np.ndarray:
        """theta_s: its derivative by log a_s is theta_s itself, and by beta a_s for each coefficient."""
        theta: np.ndarray = np.exp(phi[s]) * np.append(1.0, phi[len(self.parts) :])
        return theta

    def __call__(self, phi: np.ndarray) -> Derivatives:
        strata, total = len(self.parts), 0.0
        gradient, curvature = np.zeros(len(phi)), np.zeros((len(phi), len(phi)))
        for s, part in enumerate(self.parts):
            with np.errstate(over="ignore"):
                theta = self._of_stratum(phi, s)
            value, by_theta, information = part(theta)
            if not np.isfinite(value):
                return -np.inf, phi, np.eye(len(phi))
            total += value
            gradient[s] += by_theta @ theta
            gradient[strata:] += theta[0] * by_theta[1:]
            moved = information @ theta - by_theta  # theta_s is not linear in phi
            curvature[s, s] += theta @ moved
            curvature[s, strata:] += theta[0] * moved[1:]
            curvature[strata:, s] += theta[0] * moved[1:]
            curvature[strata:, strata:] += theta[0] ** 2 * information[1:, 1:]
        return total, gradient, curvature

    def scores(self, phi: np.ndarray) -> np.ndarray:
        """Derivative of each subject's log-likelihood by phi, (n, S + p + 1)."""
        scores = np.zeros((len(self.pooled.Z), len(phi)))
        for s, (rows, part) in enumerate(zip(self.rows, self.parts, strict=True)):
            theta, strata = self._of_stratum(phi, s), len(self.parts)
            by_theta = part.scores(theta)
            scores[rows, s] = by_theta @ theta
            scores[rows, strata:] = theta[0] * by_theta[:, 1:]
        return scores


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
