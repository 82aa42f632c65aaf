"""Newton's method for likelihoods and estimating equations of regressions."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from censcore.exceptions import InvalidInputError

#: An estimating function at a point, and minus its derivative, on demand; None outside the domain.
Equations = Callable[[np.ndarray], tuple[np.ndarray, Callable[[], np.ndarray]] | None]
#: Smallest reciprocal condition number of equations that are solved by triangular factors.
REGULAR = 1e-10
#: Value, gradient and minus Hessian at a point; the value is -inf outside the domain.
Derivatives = tuple[float, np.ndarray, np.ndarray]


class NoRootError(InvalidInputError):
    """No root was found; ``slope`` is minus the derivative where the search ended."""

    def __init__(self, message: str, slope: np.ndarray) -> None:
        super().__init__(message)
        self.slope = slope


class PenalisedLikelihood(ABC):
    """A weighted log-likelihood with a ridge penalty of its last parameters."""

    weight: np.ndarray
    penalty: np.ndarray

    @abstractmethod
    def _terms(self, theta: np.ndarray) -> tuple[float, np.ndarray, np.ndarray]:
        """Value, scores and curvature without the penalty; a value that is not finite outside the domain."""

    def scores(self, theta: np.ndarray) -> np.ndarray:
        """Derivative of each subject's log-likelihood by theta, (n, parameters)."""
        return self._terms(theta)[1]

    def __call__(self, theta: np.ndarray) -> Derivatives:
        """Value, gradient and minus the Hessian."""
        penalty = np.append(np.zeros(len(theta) - len(self.penalty)), self.penalty)
        with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
            value, scores, curvature = self._terms(theta)
        value -= float(penalty @ theta**2) / 2
        if not np.isfinite(value):
            return -np.inf, theta, np.eye(len(theta))
        return value, self.weight @ scores - penalty * theta, curvature + np.diag(penalty)


def maximise(
    f: Callable[[np.ndarray], Derivatives], start: np.ndarray, tolerance: float = 1e-10, steps: int = 200
) -> tuple[np.ndarray, np.ndarray]:
    """Maximise a function that is concave, or at least near its maximum.

    ``f`` gives value, gradient and minus the Hessian at a point. Ends when the Newton decrement says that
    less than ``tolerance`` is left to gain, after which one more full step doubles the number of right
    digits. Gives the maximum and minus the Hessian there.
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
        f"The likelihood was not maximised in {steps} steps; {gain / 2:.3g} is left to gain. Rescale the "
        "columns of X, drop extreme values, or add a penalty (alpha)."
    )


def _solve(curvature: np.ndarray, gradient: np.ndarray) -> np.ndarray:
    """The Newton step; flat directions, in which the gradient is zero, are left out.

    Where the function is not concave, the step goes up by as much as it would go down.
    """
    unit = np.sqrt(np.maximum(np.abs(np.diag(curvature)), np.finfo(float).tiny))
    scaled = curvature / np.outer(unit, unit)
    step = _solve_positive(scaled, gradient / unit)
    if step is not None:
        return step / unit
    values, vectors = np.linalg.eigh(scaled)
    values = np.where(values < -1e-8, -values, values)
    curved = values > 1e-13
    return vectors[:, curved] @ ((vectors[:, curved].T @ (gradient / unit)) / values[curved]) / unit


def _solve_positive(matrix: np.ndarray, value: np.ndarray) -> np.ndarray | None:
    """The solution by a Cholesky factor; None where the matrix is not positive definite beyond rounding."""
    from scipy.linalg import lapack

    factor, failed = lapack.dpotrf(matrix)
    if failed or not lapack.dpocon(factor, np.abs(matrix).sum(axis=0).max())[0] > REGULAR:
        return None
    step: np.ndarray = lapack.dpotrs(factor, value)[0]
    return step


def _solve_regular(matrix: np.ndarray, value: np.ndarray) -> np.ndarray | None:
    """The solution by triangular factors; None where the matrix is singular up to rounding."""
    from scipy.linalg import lapack

    factors, pivots, failed = lapack.dgetrf(matrix)
    if failed or not lapack.dgecon(factors, np.abs(matrix).sum(axis=0).max())[0] > REGULAR:
        return None
    step: np.ndarray = lapack.dgetrs(factors, pivots, value)[0]
    return step


def inverse(information: np.ndarray) -> np.ndarray:
    """The inverse of a symmetric matrix, or its pseudo-inverse where it is singular up to rounding."""
    found = _solve_positive(information, np.eye(len(information)))
    return np.linalg.pinv(information, hermitian=True) if found is None else (found + found.T) / 2


def curved_by(curvature: np.ndarray, least: float) -> bool:
    """Whether no eigenvalue of a symmetric matrix is below a bound."""
    try:
        np.linalg.cholesky((curvature + curvature.T) / 2 - least * np.eye(len(curvature)))
    except np.linalg.LinAlgError:
        return False
    return True


def _search(
    f: Callable[[np.ndarray], Derivatives], x: np.ndarray, step: np.ndarray, value: float, gain: float
) -> tuple[np.ndarray, Derivatives]:
    """Halve the step until it gains a fair part of the predicted increase, up to rounding."""
    rounding = 1e-13 * abs(value)
    for halvings in range(60):
        size = 0.5**halvings
        new = f(x + size * step)
        if new[0] >= value + 0.1 * size * gain - rounding:
            return x + size * step, new
    return x, f(x)


def find_root(
    f: Equations, start: np.ndarray, tolerance: float = 1e-10, steps: int = 200
) -> tuple[np.ndarray, np.ndarray]:
    """Find the root of a decreasing estimating function.

    Along a Newton step the function must shrink by a part of the step's size; a step across the root that
    ends farther away than it began is halved. Ends as :func:`maximise` does, and gives the root and minus the
    derivative there.
    """
    x = start
    equations = f(x)
    if equations is None:
        raise InvalidInputError("The risks underflow at the start. Rescale the columns of X.")
    value, slope = equations[0], equations[1]()
    for _ in range(steps):
        step = _solve_general(slope, value)
        gain = float(value @ step)
        new = _shrink(f, x, step, gain, gain < 2 * tolerance)
        if new is None and gain < 1e-6:  # rounding hides what is left
            return x, slope
        if new is None:
            break
        x, (value, derivative) = new
        slope = derivative()
        if gain < 2 * tolerance:
            return x, slope
    raise NoRootError(
        f"No solution of the estimating equations was found; a gain of {gain / 2:.3g} is left. This "
        "happens when a column of X separates subjects with an event from those without, or has extreme "
        "values. Drop or rescale it, merge its groups, or add a penalty (alpha).",
        slope,
    )


def _solve_general(slope: np.ndarray, value: np.ndarray) -> np.ndarray:
    """The Newton step; where that is no descent, the one of the symmetric part of the derivative."""
    diagonal = np.diag(slope)
    unit = np.sqrt(np.maximum(diagonal, 1e-12 * max(np.abs(diagonal).max(), 1e-280)))
    scaled = slope / np.outer(unit, unit)
    found = _solve_regular(scaled, value / unit)
    step = (np.linalg.lstsq(scaled, value / unit, rcond=1e-13)[0] if found is None else found) / unit
    return step if value @ step >= 0 else _solve((slope + slope.T) / 2, value)


def _shrink(
    f: Equations, x: np.ndarray, step: np.ndarray, gain: float, last: bool
) -> tuple[np.ndarray, tuple[np.ndarray, Callable[[], np.ndarray]]] | None:
    """The end of the longest part of the step along which the function shrinks; None if there is none."""
    for halvings in range(40):
        size = 0.5**halvings
        new = f(x + size * step)
        if new is not None and (last or abs(float(new[0] @ step)) <= (1 - size / 2) * gain):
            return x + size * step, new
    return None
