"""Binomial log score at given times."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from censcore._arrays import Array, is_torch
from censcore._kernels import on_cpu
from censcore._numerics import chunked_rows, fill_rows, safe_log, xlogy
from censcore.distributions import ProportionalHazards, Step, Univariate
from censcore.scores.decorator import score
from censcore.scores.inputs.known_at import KnownAt
from censcore.scores.inputs.scoring_inputs import ScoringInputs
from censcore.scores.registry import GRAF
from censcore.scores.rules.brier import CACHED_NUMBERS, columns_of
from censcore.scores.rules.over_causes import InputsOfCauses


def _multinomial(inputs: InputsOfCauses, times: Array) -> Array:
    r""":math:`-1\{y>t\}\log\{1-\sum_jF_j(t)\}-1\{y\le t\}\,\frac{\delta\,G(t)}{G(y-)}\log F_D(t)`, (n, q)."""
    xp = inputs.xp
    event, free = inputs.known_at(times).weights()
    zero = xp.zeros_like(event)
    t = times + zero
    log_survival = inputs.F.logsf(xp.where(free > 0, t, zero))
    cif = inputs.of_its_cause(lambda F_j, rows: F_j.cdf(t[rows]), q=t.shape[1])
    return -xp.where(free > 0, free * log_survival, zero) - xlogy(event, cif)


@score(
    title="binomial log score",
    formula=r"-1\{y>t\}\log\{1-F(t)\}-\delta\,1\{y\le t\}\frac{G(t)}{G(y-)}\log F(t)",
    reference=GRAF,
    axis="time",
    causes=_multinomial,
    uses_censoring="at times",
    unit="nats",
    range="0 to infinity",
    proper="Strictly proper for the probability F(t), if P(C > t) > 0.",
    pitfalls=(
        "A forecast of exactly 0 or 1 that is wrong costs infinity. Step curves and small ensembles "
        "often have such forecasts.",
        "It is localized: as for the Brier score, its height falls as follow-up ends.",
    ),
)
def binomial_log_score(inputs: ScoringInputs, times: Array) -> Array:
    r"""Logarithmic score of "the event happens by :math:`\tau`", at given times.

    .. math::
        -\mathbb 1\{y>\tau\}\log P(T>\tau)-\delta\,\mathbb 1\{y\le\tau\}\,\frac{G(\tau)}{G(y-)}\,\log F(\tau)

    with :math:`G(t)=P(C>t)` and :math:`G(t-)=P(C\ge t)`: the Brier score with logarithms in place of
    squares, under the same weights and the same assumption, C independent of T given the covariates and
    its distribution right.

    Parameters
    ----------
    y : RightCensored, CompetingRisks, IntervalCensored, structured array or frame
        The outcome of n subjects. For interval-censored data the detection time is scored, the first visit at
        or after T, with the forecast sent through the same visits.
    forecast : Distribution
        Distribution of T given the covariates, one per subject or one for all.
    censoring : Distribution, optional
        Distribution of C given the covariates. It may be left out only where it is known: nothing is
        censored, or ``y.censoring_time`` is given.
    times : array or number
        Evaluation times, (q,) or (n, q), in any order, below the horizon.
    horizon : number or (n,) array, optional
        End of follow-up for the score: C becomes min(C, horizon). What happens at the horizon itself does not
        count; of discrete times take the first one after those that count (13 to judge month 12).

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
    whole = is_torch(inputs.y.time) or inputs.has_never
    return _binomial_log(inputs, times) if whole else _in_parts(inputs, times)


def _binomial_log(inputs: ScoringInputs, t: Array) -> Array:
    xp, F = inputs.xp, inputs.F
    event, free = inputs.known_at(t).weights()
    zero = xp.zeros_like(event)
    # each logarithm sees only the subjects it is for: no gradient meets the infinity of the other
    log_survival = F.logsf(xp.where(free > 0, t + zero, zero))
    return -xp.where(free > 0, free * log_survival, zero) - xlogy(event, F.cdf(t) + zero)


def _in_parts(inputs: ScoringInputs, t: np.ndarray) -> np.ndarray:
    """The same for NumPy: curves are read at common times, a few subjects at a time and in place."""
    known, F, n, q = inputs.known_at(t), inputs.F, inputs.n, t.shape[1]
    if isinstance(F, Step):
        kernel = on_cpu("censcore.scores.kernels.brier_numba", "chances", inputs.y.time, n * q)
        if kernel is not None:
            return _of_curves(inputs, known, kernel)

    def part(rows: slice) -> np.ndarray:
        alive, weight = known.status(rows)
        chance = _chance(F.take(rows), t if t.shape[0] == 1 else t[rows], alive)
        np.copyto(chance, 0.0, where=weight == 0)
        chance *= weight
        return np.subtract(0.0, chance, out=chance)  # no negative zeros

    return chunked_rows(part, n, 2 * q, like=inputs.y.time, budget=CACHED_NUMBERS)


def _of_curves(inputs: ScoringInputs, known: KnownAt, kernel: Callable[..., None]) -> np.ndarray:
    """The same of step curves, in the place of the result."""
    loss: np.ndarray = np.empty((inputs.n, known.t.shape[1]), dtype=inputs.y.time.dtype)

    def fill(rows: slice) -> None:
        chance, weight, factors = loss[rows], np.empty_like(loss[rows]), known.factors(rows)
        columns = columns_of(inputs.F.take(rows), factors[0])
        kernel(*columns, inputs.y.time[rows], *factors, known.seen[rows], chance, weight)
        with np.errstate(divide="ignore"):
            np.log(chance, out=chance)
        chance *= weight
        np.subtract(0.0, chance, out=chance)  # no negative zeros

    fill_rows(fill, inputs.n, 2 * known.t.shape[1], CACHED_NUMBERS)
    return loss


def _chance(F: Univariate, t: np.ndarray, alive: np.ndarray) -> np.ndarray:
    """Log P(T > t) of the living, log F(t) of the others."""
    if F.form == "steps" and not isinstance(F, ProportionalHazards):  # its levels are all there is to know
        S = F.sf_at(t)
        chance = np.where(alive, S, 1 - S)
        with np.errstate(divide="ignore"):
            return np.log(chance, out=chance)
    log_survival: np.ndarray = F.logsf_at(t)
    log_cdf: np.ndarray = safe_log(F.cdf_at(t))
    return np.where(alive, log_survival, log_cdf)
