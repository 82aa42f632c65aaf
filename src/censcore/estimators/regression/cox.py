"""Cox regression."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Self

import numpy as np

from censcore._arrays import Array, ArrayLike, Covariates, to_numpy
from censcore._validation import check_option
from censcore.distributions import Grouped, Step
from censcore.distributions.univariate.proportional_hazards import ProportionalHazards
from censcore.estimators.encoding import as_matrix
from censcore.estimators.regression.along_time import check_path, given_survival, steps_along
from censcore.estimators.regression.base import CoefficientInference, StandardisedColumns, dependent
from censcore.estimators.regression.cox_equations import SCORES, PartialScore
from censcore.estimators.regression.newton import find_root
from censcore.estimators.risk_sets import (
    RiskSets,
    StratifiedTimes,
    at_risk_weights,
    entries_of,
    fitted_strata,
    strata_of,
    without_column,
)
from censcore.estimators.survival_estimator import one_event_time
from censcore.exceptions import InvalidInputError
from censcore.outcomes import OutcomeLike, RightCensored, StartStop


class CoxRegression(CoefficientInference):
    r"""Proportional hazards with a product-limit baseline.

    .. math:: P(T>t\mid x)=\prod_{u\le t}\{1-d\Lambda_0(u)\}^{r(x)},\qquad r(x)=e^{(x-\bar x)^\top\gamma}.

    Where T is continuous this is Cox's model [3]_. Where T has atoms (an administrative end of follow-up,
    closing dates, a grid of visits) it is the discrete proportional-hazards model, in which a subject at
    risk at u fails there with probability :math:`1-\{1-d\Lambda_0(u)\}^{r(x)}`. The usual
    :math:`\exp\{-r\Lambda_0\}` is wrong there: it is positive after an atom at which everybody fails.
    Assumes that hazards are proportional and that censoring is independent of T given x. Without
    covariates it is the Kaplan-Meier estimate.

    Parameters
    ----------
    alpha : float or "auto"
        Ridge penalty: :math:`\tfrac{\alpha}{2}\|\gamma\|^2` is taken off the log partial likelihood. It
        makes the fit unique where columns are collinear or separate events from non-events. Without
        it, collinear columns are left out, and a column of numbers that separates raises an error.
        ``"auto"`` takes the penalty of standardised columns with the greatest marginal likelihood, as if
        their coefficients were normal with variance :math:`1/\alpha` (empirical Bayes, Laplace's
        approximation [6]_): for forecasts, and where there are many covariates.
    ties : "product-limit", "efron" or "breslow"
        How events at the same time are treated. The default is consistent whatever the size of the ties. The
        others are for agreement with other software: the partial likelihood of Efron [4]_ or Breslow [5]_,
        with :math:`P(T>t\mid x)=\exp\{-r(x)\Lambda_0(t)\}` and the :math:`\Lambda_0` of the same author, as
        ``coxph`` and its predictions in R. (Other Python libraries have Efron's coefficients with Breslow's
        baseline.) They are right for continuous T only, and their coefficients are biased towards zero by
        large ties.

    strata : str or int, optional
        Name or number of a column of X. Each of its values has a baseline of its own, and the coefficients
        are shared: ``coxph(~ x + strata(s))``. The column is no covariate. Columns that are constant, or
        linear combinations of others, within every stratum are left out, as ``notes_`` say.

    Attributes
    ----------
    coef_ : array, (p,)
        gamma, log hazard ratios.
    covariance_, standard_errors_ : array, (p, p) and (p,)
        Of ``coef_``, under the model, with weights taken as counts. Infinite where the data carry no
        information on the coefficients. See :meth:`robust_covariance` for other weights and for clusters.
    alpha_ : float
        With ``alpha="auto"``: the penalty, of coefficients of standardised columns.
    baseline_times_, baseline_hazard_ : array, (J,)
        Distinct event times and, after each, minus the logarithm of the survival function of a subject with
        x = ``center_``: minus the sum of the logarithms of :math:`1-d\Lambda_0(u)`. Infinite after a time at
        which everybody at risk has the event.
    strata_, baseline_strata_ : array
        With ``strata``: its values, and which of them (from 0) each of ``baseline_times_`` belongs to.
    center_ : array, (p,)
        Means of the columns.
    columns_, notes_, n_features_in_, feature_names_in_
        Encoded columns that ``coef_`` belongs to, what was encoded or left out, and the columns of X.

    Notes
    -----
    With failures :math:`D_u` of total weight :math:`d_u` and risk set :math:`R_u` at time u, jumps
    :math:`h_u=-\log\{1-d\Lambda_0(u)\}` and :math:`\varphi_j=h_ur_j/(1-e^{-h_ur_j})` the equations are

    .. math:: \sum_{D_u}w_j\varphi_j=h_u\sum_{R_u}w_kr_k,\qquad
        \sum_ud_u\Bigl(\frac{\sum_{D_u}w_j\varphi_jx_j}{\sum_{D_u}w_j\varphi_j}
        -\frac{\sum_{R_u}w_kr_kx_k}{\sum_{R_u}w_kr_k}\Bigr)=0.

    The first is that of Kalbfleisch and Prentice [1]_. Both are unbiased with jumps of any size, since
    :math:`1-e^{-h_ur}` is the probability to fail. A term of the second is Cox's where one subject fails and
    zero where all at risk fail. It agrees with Efron's up to the second order in the size of the jump, and
    is the score of the grouped proportional-hazards model [2]_ up to a factor per jump. Without ties the
    coefficients are therefore those of Cox's partial likelihood. Weights that are counts give the same
    result as repeated subjects, and a common factor of the weights changes nothing.

    Predictions share the baseline (:class:`~censcore.distributions.ProportionalHazards`): no matrix of
    subjects by times is made. The probability left after the last event time is placed at infinity. Data
    without any event give distributions without any, as Kaplan-Meier does, and coefficients of zero. So do
    data in which everybody fails at the same time, which carry no information on the coefficients.

    Of intervals (:class:`~censcore.StartStop`) a subject is in the risk set at u with the covariates in force
    there; influences and robust errors are of subjects, summed over their intervals.

    With delayed entry a subject is in the risk sets of the times after its entry, and T is assumed
    independent of the entry given x. Where everybody at risk fails before others enter, the
    baseline is over, and a :class:`~censcore.exceptions.RiskSetWarning` says so (see :class:`KaplanMeier`).

    References
    ----------
    .. [1] J. D. Kalbfleisch and R. L. Prentice (1973). Marginal likelihoods based on Cox's regression and
       life model. Biometrika 60, 267-278.
    .. [2] R. L. Prentice and L. A. Gloeckler (1978). Regression analysis of grouped survival data with
       application to breast cancer data. Biometrics 34, 57-67.
    .. [3] D. R. Cox (1972). Regression models and life-tables. Journal of the Royal Statistical Society,
       Series B 34, 187-220.
    .. [4] B. Efron (1977). The efficiency of Cox's likelihood function for censored data. Journal of the
       American Statistical Association 72, 557-565.
    .. [5] N. Breslow (1974). Covariance analysis of censored survival data. Biometrics 30, 89-99.
    .. [6] D. J. C. MacKay (1992). Bayesian interpolation. Neural Computation 4, 415-447.

    See Also
    --------
    KaplanMeier : The estimate without covariates.
    WeibullRegression : Proportional hazards with a Weibull baseline.
    censcore.distributions.ProportionalHazards : What it predicts.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(500, 1))
    >>> y = cs.RightCensored(rng.exponential(np.exp(-X[:, 0])), np.ones(500)).censor_at(2.0)
    >>> model = cs.CoxRegression().fit(X, y)
    >>> model.coef_.round(2), model.standard_errors_.round(2)
    (array([0.94]), array([0.06]))
    >>> model.predict_distribution([[0.0], [1.0]]).sf(0.5).round(2)
    array([0.6 , 0.27])
    """

    _of_subjects = ("_score", "_used")
    takes_intervals = True

    def __init__(
        self, alpha: float | str = 0.0, ties: str = "product-limit", strata: str | int | None = None
    ) -> None:
        self.alpha = alpha
        self.ties = ties
        self.strata = strata

    @property
    def represents_atoms(self) -> bool:
        """Whether predictions are consistent where the time has atoms: with the default ``ties``."""
        return self.ties == "product-limit"

    def fit(self, X: Covariates | None, y: OutcomeLike, sample_weight: ArrayLike | None = None) -> Self:
        """Solve the (penalised) estimating equations and estimate the baseline.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates.
        y : RightCensored, structured array or frame
            The outcome.
        sample_weight : array, (n,), optional
            Weights of the subjects; ones if omitted.

        Returns
        -------
        self
        """
        y = one_event_time(y, type(self).__name__, entry=True)
        covariates, weight = self._check_inputs(without_column(X, self.strata), len(y), sample_weight)
        check_option(self.ties, "ties", tuple(SCORES))
        weight = at_risk_weights(y, weight)
        used = np.nonzero(weight > 0)[0]
        time, entry = self._times(X, y, used)
        sets = RiskSets(time, to_numpy(y.event)[used], weight[used], entry)
        self._fit_to(covariates, weight, sets, SCORES[self.ties])
        self._reference = y.time[:0]
        return self

    def _times(self, X: Any, y: RightCensored, used: np.ndarray) -> tuple[np.ndarray, np.ndarray | None]:
        """Times and entries of some subjects; with strata, on one clock that passes through the strata."""
        entry = entries_of(y)
        time, entry = to_numpy(y.time)[used], None if entry is None else entry[used]
        if self.strata is None:
            return time, entry
        self.strata_, number = fitted_strata(X, self.strata, len(y))
        self._clock = StratifiedTimes.of(time, entry)
        return self._clock.codes(time, number[used]), self._clock.codes(entry, number[used])

    def _fit_to(
        self, covariates: np.ndarray, weight: np.ndarray, sets: RiskSets, kind: type[PartialScore]
    ) -> None:
        """Coefficients and baseline, from the risk sets of the subjects with a weight."""
        self._used, self._n = np.nonzero(weight > 0)[0], len(weight)
        columns = StandardisedColumns.of(covariates[self._used], weight[self._used], self)
        start = kind(sets, columns.Z[sets.order], np.zeros(len(columns.scale)))
        self._determined = bool(len(columns.scale) and start.open.any())
        if self._determined and not self.alpha:
            silent = dependent(start.information() / sets.d[start.open].sum())
            if silent.any():
                self._leave_out(silent, "within every risk set")
                return self._fit_to(covariates[:, ~silent], weight, sets, kind)
        self._scale, self.center_ = columns.scale, columns.center
        self._score = self._solve(columns, start, kind) if self._determined else start
        self.coef_ = self._score.gamma / columns.scale
        self._set_baseline()
        self._set_covariance()

    def _solve(
        self, columns: StandardisedColumns, start: PartialScore, kind: type[PartialScore]
    ) -> PartialScore:
        """The estimating equations at their solution."""
        sets, Z = start.sets, start.Z

        def solve(penalty: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
            def equations(gamma: np.ndarray) -> tuple[np.ndarray, Callable[[], np.ndarray]] | None:
                score = kind(sets, Z, gamma)
                if not score.valid:  # so far out that risks underflow: no step ends here
                    return None
                return score.gradient - penalty * gamma, lambda: score.information() + np.diag(penalty)

            return find_root(equations, start.gamma)

        gamma, _, self._penalty = self._solved(columns, solve)
        return kind(sets, Z, gamma)

    def _set_covariance(self) -> None:
        p = len(self.coef_)
        if not self._determined:
            self.covariance_ = np.full((p, p), np.inf)
        else:
            bread = self._inverse_information()
            variance = self._score.variance() + np.diag(self._penalty)
            covariance = bread @ variance @ bread.T / np.outer(self._scale, self._scale)
            self.covariance_ = (covariance + covariance.T) / 2
        self.standard_errors_ = np.sqrt(np.diag(self.covariance_))

    def _inverse_information(self) -> np.ndarray:
        return np.linalg.inv(self._score.information() + np.diag(self._penalty))

    def _set_baseline(self) -> None:
        sets = self._score.sets
        if not len(sets.times):  # no event: a hazard of zero, at any time
            self.baseline_times_, self.baseline_hazard_ = sets.last_time, np.zeros(1)
            self.baseline_strata_ = np.zeros(1, dtype=np.intp)
            return
        jumps = self._score.jumps()
        if self.strata is not None:
            self.baseline_strata_, self.baseline_times_ = self._clock.back(sets.times)
            by_stratum = (np.cumsum(jumps[self.baseline_strata_ == s]) for s in range(len(self.strata_)))
            self.baseline_hazard_ = np.concatenate(list(by_stratum))
            return
        self.baseline_times_, self.baseline_hazard_ = sets.times, np.cumsum(jumps)
        sets.warn_where_over(np.isinf(self.baseline_hazard_))

    def predict_distribution(
        self, X: Covariates | None = None, *, given: ArrayLike | None = None, path: StartStop | None = None
    ) -> Any:
        """Predict the distribution of the event time.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates, as in ``fit``.
        given : number or array, optional
            As in :meth:`WeibullRegression.predict_distribution`.
        path : StartStop, optional
            As in :meth:`WeibullRegression.predict_distribution`; a stratum may change along it.

        Returns
        -------
        ProportionalHazards
            One distribution per subject of X, or one for all subjects without covariates; with strata, those
            of each stratum in a :class:`~censcore.distributions.Grouped`; a ``Step`` with ``path``, and the
            distribution given survival with ``given``.
        """
        self.check_fitted()
        return given_survival(self._in_force(X) if path is None else self._along(X, path), given)

    def _along(self, X: Any, path: StartStop) -> Step:
        """The distributions of subjects with the covariates of each row on its interval."""
        path = check_path(path, X)
        times, number = np.unique(self.baseline_times_, return_inverse=True)
        strata, stratum = np.zeros(1, dtype=np.intp), np.zeros(len(path), dtype=np.intp)
        of_jump = np.zeros(len(number), dtype=np.intp)
        if self.strata is not None:
            strata, stratum = strata_of(X, self.strata, self.strata_)
            of_jump = self.baseline_strata_
        jumps = np.zeros((of_jump.max(initial=strata.max()) + 1, len(times)))
        for s in np.unique(of_jump):
            hazard = self.baseline_hazard_[of_jump == s]
            before = np.append(0.0, hazard[:-1])
            jumps[s, number[of_jump == s]] = hazard - np.where(np.isinf(before), 0.0, before)
        risk = np.broadcast_to(self._risk(without_column(X, self.strata)), len(path))
        jumps = jumps[0] if self.strata is None else jumps[strata[stratum]]
        return steps_along(path, times, jumps, risk).like(self._reference)

    def _in_force(self, X: Any) -> ProportionalHazards | Grouped:
        """The distributions of subjects whose covariates stay."""
        if self.strata is None:
            return self._of_baseline(self.baseline_times_, self.baseline_hazard_, self._risk(X))
        known, group = strata_of(X, self.strata, self.strata_)
        risk = self._risk(without_column(X, self.strata))
        members = []
        for i, stratum in enumerate(known):
            here = self.baseline_strata_ == stratum
            mine = risk if len(risk) == 1 else risk[group == i]
            times, hazard = self.baseline_times_[here], self.baseline_hazard_[here]
            if not here.any():  # no event in this stratum
                times, hazard = self._clock.values[-1:], np.zeros(1)
            members.append(self._of_baseline(times, hazard, mine))
        return Grouped(members, group)

    def _risk(self, X: Array | None) -> np.ndarray:
        """r(x) of every subject, or of one for all without covariates."""
        matrix = as_matrix(self, X, reset=False)
        return np.ones(1) if matrix is None else np.exp(self._linear_predictor(matrix, self.center_))

    def _of_baseline(self, times: np.ndarray, hazard: np.ndarray, risk: np.ndarray) -> ProportionalHazards:
        return ProportionalHazards(times, hazard, risk).like(self._reference)

    def influence(self, hazard_derivative: ArrayLike, coef_derivative: ArrayLike | None = None) -> np.ndarray:
        r"""Compute what each training subject contributes to functionals of the fitted model.

        In the parametrisation

        .. math:: \log P(T>t\mid x)=e^{(x-\bar x)^\top\gamma}\sum_{u\le t}a_u,\quad
            a_u=\log\{1-d\Lambda_0(u)\}

        with :math:`\bar x` = ``center_`` held fixed, a functional :math:`\theta(a,\gamma)` changes by
        :math:`\partial\theta/\partial w_i` with the weight of subject i. The result is
        :math:`w_i\,\partial\theta/\partial w_i`, with the dependence of the baseline on gamma included: it
        sums to zero over the subjects (without a penalty), and the sum of its squares estimates the variance
        of :math:`\theta` for independent subjects. For clusters, sum within clusters first.

        Parameters
        ----------
        hazard_derivative : array, (J, q)
            Derivatives of q functionals with respect to :math:`a_u` at each of ``baseline_times_``, with
            gamma fixed. Entries are ignored at a time where everybody at risk has the event: there
            :math:`a_u=-\infty` whatever the weights. With ties="efron" or "breslow", :math:`a_u` is minus
            the jump of :math:`\Lambda_0`.
        coef_derivative : array, (p, q), optional
            Derivatives with respect to gamma, on the scale of the columns of X, with a fixed; zero if
            omitted.

        Returns
        -------
        array, (n, q)
            One row per subject given to ``fit``, in that order; zero for subjects of weight zero. Of
            :class:`~censcore.StartStop`, in the order of its ``subjects``.

        Examples
        --------
        The standard error of the survival probability at t = 0.5 of a subject with x = 1:

        >>> import numpy as np, censcore as cs
        >>> rng = np.random.default_rng(0)
        >>> X = rng.normal(size=(500, 1))
        >>> y = cs.RightCensored(rng.exponential(np.exp(-X[:, 0])), np.ones(500)).censor_at(2.0)
        >>> model = cs.CoxRegression().fit(X, y)
        >>> x = np.array([[1.0]])
        >>> logsf = model.predict_distribution(x).logsf(0.5)
        >>> risk = np.exp((x - model.center_) @ model.coef_)
        >>> in_time = (model.baseline_times_ <= 0.5).astype(float)
        >>> parts = model.influence(in_time[:, None] * risk, (x - model.center_).T * logsf)
        >>> (np.exp(logsf) * np.sqrt((parts**2).sum(axis=0))).round(3)
        array([0.028])
        """
        self.check_fitted()
        jumps, p = len(self.baseline_times_), len(self.coef_)
        D = np.asarray(hazard_derivative, dtype=np.float64)
        if D.ndim != 2 or D.shape[0] != jumps:
            raise InvalidInputError(
                f"hazard_derivative: got shape {D.shape}, expected ({jumps}, q), one row per baseline time."
            )
        q = D.shape[1]
        E = np.zeros((p, q)) if coef_derivative is None else np.asarray(coef_derivative, dtype=np.float64)
        if E.shape != (p, q):
            raise InvalidInputError(f"coef_derivative: got shape {E.shape}, expected {(p, q)}.")
        result = np.zeros((self._n, q))
        score = self._score
        if not len(score.sets.times):
            return self._per_subject(result)
        h = np.where(score.open, score.jumps(), 0.0)
        by_log_jump = -np.where(score.open[:, None], D, 0.0) * h[:, None]  # a_u = -h_u
        parts = score.jump_residuals(by_log_jump)
        if self._determined:
            slope = E / self._scale[:, None] + score.log_jump_slope.T @ by_log_jump
            parts += score.score_residuals() @ (self._inverse_information().T @ slope)
        result[self._used[score.sets.order]] = parts * score.sets.weight[:, None]
        return self._per_subject(result)

    def coefficient_influence(self) -> np.ndarray:
        """Each subject's influence on ``coef_``, (n, p); infinite where the data do not determine it."""
        p = len(self.coef_)
        if not self._determined:
            return np.full((self._n, p), np.inf)
        return self.influence(np.zeros((len(self.baseline_times_), p)), np.eye(p))
