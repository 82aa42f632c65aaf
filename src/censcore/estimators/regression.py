"""What the regressions share: standardised covariates, Newton's method, inference for coefficients."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from censcore._arrays import to_numpy
from censcore.estimators.base import SurvivalEstimator
from censcore.exceptions import InvalidInputError

__all__ = [
    "CoefficientInference",
    "CoefficientTable",
    "Derivatives",
    "StandardisedColumns",
    "find_root",
    "maximise",
]


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


# ---- covariates ------------------------------------------------------------------------------


@dataclass(frozen=True)
class StandardisedColumns:
    """Centred and scaled columns Z of X, in which a regression is fitted and from which it is mapped back."""

    Z: np.ndarray
    center: np.ndarray
    scale: np.ndarray
    names: list[str]

    @classmethod
    def of(cls, X: np.ndarray, weight: np.ndarray, estimator: Any) -> StandardisedColumns:
        """Weighted means and standard deviations; constant columns are centred and not scaled."""
        share = weight / weight.sum()
        center = share @ X
        spread = np.sqrt(share @ (X - center) ** 2)
        constant = spread <= 1e-12 * np.maximum(np.abs(center), np.finfo(float).tiny)
        scale = np.where(constant, 1.0, spread)
        Z = np.where(constant, 0.0, (X - center) / scale)
        names = getattr(estimator, "feature_names_in_", [f"column {j}" for j in range(X.shape[1])])
        return cls(Z, center, scale, [str(name) for name in names])

    def check_collinear(self, weight: np.ndarray, estimator: str) -> None:
        """Without a penalty, linearly dependent columns leave the coefficients undetermined."""
        gram = (self.Z * (weight / weight.sum())[:, None]).T @ self.Z
        values, vectors = np.linalg.eigh(gram)
        if values[0] < 1e-10:
            raise InvalidInputError(
                f"The columns {self._largest(vectors[:, 0])} are constant or linear combinations of each "
                "other, so their coefficients are not determined. Drop one of them, or add a penalty: "
                f"{estimator}(alpha=...)."
            )

    def _largest(self, direction: np.ndarray) -> list[str]:
        involved = np.abs(direction) > 0.05 * np.abs(direction).max()
        return [name for name, there in zip(self.names, involved, strict=True) if there][:10]

    def check_separation(self, information: np.ndarray, estimator: str) -> None:
        """Where the likelihood grows without end in some direction, its curvature there is nil.

        The last rows and columns of ``information`` belong to the columns of X, others may come before.
        """
        values, vectors = np.linalg.eigh(information)
        if values[0] < 1e-6:
            raise InvalidInputError(
                f"The likelihood grows without end in {self._largest(vectors[-len(self.names) :, 0])}, which "
                "happens when a column tells rows with an event from rows without (a group without events, "
                "or fewer events than columns). Drop it, merge its groups, or add a penalty: "
                f"{estimator}(alpha=...)."
            )


# ---- Newton's method -------------------------------------------------------------------------

#: Value, gradient and minus Hessian at a point; the value is -inf outside the domain.
Derivatives = tuple[float, np.ndarray, np.ndarray]


def maximise(
    f: Callable[[np.ndarray], Derivatives], start: np.ndarray, tolerance: float = 1e-10, steps: int = 200
) -> tuple[np.ndarray, np.ndarray]:
    """The maximum of a concave function and minus its Hessian there.

    Ends when the Newton decrement says that less than ``tolerance`` is left to gain, after which one more
    full step doubles the number of right digits.
    """
    x = start
    value, gradient, curvature = f(x)
    for _ in range(steps):
        step = _solve(curvature, gradient)
        gain = float(gradient @ step)
        x, (value, gradient, curvature) = _search(f, x, step, value, gain)
        if gain < 2 * tolerance:
            return x, curvature
    raise InvalidInputError(
        f"The likelihood was not maximised in {steps} steps; {gain / 2:.3g} is still to gain. Rescale the "
        "columns of X, drop extreme values, or add a penalty (alpha)."
    )


def _solve(curvature: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """The Newton step; a flat direction, of which the gradient has no part, is left alone."""
    unit = np.sqrt(np.maximum(np.diag(curvature), np.finfo(float).tiny))
    values, vectors = np.linalg.eigh(curvature / np.outer(unit, unit))
    kept = values > 1e-13
    return vectors[:, kept] @ ((vectors[:, kept].T @ (gradient / unit)) / values[kept]) / unit


def _search(
    f: Callable[[np.ndarray], Derivatives], x: np.ndarray, step: np.ndarray, value: float, gain: float
) -> tuple[np.ndarray, Derivatives]:
    """Halve the step until it brings a fair part of what it promises; rounding may hide the last of it."""
    rounding = 1e-13 * abs(value)
    for halvings in range(60):
        size = 0.5**halvings
        found = f(x + size * step)
        if found[0] >= value + 0.1 * size * gain - rounding:
            return x + size * step, found
    return x, f(x)


def find_root(
    f: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray] | None],
    start: np.ndarray,
    tolerance: float = 1e-10,
    steps: int = 200,
) -> tuple[np.ndarray, np.ndarray]:
    """The root of an estimating function that falls, and minus its derivative there.

    ``f`` gives the function and minus its derivative, or None outside its domain. Along a Newton step the
    function must shrink, by a part of the step's size; a step across the root that ends farther away than it
    began is halved. Ends as :func:`maximise` does.
    """
    x = start
    found = f(x)
    if found is None:
        raise InvalidInputError("The risks underflow at the start. Rescale the columns of X.")
    value, slope = found
    for _ in range(steps):
        step = _solve_general(slope, value)
        gain = float(value @ step)
        new = _shrink(f, x, step, gain, gain < 2 * tolerance)
        if new is None and gain < 1e-6:  # rounding hides what is left
            return x, slope
        if new is None:
            break
        x, (value, slope) = new
        if gain < 2 * tolerance:
            return x, slope
    raise InvalidInputError(
        f"The estimating equations have no solution that can be found; a gain of {gain / 2:.3g} is left. "
        "This happens when a column of X tells subjects with an event from those without, or has extreme "
        "values. Drop or rescale it, merge its groups, or add a penalty (alpha)."
    )


def _solve_general(slope: np.ndarray, value: np.ndarray) -> np.ndarray:
    """The Newton step; the symmetric part of the derivative, made positive, where the whole leads astray."""
    diagonal = np.diag(slope)
    unit = np.sqrt(np.maximum(diagonal, 1e-12 * max(np.abs(diagonal).max(), 1e-280)))
    scaled = slope / np.outer(unit, unit)
    step = np.linalg.lstsq(scaled, value / unit, rcond=1e-13)[0] / unit
    if value @ step >= 0:
        return step
    values, vectors = np.linalg.eigh((scaled + scaled.T) / 2)
    kept = np.abs(values) > 1e-13
    return vectors[:, kept] @ ((vectors[:, kept].T @ (value / unit)) / np.abs(values[kept])) / unit


def _shrink(
    f: Callable[[np.ndarray], tuple[np.ndarray, np.ndarray] | None],
    x: np.ndarray,
    step: np.ndarray,
    gain: float,
    last: bool,
) -> tuple[np.ndarray, tuple[np.ndarray, np.ndarray]] | None:
    """The end of the longest part of the step along which the function shrinks; None if there is none."""
    for halvings in range(40):
        size = 0.5**halvings
        new = f(x + size * step)
        if new is not None and (last or abs(float(new[0] @ step)) <= (1 - size / 2) * gain):
            return x + size * step, new
    return None
