r"""Intercept and slope of calibration, on the complementary log-log scale of the risk by a time.

With the linear predictor :math:`\eta_i=\log\{-\log(1-p_i)\}` and :math:`\pi_i=1-\exp\{-e^{a+b\eta_i}\}`, the
weighted binomial estimating equations are

.. math:: \sum_iw_i\{W_{1i}(1-\pi_i)-W_{0i}\pi_i\}h_ix_i=0,\qquad
    h_i=\frac{d\pi_i/d\eta}{\pi_i(1-\pi_i)}=\frac{e^{a+b\eta_i}}{\pi_i},

with the inverse-probability weights :math:`W_1` of "event by t" and :math:`W_0` of "no event by t".
*Calibration intercept*: b = 1 and x = 1; zero if the mean risk is right, above zero if risks are too low.
*Calibration slope*: x = (1, eta); one if risks are as spread as they should be, below one if they are too
extreme. Both are solutions for any C: the influence of whom C was fitted to is that of the mean of the
equations. ``"pseudo"`` solves

.. math:: \sum_iw_i(\theta_i-\pi_i)\frac{d\pi_i}{d\eta}x_i=0,\qquad
    \theta_i=\frac{\hat F(t)-(1-w_i)\hat F^{(-i)}(t)}{w_i},

by pseudo-values of the Kaplan-Meier or Aalen-Johansen estimate :math:`\hat F`, as ``geese`` does with this
link and the identity as variance. It is valid only where C depends on nothing, and its error takes
pseudo-values as independent.

References
----------
.. [1] van Geloven, N., Giardiello, D., Bonneville, E. F. et al. (2022). Validation of prediction models in
   the presence of competing risks. BMJ 377, e069249.
.. [2] Royston, P. (2014). Tools for checking calibration of a Cox model in external validation. The Stata
   Journal 14, 738-755.
.. [3] Andersen, P. K., Klein, J. P. and Rosthøj, S. (2003). Generalised linear models for correlated
   pseudo-observations, with applications to multi-state models. Biometrika 90, 15-27.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from censcore._arrays import to_numpy
from censcore.estimators.regression.newton import find_root
from censcore.evaluation.inference.estimates import Estimate
from censcore.evaluation.measures.case import RiskAt
from censcore.evaluation.measures.risk_of_model import RiskOfModel
from censcore.exceptions import InvalidInputError

METHODS = ("binomial", "pseudo")
CHUNK = 2_000_000  # subjects times event times of which a curve without each subject is held


def calibration_intercept(of: RiskOfModel, method: str = "binomial") -> Estimate:
    """Estimate a, with the slope fixed at one."""
    return _solved(of, np.ones((len(of.weight), 1)), of.predictor, np.zeros(1), method)


def intercept_and_slope(of: RiskOfModel, method: str = "binomial") -> Estimate:
    """Estimate a and b together, two columns."""
    of.check_spread()
    x = np.column_stack([np.ones(len(of.weight)), of.predictor])
    return _solved(of, x, np.zeros(len(x)), np.array([0.0, 1.0]), method)


def joint_test(both: Estimate) -> tuple[float, float]:
    """Test a = 0 and b = 1 together: Wald's statistic of two degrees of freedom, and its p-value."""
    from scipy.special import chdtrc

    away = both.value - np.array([0.0, 1.0])
    statistic = float(away @ np.linalg.solve(both.influence.T @ both.influence, away))
    return statistic, float(chdtrc(2, statistic))


def _solved(of: RiskOfModel, x: np.ndarray, offset: np.ndarray, start: np.ndarray, method: str) -> Estimate:
    w = of.weight
    theta = pseudo_values(of) if method == "pseudo" else None

    def link(eta: np.ndarray, known: RiskAt) -> tuple[np.ndarray, np.ndarray]:
        return _binomial(eta, known) if theta is None else _least_squares(eta, theta)

    def equations(beta: np.ndarray) -> tuple[np.ndarray, Callable[[], np.ndarray]] | None:
        with np.errstate(over="ignore", invalid="ignore"):
            value, slope = link(offset + x @ beta, of.known)
        if not (np.isfinite(value[w > 0]).all() and np.isfinite(slope[w > 0]).all()):
            return None
        return (w * value) @ x, lambda: x.T @ ((w * slope)[:, None] * x)

    beta, information = find_root(equations, start)
    slope = link(offset + x @ beta, of.known)[1]
    own = w * slope * np.einsum("ni,ij,nj->n", x, np.linalg.inv(information), x)
    alone = (1 - w) / (1 - own)  # what a contribution grows by where its subject is left out

    def at_root(known: RiskAt) -> np.ndarray:
        return (alone * link(offset + x @ beta, known)[0])[:, None] * x

    if theta is None:
        return of.solution(beta, at_root, information)
    return of.of_subjects(beta, w[:, None] * at_root(of.known) @ np.linalg.inv(information).T)


def _binomial(eta: np.ndarray, known: RiskAt) -> tuple[np.ndarray, np.ndarray]:
    r""":math:`W_1m/(e^m-1)-W_0m` with :math:`m=e^\eta`, written out, and minus its derivative."""
    m = np.exp(eta)
    odds = m / np.expm1(m)
    slope = odds * (1 - m * np.exp(m) / np.expm1(m))
    return known.event * odds - known.free * m, known.free * m - known.event * slope


def _least_squares(eta: np.ndarray, theta: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    r""":math:`(\theta-\pi)\,d\pi/d\eta`, and minus its derivative."""
    m = np.exp(eta)
    left, slope = theta - 1 + np.exp(-m), m * np.exp(-m)
    return left * slope, slope**2 - left * slope * (1 - m)


def pseudo_values(of: RiskOfModel) -> np.ndarray:
    """Pseudo-values of the risk by the time, (n,), from the curves without each of the subjects."""
    y = of.case.y
    if y.has_delayed_entry or of.known.counted is not None:
        raise InvalidInputError(
            "method='pseudo': got delayed entry or known censoring times, expected subjects who are seen "
            "from the start until an unknown C. Use method='binomial'."
        )
    time, event, never = to_numpy(y.time), to_numpy(y.event), of.case.never
    w, ended = of.weight, event | never
    u = np.unique(time[(time <= of.time) & ended])
    if not len(u):
        return np.zeros(len(w))
    at = np.searchsorted(u, time, side="right") - 1  # the last of u that a subject reaches
    placed = ended & (time <= of.time)
    own, every = (np.bincount(at[who], w[who], len(u)) for who in (event & placed, placed))
    order = np.argsort(time)
    later = np.append(np.cumsum(w[order][::-1])[::-1], 0.0)
    risk = later[np.searchsorted(time[order], u)]
    whole, theta = _incidence(own, every, risk), np.empty(len(w))
    step = max(CHUNK // len(u), 1)
    for start in range(0, len(w), step):
        rows = slice(start, start + step)
        mine, gone = w[rows, None], np.arange(len(u)) == at[rows, None]
        there = time[rows, None] >= u
        without = _incidence(
            own - mine * (gone & (event & placed)[rows, None]),
            every - mine * (gone & placed[rows, None]),
            risk - mine * there,
        )
        with np.errstate(divide="ignore", invalid="ignore"):
            theta[rows] = (whole - (1 - w[rows]) * without) / w[rows]
    return np.where(w > 0, theta, 0.0)


def _incidence(own: np.ndarray, every: np.ndarray, risk: np.ndarray) -> np.ndarray:
    """Cumulative incidence by the last of the times, from weights of events and at risk, (..., J)."""
    with np.errstate(divide="ignore", invalid="ignore"):
        hazard, all_causes = (np.where(risk > 1e-12, d / risk, 0.0) for d in (own, every))
    survival = np.cumprod(1 - all_causes, axis=-1)
    before = np.concatenate([np.ones((*survival.shape[:-1], 1)), survival[..., :-1]], axis=-1)
    return (before * hazard).sum(axis=-1)
