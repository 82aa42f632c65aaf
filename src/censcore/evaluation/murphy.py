r"""Elementary scores under censoring: the parts that every proper score of :math:`F(\tau)` is made of."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from censcore._arrays import to_numpy
from censcore.evaluation.catalogue import Case, Score, of_single_times

__all__ = ["Elementary"]


@dataclass(frozen=True)
class Elementary(Score):
    r"""The elementary score of :math:`p=F(\tau)` at thresholds :math:`\theta` in (0, 1).

    .. math::
        2\theta\,\mathbb 1\{p>\theta\}\,\mathbb 1\{y>\tau\}
        +2(1-\theta)\,\mathbb 1\{p\le\theta\}\,\delta\,\mathbb 1\{y\le\tau\}\frac{G(\tau)}{G(y-)}

    Its integral over :math:`\theta` is the Brier score at :math:`\tau`, and every proper score of p is such
    an integral with weights: a forecast that is better at every threshold is better by all of them.
    """

    time: float
    thresholds: np.ndarray
    name: str = "elementary_score"
    title: str = "elementary score"
    axis: str = "threshold"

    def at(self, case: Case) -> np.ndarray:
        """The thresholds."""
        return self.thresholds

    def losses(self, case: Case) -> np.ndarray:
        """One loss per row and threshold, (n, q)."""
        n, tau, theta = len(case.y), self.time, self.thresholds
        p = np.broadcast_to(to_numpy(case.F.marginal(0).cdf(tau)).reshape(-1, 1), (n, 1))
        event, time = to_numpy(case.y.event)[:, None], to_numpy(case.y.time)[:, None]
        C = case.C.marginal(0)
        reach = np.broadcast_to(to_numpy(C.sf_left(case.y.time)).reshape(-1, 1), (n, 1))
        dead = event & (time <= tau)
        weight = np.where(dead, to_numpy(C.sf(tau)).reshape(-1, 1) / np.where(dead, reach, 1.0), 0.0)
        return 2 * np.where(time > tau, theta * (p > theta), weight * (1 - theta) * (p <= theta))

    def derivative(self, case: Case, losses: np.ndarray, weight: np.ndarray, u: np.ndarray) -> np.ndarray:
        """A(u), as for every score of a single time."""
        return of_single_times(case, losses, weight, np.full(len(self.thresholds), self.time), u, ipcw=False)
