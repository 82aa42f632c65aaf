r"""Measures of a validation under one censoring distribution, with their influences: what a plan simulates.

Every measure is a function of sums of :math:`w_is_i` with :math:`w_i=1/G(y_i-)` for an event by t and
:math:`1/G(t-)` for a subject followed to t, where G is the Kaplan-Meier estimate of the censoring
distribution. :meth:`Validated.influence` adds to each sum what the subjects contribute through G.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from censcore.evaluation.inference.estimates import Estimate
from censcore.exceptions import InvalidInputError


@dataclass(frozen=True)
class Validated:
    """Follow-up of n subjects with their risks by t: of the model, (n,), and of another one."""

    time: np.ndarray
    event: np.ndarray
    risk: np.ndarray
    t: float
    versus: np.ndarray | None = None

    @cached_property
    def case(self) -> np.ndarray:
        """Who had the event by t."""
        return self.event & (self.time <= self.t)

    @cached_property
    def free(self) -> np.ndarray:
        """Who was followed to t without the event."""
        return ~self.case & (self.time >= self.t)

    @cached_property
    def _censored(self) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Censoring times before t, numbers at risk of them, and the hazard of C there."""
        gone = ~self.event & (self.time < self.t)
        times, count = np.unique(self.time[gone], return_counts=True)
        later = len(self.time) - np.searchsorted(np.sort(self.time), times, side="right")
        at_risk = later + count  # events come first
        return times, at_risk, count / at_risk

    @cached_property
    def weight(self) -> np.ndarray:
        """w, zero for those censored before t."""
        times, _, hazard = self._censored
        G = np.append(1.0, np.cumprod(1 - hazard))
        end = np.minimum(self.time, self.t)
        return np.where(self.case | self.free, 1 / G[np.searchsorted(times, end, side="left")], 0.0)

    def influence(self, contributions: np.ndarray) -> np.ndarray:
        """What subjects contribute to a sum of w s, (n, q), where ``contributions`` are the w s."""
        times, at_risk, hazard = self._censored
        ws = contributions if contributions.ndim == 2 else contributions[:, None]
        end = np.where(ws.any(axis=1), np.minimum(self.time, self.t), -1.0)
        order = np.argsort(end, kind="stable")
        total = np.vstack([np.cumsum(ws[order][::-1], axis=0)[::-1], np.zeros((1, ws.shape[1]))])
        after = total[np.searchsorted(end[order], times, side="right")]  # whose weight has 1 - hazard in it
        q = after / ((1 - hazard) * at_risk)[:, None]
        passed = np.vstack([np.zeros((1, ws.shape[1])), np.cumsum(q * hazard[:, None], axis=0)])
        gone = ~self.event & (self.time < self.t)
        through = -passed[
            np.where(
                gone,
                np.searchsorted(times, self.time, side="right"),
                np.searchsorted(times, self.time, side="left"),
            )
        ]
        through[gone] += q[np.searchsorted(times, self.time[gone])]
        return (ws + through).reshape(contributions.shape)

    def mean(self, s: np.ndarray) -> tuple[float, np.ndarray]:
        """The mean of w s and its influence, (n,)."""
        ws = self.weight * s / len(s)
        value = float(ws.sum())
        return value, self.influence(ws) - value / len(s)


def _estimate(value: float, influence: np.ndarray) -> Estimate:
    return Estimate(np.array([value]), influence[:, None])


def log_observed_over_expected(data: Validated) -> Estimate:
    """Log of the Kaplan-Meier risk by t over the mean risk, both of them random."""
    observed, influence = data.mean(data.case.astype(float))
    expected = float(data.risk.mean())
    if not observed > 0:
        raise InvalidInputError("no event by the time")
    of_expected = (data.risk - expected) / (len(data.risk) * expected)
    return _estimate(np.log(observed / expected), influence / observed - of_expected)


def _slope(data: Validated, target: np.ndarray, weight: np.ndarray, binomial: bool) -> tuple[np.ndarray, ...]:
    """Coefficients of p = 1 - exp(-exp(a + b eta)), the scores w s (n, 2) and minus their derivative."""
    with np.errstate(divide="ignore"):
        eta = np.log(-np.log1p(-data.risk))
    if not np.isfinite(eta).all():
        raise InvalidInputError("a risk of 0 or 1")
    x = np.column_stack([np.ones_like(eta), eta])
    beta = np.array([0.0, 1.0])
    for _ in range(50):
        H = np.exp(np.clip(x @ beta, -30, 5))
        p, dp = -np.expm1(-H), np.exp(-H) * H
        per = H / p if binomial else dp
        scores = (weight * per * (target - p))[:, None] * x
        information = (x * (weight * per * dp)[:, None]).T @ x
        step = np.linalg.solve(information, scores.sum(axis=0))
        beta = beta + step / max(1.0, float(np.abs(step).max()))
        if np.abs(step).max() < 1e-9:
            return beta, scores, information
    raise InvalidInputError("the slope has no estimate")


def calibration_slope(data: Validated) -> Estimate:
    """Slope of the complementary log-log of the risk, by the weighted binomial equation."""
    beta, scores, information = _slope(data, data.case.astype(float), data.weight, binomial=True)
    return _estimate(beta[1], data.influence(scores) @ np.linalg.inv(information)[:, 1])


def pseudo_slope(data: Validated) -> Estimate:
    """The same by least squares of pseudo-values, with the usual robust error."""
    observed, influence = data.mean(data.case.astype(float))
    pseudo = observed + len(influence) * influence
    beta, scores, information = _slope(data, pseudo, np.ones_like(pseudo), binomial=False)
    return _estimate(beta[1], scores @ np.linalg.inv(information)[:, 1])


def auc(data: Validated) -> Estimate:
    """Share of pairs of a case and a control in which the case has the larger risk, ties one half."""
    w1, w0 = data.weight * data.case, data.weight * data.free
    W1, W0 = w1.sum(), w0.sum()
    if not (W1 > 0 and W0 > 0):
        raise InvalidInputError("no case or no control")
    level = np.unique(data.risk, return_inverse=True)[1]
    below = _share_below(level, w0) / W0  # of the controls
    above = 1 - _share_below(level, w1) / W1  # of the cases
    value = float(w1 @ below / W1)
    s = data.case * (below - value) / W1 + data.free * (above - value) / W0
    return _estimate(value, data.influence(data.weight * s))


def _share_below(level: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """The weight of subjects at lower levels, and half of that at the same one."""
    alike = np.bincount(level, weight)
    return (np.cumsum(alike) - alike / 2)[level]


def net_benefit(data: Validated, threshold: float) -> Estimate:
    """Net benefit of treating above a threshold."""
    odds = threshold / (1 - threshold)
    return _estimate(*data.mean((data.risk > threshold) * (data.case - odds * data.free)))


def standardised_net_benefit(data: Validated, threshold: float) -> Estimate:
    """Net benefit as a share of the observed risk."""
    benefit, (observed, influence) = net_benefit(data, threshold), data.mean(data.case.astype(float))
    if not observed > 0:
        raise InvalidInputError("no event by the time")
    share = float(benefit.value[0]) / observed
    return _estimate(share, (benefit.influence[:, 0] - share * influence) / observed)


def score_difference(data: Validated, score: str) -> Estimate:
    """Mean score of the model less that of the other one."""
    assert data.versus is not None
    p, q = data.risk, data.versus
    if score == "brier_score":
        s = data.case * ((1 - p) ** 2 - (1 - q) ** 2) + data.free * (p**2 - q**2)
    elif not ((p > 0) & (p < 1) & (q > 0) & (q < 1)).all():
        raise InvalidInputError("a risk of 0 or 1")
    else:
        s = -1.0 * data.case * np.log(p / q) - data.free * (np.log1p(-p) - np.log1p(-q))
    return _estimate(*data.mean(s))


Measure = Callable[[Validated], Estimate]
