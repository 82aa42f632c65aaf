"""Standard errors and confidence intervals of curves: of those without a model, and by the jackknife."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.special import expit, logit

from censcore._arrays import ArrayLike, to_numpy
from censcore._validation import as_confidence, as_numbers, check_flag, check_option
from censcore.estimators.covariates import check_rows, check_weights
from censcore.estimators.regression.base import sum_in_groups
from censcore.estimators.risk_sets import RiskSets, at_risk_weights, entries_of, fitted_strata
from censcore.estimators.survival_estimator import SurvivalEstimator
from censcore.outcomes import RightCensored

#: Scales on which an interval is symmetric: of p, its derivative, and back.
_TRANSFORMS: dict[str, tuple[Callable[[np.ndarray], np.ndarray], ...]] = {
    "log-log": (lambda p: np.log(-np.log(p)), lambda p: 1 / (p * np.log(p)), lambda u: np.exp(-np.exp(u))),
    "log": (np.log, lambda p: 1 / p, np.exp),
    "logit": (logit, lambda p: 1 / (p * (1 - p)), expit),
    "arcsin": (
        lambda p: np.arcsin(np.sqrt(p)),
        lambda p: 0.5 / np.sqrt(p * (1 - p)),
        lambda u: np.sin(np.clip(u, 0.0, np.pi / 2)) ** 2,
    ),
    "plain": (np.asarray, np.ones_like, np.asarray),
}


class CurveInference(SurvivalEstimator):
    """Base class of Kaplan-Meier and Aalen-Johansen: errors of their curves, one per stratum (and cause).

    A subclass gives the curves at times, Greenwood's variances and each subject's influence.

    Parameters
    ----------
    stratify : str or int, optional
        A column of X: curves for each of its values.
    """

    represents_atoms = True
    strata_: np.ndarray

    def __init__(self, stratify: str | int | None = None) -> None:
        self.stratify = stratify

    def _keep(self, X: Any, y: RightCensored, sample_weight: Any) -> None:
        """Keep the risk sets of each stratum, and the numbers of its subjects in their order."""
        self._n, self._sets = len(y), list[tuple[np.ndarray, RiskSets]]()
        check_rows(X, self._n)
        weight, entry = at_risk_weights(y, check_weights(sample_weight, self._n)), entries_of(y)
        time, event = to_numpy(y.time), to_numpy(y.event)
        self.strata_, stratum = fitted_strata(X, self.stratify, self._n)
        for number in range(len(self.strata_)):
            rows = np.nonzero((stratum == number) & (weight > 0))[0]
            sets = RiskSets(time[rows], event[rows], weight[rows], None if entry is None else entry[rows])
            self._sets.append((rows[sets.order], sets))

    @abstractmethod
    def _curves(self, times: np.ndarray) -> np.ndarray:
        """The curves at times, (s, q) or (s, m, q)."""

    @abstractmethod
    def _greenwood(self, times: np.ndarray) -> np.ndarray:
        """Variances of the same shape, weights being counts."""

    @abstractmethod
    def _influences(self, times: np.ndarray) -> np.ndarray:
        """Each subject's weight times the derivative of the curves by it, (n, ...)."""

    def standard_errors(
        self, times: ArrayLike, *, robust: bool = False, groups: ArrayLike | None = None
    ) -> np.ndarray:
        r"""Compute the standard errors of the curves.

        Parameters
        ----------
        times : array, (q,)
            Where.
        robust : bool
            Greenwood's formula, with weights as counts, if False. Otherwise the influence of each subject,
            :math:`\sum_i(w_i\,\partial\theta/\partial w_i)^2`, for any weights. Without weights and delayed
            entry they are equal.
        groups : array, (n,), optional
            Cluster of each subject given to ``fit``; implies ``robust``.

        Returns
        -------
        array, (s, q) or (s, m, q)
            Per stratum (as in ``strata_``), cause where there are several, and time. Zero before the first
            event; also where nobody is left at risk.
        """
        self.check_fitted()
        check_flag(robust, "robust")
        at = as_numbers(times, "times")
        if not robust and groups is None:
            return np.sqrt(self._greenwood(at))
        parts = self._influences(at)
        return np.sqrt((sum_in_groups(parts, self._clusters(groups)) ** 2).sum(axis=0))

    def confidence_interval(
        self,
        times: ArrayLike,
        level: float = 0.95,
        transform: str = "log-log",
        *,
        robust: bool = False,
        groups: ArrayLike | None = None,
    ) -> np.ndarray:
        r"""Compute pointwise confidence intervals of the curves p: survival, or cumulative incidence.

        Parameters
        ----------
        times : array, (q,)
            Where.
        level : float
            Between 0 and 1.
        transform : "log-log", "log", "logit", "arcsin" or "plain"
            The scale on which the interval is symmetric: :math:`\log(-\log p)`, :math:`\log p`,
            :math:`\log\{p/(1-p)\}`, :math:`\arcsin\sqrt p` or p, as in R's ``survfit``, whose ``conf.type``
            has the same names. Ends beyond 0 and 1 are cut off there.
        robust, groups
            As in :meth:`standard_errors`.

        Returns
        -------
        array, (s, q, 2) or (s, m, q, 2)
            Lower and upper ends. NaN where p is zero (but for "plain") or one (but for "plain" and "log"):
            the formulas are undefined there.
        """
        from scipy.stats import norm

        check_option(transform, "transform", tuple(_TRANSFORMS))
        z = norm.ppf((1 + as_confidence(level, "level")) / 2)
        error = self.standard_errors(times, robust=robust, groups=groups)
        p = self._curves(as_numbers(times, "times"))
        scale, slope, back = _TRANSFORMS[transform]
        with np.errstate(divide="ignore", invalid="ignore"):
            ends = [back(scale(p) + side * z * error * slope(p)) for side in (-1, 1)]
        return np.clip(np.sort(np.stack(ends, axis=-1), axis=-1), 0.0, 1.0)


def jackknife_interval(p: np.ndarray, without: np.ndarray, level: float) -> np.ndarray:
    r"""Compute intervals (..., 2) of probabilities p from those of G fits without one group each, (G, ...).

    On the scale :math:`a(p)=\arcsin\sqrt p`, on which the variance of a share does not depend on it,

    .. math:: a(p)\pm t_{G-1}\Big[\frac{G-1}G\sum_{g=1}^G\{a(p_{(g)})-\bar a\}^2\Big]^{1/2},

    with the quantile of Student's t of G - 1 degrees of freedom [1]_.

    References
    ----------
    .. [1] P. S. Kott (2001). The delete-a-group jackknife. Journal of Official Statistics 17, 521-526.

    Examples
    --------
    >>> jackknife_interval(np.array(0.2), np.array([0.18, 0.2, 0.21, 0.19, 0.22]), 0.95).round(2)
    array([0.13, 0.28])
    """
    from scipy.special import stdtrit

    G, (scale, _, back) = len(without), _TRANSFORMS["arcsin"]
    a = scale(without)
    error = np.sqrt((G - 1) / G * ((a - a.mean(axis=0)) ** 2).sum(axis=0))
    reach = stdtrit(G - 1, (1 + level) / 2) * error
    return back(np.stack([scale(p) + side * reach for side in (-1, 1)], axis=-1))
