"""Continuous ranked probability score."""

from __future__ import annotations

import numpy as np

from censcore._arrays import Array
from censcore._numerics import chunked_rows
from censcore._validation import check_flag
from censcore.distributions import Ensemble
from censcore.exceptions import InvalidInputError
from censcore.scores.decorator import score
from censcore.scores.inputs.scoring_inputs import ScoringInputs, inverse_probability_weights
from censcore.scores.integration.routes import integrated
from censcore.scores.registry import GNEITING


@score(
    title="CRPS",
    formula=r"\int_0^y F(s)^2\,ds+\delta\int_y^\infty\frac{G(s)}{G(y-)}\{1-F(s)\}^2\,ds",
    reference=GNEITING,
    uses_censoring="integrated",
    unit="the unit of time",
    range="0 to the horizon",
    proper="Strictly proper for F where P(C > t) > 0, with a horizon on [0, horizon).",
    pitfalls=(
        "Late times count for less, by the share of subjects still followed. Two studies with "
        "different follow-up have different values for the same forecast.",
        "Leaving out the factor G(s)/G(y-) after an event makes the score improper.",
    ),
)
def crps(inputs: ScoringInputs, *, fair: bool = False) -> Array:
    r"""Continuous ranked probability score of a right-censored event time.

    .. math::
        \int_0^y F(s)^2\,ds+\delta\int_y^\infty\frac{G(s)}{G(y-)}\,(1-F(s))^2\,ds

    with :math:`G(t)=P(C>t)` and :math:`G(t-)=P(C\ge t)`: the CRPS of :math:`\min(T,C)`, averaged over the
    values of C that the observation allows. Without censoring (``PointMass(inf)``) it is the ordinary
    CRPS, under a known c (``PointMass(c)``) the threshold-weighted CRPS below c. If C is independent of T
    given the covariates and its distribution is right, the score is strictly proper where P(C > t) > 0, with
    a horizon on [0, horizon). With G(s)/G(y-) replaced by 1 it would not be proper.

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
    fair : bool
        True scores an :class:`~censcore.Ensemble` as a sample from a distribution, unbiased for the score of
        that distribution: the CRPS of m members is larger by a share of about 1/m. Other forecasts have
        the same score either way.
    horizon : number or (n,) array, optional
        End of follow-up for the score: C becomes min(C, horizon). What happens at the horizon itself does not
        count; of discrete times take the first one after those that count (13 to judge month 12).

    Returns
    -------
    array, (n,)
        One loss per subject, in the unit of time; lower is better.

    Notes
    -----
    A finite sum for step forecasts and ensembles under any censoring distribution, and for piecewise-linear
    forecasts under step censoring distributions; quadrature to 1e-8 relative for the rest.

    Competing risks: ``y.cause(j)`` and ``forecast.cause(j)`` give the score of cause j, which pays
    :math:`\int_y^\infty\frac{G(s)}{G(y-)}F_j(s)^2\,ds` after an event of another cause. It needs a
    horizon, or a censoring distribution that ends follow-up: over all times it is infinite where
    :math:`F_j` stays away from its indicator. Given :class:`CompetingRisks` and a forecast of all causes
    it is the integral of the Brier score of all causes.

    See Also
    --------
    integrated_brier_score : The same number, and the classical one on the ipcw scale.
    energy_score : Its joint version for several event times.
    censcore.published.survival_crps : The improper version without the weight.

    References
    ----------
    .. [1] Matheson, J. E. and Winkler, R. L. (1976). Scoring rules for continuous probability distributions.
       Management Science 22, 1087-1096.
    .. [2] Gneiting, T. and Raftery, A. E. (2007). Strictly proper scoring rules, prediction, and estimation.
       Journal of the American Statistical Association 102, 359-378.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.RightCensored(time=[1.0, 3.0, 2.0], event=[1, 1, 0])
    >>> cs.crps(y, cs.Exponential(0.5), cs.Uniform(0.0, 5.0)).round(4)
    array([0.3358, 0.871 , 0.3362])
    """
    if fair is not False:
        check_flag(fair, "fair")
    loss = integrated(inputs)
    if not (fair and isinstance(inputs.F, Ensemble)):
        return loss
    return loss - chunked_rows(
        lambda rows: _bias_of_members(inputs.take(rows)), inputs.n, 4 * inputs.F.m, like=inputs.y.time
    )


def _bias_of_members(inputs: ScoringInputs) -> Array:
    r"""By how much the CRPS of a sample exceeds that of its distribution, on average, (n,).

    .. math:: \frac{\sum_iw_i^2}{1-\sum_iw_i^2}\int_0^\infty F(s)\{1-F(s)\}\,P(C>s\mid y,\delta)\,ds

    with the weights w of the members, of which 1/m gives the factor 1/(m - 1).
    """
    xp, y = inputs.xp, inputs.time
    t, S = inputs.F.steps()
    concentration = xp.sum(xp.diff(S, axis=1, prepend=xp.ones_like(S[:, :1])) ** 2, axis=1)
    if bool(xp.any(concentration >= 1 - 1e-12)):
        raise InvalidInputError(
            "fair=True needs at least two members of positive weight in every ensemble; got one. Use "
            "fair=False, which scores the ensemble as the distribution that it is."
        )
    later = xp.concat([t[:, 1:], xp.full_like(t[:, :1], np.inf)], axis=1)
    spread = S * (1 - S)
    a, b = (xp.where((spread > 0) & (t < np.inf), edge, xp.zeros_like(t)) for edge in (t, later))
    below = xp.clip(xp.minimum(b, y) - a, min=0.0)
    beyond = inputs.C.marginal(0).integrated_sf_at(xp.maximum(a, y), xp.maximum(b, y))
    area = below + inverse_probability_weights(inputs) * beyond
    return concentration / (1 - concentration) * xp.sum(spread * area, axis=1)
