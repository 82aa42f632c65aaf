"""The Survival-CRPS."""

from __future__ import annotations

import numpy as np

from censcore._arrays import Array, ArrayLike
from censcore._validation import check_positive
from censcore.distributions import Distribution, PointMass
from censcore.outcomes import OutcomeLike, RightCensored
from censcore.outcomes.parts import one_each
from censcore.scores import crps
from censcore.scores.inputs.scoring_inputs import scoring_inputs


def survival_crps(
    y: OutcomeLike,
    forecast: Distribution,
    censoring: Distribution | None = None,
    *,
    upper: ArrayLike | None = None,
) -> Array:
    r"""Survival-CRPS, :math:`\int_0^y F^2+\delta\int_y^\infty(1-F)^2`, (n,); **not proper**.

    It is the marginalized CRPS with :math:`G(s)/G(y-)` replaced by 1, so early events weigh too much. Its
    expected value is minimised by :math:`F^*(s)=I(s)/\{I(s)+P(Y>s)\}` with :math:`I(s)=P(Y\le s,\Delta=1)`;
    for T and C both Exp(1) that is :math:`\tanh s` instead of :math:`1-e^{-s}`.

    Parameters
    ----------
    y, forecast : outcome and Distribution
        As for every score.
    censoring : ignored
        The score does not use the censoring distribution; accepted so that all scores are called alike.
    upper : array or number, optional
        A known upper bound U on T turns censored times into intervals: :math:`(1-\delta)\int_U^\infty(1-F)^2`
        is added.

    Returns
    -------
    array, (n,)

    See Also
    --------
    censcore.crps : The proper score.

    References
    ----------
    .. [1] Avati, A., Duan, T., Zhou, S., Jung, K., Shah, N. H. and Ng, A. Y. (2020). Countdown regression:
       sharp and calibrated survival predictions. Proceedings of the 35th Uncertainty in Artificial
       Intelligence Conference, PMLR 115, 145-155.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.published import survival_crps
    >>> y = cs.RightCensored([1.0, 1.0], [1, 0])
    >>> survival_crps(y, cs.Exponential(1.0)).round(4)
    array([0.2358, 0.1681])
    """
    inputs = scoring_inputs(y, forecast, None, needs_censoring=False, without_entry="survival_crps")
    time, event, F = inputs.y.time, inputs.y.event, inputs.F
    xp = inputs.xp
    uncensored = PointMass(xp.asarray([np.inf], dtype=time.dtype))
    as_event = crps(RightCensored(time, xp.ones_like(event)), F, uncensored)
    below = crps(RightCensored(time, xp.zeros_like(event)), F, PointMass(time))
    loss = xp.where(event, as_event, below)
    if upper is None:
        return loss
    U = one_each(upper, time, "upper")
    check_positive(U, "upper", zero=True)
    whole = crps(RightCensored(U, xp.ones_like(event)), F, uncensored)
    beyond = whole - crps(RightCensored(U, xp.zeros_like(event)), F, PointMass(U))
    return loss + xp.where(event, xp.zeros_like(loss), beyond)
