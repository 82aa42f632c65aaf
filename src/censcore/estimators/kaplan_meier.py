"""The Kaplan-Meier estimator."""

from __future__ import annotations

from typing import Any, Self

import numpy as np

from censcore._arrays import to_numpy
from censcore._validation import name_rows
from censcore.distributions import Grouped, Step, Univariate
from censcore.estimators._base import SurvivalEstimator, one_event_time
from censcore.estimators._covariates import check_rows, check_weights, column_of
from censcore.exceptions import InvalidInputError

__all__ = ["KaplanMeier"]

_FIELDS = ["time", "at_risk", "events", "sf", "variance"]


class KaplanMeier(SurvivalEstimator):
    r"""Product-limit estimate of the law of an event time, for all rows or per stratum.

    .. math:: P(T>t)=\prod_{t_i\le t}\Bigl(1-\frac{d_i}{n_i}\Bigr)

    over the distinct event times, with :math:`d_i` events among the :math:`n_i` rows with a time of at
    least :math:`t_i`: rows censored at :math:`t_i` are still at risk there. Consistent if censoring is
    independent of T (within a stratum). What the curve leaves after the last event sits at infinity.

    Parameters
    ----------
    stratify : str or int, optional
        A column of X: one curve for each of its values.

    Attributes
    ----------
    event_table_ : structured array
        One entry per stratum and distinct event time: ``stratum`` (its number in ``strata_``), ``time``,
        ``at_risk`` and ``events`` (sums of the weights), ``sf`` after the time, and ``variance``, Greenwood's
        :math:`S^2\sum d_i/\{n_i(n_i-d_i)\}`, meant for weights that are counts.
    strata_ : array
        Values of the stratifying column, sorted; one entry without stratification.
    laws_ : list of Step
        The curve of each stratum.

    Examples
    --------
    >>> import censcore as cs
    >>> y = cs.RightCensored(time=[1.0, 2.0, 2.0, 3.0, 4.0], event=[1, 1, 0, 1, 0])
    >>> law = cs.KaplanMeier().fit(None, y).predict_distribution()
    >>> law.sf([[1.0, 2.0, 3.0, 9.0]]).round(3)
    array([[0.8, 0.6, 0.3, 0.3]])
    """

    represents_atoms = True

    def __init__(self, stratify: str | int | None = None) -> None:
        self.stratify = stratify

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Estimate the curves; X may be None without strata."""
        y = one_event_time(y, "KaplanMeier")
        check_rows(X, len(y))
        weight = check_weights(sample_weight, len(y))
        time, event = to_numpy(y.time), to_numpy(y.event)
        self.strata_, stratum = self._strata(X, len(y))
        tables = []
        for number in range(len(self.strata_)):
            rows = stratum == number
            tables.append(_event_table(time[rows], event[rows], weight[rows]))
            tables[-1]["stratum"] = number
        self.event_table_ = np.concatenate(tables)
        self._subjects = (time, event, weight, stratum)
        self.laws_ = [_curve(table).like(y.time) for table in tables]
        return self

    def _strata(self, X: Any, n: int) -> tuple[np.ndarray, np.ndarray]:
        if self.stratify is None:
            return np.array(["all"]), np.zeros(n, dtype=np.intp)
        return _distinct(column_of(X, self.stratify), self.stratify)

    def predict_distribution(self, X: Any = None) -> Univariate:
        """The fitted curve, one for all rows; with strata the curve of each row of X."""
        self._check_fitted()
        if self.stratify is None:
            return self.laws_[0]
        values, row_value = _distinct(column_of(X, self.stratify), self.stratify)
        number = {stratum: i for i, stratum in enumerate(self.strata_.tolist())}
        unknown = [value for value in values.tolist() if value not in number]
        if unknown:
            raise InvalidInputError(
                f"Column {self.stratify!r} has values that were not seen in fitting: {unknown[:5]}; the "
                f"strata are {self.strata_[:10].tolist()}."
            )
        return Grouped([self.laws_[number[value]] for value in values.tolist()], row_value)

    def influence(self, hazard_derivative: np.ndarray) -> np.ndarray:
        r"""What a smooth function of the estimated hazards owes to every training subject.

        With :math:`A(u)` its derivative with respect to :math:`\log\{1-d\Lambda(u)\}`, a subject r of weight
        :math:`w_r` contributes

        .. math:: -w_r\sum_u\frac{A(u)}{1-d\Lambda(u)}\,\frac{dN_r(u)-Y_r(u)\,d\Lambda(u)}{Y(u)},

        where Y(u) is the weight at risk at u in the subject's stratum and :math:`d\Lambda=d/Y`. The sum of
        squares is the variance of the function: Greenwood's formula for equal weights, the sandwich for
        sampling weights.

        Parameters
        ----------
        hazard_derivative : array, (J, q)
            A(u) of q functions, one entry for each of ``event_table_``. Entries are ignored at a time where
            everybody at risk has the event: there :math:`1-d\Lambda(u)=0` whatever the weights.

        Returns
        -------
        array, (n, q)
            One entry per training subject.

        References
        ----------
        Andersen, P. K., Borgan, O., Gill, R. D. and Keiding, N. (1993). Statistical Models Based on
        Counting Processes. Springer. Section IV.3.

        Examples
        --------
        The logarithm of the curve after the second event has the derivative (1, 1, 0):

        >>> import numpy as np, censcore as cs
        >>> y = cs.RightCensored(time=[1.0, 2.0, 2.0, 3.0, 4.0], event=[1, 1, 0, 1, 0])
        >>> model = cs.KaplanMeier().fit(None, y)
        >>> xi = model.influence(np.array([[1.0], [1.0], [0.0]]))
        >>> table = model.event_table_[1]
        >>> bool(np.isclose((xi**2).sum(), table["variance"] / table["sf"] ** 2))
        True
        """
        self._check_fitted()
        A = np.asarray(hazard_derivative, dtype=np.float64)
        if A.ndim != 2 or len(A) != len(self.event_table_):
            raise InvalidInputError(
                f"hazard_derivative: got shape {A.shape}, expected ({len(self.event_table_)}, q), one line "
                "per entry of event_table_."
            )
        time, event, weight, stratum = self._subjects
        xi = np.zeros((len(time), A.shape[1]))
        for number in range(len(self.strata_)):
            inside, of_table = stratum == number, self.event_table_["stratum"] == number
            xi[inside] = _influence(self.event_table_[of_table], A[of_table], time[inside], event[inside])
        return weight[:, None] * xi


def _influence(table: np.ndarray, A: np.ndarray, time: np.ndarray, event: np.ndarray) -> np.ndarray:
    """The influence of subjects of weight one on a curve with this event table."""
    d, Y = table["events"][:, None], table["at_risk"][:, None]
    c = np.where(table["sf"][:, None] > 0, A, 0.0) / np.where(table["sf"][:, None] > 0, Y - d, 1.0)
    passed = np.searchsorted(table["time"], time, side="right")
    compensator = np.concatenate([np.zeros((1, A.shape[1])), np.cumsum(c * d / Y, axis=0)])[passed]
    if not len(table):
        return compensator
    last = np.maximum(passed - 1, 0)
    jumped = event & (passed > 0) & (table["time"][last] == time)
    return compensator - np.where(jumped[:, None], c[last], 0.0)


def _distinct(column: np.ndarray, name: str | int) -> tuple[np.ndarray, np.ndarray]:
    """The distinct values of a column, and which of them each row has."""
    missing = np.array([value is None or value != value for value in column.tolist()])
    if missing.any():
        raise InvalidInputError(
            f"The stratifying column {name!r} is missing in {name_rows(np.nonzero(missing)[0])}. Leave these "
            "rows out, or give them a value of their own."
        )
    values, number = np.unique(column, return_inverse=True)
    return values, number.reshape(-1)


def _event_table(time: np.ndarray, event: np.ndarray, weight: np.ndarray) -> np.ndarray:
    """Numbers at risk and of events at the distinct event times, and the curve made of them."""
    distinct, number = np.unique(time, return_inverse=True)
    died = np.bincount(number, weight * event, minlength=len(distinct))
    left = np.bincount(number, weight * ~event, minlength=len(distinct))
    at_risk = np.cumsum((died + left)[::-1])[::-1]
    # left + later is zero exactly where all at risk have the event; at_risk - died might not be
    survivors = left + np.append(at_risk[1:], 0.0)
    jump = died > 0
    table = np.zeros(jump.sum(), dtype=[("stratum", np.intp), *((name, np.float64) for name in _FIELDS)])
    table["time"], table["at_risk"], table["events"] = distinct[jump], at_risk[jump], died[jump]
    n, d, s = table["at_risk"], table["events"], survivors[jump]
    table["sf"] = np.cumprod(s / (s + d))
    some = s > 0
    table["variance"][some] = table["sf"][some] ** 2 * np.cumsum(d[some] / (n[some] * s[some]))
    return table


def _curve(table: np.ndarray) -> Step:
    """The law of an event table; without any event all mass sits at infinity."""
    times, sf = (table["time"], table["sf"]) if len(table) else (np.zeros(1), np.ones(1))
    return Step._trusted(times[None, :], sf[None, :], falls=True)
