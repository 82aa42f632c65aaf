"""The Kaplan-Meier estimator, and drop-out between visits by it."""

from __future__ import annotations

from typing import Self

import numpy as np

from censcore._arrays import Array, ArrayLike, Covariates
from censcore.distributions import Grouped, Step, Univariate
from censcore.estimators.nonparametric.curve_inference import CurveInference
from censcore.estimators.risk_sets import RiskSets, strata_of
from censcore.estimators.survival_estimator import one_event_time
from censcore.exceptions import InvalidInputError
from censcore.outcomes import OutcomeLike

AT_RISK = 10  # subjects, at least, for a hazard of drop-out of its own
_FIELDS = ["time", "at_risk", "events", "sf", "variance"]


class KaplanMeier(CurveInference):
    r"""Product-limit estimate of the distribution of an event time, for all subjects or per stratum.

    .. math:: P(T>t)=\prod_{t_i\le t}\Bigl(1-\frac{d_i}{n_i}\Bigr)

    over the distinct event times, with :math:`d_i` events among the :math:`n_i` subjects at risk, those with
    a time of at least :math:`t_i`: subjects censored at :math:`t_i` are still at risk there. Consistent if
    censoring is independent of T (within a stratum). The probability left after the last event is placed
    at infinity.

    With delayed entry a subject is at risk from its entry on, entry < :math:`t_i` <= time, and T is assumed
    independent of the entry (Tsai, Jewell and Wang [3]_). Where few subjects are at risk early, all of them
    may have the event; the curve is zero from there on, whatever comes later. A
    :class:`~censcore.exceptions.RiskSetWarning` says so, and ``fit(X, y.after(s))`` estimates the
    distribution given T > s, from a time s at which enough subjects are at risk.

    Parameters
    ----------
    stratify : str or int, optional
        A column of X: curves for each of its values.

    Attributes
    ----------
    event_table_ : structured array
        One entry per stratum and distinct event time: ``stratum`` (its number in ``strata_``), ``time``,
        ``at_risk`` and ``events`` (sums of the weights), ``sf`` after the time, and ``variance``, Greenwood's
        formula [2]_ :math:`S^2\sum d_i/\{n_i(n_i-d_i)\}`, valid for weights that are counts.
    strata_ : array
        Values of the stratifying column, sorted; one entry without stratification.
    distributions_ : list of Step
        The curve of each stratum.

    See Also
    --------
    CoxRegression : Survival curves that depend on covariates.
    censcore.Censoring : The same estimator for the censoring distribution.

    References
    ----------
    .. [1] E. L. Kaplan and P. Meier (1958). Nonparametric estimation from incomplete observations. Journal
       of the American Statistical Association 53, 457-481.
    .. [2] M. Greenwood (1926). The natural duration of cancer. Reports on Public Health and Medical Subjects
       33, 1-26.
    .. [3] W.-Y. Tsai, N. P. Jewell and M.-C. Wang (1987). A note on the product-limit estimator under right
       censoring and left truncation. Biometrika 74, 883-886.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.RightCensored(time=[1.0, 2.0, 2.0, 3.0, 4.0], event=[1, 1, 0, 1, 0])
    >>> distribution = cs.KaplanMeier().fit(None, y).predict_distribution()
    >>> distribution.sf([[1.0, 2.0, 3.0, 9.0]]).round(3)
    array([[0.8, 0.6, 0.3, 0.3]])
    >>> late = cs.RightCensored(y.time, y.event, entry=[0.0, 0.0, 1.5, 1.0, 0.0])
    >>> cs.KaplanMeier().fit(None, late).event_table_["at_risk"]
    array([3., 4., 2.])
    """

    takes_intervals = True

    def fit(self, X: Covariates | None, y: OutcomeLike, sample_weight: ArrayLike | None = None) -> Self:
        """Estimate the curves; only the stratifying column of X is used.

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
        y = one_event_time(y, "KaplanMeier", entry=True)
        self._keep(X, y, sample_weight)
        tables = [event_table(sets, number) for number, (_, sets) in enumerate(self._sets)]
        for table, (_, sets) in zip(tables, self._sets, strict=True):
            sets.warn_where_over(table["sf"] == 0)
        self.event_table_ = np.concatenate(tables)
        self.distributions_ = [_curve(table).like(y.time) for table in tables]
        return self

    def predict_distribution(self, X: Covariates | None = None) -> Univariate:
        """Predict the curve of all subjects; with strata, of the stratum of each, which X must hold.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates, as in ``fit``.

        Returns
        -------
        Distribution
            One distribution per subject of X, or one for all subjects where covariates play no part.
        """
        self.check_fitted()
        if self.stratify is None:
            return self.distributions_[0]
        numbers, row_value = strata_of(X, self.stratify, self.strata_)
        return Grouped([self.distributions_[number] for number in numbers], row_value)

    def influence(self, hazard_derivative: ArrayLike) -> np.ndarray:
        r"""Compute what each training subject contributes to functionals of the fitted curves, (n, q).

        With :math:`a_u=\log(1-d_u/n_u)`, so that :math:`\log P(T>t)=\sum_{u\le t}a_u`, the result is

        .. math:: w_i\frac{\partial\theta}{\partial w_i}=-w_i\sum_u\frac{\partial\theta}{\partial a_u}\,
            \frac{\mathbb 1\{i\in D_u\}-\mathbb 1\{i\in R_u\}\,d_u/n_u}{n_u-d_u}

        with failures :math:`D_u` and risk set :math:`R_u`. It sums to zero over the subjects, and the sum of
        its squares estimates the variance of :math:`\theta`, as :meth:`CoxRegression.influence` does.

        Parameters
        ----------
        hazard_derivative : array, (J, q)
            Derivatives of q functionals with respect to :math:`a_u`, one row per entry of ``event_table_``.
            Entries are ignored at a time where everybody at risk has the event.

        Examples
        --------
        >>> import numpy as np, censcore as cs
        >>> model = cs.KaplanMeier().fit(None, cs.RightCensored([1.0, 2.0, 3.0, 4.0], [1, 0, 1, 0]))
        >>> model.influence(np.ones((2, 1))).ravel().round(3)  # of log P(T > 3)
        array([-0.25 ,  0.083, -0.417,  0.583])
        """
        self.check_fitted()
        table, D = self.event_table_, np.asarray(hazard_derivative, dtype=np.float64)
        if D.ndim != 2 or len(D) != len(table):
            raise InvalidInputError(
                f"hazard_derivative: got shape {D.shape}, expected ({len(table)}, q), one row per entry of "
                "event_table_."
            )
        result = np.zeros((self._n, D.shape[1]))
        for number, (rows, sets) in enumerate(self._sets):
            here = table["stratum"] == number
            derivatives = table_influence(table[here], sets, D[here])
            result[rows] = np.multiply(sets.weight[:, None], derivatives, out=derivatives)
        return self._per_subject(result)

    def _curves(self, times: np.ndarray) -> np.ndarray:
        return self._per_stratum("sf", 1.0, times)

    def _greenwood(self, times: np.ndarray) -> np.ndarray:
        return self._per_stratum("variance", 0.0, times)

    def _per_stratum(self, field: str, start: float, times: np.ndarray) -> np.ndarray:
        """A column of the event table at times, (s, q)."""
        tables = [self.event_table_[self.event_table_["stratum"] == i] for i in range(len(self.strata_))]
        return np.stack([at_times(table["time"], table[field], start, times) for table in tables])

    def _influences(self, times: np.ndarray) -> np.ndarray:
        """S(t) times the influence on log S(t)."""
        S, table = self._curves(times), self.event_table_
        of_stratum = table["stratum"][:, None] == np.arange(len(S))
        D = of_stratum[:, :, None] & (table["time"][:, None, None] <= times)
        parts = self.influence(D.reshape(len(D), S.size).astype(np.float64))
        return S * parts.reshape(-1, *S.shape)


class DropOut(KaplanMeier):
    r"""The Kaplan-Meier estimate of the number M of the last visit attended, with a pooled tail.

    .. math:: P(M>k)=\prod_{j\le k}(1-h_j),\qquad h_j=d_j/n_j

    where :math:`d_j` of the :math:`n_j` subjects at risk leave after visit j. Beyond the last number K with
    ten subjects at risk all numbers share one hazard, :math:`h=\sum_{j\ge K}d_j/\sum_{j\ge K}n_j`, so that a
    few subjects with many visits do not make it zero or one. ``Censoring(KaplanMeier())`` uses it for
    detection times with visits (``IntervalCensored.detection``).

    Parameters
    ----------
    stratify : str or int, optional
        A column of X: curves for each of its values.

    Attributes
    ----------
    event_table_ : structured array
        One entry per stratum and distinct event time: ``stratum`` (its number in ``strata_``), ``time``,
        ``at_risk`` and ``events`` (sums of the weights), ``sf`` after the time, and ``variance``, Greenwood's
        formula [2]_ :math:`S^2\sum d_i/\{n_i(n_i-d_i)\}`, valid for weights that are counts.
    strata_ : array
        Values of the stratifying column, sorted; one entry without stratification.
    distributions_ : list of Step
        The curve of each stratum.
    """

    def fit(self, X: Array | None, y: OutcomeLike, sample_weight: Array | None = None) -> Self:
        """Estimate the hazards from the flipped outcome, in which leaving is the event.

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
        super().fit(X, y, sample_weight)
        tables, first = [], []
        for number, curve in enumerate(self.distributions_):
            table, start = self._pooled(number)
            tables.append(table)
            first.append(np.full(len(table), start))
            self.distributions_[number] = _curve(table).like(curve.reference)
        self.event_table_, self._pooled_from = np.concatenate(tables), np.concatenate(first)
        return self

    def _pooled(self, stratum: int) -> tuple[np.ndarray, float]:
        """The table of a stratum with one entry per number in its pooled tail, and where the tail begins."""
        sets = self._sets[stratum][1]
        time, w, leaves = sets.time, sets.weight, np.zeros(len(sets.time), dtype=bool)
        leaves[sets.failed] = True
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


def at_times(jumps: np.ndarray, values: np.ndarray, start: float, times: np.ndarray) -> np.ndarray:
    """What a step function with ``values`` (..., J) after its jumps is at times, (..., q)."""
    first = np.full((*values.shape[:-1], 1), start)
    return np.concatenate([first, values], axis=-1)[..., np.searchsorted(jumps, times, side="right")]


def table_influence(table: np.ndarray, sets: RiskSets, D: np.ndarray) -> np.ndarray:
    """Derivatives by the weights, in the order of the sets, for derivatives D by log(1 - d / n)."""
    n, d, left = table["at_risk"], table["events"], table["sf"] > 0
    slope = D / np.where(left, n - d, 1.0)[:, None]
    slope[~left] = 0.0
    times, passed = table["time"], np.zeros((len(D) + 1, D.shape[1]))
    np.cumsum(slope * (d / n)[:, None], axis=0, out=passed[1:])
    values = passed[np.searchsorted(times, sets.time, side="right")]
    if sets.entry is not None:
        values -= passed[np.searchsorted(times, sets.entry, side="right")]
    values[sets.failed] -= slope[np.searchsorted(times, sets.times)[sets.jump]]
    return values


def event_table(sets: RiskSets, stratum: int = 0) -> np.ndarray:
    """Numbers at risk and of events at the distinct event times, and the curve made of them."""
    table = np.zeros(len(sets.times), dtype=[("stratum", np.intp), *((name, np.float64) for name in _FIELDS)])
    n, s = sets.at_risk(sets.weight)  # s is zero exactly where all at risk have the event; n - d might not be
    d, left = sets.d, s > 0
    table["stratum"], table["time"], table["at_risk"], table["events"] = stratum, sets.times, n, d
    table["sf"] = np.cumprod(s / (s + d))
    table["variance"][left] = table["sf"][left] ** 2 * np.cumsum(d[left] / (n[left] * s[left]))
    return table


def _curve(table: np.ndarray) -> Step:
    """The distribution of an event table; without any event all mass sits at infinity."""
    times, sf = (table["time"], table["sf"]) if len(table) else (np.zeros(1), np.ones(1))
    curve = Step.trusted(times[None, :], sf[None, :], falls=True)
    curve.is_estimate = True
    return curve
