"""Binomial log score at given times."""

from __future__ import annotations

from censcore._arrays import Array
from censcore._numerics import xlogy
from censcore.distributions import Distribution
from censcore.outcomes import CompetingRisks, OutcomeLike
from censcore.scores.competing_risks import multinomial_log_score
from censcore.scores.inputs import ScoringInputs, censoring_weights, evaluation_times, scoring_inputs
from censcore.scores.interval import through_visits

__all__ = ["binomial_log_score"]


def binomial_log_score(
    y: OutcomeLike,
    forecast: Distribution,
    censoring: Distribution | None = None,
    times: Array = None,
    *,
    horizon: Array = None,
) -> Array:
    r"""Logarithmic score of "the event happens by :math:`\tau`", at given times.

    .. math::
        -\mathbb 1\{y>\tau\}\log P(T>\tau)-\delta\,\mathbb 1\{y\le\tau\}\,\frac{G(\tau)}{G(y-)}\,\log F(\tau)

    with :math:`G(t)=P(C>t)` and :math:`G(t-)=P(C\ge t)`: the Brier score with logarithms in place of
    squares, under the same weights and the same assumption, C independent of T given the covariates and
    its distribution right.

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
    horizon : number or (n,) array, optional
        End of follow-up for the score: C becomes min(C, horizon).

    Returns
    -------
    array, (n, q), or (n,) for a single number
        One loss per subject and time; lower is better. Infinite where the forecast excluded what happened.

    Notes
    -----
    Competing risks: ``y.cause(j)`` and ``forecast.cause(j)`` give the score of cause j, with
    :math:`-G(\tau)/G(y-)\log\{1-F_j(\tau)\}` after an event of another cause. Given
    :class:`CompetingRisks` and a forecast of all causes the score is multinomial, minus the logarithm of
    the probability of what happened by :math:`\tau`.

    See Also
    --------
    brier_score : Squares in place of logarithms.
    log_score : The whole distribution by its likelihood.

    References
    ----------
    .. [1] Graf, E., Schmoor, C., Sauerbrei, W. and Schumacher, M. (1999). Assessment and comparison of
       prognostic classification schemes for survival data. Statistics in Medicine 18, 2529-2545.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.RightCensored(time=[1.0, 3.0, 2.0], event=[1, 1, 0])
    >>> cs.binomial_log_score(y, cs.Exponential(0.5), cs.Uniform(0.0, 5.0), times=[1.5, 2.5]).round(4)
    array([[0.5594, 0.211 ],
           [0.75  , 1.25  ],
           [0.75  , 0.    ]])
    """
    if isinstance(y, CompetingRisks):
        return multinomial_log_score(y, forecast, censoring, times, horizon)
    y, forecast, censoring = through_visits(y, forecast, censoring, horizon, times=times)
    inputs = scoring_inputs(y, forecast, censoring, horizon, one_cause=True)
    t, single = evaluation_times(times, inputs.y, horizon)
    loss = _binomial_log(inputs, t)
    return loss[:, 0] if single else loss


def _binomial_log(inputs: ScoringInputs, t: Array) -> Array:
    xp, F = inputs.xp, inputs.F
    alive, weight = censoring_weights(inputs, t)
    zero = xp.zeros_like(weight)
    # each logarithm sees only the subjects it is for: no gradient meets the infinity of the other
    log_survival = F.logsf(xp.where(alive, t + zero, zero))
    dead = xlogy(xp.where(alive | inputs.never, zero, weight), F.cdf(t) + zero)
    loss = -xp.where(alive, log_survival, dead)
    if not inputs.has_never:
        return loss
    without = ~alive & inputs.never & (weight > 0)  # the event never came, as those know who are followed
    return loss - xp.where(without, weight * F.logsf(xp.where(without, t + zero, zero)), zero)
