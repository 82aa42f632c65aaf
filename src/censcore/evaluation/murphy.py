r"""Elementary scores under censoring, of which every proper score of :math:`F(\tau)` is an integral."""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from censcore._arrays import to_numpy
from censcore.distributions import Distribution
from censcore.evaluation.case import Case
from censcore.evaluation.case_scores import AtOneTime
from censcore.outcomes import EventOfCause, RightCensored
from censcore.scores.inputs import known_to_exceed
from censcore.scores.registry import ScoreInfo

__all__ = ["Elementary", "elementary_score"]


def elementary_score(
    y: RightCensored, forecast: Distribution, censoring: Distribution, time: float, thresholds: np.ndarray
) -> np.ndarray:
    r"""The elementary score of :math:`p=F(\tau)` at thresholds :math:`\theta` in (0, 1).

    .. math::
        2\theta\,\mathbb 1\{p>\theta\}\,\mathbb 1\{y>\tau\}
        +2(1-\theta)\,\mathbb 1\{p\le\theta\}\,\delta\,\mathbb 1\{y\le\tau\}\frac{G(\tau)}{G(y-)}

    Its integral over :math:`\theta` is the Brier score at :math:`\tau`, and every proper score of p is such
    an integral with weights: a forecast that is better at every threshold is better by all of them.

    Parameters
    ----------
    y : RightCensored
        Outcomes of n subjects.
    forecast, censoring : Distribution
        Of T and of C.
    time : float
        :math:`\tau`.
    thresholds : array, (q,)
        :math:`\theta`.

    Returns
    -------
    array, (n, q)

    See Also
    --------
    censcore.brier_score : The integral over all thresholds.

    References
    ----------
    .. [1] Ehm, W., Gneiting, T., Jordan, A. and Krüger, F. (2016). Of quantiles and expectiles: consistent
       scoring functions, Choquet representations and forecast rankings. Journal of the Royal Statistical
       Society B 78, 505-562.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> from censcore.evaluation.murphy import elementary_score
    >>> y = cs.RightCensored(time=[1.0, 3.0], event=[1, 0])
    >>> theta = np.linspace(0, 1, 1001)[1:-1]
    >>> F, C = cs.Exponential(0.5), cs.Uniform(0.0, 5.0)
    >>> elementary_score(y, F, C, 2.0, theta).mean(axis=1).round(2), cs.brier_score(y, F, C, 2.0).round(2)
    (array([0.1, 0.4]), array([0.1, 0.4]))
    """
    n, tau, theta = len(y), time, thresholds
    if y.has_delayed_entry:
        forecast = forecast.given_survival(known_to_exceed(y.entry))
    p = np.broadcast_to(to_numpy(forecast.marginal(0).cdf(tau)).reshape(-1, 1), (n, 1))
    event, t = to_numpy(y.event)[:, None], to_numpy(y.time)[:, None]
    G = censoring.marginal(0)
    G_left = np.broadcast_to(to_numpy(G.sf_left(y.time)).reshape(-1, 1), (n, 1))
    dead = event & (t <= tau)
    weight = np.where(dead, to_numpy(G.sf(tau)).reshape(-1, 1) / np.where(dead, G_left, 1.0), 0.0)
    loss = 2 * np.where(t > tau, theta * (p > theta), weight * (1 - theta) * (p <= theta))
    if isinstance(y, EventOfCause):  # an event of another cause by tau says that this one never comes
        never = to_numpy(y.never)[:, None] & (t <= tau)
        share = np.where(never, to_numpy(G.sf(tau)).reshape(-1, 1) / np.where(never, G_left, 1.0), 0.0)
        loss = loss + 2 * share * theta * (p > theta)
    return loss


ELEMENTARY = ScoreInfo(
    "elementary_score",
    elementary_score,
    "elementary score",
    formula=r"2\theta\,1\{p>\theta\}1\{y>\tau\}+2(1-\theta)1\{p\le\theta\}\delta1\{y\le\tau\}G(\tau)/G(y-)",
    reference="Ehm, W., Gneiting, T., Jordan, A. and Krüger, F. (2016). JRSS B 78, 505-562.",
)


@dataclass(frozen=True, eq=False)
class Elementary(AtOneTime):
    """:func:`elementary_score` of F(time) in a comparison, one column per threshold."""

    info: ScoreInfo = field(default=ELEMENTARY, kw_only=True)
    thresholds: np.ndarray

    def at(self, case: Case) -> np.ndarray:
        """The thresholds."""
        return self.thresholds

    def losses(self, case: Case) -> np.ndarray:
        """One loss per subject and threshold, (n, q)."""
        return elementary_score(case.y, case.F, case.C, self.time, self.thresholds)
