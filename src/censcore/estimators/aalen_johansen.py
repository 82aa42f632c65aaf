"""The Aalen-Johansen estimator of cumulative incidences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np

from censcore._arrays import Array, convert, to_numpy
from censcore.distributions import CumulativeIncidence
from censcore.estimators.curve_inference import CurveInference
from censcore.estimators.kaplan_meier import at_times, event_table, table_influence
from censcore.estimators.risk_sets import strata_of
from censcore.exceptions import InvalidInputError
from censcore.outcomes import CompetingRisks, as_competing_risks
from censcore.plain_text import some_of

__all__ = ["AalenJohansen", "check_every_cause"]


class AalenJohansen(CurveInference):
    r"""Cumulative incidences of competing risks without covariates, for all subjects or per stratum.

    .. math::
        F_j(t)=\sum_{u\le t}S(u-)\,\frac{d_{ju}}{n_u},\qquad
        S(t)=\prod_{u\le t}\Bigl(1-\frac{\sum_jd_{ju}}{n_u}\Bigr)

    over the distinct event times, with :math:`d_{ju}` events of cause j among the :math:`n_u` subjects at
    risk, those with a time of at least u: subjects censored at u are still at risk there. The survival
    function is that of Kaplan-Meier for the first event of any cause, and the cumulative incidences sum to
    :math:`1-S(t)`. Consistent if censoring is independent of time and cause (within a stratum). The standard
    errors are of Greenwood's kind [2]_.

    Attributes
    ----------
    times_ : array, (J,)
        Distinct event times, of any cause and stratum.
    cif_ : array, (s, m, J)
        Cumulative incidence of every stratum, cause and time.
    strata_ : array
        Values of the stratifying column, sorted; one entry without stratification.
    names_ : tuple of str
        Names of the causes.

    See Also
    --------
    KaplanMeier : The same for one event time.
    CauseSpecific : Cumulative incidences that depend on covariates.

    References
    ----------
    .. [1] Aalen, O. O. and Johansen, S. (1978). An empirical transition matrix for non-homogeneous Markov
       chains based on censored observations. Scandinavian Journal of Statistics 5, 141-150.
    .. [2] J. J. Gaynor, E. J. Feuer, C. C. Tan, D. H. Wu, C. R. Little, D. J. Straus, B. D. Clarkson and
       M. F. Brennan (1993). On the use of cause-specific failure and conditional failure probabilities:
       examples from clinical oncology data. Journal of the American Statistical Association 88, 400-409.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.CompetingRisks(time=[1.0, 2.0, 2.0, 3.0, 4.0], cause=[1, 2, 0, 1, 0])
    >>> cs.AalenJohansen().fit(None, y).predict_distribution().cif([1.0, 2.0, 3.0]).round(3)
    array([[[0.2, 0.2, 0.5],
            [0. , 0.2, 0.2]]])
    >>> cs.AalenJohansen().fit(None, y).standard_errors([1.0, 3.0]).round(3)
    array([[[0.179, 0.255],
            [0.   , 0.179]]])
    """

    def fit(self, X: Array | None, y: Any, sample_weight: Array | None = None) -> Self:
        """Estimate the curves of CompetingRisks; only the stratifying column of X is used."""
        outcome = as_competing_risks(y)
        check_every_cause(outcome, "AalenJohansen")
        self._keep(X, outcome.any_cause(), to_numpy(outcome.causes), sample_weight)
        _, time, cause, weight, _ = self._training
        self.names_ = outcome.names
        self.times_ = np.unique(time[(cause > 0) & (weight > 0)])
        causes = np.arange(1, outcome.n_causes + 1)[:, None]
        self._incidences = [
            _Incidences.of(event_table(time, cause > 0, weight, entry), time, weight * (cause == causes))
            for _, time, cause, weight, entry in self._by_stratum()
        ]
        self.cif_ = self._curves(self.times_)
        self._reference = outcome.time[:0]
        return self

    def predict_distribution(self, X: Array | None = None) -> CumulativeIncidence:
        """Predict time and cause of all subjects; with strata, of the stratum of each, which X must tell."""
        self.check_fitted()
        cif = self.cif_
        if self.stratify is not None:
            numbers, row_value = strata_of(X, self.stratify, self.strata_)
            cif = cif[numbers[row_value]]
        times, cif = (convert(part, self._reference) for part in (self.times_, cif))
        return CumulativeIncidence(times, cif, names=self.names_)

    def _curves(self, times: np.ndarray) -> np.ndarray:
        return np.stack([at_times(part.table["time"], part.cif, 0.0, times) for part in self._incidences])

    def _greenwood(self, times: np.ndarray) -> np.ndarray:
        causes = range(len(self.names_))
        return np.array([[part.greenwood(j, times) for j in causes] for part in self._incidences])

    def _influences(self, times: np.ndarray) -> np.ndarray:
        result = np.zeros((len(self._training[0]), *self.cif_.shape[:2], len(times)))
        for i, (rows, time, cause, weight, entry) in enumerate(self._by_stratum()):
            for j in range(len(self.names_)):
                parts = self._incidences[i].influence(j, times, time, cause, entry)
                result[rows, i, j] = weight[:, None] * parts
        return result


def check_every_cause(y: CompetingRisks, estimator: str) -> None:
    """Every cause must occur in the training data."""
    seen = np.bincount(to_numpy(y.causes), minlength=y.n_causes + 1)[1:]
    missing = [name for name, count in zip(y.names, seen, strict=True) if not count]
    if missing:
        raise InvalidInputError(
            f"{estimator} learns from the events of every cause; got none of {some_of(missing)} among "
            f"{len(y)} subjects. Leave the cause out, or fit to data that have it."
        )


@dataclass(frozen=True)
class _Incidences:
    """One stratum: its event table of any cause, d_ju (m, J) and F_j after each time (m, J)."""

    table: np.ndarray
    events: np.ndarray
    cif: np.ndarray

    @classmethod
    def of(cls, table: np.ndarray, time: np.ndarray, weighted: np.ndarray) -> _Incidences:
        """From the weights (m, n) of the events of each cause: each fall of S is divided among the causes."""
        S, d = table["sf"], table["events"]
        place = np.searchsorted(table["time"], time)
        events = np.stack([np.bincount(place, row, len(S) + 1)[: len(S)] for row in weighted])
        return cls(table, events, np.cumsum((np.append(1.0, S[:-1]) - S) * events / d, axis=1))

    @property
    def level(self) -> np.ndarray:
        """S(u-) / n_u."""
        return np.append(1.0, self.table["sf"][:-1])[: len(self.table)] / self.table["at_risk"]

    def to_come(self, j: int, times: np.ndarray) -> np.ndarray:
        """F_j(t) - F_j(u) for u <= t, else zero, (J, q)."""
        u = self.table["time"]
        rest = at_times(u, self.cif[j], 0.0, times) - self.cif[j][:, None]
        return np.where(u[:, None] <= times, rest, 0.0)

    def greenwood(self, j: int, times: np.ndarray) -> np.ndarray:
        r"""Variance of F_j(t): :math:`\sum_u` of the variance of rest d/(n-d) - level d_j, multinomial d."""
        n, d, rest = self.table["at_risk"], self.table["events"], self.to_come(j, times)
        g = np.where(self.table["sf"] > 0, d / (n * np.where(n > d, n - d, 1.0)), 0.0)[:, None]
        level, dj = self.level[:, None], self.events[j][:, None]
        n = n[:, None]
        terms = rest**2 * g + level**2 * dj * (n - dj) / n - 2 * rest * level * dj / n
        return np.where(self.table["time"][:, None] <= times, terms, 0.0).sum(axis=0)

    def influence(
        self, j: int, times: np.ndarray, time: np.ndarray, cause: np.ndarray, entry: np.ndarray | None
    ) -> np.ndarray:
        """Derivative of F_j(t) by the weight of each subject, (n, q)."""
        u, level = self.table["time"], self.level
        parts = table_influence(self.table, time, cause > 0, self.to_come(j, times), entry)
        hazard = np.cumsum(level * self.events[j] / self.table["at_risk"])
        parts = parts - at_times(u, hazard, 0.0, np.minimum(time[:, None], times))
        if entry is not None:
            parts += at_times(u, hazard, 0.0, np.minimum(entry[:, None], times))
        own = np.append(level, 0.0)[np.searchsorted(u, time)] * (cause == j + 1)
        return parts + np.where(time[:, None] <= times, own[:, None], 0.0)
