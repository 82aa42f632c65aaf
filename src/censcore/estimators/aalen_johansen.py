"""The Aalen-Johansen estimator of cumulative incidences."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from censcore._arrays import Array, convert, to_numpy
from censcore.distributions import CumulativeIncidence
from censcore.estimators.base import SurvivalEstimator
from censcore.estimators.covariates import check_rows, check_weights
from censcore.estimators.kaplan_meier import event_table
from censcore.estimators.risk_sets import entries_of
from censcore.estimators.strata import fitted_strata, strata_of
from censcore.exceptions import InvalidInputError
from censcore.outcomes import CompetingRisks, as_competing_risks
from censcore.plain_text import some_of

__all__ = ["AalenJohansen", "check_every_cause"]


class AalenJohansen(SurvivalEstimator):
    r"""Cumulative incidences of competing risks without covariates, for all subjects or per stratum.

    .. math::
        F_j(t)=\sum_{u\le t}S(u-)\,\frac{d_{ju}}{n_u},\qquad
        S(t)=\prod_{u\le t}\Bigl(1-\frac{\sum_jd_{ju}}{n_u}\Bigr)

    over the distinct event times, with :math:`d_{ju}` events of cause j among the :math:`n_u` subjects at
    risk, those with a time of at least u: subjects censored at u are still at risk there. The survival
    function is that of Kaplan-Meier for the first event of any cause, and the cumulative incidences sum to
    :math:`1-S(t)`. Consistent if censoring is independent of time and cause (within a stratum).

    Parameters
    ----------
    stratify : str or int, optional
        A column of X: one set of curves for each of its values.

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

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.CompetingRisks(time=[1.0, 2.0, 2.0, 3.0, 4.0], cause=[1, 2, 0, 1, 0])
    >>> cs.AalenJohansen().fit(None, y).predict_distribution().cif([1.0, 2.0, 3.0]).round(3)
    array([[[0.2, 0.2, 0.5],
            [0. , 0.2, 0.2]]])
    """

    represents_atoms = True

    def __init__(self, stratify: str | int | None = None) -> None:
        self.stratify = stratify

    def fit(self, X: Array | None, y: Any, sample_weight: Array | None = None) -> Self:
        """Estimate the curves.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates; only the stratifying column is used.
        y : CompetingRisks, structured array or frame
            Times and causes.
        sample_weight : array, (n,), optional
            Weights of the subjects; ones if omitted.

        Returns
        -------
        self
        """
        outcome = as_competing_risks(y)
        check_every_cause(outcome, "AalenJohansen")
        check_rows(X, len(outcome))
        weight = check_weights(sample_weight, len(outcome))
        time, cause = to_numpy(outcome.time), to_numpy(outcome.causes)
        entry = entries_of(outcome.any_cause())
        self.strata_, stratum = fitted_strata(X, self.stratify, len(outcome))
        self.names_ = outcome.names
        self.times_ = np.unique(time[(cause > 0) & (weight > 0)])
        parts = []
        of_cause = weight * (cause == np.arange(1, outcome.n_causes + 1)[:, None])
        for number in range(len(self.strata_)):
            rows = stratum == number
            since = None if entry is None else entry[rows]
            table = event_table(time[rows], cause[rows] > 0, weight[rows], since)
            parts.append(_incidences(table, time[rows], of_cause[:, rows], self.times_))
        self.cif_ = np.stack(parts)
        self._reference = outcome.time[:0]
        return self

    def predict_distribution(self, X: Array | None = None) -> CumulativeIncidence:
        """Predict the distribution of time and cause.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates; with strata, the stratifying column must be among them.

        Returns
        -------
        CumulativeIncidence
            One for all subjects; with strata, the curves of each subject's stratum.
        """
        self.check_fitted()
        cif = self.cif_
        if self.stratify is not None:
            numbers, row_value = strata_of(X, self.stratify, self.strata_)
            cif = cif[numbers[row_value]]
        times, cif = (convert(part, self._reference) for part in (self.times_, cif))
        return CumulativeIncidence(times, cif, names=self.names_)


def check_every_cause(y: CompetingRisks, estimator: str) -> None:
    """Every cause must occur in the training data."""
    seen = np.bincount(to_numpy(y.causes), minlength=y.n_causes + 1)[1:]
    missing = [name for name, count in zip(y.names, seen, strict=True) if not count]
    if missing:
        raise InvalidInputError(
            f"{estimator} learns from the events of every cause; got none of {some_of(missing)} among "
            f"{len(y)} subjects. Leave the cause out, or fit to data that have it."
        )


def _incidences(table: np.ndarray, time: np.ndarray, weighted: np.ndarray, at: np.ndarray) -> np.ndarray:
    """Cumulative incidences (m, J) at the times ``at``: each fall of S is divided among the causes.

    ``table`` is the event table of any cause, ``weighted`` (m, n) the weights of the events of each cause.
    """
    S = table["sf"]
    fall = np.concatenate([[1.0], S[:-1]]) - S
    place = np.searchsorted(table["time"], time)
    events = np.stack([np.bincount(place, row, len(S) + 1)[: len(S)] for row in weighted])
    cif = np.cumsum(fall * events / np.where(table["events"] > 0, table["events"], 1.0), axis=1)
    padded = np.concatenate([np.zeros((len(cif), 1)), cif], axis=1)
    return padded[:, np.searchsorted(table["time"], at, side="right")]
