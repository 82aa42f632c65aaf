"""What the regressions share: standardised covariates, and inference for coefficients."""

from __future__ import annotations

from abc import abstractmethod
from dataclasses import dataclass, field, replace
from typing import Any, ClassVar

import numpy as np

from censcore._arrays import Array, ArrayLike
from censcore._validation import (
    as_confidence,
    as_labels,
    as_number,
    check_same_order,
    is_auto,
    name_subjects,
)
from censcore.estimators.covariates import check_rows, check_weights
from censcore.estimators.encoding import Encoding, as_matrix
from censcore.estimators.regression.newton import NoRootError, curved_by, inverse
from censcore.estimators.regression.ridge import Solve, most_likely_penalty
from censcore.estimators.survival_estimator import SurvivalEstimator
from censcore.exceptions import InvalidInputError
from censcore.plain_text import one_line, some_of

#: Penalty of levels whose coefficient has no bound: log hazard ratios of about 3 are then still likely.
_HELD = 0.1

BLOCK = 64  # rows of a Cholesky factor whose products are subtracted together

#: Scales and hazard ratios within which forecasts have digits, in single and in double precision.
_LARGEST_RATIO = (1e30, 1e100)


class CoefficientInference(SurvivalEstimator):
    """Base class of regressions: standard errors, confidence intervals and a table of coefficients.

    A subclass has a parameter ``alpha``, a ridge penalty. Its ``fit`` sets ``coef_`` and ``covariance_``. It
    writes :meth:`coefficient_influence`, and extends :meth:`estimates` where ``covariance_`` is about more
    than ``coef_``.

    Columns of text and categories of a data frame are encoded by indicators of their levels but the first; a
    missing one is a level. A missing number becomes the median, and an indicator says that it is missing.
    Without a penalty, columns that are constant or linear combinations of those before them are left out, as
    R does; in a partial likelihood those that are so within every risk set, and thus within every stratum.
    Levels that separate events from others are held by a penalty of 0.1. ``columns_`` are the names that
    ``coef_`` belongs to, and ``notes_`` say the reference levels, where numbers were missing, what was left
    out and what is held; so does :meth:`summary`.
    """

    alpha: float | str
    coef_: np.ndarray
    covariance_: np.ndarray
    standard_errors_: np.ndarray
    columns_: list[str]
    notes_: list[str]
    _encoding: Encoding
    _reference: Array  # whose library and dtype predictions have

    #: How ``covariance_`` is estimated, in words.
    _kind_of_errors: ClassVar[str] = "model-based"

    #: Labels of the subjects of ``fit``, which no copy and no file keeps; None without.
    _row_labels: Any = None

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in super().__getstate__().items() if name != "_row_labels"}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags

    def _covariance_from(self, slope: np.ndarray, information: np.ndarray, scores: np.ndarray) -> np.ndarray:
        """Set the covariance of estimates with the derivative ``slope`` by the parameters of the likelihood.

        Gives the influences of subjects on the estimates, from their weighted ``scores``.
        """
        by_score = slope @ inverse(information)
        self.covariance_ = by_score @ slope.T
        self.standard_errors_ = np.sqrt(np.diag(self.covariance_))
        return scores @ by_score.T

    def _check_inputs(
        self, X: Array | None, n: int, sample_weight: Array | None
    ) -> tuple[np.ndarray, np.ndarray]:
        """Covariates (n, p) with p = 0 for None, and the weights, of n subjects."""
        check_rows(X, n)
        if not is_auto(self.alpha):
            as_number(self.alpha, "alpha, unless it is 'auto',", least=0, most=1e100)
        weight = check_weights(sample_weight, n)
        matrix = as_matrix(self, X, reset=True)
        if matrix is None:
            matrix = np.zeros((n, 0))
            self._encoding = Encoding.of(matrix)
        self.columns_, self.notes_ = self._encoding.names, self._encoding.notes
        if not self.alpha:  # with a penalty all coefficients are determined
            used = weight > 0
            columns = StandardisedColumns.of(matrix[used], weight[used], self)
            self._leave_out(dependent(columns.correlations(weight[used])))
        return matrix[:, self._encoding.kept], weight

    def _leave_out(self, dropped: np.ndarray, where: str = "") -> None:
        """Leave out those of ``columns_`` that say nothing beside the others, with a note."""
        names = some_of([name for name, out in zip(self.columns_, dropped, strict=True) if out])
        self._encoding = replace(self._encoding, kept=self._encoding.kept[~dropped])
        self.columns_ = [self._encoding.names[j] for j in self._encoding.kept]
        if names:
            place = f" {where}" if where else ""
            self.notes_.append(
                f"Left out, constant or linear combinations of columns before{place}: {names}."
            )

    def _solved(
        self, columns: StandardisedColumns, solve: Solve, others: int = 0
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """The solution under the penalties of the columns, (p,), its curvature, and these penalties.

        ``others`` is the number of parameters, the first ones, whose curvature does not matter. Levels of a
        category that separate events from others are held by a small penalty; a column of numbers that does
        so is an error.
        """
        if is_auto(self.alpha):
            self.alpha_ = most_likely_penalty(solve, len(columns.scale))
            chosen = np.full(len(columns.scale), self.alpha_)
            return *solve(chosen), chosen
        indicator = self._encoding.indicator[self._encoding.kept]
        alpha = np.full(len(indicator), float(self.alpha))
        while True:
            try:
                solution, information = solve(alpha / columns.scale**2)
                if self.alpha or curved_by(information[others:, others:], least=1e-6):
                    break
            except NoRootError as error:
                if self.alpha:
                    raise
                information = error.slope
            bad = columns.flattest(information[others:, others:])
            if not (bad & indicator & (alpha == 0)).any():
                raise InvalidInputError(
                    "The likelihood grows without bound in "
                    f"{[name for name, there in zip(columns.names, bad, strict=True) if there][:10]}. This "
                    "happens when a column separates subjects with an event from those without (a group "
                    "without events, or fewer events than columns). Drop it, merge its groups, or add a "
                    f"penalty: {type(self).__name__}(alpha=...)."
                )
            alpha[bad & indicator] = _HELD
        if not self.alpha and alpha.any():
            held = [one_line(name) for name, a in zip(columns.names, alpha, strict=True) if a]
            self.notes_.append(
                "Levels that separate subjects with an event from those without, so that the likelihood has "
                f"no maximum, are held by a penalty of {_HELD}: {some_of(held)}. Merge them with others, or "
                "choose alpha."
            )
        return solution, information, alpha / columns.scale**2

    def _linear_predictor(self, X: np.ndarray, center: np.ndarray, start: float = 0.0) -> np.ndarray:
        """The logarithm of a scale or a hazard ratio: ``start`` plus (x - ``center``)' ``coef_``, (n,).

        An error names the subjects whose distribution would have no digits.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            eta = start + (X - center) @ self.coef_
        most = np.log(_LARGEST_RATIO[self._reference.dtype.itemsize == 8])
        bad = np.nonzero(~(np.abs(eta) <= most))[0]
        if bad.size:
            with np.errstate(over="ignore"):
                j = int(np.argmax(np.abs((X[bad[0]] - center) * self.coef_)))
            raise InvalidInputError(
                f"X: got a linear predictor of {eta[bad[0]]:.3g} for {name_subjects(bad)}, expected one "
                f"between -{most:.0f} and {most:.0f}: beyond, forecasts have no digits. Most of it is "
                f"{one_line(CoefficientInference.estimates(self)[0][j])} = {X[bad[0], j]:.6g}, where fit had "
                f"{center[j]:.6g} on average. Check its unit, or leave these subjects out."
            )
        return eta

    @abstractmethod
    def coefficient_influence(self) -> np.ndarray:
        """Each subject's influence on the estimates: w_i times their derivative by w_i, (n, estimates)."""

    def estimates(self) -> tuple[list[str], np.ndarray]:
        """Names and values of the estimates that ``covariance_`` is about."""
        return list(self.columns_), self.coef_

    def robust_covariance(self, groups: ArrayLike | None = None) -> np.ndarray:
        r"""Compute the sandwich covariance of the estimates [1]_.

        .. math:: \sum_g\Bigl(\sum_{i\in g}w_i\frac{\partial\hat\gamma}{\partial w_i}\Bigr)
            \Bigl(\sum_{i\in g}w_i\frac{\partial\hat\gamma}{\partial w_i}\Bigr)^\top

        Valid if the model is misspecified and if weights are not counts; with ``groups`` also if subjects of
        one group depend on each other. It has no factor for few groups, as in R; :meth:`summary` and
        :meth:`confidence_interval` account for these.

        Parameters
        ----------
        groups : array, (n,), optional
            Cluster of each row given to ``fit``; each subject, with all its intervals, if omitted.

        Returns
        -------
        array, (number of estimates, number of estimates)
            The covariance; infinite where the data carry no information on the coefficients.

        References
        ----------
        .. [1] D. Y. Lin and L. J. Wei (1989). The robust inference for the Cox proportional hazards model.
           Journal of the American Statistical Association 84, 1074-1078.
        """
        self.check_fitted()
        return self._sandwich(groups)[0]

    def _sandwich(self, groups: Any) -> tuple[np.ndarray, np.ndarray, Any]:
        """The robust covariance, and the factor and the distribution of studentised estimates."""
        from scipy.stats import t

        if self._row_labels is not None:
            check_same_order(X=self._row_labels.to_series(), groups=groups)
        parts = self.coefficient_influence()
        if not np.isfinite(parts).all():
            p = parts.shape[1]
            return np.full((p, p), np.inf), np.ones(p), t(np.ones(p))
        parts = sum_in_groups(parts, self._clusters(groups))
        covariance, fourth = parts.T @ parts, (parts**4).sum(axis=0)
        g = int(parts.any(axis=1).sum())
        with np.errstate(divide="ignore", invalid="ignore"):
            nu = 2 * np.diag(covariance) ** 2 / fourth
        return covariance, np.sqrt(g / max(g - 1, 1)), t(np.maximum(np.fmin(nu, g - 1), 1.0))

    def confidence_interval(
        self, level: float = 0.95, *, robust: bool = False, groups: ArrayLike | None = None
    ) -> np.ndarray:
        """Compute Wald confidence intervals of the estimates.

        Parameters
        ----------
        level, robust, groups
            As in :meth:`summary`.

        Returns
        -------
        array, (number of estimates, 2)
            Lower and upper ends.
        """
        table = self.summary(level, robust=robust, groups=groups)
        return np.column_stack([table.lower, table.upper])

    def summary(
        self, level: float = 0.95, *, robust: bool = False, groups: ArrayLike | None = None
    ) -> CoefficientTable:
        r"""Make a table of the estimates: value, exp(value), standard error, z, p and confidence interval.

        Robust p values and intervals multiply the standard error by :math:`\sqrt{g/(g-1)}` for g groups (or
        subjects, without groups), and take Student's t distribution in place of the normal one, with
        :math:`\nu=\min\{g-1,\,2(\sum_j\psi_j^2)^2/\sum_j\psi_j^4\}` degrees of freedom for the influences
        :math:`\psi_j` of the groups, as :func:`censcore.compare` does.

        Clustered intervals hold from about 80 groups on, for covariates of subjects from 20. In 2,000
        simulated data sets with groups of ten that share a normal effect on the log hazard (standard
        deviation 0.7), those of 95 % of Cox regression covered with these frequencies; in parentheses those
        of the normal distribution without the factor. Weibull regression differs by 0.013 at most.

        ======  ==================  ==================  ====================
        groups  normal, of groups   binary, of groups   normal, of subjects
        ======  ==================  ==================  ====================
        20      0.917 (0.867)       0.937 (0.904)       0.948 (0.920)
        40      0.926 (0.902)       0.939 (0.924)       0.941 (0.928)
        80      0.946 (0.932)       0.949 (0.940)       0.954 (0.945)
        ======  ==================  ==================  ====================

        Parameters
        ----------
        level : float
            Confidence level, between 0 and 1.
        robust : bool
            Use :meth:`robust_covariance` instead of ``covariance_``.
        groups : array, (n,), optional
            Cluster of each subject, at least two; implies ``robust``.

        Returns
        -------
        CoefficientTable
            It prints as a table; ``to_frame()`` gives a pandas frame.
        """
        from scipy.stats import norm

        self.check_fitted()
        level = as_confidence(level, "level")
        robust = robust or groups is not None
        covariance, factor, studentised = self.covariance_, np.ones(1), norm
        if robust:
            covariance, factor, studentised = self._sandwich(groups)
        names, value = self.estimates()
        error = np.sqrt(np.diag(covariance))
        z = value / error
        p = 2 * studentised.sf(np.abs(z) / factor)
        p = np.maximum(p, np.finfo(float).tiny)  # positive, where it underflows
        width = studentised.ppf((1 + level) / 2) * factor * error
        kind = self._kind_of_errors
        if robust:
            kind = "robust" if groups is None else "robust, by groups"
        ends = value - width, value + width
        return CoefficientTable(names, value, error, z, p, *ends, level, kind, self.notes_)


@dataclass(frozen=True)
class CoefficientTable:
    """Estimates of a regression with their uncertainty; prints as a table.

    Values, standard errors, z statistics, two-sided p values and ends of confidence intervals of a ``level``;
    whether the errors are model-based or robust (``kind``), and ``notes`` on categories and columns left out.
    """

    names: list[str]
    coef: np.ndarray
    standard_error: np.ndarray
    z: np.ndarray
    p: np.ndarray
    lower: np.ndarray
    upper: np.ndarray
    level: float
    kind: str
    notes: list[str] = field(default_factory=list)

    def to_frame(self) -> Any:
        """The table as a pandas frame, one row per estimate."""
        import pandas as pd

        return pd.DataFrame(self._columns, index=self.names)

    @property
    def _columns(self) -> dict[str, np.ndarray]:
        titles = "coef", "exp(coef)", "se", "z", "p", "lower", "upper"
        uncertainty = self.standard_error, self.z, self.p, self.lower, self.upper
        return dict(zip(titles, (self.coef, np.exp(self.coef), *uncertainty), strict=True))

    def __str__(self) -> str:
        names = [one_line(name) for name in self.names]
        width = max(map(len, names), default=0)
        lines = [" " * width + "".join(f"{title:>11}" for title in self._columns)]
        for name, *values in zip(names, *self._columns.values(), strict=True):
            words, p = [f"{value:.4g}" for value in values], values[4]
            words[4] = "<1e-16" if p < 1e-16 else f"{p:.3f}" if p >= 0.001 else f"{p:.1e}"
            lines.append(f"{name:{width}}" + "".join(f"{word:>11}" for word in words))
        lines.append(f"{self.kind} standard errors, {100 * self.level:.4g} % confidence intervals")
        return "\n".join([*lines, *self.notes])

    __repr__ = __str__


def sum_in_groups(parts: np.ndarray, groups: Any) -> np.ndarray:
    """Influences of subjects (n, ...), summed within groups; each subject alone where there are none."""
    if groups is None:
        return parts
    _, number = np.unique(as_labels(groups, len(parts), of="subject of fit"), return_inverse=True)
    if number.max() == 0 < len(parts) - 1:
        raise InvalidInputError(
            f"groups: got one group of all {len(parts)} subjects, expected at least two. Errors are "
            "estimated from how groups differ."
        )
    sums = np.zeros((number.max() + 1, *parts.shape[1:]))
    np.add.at(sums, number, parts)
    return sums


# ---- covariates ------------------------------------------------------------------------------


@dataclass(frozen=True)
class StandardisedColumns:
    """Columns Z (n, p) of X less ``center`` and divided by ``scale``, to which a regression is fitted."""

    Z: np.ndarray
    center: np.ndarray
    scale: np.ndarray
    names: list[str]

    @classmethod
    def of(cls, X: np.ndarray, weight: np.ndarray, estimator: Any) -> StandardisedColumns:
        """Weighted means and standard deviations; constant columns are centred and not scaled."""
        share = weight / weight.sum()
        center = share @ X
        names = getattr(estimator, "columns_", [f"column {j}" for j in range(X.shape[1])])
        with np.errstate(over="ignore"):
            largest = np.max(np.abs(X - center), axis=0, initial=0.0)
        far = np.nonzero(~((largest == 0) | ((largest > 1e-150) & (largest < 1e150))))[0]
        if far.size:
            raise InvalidInputError(
                f"X: got values {largest[far[0]]:g} apart in {one_line(str(names[far[0]]))}, expected "
                "differences between 1e-150 and 1e+150, whose squares a float can hold. Change the unit."
            )
        spread = np.sqrt(share @ (X - center) ** 2)
        constant = spread <= 1e-12 * np.maximum(np.abs(center), np.finfo(float).tiny)
        scale = np.where(constant, 1.0, spread)
        Z = np.where(constant, 0.0, (X - center) / scale)
        return cls(Z, center, scale, [str(name) for name in names])

    def correlations(self, weight: np.ndarray) -> np.ndarray:
        """Weighted correlations of the columns, (p, p); zero for constant ones."""
        return (self.Z * (weight / weight.sum())[:, None]).T @ self.Z

    def flattest(self, information: np.ndarray) -> np.ndarray:
        """The columns in which the curvature is smallest, (p,); where it vanishes there is no maximum.

        The last rows and columns of ``information`` belong to the columns of X; others may come before.
        """
        _, vectors = np.linalg.eigh((information + information.T) / 2)
        direction = np.abs(vectors[-len(self.names) :, 0])
        return direction > 0.05 * direction.max()


def dependent(variances: np.ndarray) -> np.ndarray:
    """Which standardised columns are constant or, up to rounding, linear combinations of those before, (p,).

    By the Cholesky factor of their (co)variances, (p, p): less than 1e-10 is left of them.
    """
    left = variances.copy()
    found = np.zeros(len(left), dtype=bool)
    for start in range(0, len(left), BLOCK):
        stop = min(start + BLOCK, len(left))
        for j in range(start, stop):
            found[j] = left[j, j] < 1e-10
            left[j, j:] *= 0.0 if found[j] else left[j, j] ** -0.5  # a row of the factor
            left[j + 1 : stop, j + 1 :] -= np.outer(left[j, j + 1 : stop], left[j, j + 1 :])
        rows = left[start:stop, stop:]
        left[stop:, stop:] -= rows.T @ rows
    return found
