"""Integrated Brier score."""

from __future__ import annotations

from censcore._arrays import Array
from censcore._validation import check_flag
from censcore.exceptions import InvalidInputError
from censcore.scores.decorator import score
from censcore.scores.inputs.scoring_inputs import ScoringInputs, check_scale
from censcore.scores.integration.routes import end_of, integrated
from censcore.scores.registry import GRAF


@score(
    "integrated_brier_score:ipcw",
    title="integrated Brier score, ipcw",
    formula=r"\frac1h\int_0^h\frac{1\{y>t\}}{G(t)}F(t)^2+\frac{\delta\,1\{y\le t\}}{G(y-)}\{1-F(t)\}^2\,dt",
    reference=GRAF,
    scale="ipcw",
    uses_censoring="integrated",
    options=(("scale", "ipcw"), ("normalize", True)),
    unit="none (a squared probability, averaged over [0, h])",
    range="0 to the largest weight, 1/G(h-)",
    proper="Strictly proper for F on [0, h), if P(C >= h) > 0 for every subject.",
    pitfalls=(
        "It has no value without its horizon h. Numbers with different horizons cannot be compared.",
        "Sums over a grid of times are another number than the integral, and depend on the grid.",
    ),
)
def integrated_brier_score(
    inputs: ScoringInputs, *, scale: str = "localized", normalize: bool = False
) -> Array:
    r"""Brier score integrated over all times, exactly: no grid of times is involved.

    On the localized scale it is the CRPS (:func:`crps`). On the classical scale,

    .. math::
        \int_0^{y\wedge h}\frac{F(s)^2}{G(s)}\,ds+\delta\,\frac{1}{G(y-)}\int_y^h(1-F(s))^2\,ds,

    with :math:`G(t)=P(C>t)`, :math:`G(t-)=P(C\ge t)` and the second term only for :math:`y\le h`: the
    mean estimates the integrated Brier score of uncensored data on [0, h]. Both are proper on [0, h), if C
    is independent of T given the covariates and its distribution is right. Late times weigh more on the
    classical scale, and are noisier.

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
    scale : {"localized", "ipcw"}
        ``"ipcw"`` integrates the inverse-probability-of-censoring-weighted Brier score. It needs P(C >= h)
        > 0 for every subject, or without a horizon P(C > t) > 0 at every t. Beyond the support of C events
        would pay :math:`(1-F)^2` and nobody :math:`F^2`, so that a forecast of early events would beat the
        truth; the :class:`~censcore.exceptions.PositivityError` names the largest horizon that works.
    normalize : bool
        Divide by the horizon, which makes it a mean over [0, h].
    horizon : number or (n,) array, optional
        h, the end of the integral; without it the integral has no end.

    Returns
    -------
    array, (n,)
        One loss per subject; lower is better.

    Notes
    -----
    Competing risks: ``y.cause(j)`` and ``forecast.cause(j)`` give the score of cause j,
    :class:`CompetingRisks` and a forecast of all causes the integral of the Brier score of all causes.
    Pass a horizon.

    See Also
    --------
    crps : The localized scale.
    brier_score : The score at single times.

    References
    ----------
    .. [1] Graf, E., Schmoor, C., Sauerbrei, W. and Schumacher, M. (1999). Assessment and comparison of
       prognostic classification schemes for survival data. Statistics in Medicine 18, 2529-2545.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.RightCensored(time=[1.0, 3.0, 2.0], event=[1, 1, 0])
    >>> F, C = cs.Exponential(0.5), cs.Uniform(0.0, 5.0)
    >>> cs.integrated_brier_score(y, F, C).round(4)
    array([0.3358, 0.871 , 0.3362])
    >>> cs.integrated_brier_score(y, F, C, scale="ipcw", horizon=4.0, normalize=True).round(4)
    array([0.1263, 0.399 , 0.1192])
    """
    check_scale(scale)
    check_flag(normalize, "normalize")
    if normalize and inputs.horizon is None:
        raise InvalidInputError(
            "normalize=True divides by the horizon: pass horizon=..., the end of the integral."
        )
    end = end_of(inputs)
    loss = integrated(inputs, end if scale == "ipcw" else None)
    if scale == "ipcw" and (followed := inputs.followed_to_entry) is not None:
        loss = loss * followed
    return loss / end.location if normalize else loss
