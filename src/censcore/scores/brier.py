"""Brier score at given times."""

from __future__ import annotations

import numpy as np

from censcore._arrays import Array, as_loss, namespace, searchsorted
from censcore._kernels import on_cpu
from censcore._numerics import chunked_rows, fill_rows
from censcore.distributions import Distribution, Step, Univariate
from censcore.outcomes import CompetingRisks, OutcomeLike
from censcore.scores._support import check_unreached
from censcore.scores.competing_risks import over_causes
from censcore.scores.inputs import (
    ScoringInputs,
    check_scale,
    evaluation_times,
    inverse_probability_weights,
    scoring_inputs,
)
from censcore.scores.interval import through_visits

__all__ = ["CACHED_NUMBERS", "brier_score", "columns_of"]

# A slice of subjects this small stays in the cache through all steps of the formula.
CACHED_NUMBERS = 131_072


@as_loss
def brier_score(
    y: OutcomeLike,
    forecast: Distribution,
    censoring: Distribution | None = None,
    times: Array = None,
    *,
    scale: str = "localized",
    horizon: Array = None,
) -> Array:
    r"""Brier score of a right-censored event time at given times.

    .. math::
        \mathbb 1\{y>\tau\}\,F(\tau)^2+\delta\,\mathbb 1\{y\le\tau\}\,\frac{G(\tau)}{G(y-)}\,(1-F(\tau))^2

    with :math:`G(t)=P(C>t)` and :math:`G(t-)=P(C\ge t)`: the Brier score of :math:`\min(T,C)`, averaged
    over the values of C that the observation allows. Proper for :math:`F(\tau)` wherever
    :math:`G(\tau)>0`, if C is independent of T given the covariates and its distribution is right. That
    distribution must not depend on the forecast.

    Parameters
    ----------
    y : RightCensored, CompetingRisks, IntervalCensored, structured array or frame
        The outcome of n subjects. Of interval-censored data the detection time is scored, the first visit at
        or after T, with the forecast sent through the same visits.
    forecast : Distribution
        Distribution of T given the covariates, one per subject or one for all.
    censoring : Distribution, optional
        Distribution of C given the covariates. It may be left out only where it is known: nothing is
        censored, or ``y.censoring_time`` is given.
    times : array or number
        Evaluation times, (q,) or (n, q), in any order, below the horizon.
    scale : {"localized", "ipcw"}
        ``"ipcw"`` divides by :math:`G(\tau)`, the classical inverse-probability-of-censoring-weighted
        score, whose mean estimates the uncensored Brier score; times where any subject
        has :math:`G(\tau)=0` are an error.
    horizon : number or (n,) array, optional
        End of follow-up for the score: C becomes min(C, horizon).

    Returns
    -------
    array, (n, q), or (n,) for a single number
        One loss per subject and time; lower is better.

    Notes
    -----
    Competing risks: ``y.cause(j)`` and ``forecast.cause(j)`` give the score of cause j. After an event of
    another cause at y the subject never has this one and is followed until C, and its loss is
    :math:`G(\tau)/G(y-)\,F_j(\tau)^2`. Given :class:`CompetingRisks` and a forecast of all causes the
    score is half the sum of squares over the m + 1 classes (no event yet, or one of cause j).

    See Also
    --------
    integrated_brier_score : Its integral over time.
    binomial_log_score : Logarithms in place of squares.
    censcore.published.ipcw_brier : The conventions of other libraries.

    References
    ----------
    .. [1] Brier, G. W. (1950). Verification of forecasts expressed in terms of probability. Monthly Weather
       Review 78, 1-3.
    .. [2] Graf, E., Schmoor, C., Sauerbrei, W. and Schumacher, M. (1999). Assessment and comparison of
       prognostic classification schemes for survival data. Statistics in Medicine 18, 2529-2545.
    .. [3] Gerds, T. A. and Schumacher, M. (2006). Consistent estimation of the expected Brier score in
       general survival models with right-censored event times. Biometrical Journal 48, 1029-1040.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.RightCensored(time=[1.0, 3.0, 2.0], event=[1, 1, 0])
    >>> cs.brier_score(y, cs.Exponential(0.5), cs.Uniform(0.0, 5.0), times=[1.5, 2.5]).round(4)
    array([[0.1952, 0.0513],
           [0.2784, 0.5091],
           [0.2784, 0.    ]])
    """
    check_scale(scale)
    if isinstance(y, CompetingRisks):
        return over_causes(brier_score, y, forecast, censoring, times=times, scale=scale, horizon=horizon)
    y, forecast, censoring = through_visits(y, forecast, censoring, horizon, times=times)
    inputs = scoring_inputs(y, forecast, censoring, horizon, one_cause=True)
    t, single = evaluation_times(times, inputs.y, horizon)
    if scale == "ipcw":
        check_unreached(inputs, t)
    loss = _losses(inputs, t, scale == "ipcw")
    if scale == "ipcw" and (followed := inputs.followed_to_entry) is not None:
        loss = loss * followed[:, None]
    return loss[:, 0] if single else loss


def _losses(inputs: ScoringInputs, t: Array, ipcw: bool) -> Array:
    reach, (n, q) = inverse_probability_weights(inputs)[:, 0], (inputs.n, t.shape[1])
    shared = inputs.C._sf(t) if len(inputs.C) == 1 and t.shape[0] == 1 else None
    kernel = on_cpu("censcore.scores._brier_numba", "weighted_squares", inputs.y.time, n * q)

    def part(rows: slice) -> tuple[ScoringInputs, Array, tuple[Array, Array]]:
        some, at = inputs.take(rows), t if t.shape[0] == 1 else t[rows]
        G = some.C._sf(at) if shared is None else shared
        one = inputs.xp.ones_like(G)
        return some, at, (1 / G, one) if ipcw else (one, G)

    def formula(rows: slice) -> Array:
        some, at, weights = part(rows)
        return _weighted_squares(some.F._sf(at), some.y.time, some.y.never, at, *weights, reach[rows])

    if kernel is None:
        return chunked_rows(formula, n, q, like=inputs.y.time, budget=CACHED_NUMBERS)
    loss = np.empty((n, q), dtype=inputs.y.time.dtype)

    def fill(rows: slice) -> None:
        some, at, weights = part(rows)
        curves = columns_of(some.F, at)
        kernel(*curves, some.y.time, some.y.never, at, *weights, reach[rows], loss[rows])

    fill_rows(fill, n, q, CACHED_NUMBERS)
    return loss


def columns_of(F: Univariate, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P(T > t) as columns of a matrix (1 or n, J), and which of them each time takes; -1 is a column of ones.

    Curves at common times are such a matrix already.
    """
    if isinstance(F, Step) and F._times.shape[0] == t.shape[0] == 1:
        times, S = F._steps()
        return S, searchsorted(times, t, "right")[0] - 1
    return F._sf(t), np.arange(t.shape[1])


def _weighted_squares(
    S: Array, y: Array, never: Array, t: Array, among_living: Array, among_dead: Array, inverse_weight: Array
) -> Array:
    r""":math:`1\{y>t\}\,a\,F(t)^2+1\{y\le t\}\,\frac{\delta}{G(y-)}\,b\,(1-F(t))^2`, (n, q).

    On the localized scale a = 1 and b = G(t), on the ipcw scale a = 1/G(t) and b = 1. The square after an
    event of another cause is that of the living.
    """
    xp = namespace(S)
    alive = y[:, None] > t
    error = xp.where(alive | never[:, None], 1 - S, S)
    weight = xp.where(alive, among_living, inverse_weight[:, None] * among_dead)
    return weight * error**2
