"""Pinball score (quantile score) at given levels."""

from __future__ import annotations

import numpy as np

from censcore._arrays import Array
from censcore._numerics import chunked_rows
from censcore._quadrature import area
from censcore.scores.decorator import score
from censcore.scores.inputs.scoring_inputs import ScoringInputs, inverse_probability_weights
from censcore.scores.inputs.support import check_infinite


@score(
    title="pinball score",
    formula=r"\alpha(y-q_\alpha)_++\delta\frac{1-\alpha}{G(y-)}\int_y^{q_\alpha\vee y}G(s)\,ds",
    reference="Koenker, R. and Bassett, G. (1978). Regression quantiles. Econometrica 46, 33-50.",
    axis="level",
    uses_censoring="area",
    causes=None,
    unit="the unit of time",
    range="0 or more",
    proper="Consistent for the quantile q, if P(C > q) > 0.",
    pitfalls=(
        "A quantile beyond follow-up cannot be judged: with 30 % events there is no median to score.",
        "It judges one quantile. A forecast with a good median may have useless tails.",
    ),
)
def pinball_score(inputs: ScoringInputs, levels: Array) -> Array:
    r"""Pinball (quantile) score of a right-censored event time at given levels.

    .. math::
        \alpha\,(y-q_\alpha)_+ +\delta\,\frac{1-\alpha}{G(y-)}\int_y^{q_\alpha\vee y}G(s)\,ds,
        \qquad q_\alpha=\inf\{t: F(t)\ge\alpha\},

    with :math:`G(t)=P(C>t)` and :math:`G(t-)=P(C\ge t)`: the pinball score of :math:`\min(T,C)` and of
    its quantile :math:`\min(q_\alpha,C)`, averaged over the values of C that the observation allows.
    Consistent for a quantile q with P(C > q) > 0, if C is independent of T given the covariates and its
    distribution is right. Exact for every forecast.

    Parameters
    ----------
    y : RightCensored, IntervalCensored, structured array or frame
        The outcome of n subjects. For interval-censored data the detection time is scored, the first visit at
        or after T, with the forecast sent through the same visits.
    forecast : Distribution
        Distribution of T given the covariates, one per subject or one for all.
    censoring : Distribution, optional
        Distribution of C given the covariates. It may be left out only where it is known: nothing is
        censored, or ``y.censoring_time`` is given.
    levels : array or number
        Quantile levels strictly between 0 and 1, (q,) or (n, q).
    horizon : number or (n,) array, optional
        End of follow-up for the score: C becomes min(C, horizon). What happens at the horizon itself does not
        count; of discrete times take the first one after those that count (13 to judge month 12).

    Returns
    -------
    array, (n, q), or (n,) for a single number
        One loss per subject and level; lower is better.

    Notes
    -----
    Competing risks: ``y.cause(j)`` and ``forecast.cause(j)`` give the score of cause j, with
    :math:`\alpha\,E[(C-q_\alpha)_+\mid C\ge y]` after an event of another cause; a quantile that is never
    reached is infinite. Pass a horizon. There is no score of all causes.

    See Also
    --------
    crps : Twice its integral over all levels.

    References
    ----------
    .. [1] Koenker, R. and Bassett, G. (1978). Regression quantiles. Econometrica 46, 33-50.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.RightCensored(time=[1.0, 3.0, 2.0], event=[1, 1, 0])
    >>> cs.pinball_score(y, cs.Exponential(0.5), cs.Uniform(0.0, 5.0), levels=[0.25, 0.5]).round(4)
    array([[0.1062, 0.1838],
           [0.6062, 0.8069],
           [0.3562, 0.3069]])
    """
    return pinball_of(inputs, levels)


def pinball_of(inputs: ScoringInputs, alpha: Array, quantiles: Array = None) -> Array:
    """The score of checked inputs at levels (1 or n, q): (n, q). Known ``quantiles`` are not sought again."""

    def part(rows: slice) -> Array:
        subjects, at = inputs.take(rows), alpha if alpha.shape[0] == 1 else alpha[rows]
        return _losses(subjects, at, subjects.F.icdf(at) if quantiles is None else quantiles[rows])

    loss = chunked_rows(part, inputs.n, 4 * alpha.shape[1], like=inputs.y.time)
    return check_infinite(loss, inputs)


def _losses(inputs: ScoringInputs, alpha: Array, q: Array) -> Array:
    xp, C, y, delta = inputs.xp, inputs.C, inputs.time, inputs.event
    y = xp.broadcast_to(y, (inputs.n, q.shape[1]))
    above = area(C, y, xp.where(delta & (q > y), q, y))
    below = xp.where(y > q, y - q, xp.zeros_like(y))
    weight = inverse_probability_weights(inputs)
    loss = alpha * below + (1 - alpha) * weight * above
    if not inputs.has_never:
        return loss
    # the event never comes, so that min(T, C) = C, which exceeds the quantile by (C - q)_+
    later = inputs.never & xp.isfinite(q)
    start = xp.where(later & (q > y), q, y)
    return loss + alpha * weight * area(C, start, xp.where(later, xp.full_like(y, np.inf), start))
