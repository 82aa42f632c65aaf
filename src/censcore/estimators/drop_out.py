"""Drop-out between visits: the hazard to leave after each visit, pooled where few subjects are left."""

from __future__ import annotations

from typing import Self

import numpy as np

from censcore._arrays import Array
from censcore.distributions import Step
from censcore.estimators.kaplan_meier import KaplanMeier
from censcore.outcomes import OutcomeLike

__all__ = ["DropOut"]

AT_RISK = 10  # subjects, at least, for a hazard of its own


class DropOut(KaplanMeier):
    r"""The Kaplan-Meier estimate of the number M of the last visit attended, with a pooled tail.

    .. math:: P(M>k)=\prod_{j\le k}(1-h_j),\qquad h_j=d_j/n_j

    where :math:`d_j` of the :math:`n_j` subjects at risk leave after visit j. Beyond the last number K with
    ten subjects at risk all numbers share one hazard, :math:`h=\sum_{j\ge K}d_j/\sum_{j\ge K}n_j`, so that a
    few subjects with many visits do not make it zero or one. ``Censoring(KaplanMeier())`` uses it for
    detection times with visits (``IntervalCensored.detection``).

    >>> import censcore as cs
    >>> y = cs.IntervalCensored([0.0, 2.0, 4.0], [2.0, float("inf"), 6.0], visits=[2.0, 4.0, 6.0])
    >>> DropOut().fit(None, y.detection().flip()).predict_distribution().sf([[0.0, 1.0, 2.0]]).round(3)
    array([[0.833, 0.694, 0.579]])
    """

    def fit(self, X: Array | None, y: OutcomeLike, sample_weight: Array | None = None) -> Self:
        """Estimate the hazards from the flipped outcome, in which leaving is the event."""
        super().fit(X, y, sample_weight)
        tables, first = [], []
        for number, curve in enumerate(self.distributions_):
            table, start = self._pooled(number)
            tables.append(table)
            first.append(np.full(len(table), start))
            times, sf = (table["time"], table["sf"]) if len(table) else (np.zeros(1), np.ones(1))
            self.distributions_[number] = Step(times, sf=sf[None, :]).like(curve._reference)
        self.event_table_, self._pooled_from = np.concatenate(tables), np.concatenate(first)
        return self

    def _pooled(self, stratum: int) -> tuple[np.ndarray, float]:
        """The table of a stratum with one entry per number in its pooled tail, and where the tail begins."""
        of_subject, time, event, weight, _ = self._training
        rows = (of_subject == stratum) & (weight > 0)
        time, leaves, w = time[rows], event[rows], weight[rows]
        k = np.arange(np.floor(time.max(initial=-1.0)) + 1)
        at_risk = time[:, None] >= k
        start = max(np.nonzero(at_risk.sum(axis=0) >= AT_RISK)[0].max(initial=-1), 0)
        own = self.event_table_[self.event_table_["stratum"] == stratum]
        own, tail = own[own["time"] < start], k[start:]
        n, d = w @ at_risk[:, start:].sum(axis=1), w @ (leaves & (time >= start))
        if not d:
            return own, float(start)
        pooled = np.zeros(len(tail), dtype=own.dtype)
        pooled["stratum"], pooled["time"], pooled["at_risk"], pooled["events"] = stratum, tail, n, d
        before, steps = (own["sf"][-1] if len(own) else 1.0), np.arange(1, len(tail) + 1)
        stays = w @ (at_risk[:, start:].sum(axis=1) - (leaves & (time >= start)))  # zero where all leave
        pooled["sf"] = before * (stays / n) ** steps
        if stays > 0:
            known = own["variance"][-1] / before**2 if len(own) else 0.0
            pooled["variance"] = pooled["sf"] ** 2 * (known + steps**2 * d / (n * stays))
        return np.concatenate([own, pooled]), float(start)

    def influence(self, hazard_derivative: Array) -> np.ndarray:
        """As of :class:`KaplanMeier`; a hazard that several numbers share moves all of them."""
        self.check_fitted()
        D = np.array(hazard_derivative, dtype=np.float64)
        table = self.event_table_
        in_tail = table["time"] >= self._pooled_from
        if D.ndim == 2 and len(D) == len(table):
            for number in range(len(self.strata_)):
                shared = in_tail & (table["stratum"] == number)
                D[shared] = D[shared].sum(axis=0)
        return super().influence(D)
