"""Cox regression."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions.proportional_hazards import ProportionalHazards
from censcore.estimators._base import SurvivalEstimator, one_event_time
from censcore.estimators._covariates import check_rows, check_weights
from censcore.estimators._design import Standardised, as_matrix
from censcore.estimators._newton import Derivatives, maximise
from censcore.exceptions import InvalidInputError

__all__ = ["CoxRegression"]


class CoxRegression(SurvivalEstimator):
    r"""Proportional hazards by partial likelihood, with Breslow's baseline.

    .. math:: P(T>t\mid x)=\exp\{-e^{x^\top\gamma}\Lambda_0(t)\},\qquad
        \Lambda_0(t)=\sum_{t_i\le t}\frac{d_i}{\sum_{j:\,y_j\ge t_i}e^{x_j^\top\gamma}}.

    Assumes that hazards are proportional and that censoring is independent of T given x. Without
    covariates it is the Nelson-Aalen estimate.

    Parameters
    ----------
    alpha : float
        Ridge penalty: :math:`\tfrac{\alpha}{2}\|\gamma\|^2` is taken off the log partial likelihood. It
        makes the fit unique where columns are collinear or separate events from non-events; without
        it such data are refused.
    ties : "efron" or "breslow"
        How the partial likelihood treats events at the same time.

    Attributes
    ----------
    coef_ : array, (p,)
        gamma, log hazard ratios.
    baseline_times_, baseline_hazard_ : array, (J,)
        Distinct event times and the cumulative hazard of a row with x = ``center_`` after each.
    center_ : array, (p,)
        Means of the columns.
    n_features_in_, feature_names_in_
        Number of columns, and their names where X is a frame.

    Notes
    -----
    Predictions share the baseline (:class:`~censcore.distributions.ProportionalHazards`): no matrix of rows
    by times is made. What the last event time leaves sits at infinity. Data without any event give
    laws without any, as in Kaplan-Meier, and coefficients of zero.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 1))
    >>> y = cs.RightCensored(rng.exponential(np.exp(-X[:, 0])), np.ones(500)).censor_at(2.0)
    >>> model = cs.CoxRegression().fit(X, y)
    >>> model.coef_.round(2)
    array([0.94])
    >>> model.predict_distribution([[0.0], [1.0]]).sf(0.5).round(2)
    array([0.6 , 0.28])
    """

    def __init__(self, alpha: float = 0.0, ties: str = "efron") -> None:
        self.alpha = alpha
        self.ties = ties

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Maximise the (penalised) partial likelihood and estimate the baseline; X is (n, p) or None."""
        y = one_event_time(y, "CoxRegression")
        check_rows(X, len(y))
        if not self.alpha >= 0:
            raise InvalidInputError(f"alpha must be non-negative; {self.alpha} came.")
        if self.ties not in ("efron", "breslow"):
            raise InvalidInputError(f"ties must be 'efron' or 'breslow'; {self.ties!r} came.")
        weight = check_weights(sample_weight, len(y))
        X = as_matrix(self, X, reset=True)
        rows = np.zeros((len(y), 0)) if X is None else X
        used = weight > 0
        columns = Standardised.of(rows[used], weight[used], self)
        risk_sets = RiskSets(to_numpy(y.time)[used], to_numpy(y.event)[used], weight[used], self.ties)
        gamma = self._coefficients(columns, weight[used], risk_sets)
        self.coef_, self.center_ = gamma / columns.scale, columns.center
        self.baseline_times_, self.baseline_hazard_ = risk_sets.breslow(np.exp(columns.Z @ gamma))
        self._reference = y.time[:0]
        return self

    def _coefficients(self, columns: Standardised, weight: np.ndarray, risk_sets: RiskSets) -> np.ndarray:
        p = columns.Z.shape[1]
        if p == 0 or not risk_sets.n_events:
            return np.zeros(p)
        if not self.alpha:
            columns.refuse_collinear(weight, "CoxRegression")
        penalty = self.alpha / columns.scale**2
        Z = columns.Z[risk_sets.order]
        gamma, information = maximise(lambda gamma: risk_sets.likelihood(gamma, Z, penalty), np.zeros(p))
        if not self.alpha:
            columns.refuse_separation(information, "CoxRegression")
        return gamma

    def predict_distribution(self, X: Any = None) -> ProportionalHazards:
        """The law of each row of X, or one for all rows without covariates."""
        self._check_fitted()
        X = as_matrix(self, X, reset=False)
        risk = np.ones(1) if X is None else np.exp((X - self.center_) @ self.coef_)
        law = ProportionalHazards(self.baseline_times_, self.baseline_hazard_, risk)
        return law.like(self._reference)


class RiskSets:
    """Rows sorted by time, and sums over those still at risk at each event.

    For the l-th of d tied events, l = 0, ..., d - 1, Efron's rule takes the share l/d of all of them out
    of the risk set; Breslow's takes none out. Weights of tied events are averaged.
    """

    def __init__(self, time: np.ndarray, event: np.ndarray, weight: np.ndarray, ties: str) -> None:
        self.order = np.lexsort((~event, time))
        self._time, self._event, self._weight = time[self.order], event[self.order], weight[self.order]
        distinct, self._group = np.unique(self._time, return_inverse=True)
        self._distinct = distinct
        rows = np.nonzero(self._event)[0]
        self.n_events = len(rows)
        self._tie = self._group[rows]  # the time of each event
        count = np.bincount(self._tie, minlength=len(distinct))
        started = np.cumsum(count) - count
        share = (np.arange(len(rows)) - started[self._tie]) / np.maximum(count[self._tie], 1)
        self._share = share if ties == "efron" else np.zeros(len(rows))
        self._died = np.bincount(self._tie, self._weight[rows], minlength=len(distinct))
        self._event_weight = (self._died / np.maximum(count, 1))[self._tie]

    def _by_time(self, values: np.ndarray) -> np.ndarray:
        """Sums over the rows of each distinct time, (times,) or (times, p)."""
        starts = np.searchsorted(self._time, self._distinct)
        return np.add.reduceat(values, starts, axis=0)

    def _at_risk(self, values: np.ndarray) -> np.ndarray:
        """Sums over the rows with at least each distinct time."""
        return np.cumsum(self._by_time(values)[::-1], axis=0)[::-1]

    def likelihood(self, gamma: np.ndarray, Z: np.ndarray, penalty: np.ndarray) -> Derivatives:
        """Log partial likelihood less the penalty, with Z in the order of the times.

        The sum of outer products over all risk sets is one product of matrices: every row enters with its
        risk times the sum, over the events up to its time, of one over the risk sets' totals.
        """
        eta = Z @ gamma
        top = eta.max()
        r = self._weight * np.exp(eta - top)
        died = r * self._event
        totals = self._at_risk(r)[self._tie] - self._share * self._by_time(died)[self._tie]
        if not (totals > 0).all():  # so far out that risks underflow: no step ends here
            return -np.inf, np.zeros_like(gamma), np.eye(len(gamma))
        sums_died = self._by_time(died[:, None] * Z)[self._tie]
        means = self._at_risk(r[:, None] * Z)[self._tie] - self._share[:, None] * sums_died
        means /= totals[:, None]

        w = self._event_weight
        seen = self._weight * self._event
        value = seen @ eta - w @ (np.log(totals) + top) - penalty @ gamma**2 / 2
        gradient = seen @ Z - w @ means - penalty * gamma

        n_times = len(self._distinct)
        entered = np.cumsum(np.bincount(self._tie, w / totals, minlength=n_times))
        taken_out = np.bincount(self._tie, self._share * w / totals, minlength=n_times)
        A = r * entered[self._group] - died * taken_out[self._group]
        curvature = (Z * A[:, None]).T @ Z - (means * w[:, None]).T @ means + np.diag(penalty)
        return float(value), gradient, curvature

    def breslow(self, risk: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """Distinct event times and the cumulative hazard after each; zero at one time without events."""
        if not self.n_events:
            return self._distinct[-1:], np.zeros(1)
        at_risk = self._at_risk(self._weight * risk[self.order])
        jumps = self._died > 0
        return self._distinct[jumps], np.cumsum(self._died[jumps] / at_risk[jumps])
