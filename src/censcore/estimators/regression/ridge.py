"""Ridge penalties that the data choose."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.optimize import minimize_scalar

# Logarithms of penalties: smaller ones hold no coefficient that the data know, with larger ones all are zero.
_LEVELS = np.linspace(np.log(1e-2), np.log(1e6), 40)
_ROUNDS, _CLOSE = 20, 1e-3  # of the penalty: updates at most, and a change of its logarithm that ends them

Solve = Callable[[np.ndarray], tuple[np.ndarray, np.ndarray]]


def most_likely_penalty(solve: Solve, p: int) -> float:
    r"""The ridge penalty of p coefficients with the greatest marginal likelihood, by Laplace's approximation.

    With the maximum :math:`\hat\gamma` and the curvature H of the log-likelihood, without that of the
    penalty and with other parameters at their best, :math:`b=(H+\alpha I)\hat\gamma` and, in the eigenvectors
    of H with values :math:`\lambda_j`,

    .. math:: \alpha=\arg\max_\alpha\sum_{j=1}^p\Bigl\{\tfrac12\log\frac\alpha{\alpha+\lambda_j}
        +\frac{b_j^2}{2(\alpha+\lambda_j)}\Bigr\},

    which is exact for a quadratic log-likelihood; else maximum and penalty take turns. ``solve`` gives the
    parameters at the maximum, the last of which are the coefficients of standardised columns, and their
    curvature, under given penalties (p,).

    >>> import numpy as np
    >>> H, best = 50.0, np.array([0.3, -0.5, 0.1])  # each best coefficient has the variance 1/50
    >>> def solve(alpha):
    ...     return H * best / (H + alpha), np.diag(H + alpha)
    >>> alphas = most_likely_penalty(solve, 3), 1 / float(np.mean(best**2) - 1 / H)
    >>> [round(alpha, 1) for alpha in alphas]
    [10.3, 10.3]
    """
    alpha = float(p)  # effects of all columns together have the variance one
    for _ in range(_ROUNDS if p else 0):
        parameters, information = solve(np.full(p, alpha))
        covariance = np.linalg.inv((information + information.T) / 2)[-p:, -p:]
        values, vectors = np.linalg.eigh((covariance + covariance.T) / 2)
        b = vectors.T @ parameters[-p:] / values
        curvature = np.maximum(1 / values - alpha, 0.0)

        best = np.argmin([_loss(level, b, curvature) for level in _LEVELS])  # there may be several minima
        bounds = _LEVELS[np.clip([best - 1, best + 1], 0, len(_LEVELS) - 1)]
        found = minimize_scalar(_loss, args=(b, curvature), bounds=bounds, method="bounded")
        before, alpha = alpha, float(np.exp(found.x))
        if abs(np.log(alpha / before)) < _CLOSE:
            break
    return alpha


def _loss(log_alpha: float, b: np.ndarray, curvature: np.ndarray) -> float:
    """Minus the logarithm of the marginal likelihood, up to a constant."""
    total = np.exp(log_alpha) + curvature
    return 0.5 * float(np.sum(np.log(total) - log_alpha - b**2 / total))
