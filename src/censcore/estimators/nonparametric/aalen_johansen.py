"""The Aalen-Johansen estimator of cumulative incidences."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from censcore._arrays import ArrayLike, Covariates, convert, to_numpy
from censcore.distributions import CumulativeIncidence
from censcore.estimators.nonparametric.curve_inference import CurveInference
from censcore.estimators.nonparametric.kaplan_meier import at_times, event_table, table_influence
from censcore.estimators.risk_sets import RiskSets, strata_of
from censcore.exceptions import InvalidInputError
from censcore.outcomes import CompetingRisks, OutcomeLike, SemiCompetingRisks, as_competing_risks
from censcore.plain_text import some_of


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

    Parameters
    ----------
    stratify : str or int, optional
        A column of X: curves for each of its values.

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

    def fit(
        self,
        X: Covariates | None,
        y: OutcomeLike | SemiCompetingRisks,
        sample_weight: ArrayLike | None = None,
    ) -> Self:
        """Estimate the curves of CompetingRisks; only the stratifying column of X is used.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates.
        y : CompetingRisks or frame
            The outcome.
        sample_weight : array, (n,), optional
            Weights of the subjects; ones if omitted.

        Returns
        -------
        self
        """
        outcome = as_competing_risks(y)
        check_every_cause(outcome, "AalenJohansen")
        self._keep(X, outcome.any_cause(), sample_weight)
        self.names_ = outcome.names
        self.times_ = np.unique(np.concatenate([sets.times for _, sets in self._sets]))
        causes = np.arange(1, outcome.n_causes + 1)[:, None]
        self._incidences = [
            _Incidences.of(sets, to_numpy(outcome.causes)[rows[sets.failed]] == causes)
            for rows, sets in self._sets
        ]
        self.cif_ = self._curves(self.times_)
        self._reference = outcome.time[:0]
        return self

    def predict_distribution(self, X: Covariates | None = None) -> CumulativeIncidence:
        """Predict time and cause of all subjects; with strata, of the stratum of each, which X must hold.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates, as in ``fit``.

        Returns
        -------
        CumulativeIncidence
            One distribution per subject of X, or one for all subjects where covariates play no part.
        """
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
        result = np.zeros((self._n, *self.cif_.shape[:2], len(times)))
        for i, (rows, sets) in enumerate(self._sets):
            for j in range(len(self.names_)):
                result[rows, i, j] = sets.weight[:, None] * self._incidences[i].influence(j, times)
        return result


def check_every_cause(y: CompetingRisks, estimator: str) -> None:
    """Every cause must occur in the training data."""
    events = np.bincount(to_numpy(y.causes), minlength=y.n_causes + 1)[1:]
    missing = [name for name, count in zip(y.names, events, strict=True) if not count]
    if missing:
        raise InvalidInputError(
            f"{estimator} learns from the events of every cause; got none of {some_of(missing)} among "
            f"{len(y)} subjects. Leave the cause out, or fit to data that have it."
        )


@dataclass(frozen=True)
class _Incidences:
    """One stratum: its event table of any cause, d_ju and F_j after each time (m, J), and who failed by j."""

    sets: RiskSets
    table: np.ndarray
    events: np.ndarray
    cif: np.ndarray
    of_cause: np.ndarray

    @classmethod
    def of(cls, sets: RiskSets, of_cause: np.ndarray) -> _Incidences:
        """From who failed by each cause (m, failures): each fall of S is divided among the causes."""
        table = event_table(sets)
        events = np.stack([sets.over_failures(sets.weight[sets.failed] * row) for row in of_cause])
        falls = -np.diff(table["sf"], prepend=1.0)
        return cls(sets, table, events, np.cumsum(falls * events / sets.d, axis=1), of_cause)

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

    def influence(self, j: int, times: np.ndarray) -> np.ndarray:
        """Derivative of F_j(t) by the weight of each subject, (n, q), in the order of the sets."""
        sets, by_then = self.sets, self.table["time"][:, None] <= times
        level = np.where(by_then, self.level[:, None], 0.0)
        parts = table_influence(self.table, sets, self.to_come(j, times))
        parts -= sets.while_at_risk(level * (self.events[j] / self.table["at_risk"])[:, None])
        parts[sets.failed] += level[sets.jump] * self.of_cause[j][:, None]
        return parts
