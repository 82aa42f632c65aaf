"""The sums of ``energy_pairs`` compiled for NumPy arrays; equal to the formulas there up to rounding.

Kernels hold no lock and start no threads: callers run them on chunks of rows in a thread pool.
"""

from __future__ import annotations

from math import sqrt
from typing import Any

import numpy as np

from censcore._kernels import compiled

# Sums may be reordered (so that they vectorize); NaN, infinities and signed zeros keep their meaning.
_compile = compiled(fastmath={"reassoc", "contract"})


def energy_terms(
    z: np.ndarray,
    w: np.ndarray | None,
    y: np.ndarray,
    c: np.ndarray,
    beta: float,
    lags: np.ndarray | None = None,
) -> tuple[Any, Any]:
    """The two sums of the energy score, averaged over the censoring times: (n,) and (n,)."""
    w = np.full((1, z.shape[1]), 1 / z.shape[1]) if w is None else w
    every = lags is None
    lags = np.zeros((1, 1), np.int64) if lags is None else lags.astype(np.int64, copy=False)
    arrays = (np.ascontiguousarray(a, dtype=z.dtype) for a in (z, w, y, c))
    accuracy, spread = _energy_rows(*arrays, beta / 2, lags, every)
    return accuracy.astype(z.dtype), spread.astype(z.dtype)


@_compile
def _energy_rows(z, w, y, c, half, lags, every):  # type: ignore[no-untyped-def]
    (n, k), m, draws = y.shape, z.shape[1], c.shape[1]
    accuracy, spread = np.zeros(n), np.zeros(n)
    members, psi, squared = np.empty((k, 2 * m), z.dtype), np.empty((k, 2 * m), z.dtype), np.empty(m, z.dtype)
    weight = np.empty(2 * m, z.dtype)
    for row in range(n):
        z_row, w_row = z[row if z.shape[0] > 1 else 0], w[row if w.shape[0] > 1 else 0]
        c_row, lags_row = c[row if c.shape[0] > 1 else 0], lags[row if lags.shape[0] > 1 else 0]
        for turn in range(2):  # twice over, so that lags need not wrap
            for j in range(k):
                members[j, turn * m : turn * m + m] = z_row[:, j]
            weight[turn * m : turn * m + m] = w_row
        for d in range(draws):
            if every:
                size = _censor_and_merge(members[:, :m], w_row, c_row[d], psi, weight)
                accuracy[row] += _to_outcome(psi, weight, y[row], size, squared, half) / draws
                spread[row] += 2 * _of_pairs(psi, weight, size, squared, half) / draws
                continue
            used = lags_row if draws == 1 else lags_row[d : d + 1]
            for lag in used:
                both = _censored_at_lag(members, weight, y[row], c_row[d], lag, psi, squared, half)
                accuracy[row] += both[0] / (draws * used.size)
                spread[row] += (m - 1) * both[1] / (draws * used.size)
    return accuracy, spread


@_compile
def _censored_at_lag(z, weight, y, c, lag, psi, squared, half):  # type: ignore[no-untyped-def]
    """Sums of distances from min(z, c) to y, and to the members ``lag`` places further."""
    if half == 0.5 and z.shape[0] == 2:
        return _censored_plane(z[0], z[1], weight, (y[0], y[1]), (c[0], c[c.size - 1]), lag)
    if half == 0.5 and z.shape[0] == 3:
        ends = c[0], c[1 if c.size > 1 else 0], c[c.size - 1]
        return _censored_space(z[0], z[1], z[2], weight, (y[0], y[1], y[2]), ends, lag)
    for j in range(z.shape[0]):
        limit, a, b = c[j if c.size > 1 else 0], z[j], psi[j]
        for i in range(a.size):
            b[i] = a[i] if a[i] < limit else limit
    m = squared.size
    to_outcome = _to_outcome(psi, weight, y, m, squared, half)
    return to_outcome, _at_lag(psi, weight, lag, squared, half)


@_compile
def _censor_and_merge(z, w, c, psi, weight):  # type: ignore[no-untyped-def]
    """Write min(z, c) to psi and return how many places there are.

    Members beyond c in every coordinate have one place together, and a joint weight.
    """
    k, m = z.shape
    size, beyond = 0, 0.0
    for i in range(m):
        inside = False
        for j in range(k):
            limit = c[j if c.size > 1 else 0]
            inside = inside or z[j, i] < limit
            psi[j, size] = z[j, i] if z[j, i] < limit else limit
        weight[size] = w[i]
        if inside:
            size += 1
        else:
            beyond += w[i]
    if beyond > 0:
        for j in range(k):
            psi[j, size] = c[j if c.size > 1 else 0]
        weight[size] = beyond
        size += 1
    return size


@_compile
def _to_outcome(psi, weight, y, size, squared, half):  # type: ignore[no-untyped-def]
    for j in range(psi.shape[0]):
        p, target = psi[j], y[j]
        for i in range(size):
            gap = p[i] - target
            squared[i] = gap * gap if j == 0 else squared[i] + gap * gap
    total = np.zeros_like(weight[:1])[0]
    if half == 0.5:
        for i in range(size):
            total += weight[i] * sqrt(squared[i])
    else:
        for i in range(size):
            total += weight[i] * squared[i] ** half
    return total


@_compile
def _at_lag(psi, weight, lag, squared, half):  # type: ignore[no-untyped-def]
    for j in range(psi.shape[0]):
        p, q = psi[j], psi[j, lag:]
        for i in range(squared.size):
            gap = p[i] - q[i]
            squared[i] = gap * gap if j == 0 else squared[i] + gap * gap
    total = np.zeros_like(weight[:1])[0]
    if half == 0.5:
        for i in range(squared.size):
            total += weight[i] * weight[lag + i] * sqrt(squared[i])
    else:
        for i in range(squared.size):
            total += weight[i] * weight[lag + i] * squared[i] ** half
    return total


@_compile
def _of_pairs(psi, weight, size, squared, half):  # type: ignore[no-untyped-def]
    """The sum over all pairs: each place with those before it."""
    if half == 0.5 and psi.shape[0] == 2:
        return _of_pairs_in_plane(psi[0], psi[1], weight, size)
    if half == 0.5 and psi.shape[0] == 3:
        return _of_pairs_in_space(psi[0], psi[1], psi[2], weight, size)
    total = 0.0
    for i in range(1, size):
        total += weight[i] * _to_outcome(psi, weight, psi[:, i].copy(), i, squared, half)
    return total


# Two and three event times in one loop each: the squares stay in registers.


@_compile
def _of_pairs_in_plane(p, q, weight, size):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(1, size):
        p_before, q_before, part = p[:i], q[:i], np.zeros_like(weight[:1])[0]
        for j in range(p_before.size):
            u, v = p_before[j] - p[i], q_before[j] - q[i]
            part += weight[j] * np.sqrt(u * u + v * v)
        total += weight[i] * part
    return total


@_compile
def _of_pairs_in_space(p, q, r, weight, size):  # type: ignore[no-untyped-def]
    total = 0.0
    for i in range(1, size):
        p_before, q_before, r_before, part = p[:i], q[:i], r[:i], np.zeros_like(weight[:1])[0]
        for j in range(p_before.size):
            u, v, s = p_before[j] - p[i], q_before[j] - q[i], r_before[j] - r[i]
            part += weight[j] * np.sqrt(u * u + v * v + s * s)
        total += weight[i] * part
    return total


@_compile
def _censored_plane(p, q, weight, y, c, lag):  # type: ignore[no-untyped-def]
    p_later, q_later, w_later = p[lag:], q[lag:], weight[lag:]
    to_outcome = at_lag = np.zeros_like(weight[:1])[0]
    for i in range(p.size // 2):
        a, b = min(p[i], c[0]), min(q[i], c[1])
        u, v = a - y[0], b - y[1]
        to_outcome += weight[i] * np.sqrt(u * u + v * v)
        u, v = a - min(p_later[i], c[0]), b - min(q_later[i], c[1])
        at_lag += weight[i] * w_later[i] * np.sqrt(u * u + v * v)
    return to_outcome, at_lag


@_compile
def _censored_space(p, q, r, weight, y, c, lag):  # type: ignore[no-untyped-def]
    p_later, q_later, r_later, w_later = p[lag:], q[lag:], r[lag:], weight[lag:]
    to_outcome = at_lag = np.zeros_like(weight[:1])[0]
    for i in range(p.size // 2):
        a, b, e = min(p[i], c[0]), min(q[i], c[1]), min(r[i], c[2])
        u, v, s = a - y[0], b - y[1], e - y[2]
        to_outcome += weight[i] * np.sqrt(u * u + v * v + s * s)
        u, v, s = a - min(p_later[i], c[0]), b - min(q_later[i], c[1]), e - min(r_later[i], c[2])
        at_lag += weight[i] * w_later[i] * np.sqrt(u * u + v * v + s * s)
    return to_outcome, at_lag
