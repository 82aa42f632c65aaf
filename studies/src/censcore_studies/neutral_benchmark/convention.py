r"""The integrated survival Brier score (ISBS) as the benchmark computes it, and its four choices apart.

With the distinct times :math:`t_1<\dots<t_q` of the test subjects, up to the first before which more than
80 % of them left the risk set,

.. math::
    \mathrm{ISBS}=\frac1{t_q-t_1}\int_{t_1}^{t_q}\frac1n\sum_i\Bigl[
    \frac{S_i(t)^2\,1\{y_i\le t\}\,\delta_i}{\hat G(y_i)}+\frac{(1-S_i(t))^2\,1\{y_i>t\}}{\hat G(t)}\Bigr]dt

by the trapezoidal rule between these times, where :math:`\hat G` is the Kaplan-Meier curve of the training
subjects with events and censorings exchanged, at least 0.001. Two choices matter with ties. At a time with
events and censorings, :math:`\hat G` counts the events among those who could be censored, though they come
first (:math:`\Delta=1\{T\le C\}`). And an event at y is divided by :math:`\hat G(y)=P(C>y)`, while the
probability of observing it is :math:`\hat G(y-)=P(C\ge y)`.
"""

from __future__ import annotations

import numpy as np

from censcore.distributions import Distribution, Univariate
from censcore.outcomes import RightCensored
from censcore_studies.kit.follow_up import censoring_curve, eighty_percent_gone

__all__ = ["VARIANTS", "censoring_curve", "integrated_survival_brier_score", "score_grid", "subject_losses"]

FLOOR = 1e-3

#: The choices: (events come before censorings at the same time, events are divided by G(y-)).
VARIANTS: dict[str, tuple[bool, bool]] = {
    "as published": (False, False),
    "events first": (True, False),
    "left limits": (False, True),
    "both": (True, True),
}


def score_grid(y: RightCensored) -> np.ndarray:
    """Distinct times up to the first before which more than 80 % of the subjects left the risk set."""
    time = np.unique(np.asarray(y.time))
    return time[time <= eighty_percent_gone(np.asarray(y.time))]


def integrated_survival_brier_score(
    y: RightCensored, forecast: Distribution, y_train: RightCensored, variant: str = "as published"
) -> float:
    """ISBS of the test subjects y, by the convention of the benchmark or with its choices corrected.

    Parameters
    ----------
    y : RightCensored, (n,)
        Test subjects.
    forecast : Distribution
        One per test subject, or one for all.
    y_train : RightCensored
        Training subjects, for G.
    variant : str
        A key of ``VARIANTS``.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore_studies.neutral_benchmark import integrated_survival_brier_score
    >>> y = cs.RightCensored([1.0, 2.0, 2.0, 3.0, 4.0, 5.0], [1, 1, 0, 1, 0, 1])
    >>> round(integrated_survival_brier_score(y, cs.Exponential(0.25), y), 4)
    0.2096
    """
    return float(subject_losses(y, forecast, y_train, variant).mean())


def subject_losses(
    y: RightCensored, forecast: Distribution, y_train: RightCensored, variant: str = "as published"
) -> np.ndarray:
    """What each test subject contributes to the ISBS, which is the mean, (n,)."""
    events_first, left_limit = VARIANTS[variant]
    G, t = censoring_curve(y_train, events_first).marginal(0), score_grid(y)
    time, event = np.asarray(y.time)[:, None], np.asarray(y.event, dtype=bool)[:, None]
    S = _read_at(forecast.marginal(0), t)
    at_event = G.sf_left(time) if left_limit else G.sf(time)
    failed = S**2 * ((time <= t) & event) / np.maximum(at_event, FLOOR)
    surviving = (1 - S) ** 2 * (time > t) / np.maximum(G.sf(t[None, :]), FLOOR)
    losses: np.ndarray = np.trapezoid(failed + surviving, t, axis=1) / (t[-1] - t[0])
    return losses


def _read_at(F: Univariate, t: np.ndarray) -> np.ndarray:
    """S(t), or S(t-) where the time, written with 15 digits, comes out larger than it is.

    The survival matrices of the benchmark have their times as texts of 15 digits, so that a curve that jumps
    at such a time has not jumped yet when it is read at the time itself. Only the times of gbsg and metabric,
    which were single-precision numbers once, have more digits.
    """
    early = np.array([float(f"{value:.15g}") > value for value in t])
    S = np.array(F.sf(t[None, :]))
    if early.any():
        S[..., early] = np.asarray(F.sf_left(t[None, early]))
    return S
