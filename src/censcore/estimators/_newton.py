"""Newton's method for concave likelihoods."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from censcore.exceptions import InvalidInputError

__all__ = ["Derivatives", "maximise"]

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
