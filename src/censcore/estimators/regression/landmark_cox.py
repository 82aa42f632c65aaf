"""One Cox regression for all landmarks: van Houwelingen's stacked model."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from censcore._arrays import ArrayLike, Covariates
from censcore._validation import as_count, as_number, as_numbers, name_subjects
from censcore.distributions import Grouped
from censcore.distributions.univariate.proportional_hazards import ProportionalHazards
from censcore.estimators.covariates import check_rows, check_weights
from censcore.estimators.encoding import as_matrix
from censcore.estimators.regression.base import CoefficientInference
from censcore.estimators.regression.cox import CoxRegression
from censcore.estimators.survival_estimator import one_event_time
from censcore.exceptions import InvalidInputError
from censcore.outcomes import OutcomeLike, RightCensored, StartStop
from censcore.outcomes.start_stop import rows_in_force


class LandmarkCox(CoefficientInference):
    r"""Forecasts of survival from a landmark s to s + w by what is known at s [1]_.

    .. math:: h(t\mid x(s),s)=h_0(t)\exp\{x(s)^\top\beta(s)+\theta(s)\},\qquad s<t\le s+w,

    with polynomials :math:`\beta(s)=\sum_{k\le d}\beta_ku^k` and
    :math:`\theta(s)=\sum_{1\le k\le d}\theta_ku^k` of
    :math:`u=(s-s_1)/(s_L-s_1)`. At each of the landmarks :math:`s_1<\dots<s_L` the subjects at risk are
    taken with their covariates in force there, and followed until s + w; the stacked rows are one Cox
    regression with entry s. Nothing that comes after s is a covariate, and the model does not say how
    covariates go on: it is calibrated for what happens on average to those who have x(s) at s. Forecasts
    exist for any s between the first landmark and the last.

    Parameters
    ----------
    landmarks : array
        Times s of the fit, ascending.
    window : float
        w. A forecast says nothing of what comes after s + w: the probability left is placed at infinity.
    degree : int
        d; with 0 neither effects nor the baseline depend on s, but for the times that are in the window.
    alpha, ties
        As of :class:`CoxRegression`. An event in the windows of several landmarks is a tie of copies;
        "breslow", by default, is what the method was published with.

    Attributes
    ----------
    coef_ : array
        Effects of the columns of X, those of their products with :math:`u,\dots,u^d`, and :math:`\theta`.
    covariance_, standard_errors_ : array
        Of ``coef_``, robust: a subject that is at risk at several landmarks counts once.
    cox_ : CoxRegression
        The regression of the stacked rows.

    See Also
    --------
    CoxRegression : Of :class:`~censcore.StartStop`, by the covariates in force at t.
    censcore.compare_landmarks : Judges both.

    References
    ----------
    .. [1] H. C. van Houwelingen (2007). Dynamic prediction by landmarking in event history analysis.
       Scandinavian Journal of Statistics 34, 70-85.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 1))
    >>> y = cs.RightCensored(rng.exponential(np.exp(-X[:, 0])), np.ones(500)).censor_at(2.0)
    >>> model = cs.LandmarkCox(landmarks=[0.0, 0.5, 1.0], window=0.5, degree=1).fit(X, y)
    >>> model.predict_distribution([[0.0], [1.0]], given=0.5).sf(1.0).round(2)
    array([0.56, 0.24])
    """

    takes_intervals = True
    _of_subjects = ("_parts",)
    _kind_of_errors = "robust, by subject,"

    def __init__(
        self,
        landmarks: ArrayLike,
        window: float,
        *,
        degree: int = 2,
        alpha: float | str = 0.0,
        ties: str = "breslow",
    ) -> None:
        self.landmarks = landmarks
        self.window = window
        self.degree = degree
        self.alpha = alpha
        self.ties = ties

    def fit(self, X: Covariates | None, y: OutcomeLike, sample_weight: ArrayLike | None = None) -> Self:
        """Stack the subjects at risk at the landmarks, and fit their Cox regression.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates, one row per row of y.
        y : StartStop or RightCensored
            Intervals, of which each landmark takes the rows in force; or subjects whose covariates stay.
        sample_weight : array, (n,), optional
            Weights of the subjects, the same in all rows of one; ones if omitted.

        Returns
        -------
        self
        """
        outcome: Any = y if isinstance(y, StartStop) else one_event_time(y, "LandmarkCox", entry=True)
        check_rows(X, len(outcome))
        weight = check_weights(sample_weight, len(outcome))
        self.landmarks_ = np.unique(as_numbers(self.landmarks, "landmarks"))
        window = as_number(self.window, "window", above=0)
        as_count(self.degree, "degree", least=0, most=len(self.landmarks_) - 1)
        matrix = as_matrix(self, X, reset=True)
        matrix = np.zeros((len(outcome), 0)) if matrix is None else matrix
        at = [(s, *rows_in_force(outcome, s)) for s in self.landmarks_]
        rows = np.concatenate([here for _, here, _ in at])
        stacked = RightCensored.concat([later.censor_at(s + window) for s, _, later in at])
        s = np.concatenate([np.full(len(here), s) for s, here, _ in at])
        self.cox_ = CoxRegression(self.alpha, self.ties).fit(
            self._design(matrix[rows], s), stacked, weight[rows]
        )
        self.coef_, self.columns_, self.notes_ = self.cox_.coef_, self.cox_.columns_, self.cox_.notes_
        subject = outcome.subject if isinstance(outcome, StartStop) else np.arange(len(outcome))
        parts = self.cox_.coefficient_influence()
        self._parts = np.zeros((int(subject.max()) + 1, parts.shape[1]))
        np.add.at(self._parts, subject[rows], parts)
        self.covariance_ = self._parts.T @ self._parts
        self.standard_errors_ = np.sqrt(np.diag(self.covariance_))
        self._reference = stacked.time[:0]
        return self

    def _powers(self, s: np.ndarray) -> np.ndarray:
        """U to the power of 0, ..., d, (n, d + 1)."""
        first, last = self.landmarks_[[0, -1]]
        return ((s - first) / (last - first or 1.0))[:, None] ** np.arange(self.degree + 1)

    def _design(self, matrix: np.ndarray, s: np.ndarray) -> Any:
        """The columns of X times each power, and the powers from 1 on."""
        import pandas as pd

        powers, names = self._powers(s), self._encoding.names if matrix.shape[1] else []
        words = ["", " u", *(f" u^{k}" for k in range(2, int(self.degree) + 1))][: int(self.degree) + 1]
        columns = [name + word for word in words for name in names] + [word.strip() for word in words[1:]]
        values = np.column_stack([*(matrix * power[:, None] for power in powers.T), powers[:, 1:]])
        return pd.DataFrame(values, columns=columns)

    def coefficient_influence(self) -> np.ndarray:
        """Each subject's influence on ``coef_``, over all landmarks, (subjects, p)."""
        return self._parts

    def predict_distribution(self, X: Covariates | None = None, *, given: ArrayLike | None = None) -> Any:
        """Predict the distribution of T given T > s, up to s + w.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates in force at s.
        given : number or array, (n,)
            s, between the first landmark and the last.

        Returns
        -------
        Distribution
            One distribution per subject of X; where s differs, in a ``Grouped``.
        """
        self.check_fitted()
        if given is None:
            raise InvalidInputError(
                "LandmarkCox: got no landmark, expected given=s, the time at which the covariates are known."
            )
        s = as_numbers(given, "given")
        outside = np.nonzero((s < self.landmarks_[0]) | (s > self.landmarks_[-1]))[0]
        if outside.size:
            raise InvalidInputError(
                f"given: got {s[outside[0]]:g} for {name_subjects(outside)}, expected times between the "
                f"first and the last landmark, {self.landmarks_[0]:g} and {self.landmarks_[-1]:g}."
            )
        matrix = as_matrix(self, X, reset=False)
        matrix = np.zeros((len(s), 0)) if matrix is None else matrix
        if len(s) not in (1, len(matrix)):
            raise InvalidInputError(
                f"given: got {len(s)} times, expected one, or one per row of X, {len(matrix)}."
            )
        s = np.broadcast_to(s, len(matrix))
        risk = self.cox_.predict_distribution(self._design(matrix, s)).risk
        values, group = np.unique(s, return_inverse=True)
        members = [self._from(value, risk[group == i]) for i, value in enumerate(values)]
        return members[0] if len(members) == 1 else Grouped(members, group)

    def _from(self, s: float, risk: np.ndarray) -> ProportionalHazards:
        """The distributions of subjects at risk at s, until s + w."""
        times, hazard = self.cox_.baseline_times_, self.cox_.baseline_hazard_
        before = float(np.append(0.0, hazard)[np.searchsorted(times, s, side="right")])
        here = (times > s) & (times <= s + self.window)
        if not here.any():
            times, hazard, here = np.array([s + self.window]), np.array([before]), np.ones(1, dtype=bool)
        gone = np.isinf(before)
        later = np.full(int(here.sum()), np.inf) if gone else hazard[here] - before
        return ProportionalHazards(times[here], later, risk).like(self._reference)
