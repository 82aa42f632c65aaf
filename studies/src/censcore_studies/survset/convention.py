r"""The integrated Brier score and the predicted time as SurvivalEVAL 0.6, which was current then, has them.

Survival curves are lines between the training times, and after the last of these, :math:`\tau`, the line
through (0, 1) and :math:`(\tau,S(\tau))`. With ten times :math:`t` from 0 to the last time of all subjects,

.. math:: \mathrm{BS}(t)=\frac1n\sum_i\Bigl[\frac{S_i(t)^2\,1\{y_i\le t\}\,\delta_i}{\hat G(y_i)}
    +\frac{(1-S_i(t))^2\,1\{y_i>t\}}{\hat G(t)}\Bigr]

is integrated by the trapezoidal rule and divided by the last time. :math:`\hat G` is the Kaplan-Meier curve
of the training subjects with events and censorings exchanged, after :math:`\tau` the line through its values
at the first and last training time; where it is zero, the term is dropped. Version 0.9 refuses such splits.
"""

from __future__ import annotations

import numpy as np

from censcore.distributions import Distribution
from censcore.outcomes import RightCensored
from censcore_studies.kit.follow_up import censoring_curve

__all__ = ["predicted_time", "published_brier_score"]

POINTS = 10


def published_brier_score(y: RightCensored, forecast: Distribution, y_train: RightCensored) -> float:
    """Integrated Brier score of the test subjects y in the published convention."""
    time, event = np.asarray(y.time, float)[:, None], np.asarray(y.event, bool)[:, None]
    grid = np.unique(np.append(0.0, y_train.time))
    t = np.linspace(0.0, max(time.max(), grid[-1]), POINTS)
    curves = np.asarray(forecast.marginal(0).sf(grid[None]))
    S = _with_line(np.broadcast_to(curves, (len(y), len(grid))), grid, t)
    G = censoring_curve(y_train, events_first=False).marginal(0).sf(grid[None])[0]
    weight_event, weight_later = (_inverse(_steps_with_line(G, grid, at)) for at in (time, t[None, :]))
    failed = S**2 * ((time <= t) & event) * weight_event
    surviving = (1 - S) ** 2 * (time > t) * weight_later
    return float(np.trapezoid((failed + surviving).mean(axis=0), t) / t[-1])


def predicted_time(forecast: Distribution, y_train: RightCensored) -> np.ndarray:
    """Median; where the curve ends above one half, the time at which the line through its end is there."""
    F, end = forecast.marginal(0), float(np.max(y_train.time))
    median, last = (np.ravel(part) for part in (F.icdf(np.array([[0.5]])), F.sf(np.array([[end]]))))
    with np.errstate(divide="ignore"):
        return np.where(np.isfinite(median), median, end * 0.5 / (1 - last))


def _with_line(S: np.ndarray, grid: np.ndarray, t: np.ndarray) -> np.ndarray:
    """Curves (n, q) at ``grid`` read at the times t."""
    inside = np.stack([np.interp(t, grid, curve) for curve in S])
    return np.where(t > grid[-1], np.maximum(1 + (S[:, -1:] - 1) * t / grid[-1], 0), inside)


def _steps_with_line(G: np.ndarray, grid: np.ndarray, t: np.ndarray) -> np.ndarray:
    """A step function with values G from the times ``grid`` on, read at t, with a line after the last.

    Before the first training time, which follows the zero of the grid, it has its value there, too.
    """
    inside = G[np.maximum(np.searchsorted(grid, t, side="right") - 1, 1)]
    slope = (G[-1] - G[1]) / (grid[-1] - grid[1])
    return np.where(t > grid[-1], np.maximum(G[-1] + slope * (t - grid[-1]), 0), inside)


def _inverse(G: np.ndarray) -> np.ndarray:
    return np.divide(1.0, G, out=np.zeros_like(G), where=G > 0)
