"""Brier score at given times."""

from __future__ import annotations

from censcore._arrays import Array, namespace
from censcore._kernels import on_cpu
from censcore._numerics import chunked_rows
from censcore.distributions import Distribution
from censcore.outcomes import OutcomeLike
from censcore.scores.inputs import (
    ScoringInputs,
    check_scale,
    check_unreached,
    evaluation_times,
    inverse_probability_weights,
    scoring_inputs,
)

__all__ = ["brier_score", "censoring_weights"]

# A slice of rows this small stays in the cache through all steps of the formula.
CACHED_NUMBERS = 131_072


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
    :math:`G(\tau)>0`, if C is independent of T given the covariates and its distribution is right; the distribution must
    not be fitted to the forecast.

    Parameters
    ----------
    y : RightCensored, structured array or frame
        The outcome, n rows.
    forecast : Distribution
        Distribution of T, one per row.
    censoring : Distribution, optional
        Censoring distribution. It may be left out only where it is known: nothing is censored, or ``y.censoring_time``
        is given.
    times : array or number
        Evaluation times, (q,) or (n, q), in any order, below the horizon.
    scale : {"localized", "ipcw"}
        ``"ipcw"`` divides by :math:`G(\tau)`, the classical inverse-probability-of-censoring-weighted
        score, whose mean estimates the uncensored Brier score; it refuses times where any row has
        :math:`G(\tau)=0`.
    horizon : number or (n,) array, optional
        End of follow-up for the score: C becomes min(C, horizon).

    Returns
    -------
    array, (n, q), or (n,) for a single number
        One loss per row and time; lower is better.

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
    inputs = scoring_inputs(y, forecast, censoring, horizon)
    t, single = evaluation_times(times, inputs.y, horizon)
    if scale == "ipcw":
        check_unreached(inputs, t)
    reach = inverse_probability_weights(inputs)
    shared = inputs.C._sf(t) if len(inputs.C) == 1 and t.shape[0] == 1 else None
    numbers = inputs.n * t.shape[1]
    squares = on_cpu("censcore.scores._brier_numba", "weighted_squares", inputs.y.time, numbers)

    def part(rows: slice) -> Array:
        some, t_part = inputs.take(rows), t if t.shape[0] == 1 else t[rows]
        G = some.C._sf(t_part) if shared is None else shared
        weights = (1 / G, inputs.xp.ones_like(G)) if scale == "ipcw" else (inputs.xp.ones_like(G), G)
        S = some.F._sf(t_part)
        return (squares or _weighted_squares)(S, some.y.time, t_part, *weights, reach[rows, 0])

    loss = chunked_rows(part, inputs.n, t.shape[1], like=inputs.y.time, budget=CACHED_NUMBERS)
    return loss[:, 0] if single else loss


def _weighted_squares(
    S: Array, y: Array, t: Array, among_living: Array, among_dead: Array, reach: Array
) -> Array:
    r""":math:`(S(t)-1\{y>t\})^2` times ``among_living``, or ``among_dead`` :math:`\delta/G(y-)`: (n, q)."""
    xp = namespace(S)
    alive = y[:, None] > t
    error = S - xp.astype(alive, S.dtype)
    return error**2 * xp.where(alive, among_living, reach[:, None] * among_dead)


def censoring_weights(inputs: ScoringInputs, t: Array) -> tuple[Array, Array]:
    r"""Who is alive at t, (n, q), and :math:`\delta\,G(t)/G(y-)`, the weight of those who are not."""
    return inputs.time > t, inverse_probability_weights(inputs) * inputs.C.sf(t)
