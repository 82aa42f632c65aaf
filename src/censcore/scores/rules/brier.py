"""Brier score at given times."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from censcore._arrays import Array, searchsorted
from censcore._kernels import on_cpu
from censcore._numerics import chunked_rows, fill_rows
from censcore.distributions import Step, Univariate
from censcore.scores.decorator import score
from censcore.scores.inputs.scoring_inputs import ScoringInputs, check_scale
from censcore.scores.registry import GRAF, SCORES, register

# A slice of subjects this small stays in the cache through all steps of the formula.
CACHED_NUMBERS = 131_072


@score(
    title="Brier score",
    formula=r"1\{y>t\}F(t)^2+\delta\,1\{y\le t\}\frac{G(t)}{G(y-)}\{1-F(t)\}^2",
    reference=(
        "Brier, G. W. (1950). Verification of forecasts expressed in terms of probability. Monthly "
        "Weather Review 78, 1-3."
    ),
    axis="time",
    uses_censoring="at times",
    unit="none (a squared probability)",
    range="0 to 1",
    proper="Strictly proper for the probability F(t), if P(C > t) > 0.",
    pitfalls=(
        "It falls to zero at the end of follow-up, where almost nobody is left. Compare forecasts "
        "by it, and do not read its height as accuracy.",
        "Its size depends on how common the event is. Report it beside that of a Kaplan-Meier curve.",
    ),
)
def brier_score(inputs: ScoringInputs, times: Array, *, scale: str = "localized") -> Array:
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
        The outcome of n subjects. For interval-censored data the detection time is scored, the first visit at
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
        End of follow-up for the score: C becomes min(C, horizon). What happens at the horizon itself does not
        count; of discrete times take the first one after those that count (13 to judge month 12).

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
    t, n, q, known = times, inputs.n, times.shape[1], inputs.known_at(times, scale)
    xp, F, y, some_never = inputs.xp, inputs.F, inputs.y.time, inputs.has_never
    kernel = on_cpu("censcore.scores.kernels.brier_numba", "weighted_squares", y, n * q)

    def formula(rows: slice) -> Array:
        alive, weight = known.status(rows)
        S = _survival_at(inputs.take(rows).F, t if t.shape[0] == 1 else t[rows])
        free = alive | inputs.never[rows] if some_never else alive
        return weight * (xp.astype(free, S.dtype) - S) ** 2

    if kernel is None:
        return chunked_rows(formula, n, q, like=y, budget=CACHED_NUMBERS)
    loss, never = np.empty((n, q), dtype=y.dtype), inputs.y.never

    def fill(rows: slice) -> None:
        factors = known.factors(rows)
        columns = columns_of(F.take(rows), factors[0])
        kernel(*columns, y[rows], never[rows], *factors, known.seen[rows], loss[rows])

    fill_rows(fill, n, q, CACHED_NUMBERS)
    return loss


def columns_of(F: Univariate, t: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """P(T > t) as columns of a matrix (1 or n, J), and which of them each time takes; -1 is a column of ones.

    Curves at common times are such a matrix already.
    """
    if isinstance(F, Step) and F.breaks().shape[0] == t.shape[0] == 1:
        times, S = F.steps()
        return S, searchsorted(times, t, "right")[0] - 1
    return F.sf_at(t), np.arange(t.shape[1])


def _survival_at(F: Univariate, t: Array) -> Array:
    """P(T > t), (1 or n, q), to be read only: curves at common times, in a row, have it without a copy."""
    if not isinstance(F, Step) or (times := F.breaks()).shape[0] > 1 or t.shape[0] > 1:
        return F.sf_at(t)
    first = int(searchsorted(times, t[:, :1], "left")[0, 0])
    here = slice(first, first + t.shape[1])
    in_a_row = here.stop <= times.shape[1] and bool((times[:, here] == t).all())
    return F.steps()[1][:, here] if in_a_row else F.sf_at(t)


register(
    replace(
        SCORES["brier_score"],
        name="brier_score:ipcw",
        title="Brier score, ipcw",
        formula=r"\frac{1\{y>t\}}{G(t)}F(t)^2+\frac{\delta\,1\{y\le t\}}{G(y-)}\{1-F(t)\}^2",
        reference=GRAF,
        scale="ipcw",
        options=(("scale", "ipcw"),),
        range="0 to 1/G(t)",
        proper="Strictly proper for the probability F(t), if P(C > t) > 0 for every subject.",
        pitfalls=(
            "Weights grow as G(t) falls, and a handful of subjects decide the score. Check the largest "
            "weight, and choose a horizon.",
            "At tied times an event must be divided by G(y-) = P(C >= y). Libraries that divide by G(y) "
            "give another number.",
            "Its size depends on how common the event is. Report it beside that of a Kaplan-Meier curve.",
        ),
    )
)
