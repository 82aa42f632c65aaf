"""Time-dependent AUC: the chance that a case has a higher risk than a control."""

from __future__ import annotations

from typing import Any

import numpy as np

from censcore._arrays import Array
from censcore._validation import as_numbers, check_option, check_same_order
from censcore.distributions import Distribution
from censcore.evaluation.inference.estimates import Estimate, beside, group_codes, shares
from censcore.evaluation.measures.pair_statistics import (
    Followed,
    ProductPairs,
    check_horizon,
    check_risk,
    checked_share,
    estimate_of_pairs,
    share_of_pairs,
)
from censcore.evaluation.measures.ranked_sums import AllSums
from censcore.exceptions import InvalidInputError
from censcore.outcomes import OutcomeLike, as_outcome
from censcore.plain_text import some_values


def dynamic_auc(
    y: OutcomeLike,
    risk: Array,
    censoring: Distribution,
    times: Array,
    *,
    horizon: float | None = None,
    sample_weight: Array | None = None,
    controls: str = "cause-free",
) -> np.ndarray:
    r"""Cumulative/dynamic AUC: P(risk of a case > risk of a control) at each time t, ties counting one half.

    A case has its event by t and weighs :math:`1/G(y_i-\mid x_i)`; a control is followed beyond t and
    weighs :math:`1/G(t\mid x_j)`, with :math:`G(t\mid x)=P(C>t\mid x)`. If C is the same for all subjects,
    the weights of the controls cancel. The AUC is descriptive and not proper: it ignores calibration.

    With delayed entry, a, cases and controls are the subjects that enter before t, and all weights are
    multiplied by :math:`G(a\mid x)`: the AUC is that of subjects as they are seen, each from its entry on.
    The risk is then that given survival to the entry, such as F(t) of ``forecast.given_survival(y.entry)``.

    For one of several causes, ``y.cause(k)`` of :class:`~censcore.CompetingRisks`, a case has the event of
    this cause by t. Controls are all others: those followed beyond t, and those with another event by t, who
    weigh :math:`1/G(y_j-\mid x_j)`. With ``controls="event-free"`` they are the former only. These are the
    two definitions of Blanche and others.

    Parameters
    ----------
    y : outcome
        n subjects, also with delayed entry; of competing risks, that of one cause.
    risk : array, (n,) or (n, q)
        Higher means an earlier event; one column per time, for instance F(t), or one for all.
    censoring : Distribution
        Censoring distribution.
    times : array, (q,)
        Times, at which every subject must have a chance to be still followed.
    horizon : float, optional
        The times must lie below it.
    sample_weight : array, (n,), optional
        Weights of the subjects; counts give the AUC of the replicated data.
    controls : {"cause-free", "event-free"}
        For one of several causes: who has had no event of this cause by t, or no event of any.

    Returns
    -------
    array, (q,)
        An error where there are no cases or no controls.

    Raises
    ------
    PositivityError
        If some subject has no chance to be followed beyond a time.

    References
    ----------
    Uno, Cai, Tian & Wei (2007). Evaluating prediction rules for t-year survivors with censored regression
    models. Journal of the American Statistical Association 102, 527-537.

    Blanche, Dartigues & Jacqmin-Gadda (2013). Estimating and comparing time-dependent areas under receiver
    operating characteristic curves for censored event times with competing risks. Statistics in Medicine 32,
    5381-5397.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.evaluation import dynamic_auc
    >>> y = cs.RightCensored(time=[1.0, 2.0, 3.0, 4.0], event=[1, 1, 0, 1])
    >>> dynamic_auc(y, [0.9, 0.3, 0.5, 0.1], cs.Uniform(0.0, 8.0), times=[1.5, 2.5]).round(3)
    array([1.   , 0.731])

    Of the first cause, where subject 0 has had an event of the second:

    >>> risks = cs.CompetingRisks(time=[1.0, 2.0, 3.0, 4.0], cause=[2, 1, 0, 1])
    >>> dynamic_auc(risks.cause(1), [0.2, 0.3, 0.5, 0.1], cs.Uniform(0.0, 8.0), times=[2.5]).round(3)
    array([0.641])
    """
    pairs, used, weight = _pairs_at(y, risk, censoring, times, horizon, sample_weight, controls)
    return np.array([checked_share(share_of_pairs(of, weight[used]), f"t = {t:g}") for t, of in pairs])


def dynamic_auc_estimate(
    y: OutcomeLike,
    risk: Array,
    censoring: Distribution,
    times: Array,
    *,
    horizon: float | None = None,
    sample_weight: Array | None = None,
    groups: Array | None = None,
    controls: str = "cause-free",
) -> Estimate:
    """:func:`dynamic_auc` with its standard error, for any risk score.

    The censoring distribution is taken as known; :func:`compare` adds the error of estimating it. The
    difference of two estimates on the same subjects is that of a paired comparison.

    Parameters
    ----------
    y, risk, censoring, times, horizon, sample_weight
        As in :func:`dynamic_auc`.
    groups : array, (n,), optional
        Labels of subjects that depend on each other, such as visits of one patient.
    controls : {"cause-free", "event-free"}
        As in :func:`dynamic_auc`.

    Returns
    -------
    Estimate
        ``value`` and ``standard_error``, both (q,), and ``interval(confidence)``; the error is NaN where all
        pairs are won or lost, or have one subject in common.

    Examples
    --------
    >>> import censcore as cs
    >>> from censcore.evaluation import dynamic_auc_estimate
    >>> y = cs.RightCensored([1.0, 2.0, 3.0, 4.0], [1, 1, 0, 1])
    >>> dynamic_auc_estimate(y, [0.8, 0.4, 0.6, 0.1], cs.Uniform(0.0, 8.0), [2.5]).value.shape
    (1,)
    """
    check_same_order(y=y, groups=groups)
    pairs, used, weight = _pairs_at(y, risk, censoring, times, horizon, sample_weight, controls)
    code = group_codes(groups, len(weight))
    return beside([estimate_of_pairs(of, used, weight, code) for _, of in pairs])


def _pairs_at(
    y: Any, risk: Any, censoring: Any, times: Any, horizon: Any, sample_weight: Any, controls: str
) -> tuple[list[tuple[float, ProductPairs]], np.ndarray, np.ndarray]:
    """The pairs at every time, the subjects that have a weight, and the weights of all."""
    check_same_order(y=y, risk=risk, censoring=censoring, sample_weight=sample_weight)
    y = as_outcome(y, one_cause=True).require_one_time("The AUC")
    times = _check_times(times, horizon)
    r, weight = check_risk(risk, len(y), columns=len(times)), shares(sample_weight, len(y))
    used = np.nonzero(weight > 0)[0]
    followed = Followed(y, censoring, used)
    pairs = [(t, cases_and_controls(followed, r[used, k], t, controls=controls)) for k, t in enumerate(times)]
    return pairs, used, weight


def _check_times(times: Array, horizon: float | None) -> list[float]:
    values = as_numbers(times, "times")
    if not (np.isfinite(values) & (values >= 0)).all():
        raise InvalidInputError(
            f"times: got {some_values(values)}, expected finite, non-negative times, (q,)."
        )
    end = check_horizon(horizon)
    if (values >= end).any():
        raise InvalidInputError(
            f"times must lie below the horizon: got {values.max():g}, expected < {end:g}."
        )
    return values.tolist()


def cases_and_controls(
    followed: Followed, risk: np.ndarray, t: float, *, controls: str = "cause-free"
) -> ProductPairs:
    """The pairs of a case and a control at t, of subjects with risks (n,)."""
    check_option(controls, "controls", ("cause-free", "event-free"))
    event, free, ends = followed.status_at(t)
    if controls == "event-free":
        free = np.where(followed.time > t, free, 0.0)
    return ProductPairs(followed.time, event, free[:, None], AllSums(risk, event > 0), ends, followed.entry)
