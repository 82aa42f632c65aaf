r"""Net benefit of acting on a forecast probability, under censoring: decision curves."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from censcore._arrays import as_float, common_rows, to_numpy
from censcore._validation import as_number, check_kind, check_levels, name_subjects
from censcore.distributions import Distribution, TimeAndCause
from censcore.evaluation.case import Case
from censcore.evaluation.case_scores import AtOneTime
from censcore.evaluation.inference import effective_number
from censcore.exceptions import InvalidInputError, InvalidTypeError, PositivityError
from censcore.outcomes import EventOfCause, RightCensored, as_outcome
from censcore.scores.registry import ScoreInfo

__all__ = ["NetBenefit", "event_by", "least_events", "net_benefit"]


def event_by(y: RightCensored, censoring: Distribution, time: float) -> tuple[np.ndarray, np.ndarray]:
    r"""Inverse-probability weights of the event by t and of T > t, (n,) each.

    .. math:: \frac{\delta\,\mathbb 1\{y\le t\}}{G(y-)},\qquad\frac{\mathbb 1\{y>t\}}{G(t)}

    Their means estimate P(T <= t) and P(T > t); a subject censored before t has neither. With competing
    risks T > t is also known of a subject with an event of another cause by t, whose weight is 1/G(y-).
    """
    n, G = len(y), censoring.marginal(0)
    observed, event = to_numpy(y.time), to_numpy(y.event)
    followed = np.broadcast_to(to_numpy(G.sf_left(y.time)), (n,))
    beyond = np.broadcast_to(to_numpy(G.sf(time)), (n,))
    had, survived = event & (observed <= time), observed > time
    weights = [
        np.where(had, 1 / np.where(had, followed, 1.0), 0.0),
        np.where(survived, 1 / np.where(survived, beyond, 1.0), 0.0),
    ]
    if isinstance(y, EventOfCause):
        never = to_numpy(y.never) & (observed <= time)
        weights[1] += np.where(never, 1 / np.where(never, followed, 1.0), 0.0)
    return weights[0], weights[1]


def least_events(case: Case, time: float, weight: np.ndarray, groups: np.ndarray | None) -> float:
    """The smaller of the effective numbers of events by t and of subjects followed beyond t."""
    return min(effective_number(weight * w, groups) for w in event_by(case.y, case.C, time))


def net_benefit(
    y: RightCensored,
    forecast: Distribution | float,
    censoring: Distribution,
    time: float,
    thresholds: np.ndarray,
) -> np.ndarray:
    r"""Net benefit of treating those with :math:`p=F(t)` above a threshold :math:`\theta`, per subject.

    .. math::
        \mathbb 1\{p>\theta\}\Bigl[\frac{\delta\,\mathbb 1\{y\le t\}}{G(y-)}
        -\frac{\theta}{1-\theta}\,\frac{\mathbb 1\{y>t\}}{G(t)}\Bigr]

    Whoever treats above :math:`\theta` values one treated case as much as :math:`(1-\theta)/\theta` treated
    subjects without the event. The mean counts cases treated, less the equivalent of those treated in vain,
    per subject. It is an affine function of the elementary score at :math:`\theta`, so that the true
    probability has the largest expected net benefit at every threshold.

    Parameters
    ----------
    y : RightCensored
        Outcomes of n subjects.
    forecast : Distribution or number
        Of T; 1.0 treats all.
    censoring : Distribution
        Of C, with P(C > t) > 0.
    time : float
        t.
    thresholds : array, (q,)
        :math:`\theta` in (0, 1).

    Returns
    -------
    array, (n, q)
        Larger is better.

    See Also
    --------
    censcore.evaluation.murphy.elementary_score : The same decision as a loss.

    References
    ----------
    .. [1] Vickers, A. J. and Elkin, E. B. (2006). Decision curve analysis: a novel method for evaluating
       prediction models. Medical Decision Making 26, 565-574.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> from censcore.evaluation.net_benefit import net_benefit
    >>> y = cs.RightCensored(time=[1.0, 3.0, 2.5], event=[1, 0, 1])
    >>> F = cs.Exponential([0.9, 0.1, 0.5])
    >>> net_benefit(y, F, cs.PointMass(np.inf), 2.0, np.array([0.25, 0.5])).round(2)
    array([[ 1.  ,  1.  ],
           [ 0.  ,  0.  ],
           [-0.33, -1.  ]])
    """
    y = as_outcome(y, one_cause=True).require_one_time("Net benefit")
    check_kind(censoring, "censoring", Distribution, "the distribution of C")
    time, theta = (
        as_number(time, "time", least=0),
        np.atleast_1d(to_numpy(as_float(thresholds, "thresholds"))),
    )
    check_levels(theta, "thresholds")
    if theta.ndim != 1:
        raise InvalidInputError(f"thresholds must be (q,); got an array of shape {theta.shape}.")
    if isinstance(forecast, Distribution):
        if isinstance(forecast, TimeAndCause) or forecast.k > 1:
            raise InvalidTypeError(
                f"forecast: got {type(forecast).__name__}, expected the distribution of one event time, such "
                "as forecast.marginal(j) or forecast.cause(j)."
            )
        if common_rows(outcome=len(y), forecast=len(forecast), censoring=len(censoring)) != len(y):
            raise InvalidInputError(f"y has one subject; got distributions of {len(forecast)}.")
    else:
        forecast = as_number(forecast, "forecast", least=0, most=1)
    with np.errstate(divide="ignore"):
        had, survived = event_by(y, censoring, time)
    impossible = np.nonzero(np.isinf(had + survived))[0]
    if impossible.size:
        raise PositivityError(
            "The censoring distribution gives no chance to be followed as long as "
            f"{name_subjects(impossible)} were: got P(C > t) = 0 up to the time {time:g}. Choose an earlier "
            "time, or a censoring distribution that reaches it.",
            rows=impossible.tolist(),
        )
    p = forecast if isinstance(forecast, float) else to_numpy(forecast.marginal(0).cdf(time))
    treated = np.broadcast_to(np.asarray(p).reshape(-1, 1), (len(y), 1)) > theta
    return np.where(treated, had[:, None] - theta / (1 - theta) * survived[:, None], 0.0)


INFO = ScoreInfo(
    "net_benefit",
    net_benefit,
    "net benefit",
    formula=r"1\{p>\theta\}\{\delta1\{y\le t\}/G(y-)-\theta/(1-\theta)1\{y>t\}/G(t)\}",
    reference="Vickers, A. J. and Elkin, E. B. (2006). Medical Decision Making 26, 565-574.",
    scale="ipcw",
)


@dataclass(frozen=True, eq=False)
class NetBenefit(AtOneTime):
    """:func:`net_benefit` in a comparison, one column per threshold; ``everyone`` treats all subjects."""

    info: ScoreInfo = field(default=INFO, kw_only=True)
    thresholds: np.ndarray
    everyone: bool = False

    def at(self, case: Case) -> np.ndarray:
        """The thresholds."""
        return self.thresholds

    def losses(self, case: Case) -> np.ndarray:
        """The net benefit per subject and threshold, (n, q)."""
        return net_benefit(case.y, 1.0 if self.everyone else case.F, case.C, self.time, self.thresholds)
