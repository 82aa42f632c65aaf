"""Turnbull's estimator: the nonparametric maximum likelihood of interval-censored data."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np

from censcore._arrays import ArrayLike, Covariates
from censcore._validation import as_count, as_number, check_option
from censcore.distributions import PiecewiseLinear, Step
from censcore.estimators.covariates import check_rows, check_weights
from censcore.estimators.regression.intervals import as_intervals, ends_of
from censcore.estimators.survival_estimator import SurvivalEstimator
from censcore.exceptions import InvalidInputError
from censcore.outcomes import OutcomeLike


@dataclass(eq=False, repr=False)
class Turnbull(SurvivalEstimator):
    r"""Nonparametric maximum likelihood estimate of the distribution of an interval-censored event time.

    .. math:: \max_F\ \sum_iw_i\log\{F(U_i)-F(L_i)\}

    Only the mass in each of the maximal intersections of the observed intervals is determined
    (:attr:`intervals_`); the data do not determine where it lies within one. Without intervals, on
    right-censored data, it is the Kaplan-Meier estimate. Assumes that the examination times are independent
    of T.

    Parameters
    ----------
    mass : {"right", "uniform"}
        Where the mass of an intersection is put in predictions: at its right end, when it would be found at
        the latest, or spread evenly over it, which gives a distribution that is smooth enough for log
        scores at other visits. Mass of an intersection without an end is put at infinity.
    tol : float
        The estimate is accepted if its log-likelihood is proved to be within ``tol`` of the maximum, per unit
        of weight.
    max_iter : int
        Most iterations.

    Attributes
    ----------
    intervals_ : array, (m, 2)
        The intersections (q, p] that hold mass, ascending; q = p for a time that is known exactly.
    masses_ : array, (m,)
        Their probabilities.
    log_likelihood_ : float
        The maximum.
    gap_ : float
        An upper bound of what is missing to the maximum of the log-likelihood, from its derivatives
        :math:`g_j=\sum_iw_i\mathbb 1\{j\in i\}/P_i`: by concavity :math:`\max_jg_j-\sum_iw_i`.
    n_iter_ : int
        Iterations.

    Notes
    -----
    Steps of the iterative convex minorant algorithm and of the EM algorithm alternate, as in Wellner and
    Zhan [2]_; each costs a number of operations that is linear in the number of subjects. Where the
    intersections with mass have settled, Newton steps on them finish the work.

    Delayed entry is not taken into account and is an error; the regressions take it.

    See Also
    --------
    KaplanMeier : For events that are seen when they happen.
    WeibullRegression, LogNormalRegression : Parametric models of intervals with covariates.
    censcore.IntervalCensored : The outcome.

    References
    ----------
    .. [1] B. W. Turnbull (1976). The empirical distribution function with arbitrarily grouped, censored and
       truncated data. Journal of the Royal Statistical Society B 38, 290-295.
    .. [2] J. A. Wellner and Y. Zhan (1997). A hybrid algorithm for computation of the nonparametric maximum
       likelihood estimator from censored data. Journal of the American Statistical Association 92, 945-959.

    Examples
    --------
    >>> import numpy as np, censcore as cs
    >>> y = cs.IntervalCensored([0.0, 1.0, 1.0, 2.0, 3.0], [1.0, 3.0, 2.0, 3.0, np.inf])
    >>> model = cs.Turnbull().fit(None, y)
    >>> model.intervals_.tolist(), model.masses_.round(3)
    ([[0.0, 1.0], [1.0, 2.0], [2.0, 3.0], [3.0, inf]], array([0.2, 0.3, 0.3, 0.2]))
    >>> model.predict_distribution().sf([[1.0, 2.0, 3.0]]).round(3)
    array([[0.8, 0.5, 0.2]])
    """

    represents_atoms = True

    mass: str = "right"
    tol: float = 1e-9
    max_iter: int = 5000

    def fit(self, X: Covariates | None, y: OutcomeLike, sample_weight: ArrayLike | None = None) -> Self:
        """Maximise the likelihood of IntervalCensored or RightCensored times; X is ignored.

        Parameters
        ----------
        X : array or frame, (n, p), or None
            Covariates.
        y : IntervalCensored or RightCensored, structured array or frame
            The outcome.
        sample_weight : array, (n,), optional
            Weights of the subjects; ones if omitted.

        Returns
        -------
        self
        """
        check_option(self.mass, "mass", ("right", "uniform"))
        as_number(self.tol, "tol", above=0)
        max_iter = as_count(self.max_iter, "max_iter", most=10**7)
        outcome = as_intervals(y, "Turnbull").require_no_entry("Turnbull")
        check_rows(X, len(outcome))
        weight = check_weights(sample_weight, len(outcome))
        lower, upper, _ = ends_of(outcome)
        used = weight > 0
        problem = _Likelihood.of(lower[used], upper[used], weight[used])
        p, self.n_iter_ = problem.maximise(self.tol, max_iter)
        positive = p > 0
        self.intervals_, self.masses_ = problem.intersections[positive], p[positive]
        self.log_likelihood_ = problem.value(p)
        self.gap_ = problem.gap(p)
        self._like = outcome.lower[:0]
        return self

    def predict_distribution(self, X: Covariates | None = None) -> Step | PiecewiseLinear:
        """Predict one distribution for all subjects, by ``mass``; X is ignored.

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
        q, p = self.intervals_.T
        sf = np.maximum(1 - np.cumsum(self.masses_), 0.0)
        sf[-1] = 0.0
        ended = np.isfinite(p)
        if not ended.any():
            return Step(np.array([q[0]]), sf=np.ones((1, 1))).like(self._like)
        if self.mass == "right":
            return Step(p[ended], sf=sf[ended][None, :]).like(self._like)
        return self._spread(q[ended], p[ended], sf[ended]).like(self._like)

    def _spread(self, q: np.ndarray, p: np.ndarray, sf: np.ndarray) -> PiecewiseLinear:
        if (q == p).any():
            raise InvalidInputError(
                f"mass='uniform' spreads mass over intervals, and {int((q == p).sum())} times are known "
                "exactly. Use mass='right'."
            )
        before = np.append(1.0, sf[:-1])
        times, levels = np.column_stack([q, p]).ravel(), np.column_stack([before, sf]).ravel()
        new = np.append(True, np.diff(times) > 0)  # intersections may touch
        new[0] = times[0] > 0
        return PiecewiseLinear(times[new], sf=levels[new][None, :])


def _intersections(lower: np.ndarray, upper: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The maximal intersections (m, 2), and the first and the last of them in each interval, (n,).

    (l, u] starts just after l and is coded by 2 rank(l) + 1 and 2 rank(u); an exact time by 2 rank twice, and
    an interval from zero includes it. An intersection is a start that is directly followed by an end.
    """
    values = np.unique(np.concatenate([lower, upper]))
    start, end = 2 * np.searchsorted(values, lower) + 1, 2 * np.searchsorted(values, upper)
    start = np.where((lower == upper) | (lower == 0), start - 1, start)
    starts, ends = np.unique(start), np.unique(end)
    following = ends[np.searchsorted(ends, starts)]  # the first end at or after each start
    followed = np.append(starts[1:] > following[:-1], True)  # no other start comes before that end
    left, right = starts[followed], following[followed]
    first, last = np.searchsorted(left, start), np.searchsorted(right, end, side="right") - 1
    return np.column_stack([values[left // 2], values[right // 2]]), first, last


@dataclass(frozen=True)
class _Likelihood:
    """The log-likelihood of masses p of the intersections: sum of w log(p_first + ... + p_last)."""

    intersections: np.ndarray
    first: np.ndarray
    after: np.ndarray  # one past the last
    weight: np.ndarray

    @classmethod
    def of(cls, lower: np.ndarray, upper: np.ndarray, weight: np.ndarray) -> _Likelihood:
        """Equal intervals are one, with the sum of their weights."""
        intersections, first, last = _intersections(lower, upper)
        m = len(intersections)
        key, number = np.unique(first * (m + 1) + last + 1, return_inverse=True)
        total = np.bincount(number.reshape(-1), weights=weight)
        return cls(intersections, key // (m + 1), key % (m + 1), total)

    @property
    def m(self) -> int:
        return len(self.intersections)

    def probabilities(self, p: np.ndarray) -> np.ndarray:
        """P_i, the mass in each interval."""
        F = np.append(0.0, np.cumsum(p))
        return F[self.after] - F[self.first]

    def value(self, p: np.ndarray) -> float:
        P = self.probabilities(p)
        return float(self.weight @ np.log(P)) if (P > 0).all() else -np.inf

    def gradient(self, p: np.ndarray) -> np.ndarray:
        """g_j, the sum of w / P over the intervals that hold intersection j."""
        share = self.weight / self.probabilities(p)
        steps = np.bincount(self.first, share, self.m + 1) - np.bincount(self.after, share, self.m + 1)
        return np.cumsum(steps[:-1])

    def gap(self, p: np.ndarray) -> float:
        """What is missing to the maximum, at most: max g - W, as g p sums to W and the value is concave."""
        return max(float(self.gradient(p).max() - self.weight.sum()), 0.0)

    def maximise(self, tol: float, max_iter: int) -> tuple[np.ndarray, int]:
        """Masses within ``tol`` of the maximum per unit of weight, and the number of iterations."""
        W = self.weight.sum()
        p = np.full(self.m, 1 / self.m)
        for iteration in range(1, max_iter + 1):
            p = p * self.gradient(p) / W  # one step of the EM algorithm
            p = self._convex_minorant(p / p.sum())
            if iteration % 5 == 0:
                p = self._newton(p)
            if self.gap(p) <= tol * W:
                return p, iteration
        raise InvalidInputError(
            f"The likelihood was not maximised in {max_iter} iterations: up to {self.gap(p) / W:.3g} per "
            f"subject may be missing, more than tol={tol:g}. Raise max_iter or tol."
        )

    def _convex_minorant(self, p: np.ndarray) -> np.ndarray:
        """A step in F along the diagonal of the Hessian, made monotone, and shortened until it gains."""
        if self.m < 2:
            return p
        from sklearn.isotonic import isotonic_regression

        P, F, m = self.probabilities(p), np.cumsum(p)[:-1], self.m + 1
        slope, curve = self.weight / P, self.weight / P**2
        gradient = (np.bincount(self.after, slope, m) - np.bincount(self.first, slope, m))[1:-1]
        curvature = (np.bincount(self.after, curve, m) + np.bincount(self.first, curve, m))[1:-1]
        target = isotonic_regression(F + gradient / curvature, sample_weight=curvature, y_min=0.0, y_max=1.0)
        return self._towards(p, np.diff(target, prepend=0.0, append=1.0))

    def _newton(self, p: np.ndarray) -> np.ndarray:
        """A Newton step among the intersections that hold mass or may gain by it, where they are few."""
        from scipy.optimize import nnls

        g, W = self.gradient(p), self.weight.sum()
        support = np.nonzero((p > 0) & (g > W * (1 - 1e-2)) | (g > W))[0]
        if len(support) > _MOST_POINTS or len(support) * len(self.weight) > _MOST_NUMBERS:
            return p
        root = np.sqrt(self.weight)
        inside = (support >= self.first[:, None]) & (support < self.after[:, None])
        A = np.where(inside, (root / self.probabilities(p))[:, None], 0.0)
        # max of the quadratic expansion is the least squares solution of A q = 2 sqrt(w), sum q = 1
        heavy = 1e3 * root.max() * len(root)
        try:
            q, _ = nnls(np.vstack([A, np.full(len(support), heavy)]), np.append(2 * root, heavy))
        except RuntimeError:  # it may cycle (SciPy 1.14); the other steps go on
            return p
        if not q.sum() > 0:
            return p
        target = np.zeros(self.m)
        target[support] = q / q.sum()
        return self._towards(p, target)

    def _towards(self, p: np.ndarray, target: np.ndarray) -> np.ndarray:
        """The first of p + (target - p) / 2^k that gains."""
        value, direction = self.value(p), target - p
        promised = float(self.gradient(p) @ direction)
        for halvings in range(30):
            size = 0.5**halvings
            new = p + size * direction if halvings else target
            if self.value(new) >= value + 0.1 * size * promised:
                return new
        return p


_MOST_POINTS = 600
_MOST_NUMBERS = 4_000_000
