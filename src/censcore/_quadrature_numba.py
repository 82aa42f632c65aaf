"""Reading an antiderivative at many jumps, compiled for NumPy; equal to ``_quadrature`` up to rounding."""

from __future__ import annotations

import numpy as np

from censcore._kernels import compiled

_compile = compiled(fastmath={"reassoc", "contract"})


def weighted_gains(
    edges: np.ndarray,
    logarithmic: np.ndarray,
    before: np.ndarray,
    coefficients: np.ndarray,
    times: np.ndarray,
    values: np.ndarray,
) -> np.ndarray:
    """The sum over the jumps of the weight between two of them times what the antiderivative gains: (n,).

    Panels have edges (n, p + 1), may run on the log scale, and begin where the antiderivative is ``before``,
    both (n, p); inside it has the Legendre ``coefficients`` (n, p, d), in x from -1 to 1. The weight jumps at
    ascending ``times`` (1 or n, J) to ``values``; it is 1 before the first.
    """
    with np.errstate(divide="ignore"):
        logs = np.log(edges), np.log(times)
    return _rows(edges, logarithmic, before, coefficients, times, values, *logs).astype(edges.dtype)


@_compile
def _rows(edges, logarithmic, before, coefficients, times, values, log_edges, log_times):  # type: ignore[no-untyped-def]
    n, panels = before.shape
    sums = np.empty(n)
    for i in range(n):
        row, level = (i if times.shape[0] > 1 else 0), (i if values.shape[0] > 1 else 0)
        c, w = times[row], values[level]
        start = np.searchsorted(c, edges[i, 0], side="right")
        weight = w[start - 1] if start > 0 else 1.0
        panel, reached, total = 0, 0.0, 0.0
        for k in range(start, c.size):
            if c[k] >= edges[i, panels]:
                break
            while edges[i, panel + 1] < c[k]:
                panel += 1
            a, b = edges[i, panel], edges[i, panel + 1]
            u = (c[k] - a) / (b - a)
            if logarithmic[i, panel]:
                a_log = log_edges[i, panel]
                u = (log_times[row, k] - a_log) / (log_edges[i, panel + 1] - a_log)
            Q = before[i, panel] + _legendre_sum(coefficients[i, panel], 2 * u - 1)
            total += weight * (Q - reached)
            weight, reached = w[k], Q
        if weight != 0:
            total += weight * (
                before[i, panels - 1] + _legendre_sum(coefficients[i, panels - 1], 1.0) - reached
            )
        sums[i] = total
    return sums


@_compile
def _legendre_sum(coefficients, x):  # type: ignore[no-untyped-def]
    """Clenshaw's recurrence."""
    one, two = 0.0, 0.0
    for d in range(coefficients.size - 1, 0, -1):
        one, two = coefficients[d] + (2 * d + 1) / (d + 1) * x * one - (d + 1) / (d + 2) * two, one
    return coefficients[0] + x * one - two / 2
