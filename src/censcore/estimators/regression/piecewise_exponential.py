"""Regression with a piecewise constant hazard."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore._arrays import ArrayLike, Covariates, as_float, to_numpy
from censcore._validation import as_count, check_positive
from censcore.estimators.regression.along_time import given_survival, piecewise_forecast
from censcore.estimators.regression.base import StandardisedColumns
from censcore.estimators.regression.intervals import Ends, IntervalRegression, check_some_event
from censcore.estimators.regression.newton import PenalisedLikelihood, maximise
from censcore.exceptions import InvalidInputError
from censcore.outcomes import StartStop
from censcore.plain_text import some_values


class PiecewiseExponentialRegression(IntervalRegression):
    r"""Proportional hazards with a piecewise constant baseline, by maximum likelihood.

    .. math:: h(t\mid x)=\lambda_k\exp(x^\top\beta)\quad\text{for }b_{k-1}\le t<b_k.

    Takes right-censored and interval-censored data, and delayed entry. Assumes that censoring, or the
    examination times, are independent of T given x.

    Parameters
    ----------
    breaks : int or array
        Where the hazard changes, ascending; a number asks for that many quantiles of the times of events,
        by their weights.
    alpha : float or "auto"
        Ridge penalty: :math:`\tfrac{\alpha}{2}\|\beta\|^2` is taken off the log-likelihood. ``"auto"`` is as
        for :class:`CoxRegression`.

    Attributes
    ----------
    breaks_ : array, (K - 1,)
        Where the hazard changes.
    rates_ : array, (K,)
        Baseline hazards, at x = 0.
    coef_ : array, (p,)
        beta, log hazard ratios.
    covariance_, standard_errors_ : array, (p + K, p + K) and (p + K,)
        Of ``coef_`` and the logarithms of ``rates_``, in this order, under the model.
    columns_, notes_, n_features_in_, feature_names_in_
        Encoded columns that ``coef_`` belongs to, what was encoded or left out, and the columns of X.

    See Also
    --------
    CoxRegression : Proportional hazards with any baseline, for right-censored data.
    WeibullRegression : Two parameters in place of the rates.
    Turnbull : Without covariates and without a parametric form.

    References
    ----------
    .. [1] M. Friedman (1982). Piecewise exponential models for survival data with covariates. Annals of
       Statistics 10, 101-113.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(800, 1))
    >>> T = rng.exponential(2 * np.exp(-0.5 * X[:, 0]))
    >>> y = cs.IntervalCensored(np.floor(T), np.ceil(T))
    >>> model = cs.PiecewiseExponentialRegression(breaks=[1.0, 3.0]).fit(X, y)
    >>> model.coef_.round(1), model.rates_.round(1)
    (array([0.6]), array([0.5, 0.5, 0.5]))
    """

    takes_intervals = True

    def __init__(self, breaks: int | ArrayLike = 4, alpha: float | str = 0.0) -> None:
        self.breaks = breaks
        self.alpha = alpha

    def _maximise(self, X: np.ndarray, ends: Ends, weight: np.ndarray) -> None:
        lower, upper, _ = ends
        check_some_event(upper[weight > 0])
        ended = np.isfinite(upper) & (weight > 0)
        times = np.where(ended, (lower + upper) / 2, lower)
        self.breaks_ = _breaks(self.breaks, times[ended], weight[ended])
        columns = StandardisedColumns.of(X, weight, self)
        likelihood = _Likelihood(ends, self.breaks_, columns.Z, weight)
        self._check_pieces(likelihood.time_at_risk() > 0, "Nobody is followed")

        def solve(penalty: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            likelihood.penalty = penalty
            theta, information = maximise(likelihood, likelihood.start())
            determined = np.diag(information)[: len(self.breaks_) + 1] > 1e-6
            self._check_pieces(determined, "No event is known to lie")
            return theta, information

        theta, information, _ = self._solved(columns, solve)
        scores = weight[:, None] * likelihood.scores(theta)
        self._parts = self._covariance_from(self._map_back(theta, columns), information, scores)

    def _map_back(self, theta: np.ndarray, columns: StandardisedColumns) -> np.ndarray:
        """Set the estimates; give the derivative of (coef_, log rates_) by theta."""
        K, p = len(self.breaks_) + 1, len(theta) - len(self.breaks_) - 1
        self.coef_ = theta[K:] / columns.scale
        self._center, self._log_rates = columns.center, theta[:K]
        with np.errstate(over="ignore", under="ignore"):  # x = 0 may be far from all subjects
            self.rates_ = np.exp(theta[:K] - columns.center @ self.coef_)
        slope = np.zeros((p + K, p + K))
        slope[:p, K:] = np.diag(1 / columns.scale)
        slope[p:, :K] = np.eye(K)
        slope[p:, K:] = -columns.center / columns.scale
        return slope

    def _check_pieces(self, good: np.ndarray, problem: str) -> None:
        if not good.all():
            edges = np.concatenate([[0.0], self.breaks_, [np.inf]])
            k = int(np.argmin(good))
            raise InvalidInputError(
                f"{problem} between {edges[k]:g} and {edges[k + 1]:g}, so that the rate there is not "
                f"determined. Choose other or fewer breaks; got {some_values(self.breaks_)}."
            )

    def estimates(self) -> tuple[list[str], np.ndarray]:
        """Names and values of ``coef_`` and the logarithms of ``rates_``."""
        names, coef = super().estimates()
        rates = [f"log rate {k}" for k in range(len(self.rates_))]
        return [*names, *rates], np.append(coef, self._log_rates - self._center @ coef)

    def predict_distribution(
        self, X: Covariates | None = None, *, given: ArrayLike | None = None, path: StartStop | None = None
    ) -> Any:
        """Predict the distribution of the event time.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates, as in ``fit``.
        given, path
            As in :meth:`WeibullRegression.predict_distribution`.

        Returns
        -------
        Distribution
            One distribution per subject of X (of ``path``), or one for all subjects without covariates.
        """
        self.check_fitted()
        rates = np.exp(self._eta(X)[:, None] + self._log_rates)
        F = piecewise_forecast(self.breaks_, rates, path, X)
        return given_survival(F.like(self._reference), given)


def _breaks(breaks: Any, times: np.ndarray, weight: np.ndarray) -> np.ndarray:
    if not isinstance(breaks, list | tuple) and np.ndim(breaks) == 0:
        count = as_count(breaks, "breaks, a number of them or an array of times,", least=0, most=10**6)
        levels = np.arange(1, count + 1) / (count + 1)
        quantiles = np.quantile(times, levels, method="inverted_cdf", weights=weight)
        breaks = np.unique(quantiles[quantiles > 0])
        # those that leave no interval without a time: among ties several quantiles may be one time
        before = np.searchsorted(np.sort(times), breaks, side="left")
        return breaks[(np.diff(before, prepend=0) > 0) & (breaks < times.max())]
    chosen = to_numpy(as_float(breaks, "breaks"))
    check_positive(chosen, "breaks")
    if chosen.ndim != 1 or (np.diff(chosen) <= 0).any():
        raise InvalidInputError(f"breaks must ascend without ties; got {some_values(chosen)}.")
    return chosen


def exposure(time: np.ndarray, ends: np.ndarray) -> np.ndarray:
    """Time spent up to t in the pieces that end at given times, and after the last, (n, pieces + 1).

    >>> exposure(np.array([1.5, 4.0]), np.array([1.0, 3.0]))
    array([[1. , 0.5, 0. ],
           [1. , 2. , 1. ]])
    """
    start, width = np.append(0.0, ends), np.diff(np.concatenate([[0.0], ends, [np.inf]]))
    return np.clip(time[:, None] - start, 0.0, width)


class _Likelihood(PenalisedLikelihood):
    r"""In theta = (log rates, beta).

    With the hazards :math:`H=e^{z\beta}\sum_k\lambda_kE_k` that a subject spends before L (after its entry)
    and D between L and U: :math:`-H+\log(1-e^{-D})` of an interval, :math:`-H+\log h` of an exact time.
    """

    def __init__(self, ends: Ends, breaks: np.ndarray, Z: np.ndarray, weight: np.ndarray) -> None:
        lower, upper, entry = ends
        self.Z, self.weight, self.penalty, self.K = Z, weight, np.zeros(Z.shape[1]), len(breaks) + 1
        exact = lower == upper
        self.exact, self.between = np.nonzero(exact)[0], np.nonzero(~exact & np.isfinite(upper))[0]
        self.piece = np.searchsorted(breaks, lower[self.exact], side="right")
        since = np.minimum(entry, np.where(np.isfinite(upper), upper, entry))
        self.before = exposure(np.maximum(lower, since), breaks) - exposure(since, breaks)
        b = self.between
        self.inside = exposure(upper[b], breaks) - exposure(np.maximum(lower[b], since[b]), breaks)

    def start(self) -> np.ndarray:
        """One rate for all times: events by time at risk."""
        events = self.weight[self.exact].sum() + self.weight[self.between].sum()
        return np.append(
            np.full(self.K, np.log(events / self.time_at_risk().sum())), np.zeros(self.Z.shape[1])
        )

    def time_at_risk(self) -> np.ndarray:
        """Time spent in each piece, (K,); half of what lies inside intervals."""
        return self.weight @ self.before + self.weight[self.between] @ self.inside / 2

    def _parts(self, theta: np.ndarray, exposure: np.ndarray, Z: np.ndarray) -> np.ndarray:
        """Derivatives of H by theta, (rows, K + p): the first K are the parts of H."""
        Q = np.exp(theta[: self.K] + (Z @ theta[self.K :])[:, None]) * exposure
        return np.column_stack([Q, Q.sum(axis=1)[:, None] * Z])

    def _second(self, J: np.ndarray, Z: np.ndarray, c: np.ndarray) -> np.ndarray:
        """The sum of c times the second derivatives of H."""
        Q = J[:, : self.K] * c[:, None]
        cross = Q.T @ Z
        return np.block([[np.diag(Q.sum(axis=0)), cross], [cross.T, (Z * Q.sum(axis=1)[:, None]).T @ Z]])

    def _terms(self, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        K, w, rows, Z = self.K, self.weight, self.between, self.Z
        J, N = self._parts(theta, self.before, Z), self._parts(theta, self.inside, Z[rows])
        H, D = J[:, :K].sum(axis=1), N[:, :K].sum(axis=1)
        log_rate = theta[self.piece] + Z[self.exact] @ theta[K:]
        value = -w @ H + w[rows] @ np.log(-np.expm1(-D)) + w[self.exact] @ log_rate
        q, scores = 1 / np.expm1(D), -J
        scores[rows] += N * q[:, None]
        scores[self.exact, self.piece] += 1
        scores[self.exact, K:] += Z[self.exact]
        curvature = self._second(J, Z, w) - self._second(N, Z[rows], w[rows] * q)
        curvature += (N * (w[rows] * q * (1 + q))[:, None]).T @ N
        return float(value), scores, curvature
