"""The administrative Brier score."""

from __future__ import annotations

import numpy as np

from censcore._arrays import Array, ArrayLike, to_numpy
from censcore.distributions import Distribution, PointMass
from censcore.exceptions import InvalidInputError, MissingCensoringError
from censcore.outcomes import OutcomeLike
from censcore.scores.inputs.scoring_inputs import evaluation_times, scoring_inputs


def administrative_brier(
    y: OutcomeLike,
    forecast: Distribution,
    censoring: Distribution | None = None,
    times: ArrayLike | None = None,
) -> Array:
    r"""Brier score among those whose follow-up reaches t, for known censoring times, (n, q).

    .. math::
        \frac{n}{\#\{C_i\ge t\}}
        \Bigl[S(t)^2\,\mathbb 1\{y\le t,\delta=1,C\ge t\}+(1-S(t))^2\,\mathbb 1\{y\ge t\}\Bigr]

    An event at exactly t counts in the first term only. Losses are scaled so that their plain mean is the
    average over the subjects with :math:`C_i\ge t`. The numerator is the localized Brier score up to subjects
    with :math:`C=t`; it is proper when C is independent of T given the covariates.

    Parameters
    ----------
    y, forecast : outcome and Distribution
        As for every score.
    censoring : PointMass, optional
        The censoring times, where the outcome has no ``censoring_time``. C must be known for every subject.
    times : array
        Evaluation times.

    Returns
    -------
    array, (n, q)

    See Also
    --------
    censcore.brier_score : Under ``PointMass(c)`` the same score without the scaling.

    References
    ----------
    .. [1] Kvamme, H. and Borgan, O. (2023). The Brier score under administrative censoring: problems and a
       solution. Journal of Machine Learning Research 24, 1-26.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.published import administrative_brier
    >>> y = cs.RightCensored([1.0, 3.0, 2.0], [1, 1, 0], censoring_time=[4.0, 5.0, 2.0])
    >>> administrative_brier(y, cs.Exponential(0.5), times=[2.5]).round(4)
    array([[0.1231],
           [0.7636],
           [0.    ]])
    """
    if times is None:
        raise InvalidInputError("administrative_brier needs times=..., the times at which F is judged.")
    inputs = scoring_inputs(y, forecast, censoring, without_entry="The administrative Brier score")
    if not isinstance(inputs.C, PointMass):
        raise MissingCensoringError(
            "The administrative Brier score needs the censoring time of every subject: give RightCensored a "
            "censoring_time, or pass censoring=PointMass(c)."
        )
    t, _ = evaluation_times(times, inputs)
    t, S = to_numpy(t), to_numpy(inputs.F.sf(t))
    time, event = to_numpy(inputs.y.time)[:, None], to_numpy(inputs.y.event)[:, None]
    reached = np.broadcast_to(to_numpy(inputs.C.location)[:, None] >= t, (inputs.n, t.shape[1]))
    if not reached.any(axis=0).all():
        raise InvalidInputError(
            "No subject is followed up to the last evaluation time; evaluate at earlier times."
        )
    happened = (time <= t) & event & reached
    loss = np.where(happened, S**2, np.where(time >= t, (1 - S) ** 2, 0.0))
    return loss * inputs.n / reached.sum(axis=0)
