"""Logarithmic score."""

from __future__ import annotations

from censcore._arrays import Array
from censcore.exceptions import NoDensityError
from censcore.scores.decorator import score
from censcore.scores.inputs.scoring_inputs import ScoringInputs
from censcore.scores.rules.interval import interval_log_score
from censcore.scores.rules.over_causes import InputsOfCauses, log_survival_beyond


def _of_causes(inputs: InputsOfCauses) -> Array:
    r""":math:`-\log f_D(y)` after an event of cause D, :math:`-\log\{1-\sum_jF_j(y)\}` if censored."""
    xp, time, event, F = inputs.xp, inputs.y.time, inputs.y.event, inputs.by_cause
    if not F.has_density:
        raise NoDensityError(
            f"{type(F).__name__} has no density, so it has no log score. Score it by crps or brier_score, or "
            "give it a density: CumulativeIncidence(..., interpolation='linear') or "
            "CauseSpecificHazards([...])."
        )
    log_density = inputs.of_its_cause(lambda F_j, rows: F_j.logpdf(time[rows])[:, None])[:, 0]
    return -xp.where(event, log_density, inputs.F.logsf(xp.where(event, 0.0, time)))


@score(
    title="log score",
    formula=r"-\delta\log f(y)-(1-\delta)\log\{1-F(y)\}",
    reference=(
        "Good, I. J. (1952). Rational decisions. Journal of the Royal Statistical Society B 14, 107-114."
    ),
    joint=True,
    needs_censoring=False,
    causes=_of_causes,
    intervals=interval_log_score,
    uses_censoring="none",
    needs_density=True,
    has_skill=False,
    unit="nats; another unit of time adds a constant for each event",
    range="any number; infinite if the forecast rules out what was seen",
    proper="Strictly proper for F where P(C >= t) > 0. It needs no censoring distribution.",
    pitfalls=(
        "A forecast without a density (a step curve, an ensemble) has no log score.",
        "One confident error dominates the mean: an impossible event costs infinity.",
        "The value depends on the unit of time, so only differences have a meaning.",
    ),
)
def log_score(inputs: ScoringInputs) -> Array:
    r"""Logarithmic score of right-censored event times: the censored negative log-likelihood.

    .. math:: -\delta\log f(y)-(1-\delta)\log P(T>y)

    For several event times the density is taken in the coordinates with an event and the survival
    function in the censored ones. Strictly proper where P(C >= t) > 0, if C is independent of T given
    the covariates; the censoring distribution drops out, since it adds the same amount to every forecast.

    Parameters
    ----------
    y : RightCensored, CompetingRisks, SemiCompetingRisks, IntervalCensored, structured array or frame
        The outcome of n subjects, with one or several event times. For an interval (l, u] the score is
        -log{F(u) - F(l)}.
    forecast : Distribution
        Distribution of T given the covariates, with a density. A distribution without one raises
        :class:`~censcore.exceptions.NoDensityError`.
    censoring : Distribution, optional
        Distribution of C given the covariates. It does not change the score. It is accepted so that all
        scores are called alike, and is an error where it contradicts the data.
    horizon : number or (n,) array, optional
        End of follow-up for the score: later times count as censored there. Events at the horizon itself
        count, unlike in the other scores.

    Returns
    -------
    array, (n,)
        One loss per subject; lower is better. Infinite where the forecast excluded what happened.

    Notes
    -----
    Competing risks: given :class:`CompetingRisks` and a forecast of all causes the score is :math:`-\log
    f_j(y)` after an event of cause j and :math:`-\log\{1-\sum_jF_j(y)\}` for a censored time. The score
    of one cause, ``y.cause(j)`` and ``forecast.cause(j)``, does need the censoring distribution: after an
    event of another cause it is the mean of :math:`-\log P(T_j>C)` given :math:`C\ge y`.

    Semi-competing risks: an event that the terminal one at y prevented is observed as :math:`T_j>y`.

    See Also
    --------
    crps : For forecasts without a density.
    binomial_log_score : At given times.

    References
    ----------
    .. [1] Good, I. J. (1952). Rational decisions. Journal of the Royal Statistical Society B 14, 107-114.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.RightCensored(time=[1.0, 3.0, 2.0], event=[1, 1, 0])
    >>> cs.log_score(y, cs.Exponential(0.5)).round(4)
    array([1.1931, 2.1931, 1.    ])
    """
    F = inputs.F
    if not F.has_density:
        raise NoDensityError(
            f"{type(F).__name__} has no density, so it has no log score. Score it by crps, brier_score, "
            "pinball_score or energy_score, or give the forecast a density (PiecewiseLinear, "
            "PiecewiseExponential, ...)."
        )
    loss = -F.log_likelihood(inputs.y.time, inputs.y.event)
    return loss + log_survival_beyond(inputs) if inputs.has_never else loss
