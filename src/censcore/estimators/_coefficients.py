"""Standard errors, confidence intervals and a table for regression coefficients."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.estimators._base import SurvivalEstimator
from censcore.exceptions import InvalidInputError

__all__ = ["CoefficientInference", "CoefficientTable"]


class CoefficientInference(SurvivalEstimator):
    """Inference for a regression with ``coef_``, ``covariance_`` and an influence of each subject on them."""

    coef_: np.ndarray
    covariance_: np.ndarray

    @abstractmethod
    def _coefficient_influence(self) -> np.ndarray:
        """w_i times the derivative of the estimates by the weight of subject i, (n, number of estimates)."""

    def _estimates(self) -> tuple[list[str], np.ndarray]:
        """Names and values of what ``covariance_`` is about."""
        names = getattr(self, "feature_names_in_", [f"column {j}" for j in range(len(self.coef_))])
        return [str(name) for name in names], self.coef_

    def robust_covariance(self, groups: Any = None) -> np.ndarray:
        r"""Sandwich covariance of the estimates: squared influences of subjects or clusters, summed.

        .. math:: \sum_g\Bigl(\sum_{i\in g}w_i\frac{\partial\hat\gamma}{\partial w_i}\Bigr)
            \Bigl(\sum_{i\in g}w_i\frac{\partial\hat\gamma}{\partial w_i}\Bigr)^\top

        It needs neither the model to be right nor weights to be counts, and with ``groups`` not even subjects
        to be independent within a group. It is too small where groups are few (below about 30).

        Parameters
        ----------
        groups : array, (n,), optional
            Cluster of each subject given to ``fit``; each subject is a cluster if omitted.

        References
        ----------
        D. Y. Lin and L. J. Wei (1989). The robust inference for the Cox proportional hazards model. Journal
        of the American Statistical Association 84, 1074-1078.
        """
        self._check_fitted()
        parts = self._coefficient_influence()
        if not np.isfinite(parts).all():
            return np.full((parts.shape[1], parts.shape[1]), np.inf)
        if groups is not None:
            groups = to_numpy(groups)
            if groups.shape != (len(parts),):
                raise InvalidInputError(
                    f"groups: got shape {groups.shape}, expected ({len(parts)},), one per subject of fit."
                )
            _, number = np.unique(groups, return_inverse=True)
            sums = np.zeros((number.max() + 1, parts.shape[1]))
            np.add.at(sums, number, parts)
            parts = sums
        return parts.T @ parts

    def confidence_interval(
        self, level: float = 0.95, *, robust: bool = False, groups: Any = None
    ) -> np.ndarray:
        """Wald intervals of the estimates, lower and upper ends, (number of estimates, 2).

        Parameters
        ----------
        level : float
            Between 0 and 1.
        robust : bool
            Use :meth:`robust_covariance` instead of ``covariance_``.
        groups : array, (n,), optional
            Cluster of each subject; implies ``robust``.
        """
        table = self.summary(level, robust=robust, groups=groups)
        return np.column_stack([table.lower, table.upper])

    def summary(self, level: float = 0.95, *, robust: bool = False, groups: Any = None) -> CoefficientTable:
        """A table of the estimates: value, exp(value), standard error, z, p and confidence interval.

        Print it, or call ``.to_frame()`` for a pandas frame. Arguments as in :meth:`confidence_interval`.
        """
        from scipy.stats import norm

        self._check_fitted()
        if not 0 < level < 1:
            raise InvalidInputError(f"level: got {level}, expected a number between 0 and 1.")
        robust = robust or groups is not None
        covariance = self.robust_covariance(groups) if robust else self.covariance_
        names, value = self._estimates()
        error = np.sqrt(np.diag(covariance))
        z = value / error
        p = np.maximum(2 * norm.sf(np.abs(z)), np.finfo(float).tiny)  # positive, where it underflows
        reach = norm.ppf((1 + level) / 2) * error
        kind = "model-based"
        if robust:
            kind = "robust" if groups is None else "robust, by groups"
        return CoefficientTable(names, value, error, z, p, value - reach, value + reach, level, kind)


@dataclass(frozen=True)
class CoefficientTable:
    """Estimates of a regression with their uncertainty; prints as a table."""

    names: list[str]
    coef: np.ndarray
    standard_error: np.ndarray
    z: np.ndarray
    p: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    level: float
    kind: str

    def to_frame(self) -> Any:
        """The table as a pandas frame, one line per estimate."""
        import pandas as pd

        columns = {
            "coef": self.coef,
            "exp(coef)": np.exp(self.coef),
            "se": self.standard_error,
            "z": self.z,
            "p": self.p,
            "lower": self.lower,
            "upper": self.upper,
        }
        return pd.DataFrame(columns, index=self.names)

    def __str__(self) -> str:
        width = max([len(name) for name in self.names], default=0)
        titles = ("coef", "exp(coef)", "se", "z", "p", "lower", "upper")
        lines = [" " * width + "".join(f"{title:>11}" for title in titles)]
        numbers = (self.coef, np.exp(self.coef), self.standard_error, self.z, self.p, self.lower, self.upper)
        for name, *values in zip(self.names, *numbers, strict=True):
            words = [f"{value:.4g}" for value in values]
            words[4] = _p_value(values[4])
            lines.append(f"{name:{width}}" + "".join(f"{word:>11}" for word in words))
        lines.append(f"{self.kind} standard errors, {100 * self.level:.4g} % confidence intervals")
        return "\n".join(lines)

    __repr__ = __str__


def _p_value(p: float) -> str:
    if p < 1e-16:
        return "<1e-16"
    return f"{p:.3f}" if p >= 0.001 else f"{p:.1e}"
